"""The merge of a branch: what it does to each table, and its one commit."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from shelduck.branches.branch_tables import (
    branch_called,
    flush_kept,
    make_beside,
    source_of_branch,
    table_pairs,
)
from shelduck.branches.merging import (
    FilesTaken,
    MergeConflict,
    Merging,
    merged_files,
    merged_table,
    whole_files,
)
from shelduck.catalog.read import read
from shelduck.catalog.read.queries import changes_after
from shelduck.catalog.read.read import Connection
from shelduck.catalog.read.twins import files_by_path
from shelduck.catalog.running.job_rows import jobs
from shelduck.engine.session import DataFrame, temporary_views
from shelduck.errors import Conflict, NotFound, Unsupported
from shelduck.lake.results import Result, TableName
from shelduck.lake.state import LakeState
from shelduck.lake.table_changes import feed_since
from shelduck.lake.unit import UnitOfWork, carry_out
from shelduck.model.changes.change import COMPACTIONS, DELETES, INSERTS, Entry, Verb, alteration
from shelduck.model.changes.job import Job
from shelduck.model.tables.properties import copied_properties
from shelduck.model.tables.rollup import rollup_names
from shelduck.model.tables.schema import FieldChange, retyped
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.tables.twin import MarkBranch, ShareFiles, TakeFiles, Twin, twin_of
from shelduck.read.scan.scan_frames import Origin
from shelduck.write.edit_verbs import EditVerbs

# At most so many rows that conflict are listed.
_MOST = 100


def merge_branch(state: LakeState, name: str) -> Result:
    """Merge a branch into the schema that it came from."""
    view = UnitOfWork(state)
    for pair in table_pairs(view, *branch_called(view, name)):
        flush_kept(state, view.workspace.base, [t for t in pair if t is not None])

    def prepare(unit: UnitOfWork, _lost: Exception | None) -> None:
        merge = BranchMerge(unit, name)
        merge.look()
        if merge.conflicts:
            raise _refused(name, merge.conflicts)
        merge.stage()

    return carry_out(state, None, lambda _unit: None, prepare=prepare, lost=())


def _refused(name: str, conflicts: list[MergeConflict]) -> Conflict:
    one = conflicts[0]
    return Conflict(
        f"cannot merge branch {name!r}: {len(conflicts)} change(s) conflict, such as {one.kind}"
        f" {one.item} of {one.table}: it was {one.base or 'nothing'}, is now"
        f" {one.ours or 'nothing'}, and {one.theirs or 'nothing'} on the branch; see"
        " merge_conflicts, and change one side"
    )


class BranchMerge:
    """What the merge of a branch does to each table."""

    def __init__(self, unit: UnitOfWork, name: str) -> None:
        self._unit = unit
        self._schema, self._branch = branch_called(unit, name)
        source = source_of_branch(unit, self._branch)
        if source is None:
            raise Conflict(f"the schema that branch {name!r} came from was dropped")
        self._source = source
        self.conflicts: list[MergeConflict] = []
        self.rows: list[tuple[object, ...]] = []
        self._steps: list[tuple[TableVersion | None, TableVersion | None, _Step | None]] = []

    def look(self) -> None:
        """Compare the tables; nothing is staged yet."""
        with self._unit.workspace.reading() as connection:
            history = _History(connection, self._unit.workspace.base.id)
            for ours, theirs in table_pairs(self._unit, self._schema, self._branch):
                self._look(history, ours, theirs)

    def _look(
        self, history: _History, ours: TableVersion | None, theirs: TableVersion | None
    ) -> None:
        if theirs is None:
            assert ours is not None
            merging = Merging(ours.full_name)
            if _is_changed(history, ours, self._branch.base):
                merging.refuse("table", ours.name, "as it was", "changed", "dropped")
            self._add(merging, (ours, None, None), (ours.full_name, "dropped", 0, 0, ""))
            return
        twin = twin_of(theirs.properties, theirs.full_name)
        if ours is None:
            self._new(history, theirs, twin)
            return
        assert twin is not None
        step = _Step(history, self._unit, ours, theirs, twin)
        step.look()
        if not step.is_empty or step.merging.conflicts:
            self._add(step.merging, (ours, theirs, step), step.told())

    def _new(self, history: _History, theirs: TableVersion, twin: Twin | None) -> None:
        name = TableName(self._source.name, theirs.name)
        merging = Merging(str(name))
        if twin is not None and not _is_changed(history, theirs, twin.since):
            return
        if twin is not None:
            merging.refuse("table", theirs.name, "as it was", "dropped", "changed")
        elif self._unit.workspace.has_table(name):
            merging.refuse("table", theirs.name, "", "another table", "a new table")
        self._add(merging, (None, theirs, None), (str(name), "created", 0, 0, ""))

    def _add(
        self,
        merging: Merging,
        step: tuple[TableVersion | None, TableVersion | None, _Step | None],
        row: tuple[object, ...],
    ) -> None:
        self.conflicts += merging.conflicts
        self._steps.append(step)
        self.rows.append(row)

    def stage(self) -> None:
        """Stage the changes of all tables."""
        workspace = self._unit.workspace
        for ours, theirs, step in self._steps:
            if step is not None:
                step.stage()
            elif ours is not None:
                workspace.drop_table(ours)
            else:
                assert theirs is not None
                name = TableName(self._source.name, theirs.name)
                made = make_beside(self._unit, name, theirs)
                workspace.share(ShareFiles(made.id, theirs, is_source=True, counter=made.uuid))
        if self._steps:
            branch = self._branch
            mark = MarkBranch(self._schema, self._source, branch.base, branch.tables)
            workspace.share(mark)


class _History:
    """What happened in the lake since snapshots, which one merge asks for many tables."""

    def __init__(self, connection: Connection, head: int) -> None:
        self.connection, self.head = connection, head
        self._entries: dict[int, list[Entry] | None] = {}

    def changes(self, table: TableVersion, base: int) -> set[Verb]:
        """Return what happened to a table after a snapshot.

        If snapshots in between have expired, that may be anything.
        """
        if base not in self._entries:
            self._entries[base] = self._since(base)
        entries = self._entries[base]
        if entries is None:
            return {*INSERTS, *DELETES, *COMPACTIONS}
        return {entry.verb for entry in entries if entry.id == table.id}

    def _since(self, base: int) -> list[Entry] | None:
        rows = self.connection.execute(changes_after(), {"base": base}).all()
        if len(rows) < self.head - base:
            return None
        return [entry for _, entry in read.entries_between(rows, base, self.head)]

    @cached_property
    def jobs(self) -> list[Job]:
        """All jobs of the lake, the newest first."""
        return jobs(self.connection)


def _is_changed(history: _History, table: TableVersion, base: int) -> bool:
    return bool(history.changes(table, base) - COMPACTIONS - {Verb.INLINE_FLUSH})


class _Step:
    """The merge of one table."""

    def __init__(
        self,
        history: _History,
        unit: UnitOfWork,
        ours: TableVersion,
        theirs: TableVersion,
        twin: Twin,
    ) -> None:
        self._history, self._unit = history, unit
        self._ours, self._theirs = ours, theirs
        self._twin = twin
        self._apart = False
        self.merging = Merging(ours.full_name)
        self._files = FilesTaken()
        self._gone: _ChangedRows | None = None
        self._table = ours

    @property
    def is_empty(self) -> bool:
        """True if the table stays as it is."""
        return self._files.is_empty and self._gone is None and not self._alters

    @property
    def _alters(self) -> bool:
        return not alteration(self._ours, self._table).is_empty

    def look(self) -> None:
        """Compare columns and files of the three states."""
        ours, theirs, connection = self._ours, self._theirs, self._history.connection
        base = self._base()
        states = [
            replace(t, properties=copied_properties(t.properties)) for t in (base, ours, theirs)
        ]
        made = merged_table(self.merging, *states)
        own = ours.properties.keys() - states[1].properties.keys()
        kept = {key: ours.properties[key] for key in own}
        self._table = replace(made, properties=made.properties | kept)
        self._require_rollups_stay()
        sides = [self._rows_changed(t, at) for t, at in self._bases]
        self._apart = self._twin.apart or sides[0]
        if not sides[1]:
            return
        now = [files_by_path(connection, t.id, self._history.head) for t in (ours, theirs)]
        if not self._apart:
            self._files = whole_files(*now)
            return
        self._require_no_job()
        then = [files_by_path(connection, t.id, at) for t, at in self._bases]
        self._files = merged_files(self.merging, *zip(then, now, strict=True))
        if any(one.kind == "file" for one in self.merging.conflicts):
            self._compare_rows()

    def _compare_rows(self) -> None:
        """Tell rows by their ids, where new files of the branch have no older rows."""
        ours, theirs, at = self._ours, self._theirs, self._twin.since
        verbs = self._history.changes(theirs, at)
        if verbs & COMPACTIONS or rollup_names(ours):
            return
        changed = [_ChangedRows.since(self._unit, table, at) for table, at in self._bases]
        if changed[0] is None or changed[1] is None:
            return
        self.merging.conflicts = [c for c in self.merging.conflicts if c.kind != "file"]
        changed[1].refuse(self.merging, changed[0])
        self._files = FilesTaken(taken=self._files.taken)
        self._gone = changed[1]

    @property
    def _bases(self) -> tuple[tuple[TableVersion, int], tuple[TableVersion, int]]:
        """Both sides, each with the snapshot since which it is compared."""
        return (self._ours, self._twin.base), (self._theirs, self._twin.since)

    def _rows_changed(self, table: TableVersion, at: int) -> bool:
        """Return whether files have others rows than at a snapshot, or converted ones."""
        verbs = self._history.changes(table, at)
        return bool(verbs & (INSERTS | DELETES)) or self._converted(table, at) is not None

    def _converted(self, table: TableVersion, at: int) -> Job | None:
        """Return a job that converted a column of a table after a snapshot."""
        known = (j for j in self._history.jobs if j.table_id == table.id)
        return next((job for job in known if (job.published or 0) > at), None)

    def _base(self) -> TableVersion:
        """Return the twin as it was when it was made, or merged the last time."""
        theirs, since = self._theirs, self._twin.since
        with suppress(NotFound):
            at = read.snapshot(self._history.connection, version=since)
            found = read.table_by_id(self._history.connection, theirs.id, at, self._unit.state.info)
            if found is not None:
                return found
        raise Conflict(
            f"snapshot {since}, with which a merge compares {theirs.full_name}, has expired; expire"
            " snapshots with Shelduck, which keeps it, and merge by INSERT, DELETE or MERGE INTO"
        )

    def _require_rollups_stay(self) -> None:
        if rollup_names(self._ours) and self._table.columns != self._ours.columns:
            raise Unsupported(
                f"cannot merge columns into {self._ours.full_name}, which has rollups; drop them"
                " first, and make them again after the merge"
            )

    def _require_no_job(self) -> None:
        """Refuse a merge if one side converted a column, and the other one has rows without it."""
        for (table, at), side in zip(self._bases, ("here", "on the branch"), strict=True):
            job = self._converted(table, at)
            if job is not None:
                told = f"both have new rows; converted {side}"
                self.merging.refuse("table", f"job {job.id}", "", told, "")

    def told(self) -> tuple[object, ...]:
        """Return the row of `BranchVerbs.branch_diff`."""
        changed = alteration(self._ours, self._table).changed
        detail = ", ".join(map(_word_of, changed))
        rows = sum(file.rows for file in self._files.taken)
        word = "conflict" if self.merging.conflicts else "merged"
        return (self._ours.full_name, word, len(self._files.taken), rows, detail)

    def stage(self) -> None:
        """Stage the table's new columns, and the files that it gets."""
        workspace, files = self._unit.workspace, self._files
        if self._alters:
            unsafe = retyped(self._ours.columns, self._table.columns)
            workspace.alter_table(alteration(self._ours, self._table, unsafe))
        if self._gone is not None:
            self._gone.delete(self._unit, self._ours)
        taken = files.taken
        workspace.share(
            TakeFiles(
                self._ours,
                self._theirs,
                self._twin,
                tuple(files.ended),
                tuple(f.id for f in taken),
                tuple(f.delete_id for f in taken if f.delete_id is not None),
                tuple(files.replaced),
                files.is_whole,
                self._apart,
                sum(f.rows for f in taken),
                sum(f.size for f in taken),
            )
        )


def _word_of(change: FieldChange) -> str:
    before, after = change.before, change.after
    if before is None:
        return f"add {after.field.name}" if after is not None else ""
    return f"drop {before.field.name}" if after is None else f"change {before.field.name}"


@dataclass(frozen=True, slots=True)
class _ChangedRows:
    """The rows that a side changed since a snapshot, by ``rowid``, and whether each ``lives``.

    Spark compares them, where both sides changed rows of one file.
    """

    frame: DataFrame

    @classmethod
    def since(cls, unit: UnitOfWork, table: TableVersion, snapshot: int) -> _ChangedRows | None:
        """Return the rows that a table has changed, None if nobody knows any more."""
        feed = feed_since(unit, table, snapshot)
        if feed is None:
            return None
        events = feed.where("_change_type <> 'insert'").selectExpr(
            "_row_id AS rowid", "struct(_commit_version, _change_type) AS last"
        )
        last = events.groupBy("rowid").agg({"last": "max"})
        return cls(last.selectExpr("rowid", "`max(last)`._change_type LIKE 'update%' AS lives"))

    def refuse(self, merging: Merging, ours: _ChangedRows) -> None:
        """Note each row that both sides changed, unless both deleted it."""
        both = self.frame.withColumnRenamed("lives", "theirs").join(ours.frame, "rowid")
        for row in both.where("theirs OR lives").orderBy("rowid").limit(_MOST).collect():
            now, then = ("changed" if lives else "deleted" for lives in (row.lives, row.theirs))
            merging.refuse("row", f"rowid {row.rowid}", "as it was", now, then)

    def delete(self, unit: UnitOfWork, table: TableVersion) -> None:
        """Stage that these rows leave another table, in whichever files they are there."""
        with temporary_views(unit.state.spark, {"changed": self.frame}) as names:
            verbs = EditVerbs(unit.state, TableName.of(table), unit)
            verbs.delete(f"{Origin.ROW_ID} IN (SELECT rowid FROM {names['changed']})")
