"""The merge of one table: its columns and files in three states, and what follows for its rows.

A branch shares files with its source. Positions alone say which rows of these it deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
from pyarrow import compute

from shelduck.branches.branch_tables import rollups_then, twin_as_begun
from shelduck.branches.changed_rows import KeyedMerge, RowMerge, Side, delete_changed, give_rows
from shelduck.branches.merging import (
    THEIRS,
    FilesTaken,
    MergeConflict,
    Merging,
    Resolution,
    merged_files,
    merged_table,
    whole_files,
    with_own,
)
from shelduck.catalog.read import read
from shelduck.catalog.read.queries import changes_after
from shelduck.catalog.read.read import Connection
from shelduck.catalog.read.twins import TwinFile, files_by_path, keeps_rows
from shelduck.catalog.running.job_rows import jobs
from shelduck.engine.session import DataFrame
from shelduck.errors import NotFound
from shelduck.lake.lookup import rows_of, table_of_id, table_then
from shelduck.lake.results import TableName
from shelduck.lake.unit import UnitOfWork
from shelduck.model.changes.change import (
    COMPACTIONS,
    DELETES,
    INSERTS,
    MOVES,
    Entry,
    Verb,
    alteration,
)
from shelduck.model.changes.job import Job
from shelduck.model.tables.keys import folds
from shelduck.model.tables.rollup import RollupSpec, definition_of, rollup_names
from shelduck.model.tables.schema import retyped
from shelduck.model.tables.table_version import Conversion, TableVersion
from shelduck.model.tables.twin import FollowSource, TakeFiles, Twin
from shelduck.read.table_rows import table_rows
from shelduck.rollups.following import rename_with_rollups
from shelduck.rollups.rollup_plan import spec_of
from shelduck.rollups.rollup_tables import create_rollup, drop_rollup, list_rollups
from shelduck.write.changes.edits import deleted
from shelduck.write.deletes.delete_files import write_delete_files
from shelduck.write.deletes.position_files import FILE, POSITION, collected_positions
from shelduck.write.hooks import stage_rows


class LakeHistory:
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

    def has_same_files(self, table: TableVersion, base: int) -> bool:
        """Return whether a table certainly has the rows of a snapshot, even if the log has gaps."""
        then, now = (
            {path: (file.delete_path, file.in_part) for path, file in found.items()}
            for at in (base, self.head)
            for found in [files_by_path(self.connection, table.id, at)]
        )
        return then == now and not keeps_rows(self.connection, table.id, self.head)

    @cached_property
    def _jobs(self) -> list[Job]:
        return jobs(self.connection)

    def conversions(self, table: TableVersion, base: int) -> tuple[Job, ...]:
        """Return the jobs that changed a table after a snapshot, in their order."""
        own = (j for j in self._jobs if j.table_id == table.id and not j.work.makes_rollups)
        found = [(j.published or 0, j.id, j) for j in own]
        return tuple(job for at, _, job in sorted(found, key=lambda f: f[:2]) if at > base)

    def conversions_of(self, table: TableVersion) -> Iterator[Conversion]:
        """Yield what jobs of a table have converted."""
        return (c for job in self.conversions(table, 0) for c in job.work.conversions)


def is_changed(history: LakeHistory, table: TableVersion, base: int) -> bool:
    """Return whether a table has another name, or other columns or rows, than at a snapshot.

    The log has a rename as a table of that name.
    """
    names = read.names_of(history.connection, table.id).items()
    then = [name for begin, (_, name) in names if begin <= base]
    return then[-1:] not in ([], [table.name]) or bool(history.changes(table, base) - MOVES)


class TableMerge:
    """The merge of one table.

    Files come as they are. Rows that both sides may have changed are compared by Spark, and then
    `_give` stages what is to happen to them. If the branch converted columns, and the source has
    new rows, the branch first gets these: it ``rebases``.
    """

    def __init__(
        self,
        history: LakeHistory,
        unit: UnitOfWork,
        tables: tuple[TableVersion, TableVersion],
        twin: Twin,
        resolutions: Sequence[Resolution],
    ) -> None:
        self._history, self._unit, self._twin = history, unit, twin
        self._ours, self._theirs = tables
        self._sides = (
            Side(unit, self._ours, twin.base, history.conversions(self._ours, twin.base)),
            Side(unit, self._theirs, twin.since, history.conversions(self._theirs, twin.since)),
        )
        self.merging = Merging(self._ours.full_name, resolutions)
        self.rebases = False
        self._apart = False
        self._files = FilesTaken()
        self._rollups = RollupsTaken()
        self._give: Callable[[], object] | None = None
        self._base = self._table = self._ours
        self._name = self._ours.name
        self._changed = (False, False)
        self._copies = False
        self._now: list[Mapping[str, TwinFile]] = []
        self._then: list[Mapping[str, TwinFile]] = []
        self._ours_then: TableVersion | None = None

    @property
    def is_empty(self) -> bool:
        """True if the table stays as it is."""
        is_named = self._name == self._ours.name and self._rollups == RollupsTaken()
        return is_named and self._files.is_empty and self._give is None and not self._alters

    @property
    def _alters(self) -> bool:
        return not alteration(self._ours, self._table).is_empty

    def look(self) -> None:
        """Compare columns of the three states, and read what the catalog says of files.

        `look_at_rows` goes on without the catalog: Spark may take long, and others wait for it.
        """
        self._base = twin_as_begun(self._unit, self._history.connection, self._theirs, self._twin)
        self._require_columns()
        self._table = merged_table(self.merging, self._base, self._ours, self._theirs)
        names = [t.name for t in (self._base, self._ours, self._theirs)]
        self._name = self.merging.chosen("table", "name", *names)
        self._require_converted()
        self._changed = (self._has_new_rows(self._sides[0]), self._has_new_rows(self._sides[1]))
        self._apart = self._twin.apart or self._changed[0]
        if self._changed[1]:
            self._now = [self._files_of(side, self._history.head) for side in self._sides]
        if self._changed[1] and self._apart:
            self._then = [self._files_of(side, side.since) for side in self._sides]
            connection, info = self._history.connection, self._unit.state.info
            self._ours_then = table_then(connection, self._ours.id, self._twin.base, info)
        verbs = self._history.changes(self._theirs, self._twin.since)
        self._copies = bool(verbs & COMPACTIONS or rollup_names(self._ours))

    def look_at_rows(self) -> None:
        """Compare rows of both sides, if there are new ones."""
        ours, theirs = self._sides
        self._require_rules()
        states = (self._base, self._ours, self._theirs)
        self._rollups = merged_rollups(self._unit, self.merging, self._table, states)
        if not self._changed[1] or self.merging.conflicts:
            return
        if not self._apart:
            self._files = whole_files(*self._now)
            return
        if folds(self._table) and not (ours.jobs or theirs.jobs):
            keyed = KeyedMerge(self._table, ours, theirs)
            stay = keyed.stay(self.merging)
            self._give = partial(keyed.stage, self._unit, stay)
            return
        rows = RowMerge(self._table, self._base, ours, theirs)
        if theirs.jobs:
            self._require_rebase(rows)
            return
        found = Merging(self.merging.table)
        self._files = merged_files(found, *zip(self._then, self._now, strict=True))
        if found.conflicts or ours.jobs:
            self._compare(rows, found.conflicts)

    def _compare(self, rows: RowMerge, conflicts: Sequence[MergeConflict]) -> None:
        """Tell rows by their ids, where both sides changed a file."""
        if folds(self._table) or not rows.is_known:
            self.merging.conflicts += conflicts
            self._require_no_job()
            return
        ours, theirs = self._sides
        is_shared = not (ours.jobs or self._copies)
        dead = self._deleted_apart([one.item for one in conflicts]) if is_shared else None
        if dead is not None:
            self._give = partial(delete_at, self._unit, self._ours, dead)
            return
        stay = rows.stay(self.merging)
        if stay is None and is_shared:
            self._files = FilesTaken(taken=self._files.taken)
            self._give = partial(delete_changed, self._unit, theirs, self._ours)
            return
        self._files = FilesTaken()
        self._give = partial(give_rows, self._unit, theirs, ours, stay)

    def _deleted_apart(self, paths: Sequence[str]) -> pa.Table | None:
        """Return what the branch deleted in files, None if the source did so, or lacks one."""
        files = [*self._then, *self._now]
        if any(path not in each for each in files for path in paths) or self._ours_then is None:
            return None
        tables = [self._ours_then, self._base, self._ours, self._theirs]
        states = [
            TableFiles(table, {path: each[path].id for path in paths})
            for table, each in zip(tables, files, strict=True)
        ]
        return deleted_by_branch(self._unit, states[::2], states[1::2])

    def _require_rebase(self, rows: RowMerge) -> None:
        is_new = self._sides[0].since == self._twin.base and not self._twin.apart
        if self._sides[0].jobs or folds(self._table) or not (is_new and rows.is_known):
            self._require_no_job()
            return
        stay = rows.stay(self.merging, THEIRS)
        self.rebases = True
        self._give = partial(self._rebase, stay)

    def _rebase(self, stay: DataFrame | None) -> None:
        """Stage that the branch gets what happened to the source."""
        workspace, ours, theirs = self._unit.workspace, *self._sides
        made = with_own(replace(self._theirs, **_shape(self._table)), self._theirs)
        alter_to(self._unit, self._theirs, made)
        give_rows(self._unit, ours, theirs, stay)
        workspace.share(FollowSource(self._theirs, replace(self._twin, base=workspace.base.id)))

    def _files_of(self, side: Side, at: int) -> Mapping[str, TwinFile]:
        return files_by_path(self._history.connection, side.table.id, at)

    def _has_new_rows(self, side: Side) -> bool:
        """Return whether files have others rows than at a snapshot, or converted ones."""
        verbs = self._history.changes(side.table, side.since)
        return bool(verbs & (INSERTS | DELETES) or side.jobs)

    def _require_columns(self) -> None:
        known = {n for t in (self._base, self._ours, self._theirs) for n in t.columns.names}
        for each in self.merging.resolutions:
            if each.column is not None and each.column.lower() not in map(str.lower, known):
                raise NotFound.named(
                    "column", each.column, sorted(known), where=self._ours.full_name
                )

    def _require_converted(self) -> None:
        """Note columns that one side converted, and the other one dropped or took back."""
        base = self._base.columns
        for side, other in (self._sides, self._sides[::-1]):
            there = other.table.columns
            for c in self._history.conversions_of(side.table):
                old, now = base.by_id(c.column_id), side.table.columns.by_id(c.shadow_id)
                is_lost = old is not None and there.by_id(c.column_id) is None
                is_back = base.by_id(c.shadow_id) is not None and there.by_id(c.column_id)
                if now is not None and there.by_id(c.shadow_id) is None and (is_lost or is_back):
                    found = there.by_id(c.column_id)
                    told = (now, found) if side is self._sides[0] else (found, now)
                    self.merging.refuse("column", now.name, old or now, *told)

    def _require_rules(self) -> None:
        """Note rules of one side that new rows of the other one break."""
        ours, theirs = self._sides
        of_ours, of_theirs = self._changed
        for side, other, is_new in ((ours, theirs, of_ours), (theirs, ours, of_theirs)):
            for wrong in side.broken_rules(self._table, other.jobs) if is_new else ():
                here = "rows here" if side is ours else "rows on the branch"
                self.merging.refuse("rule", here, "", *_told_of(side is ours, wrong))

    def _require_no_job(self) -> None:
        """Refuse a merge if one side converted a column, and the other one has rows without it."""
        for side, where in zip(self._sides, ("here", "on the branch"), strict=True):
            for job in side.jobs[:1]:
                told = f"both have new rows; converted {where}"
                self.merging.refuse("table", f"job {job.id}", "", told, "")

    def stage(self) -> None:
        """Stage the table's new columns, and the files and rows that it gets."""
        workspace, files = self._unit.workspace, self._files
        alter_to(self._unit, self._ours, self._table)
        if self._give is not None:
            self._give()
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
        self._rollups.stage(self._unit, self._ours)
        if self._name != self._ours.name:
            rename_with_rollups(self._unit, self._ours, self._name)

    def stage_rebase(self) -> None:
        """Stage what the branch gets before."""
        if self.rebases and self._give is not None:
            self._give()


def alter_to(unit: UnitOfWork, table: TableVersion, made: TableVersion) -> None:
    """Stage that a table becomes what a merge made."""
    found = alteration(table, made, retyped(table.columns, made.columns))
    if not found.is_empty:
        unit.workspace.alter_table(found)


@dataclass(frozen=True, slots=True)
class RollupsTaken:
    """The rollups that a table loses by a merge, and those that it gets."""

    drops: tuple[str, ...] = ()
    made: tuple[RollupSpec, ...] = ()

    def stage(self, unit: UnitOfWork, table: TableVersion) -> None:
        """Stage them, new ones without rows; a refresh after the commit fills these."""
        for name in self.drops:
            drop_rollup(unit, table_of_id(unit, table), name)
        if self.made:
            base = table_of_id(unit, table)
            for spec in self.made:
                create_rollup(unit, base, spec)
            list_rollups(unit, base, (*rollup_names(base), *(spec.name for spec in self.made)))


def merged_rollups(
    unit: UnitOfWork,
    merging: Merging,
    made: TableVersion,
    states: tuple[TableVersion, TableVersion, TableVersion],
) -> RollupsTaken:
    """Return what a merge of three states of a table does to the rollups of the second one."""
    if not any(map(rollup_names, states)):
        return RollupsTaken()
    known = rollup_names(states[0])

    def rollups(table: TableVersion) -> dict[str, RollupSpec | str]:
        """Return them by name; one that was there before is the same in all states."""
        tables = {definition_of(each).name: each for each in rollups_then(unit, table)}
        found = {n: n if n in known else spec_of(made, each) for n, each in tables.items()}
        return {name: spec for name, spec in found.items() if spec is not None}

    base, ours, theirs = map(rollups, states)
    merged = merging.mapping("rollup", str, (base, ours, theirs))
    new = (spec for name, spec in merged.items() if ours.get(name) != spec)
    return RollupsTaken(
        tuple(name for name, spec in ours.items() if merged.get(name) != spec),
        tuple(spec for spec in new if isinstance(spec, RollupSpec)),
    )


def _shape(table: TableVersion) -> dict[str, Any]:
    """Return what a merge makes of a table, by name."""
    names = ("columns", "comments", "partition", "sort", "properties")
    return {name: getattr(table, name) for name in names}


def _told_of(is_ours: bool, wrong: str) -> tuple[str, str]:
    return (wrong, "a rule") if is_ours else ("a rule", wrong)


_NONE = pa.array([], pa.int64())


@dataclass(frozen=True, slots=True)
class TableFiles:
    """A table at one snapshot, and the ids of some of its files by path."""

    table: TableVersion
    files: Mapping[str, int]

    def positions(self, unit: UnitOfWork) -> dict[str, pa.Array]:
        """Return the deleted positions of the files by path."""
        state = unit.state
        rows = table_rows(state.store, self.table, state.layouts)
        known = rows.files_of(self.files.values())
        some = [file for file in known.values() if file.delete_file is not None]
        found = collected_positions(state.spark, some, self.table) if some else {}
        return {path: found.get(number, _NONE) for path, number in self.files.items()}


def deleted_by_branch(
    unit: UnitOfWork, ours: Sequence[TableFiles], theirs: Sequence[TableFiles]
) -> pa.Table | None:
    """Return positions that the branch deleted in files of the source; None if both deleted one.

    Each side is its state at the base, and now. The columns are as `write_delete_files` takes them.
    """
    gone = []
    for side in (ours, theirs):
        then, now = (state.positions(unit) for state in side)
        gone.append({path: _without(now[path], then[path]) for path in now})
    if any(len(found) > len(_without(found, gone[0][path])) for path, found in gone[1].items()):
        return None
    files = ours[1].files
    numbers = [pa.repeat(pa.scalar(files[p], pa.int64()), len(f)) for p, f in gone[1].items()]
    columns = [pa.concat_arrays([_NONE, *each]) for each in (numbers, gone[1].values())]
    return pa.table(columns, names=[FILE, POSITION])


def _without(some: pa.Array, others: pa.Array) -> pa.Array:
    return some.filter(compute.invert(compute.is_in(some, others)))


def delete_at(unit: UnitOfWork, table: TableVersion, positions: pa.Table) -> None:
    """Stage that rows leave a table, by their positions in files."""
    rows = rows_of(unit, TableName.of(table), writes=True, deletes=True)
    register = unit.writer.register
    dead = write_delete_files(unit.state.spark, positions, rows, rows.table, register=register)
    stage_rows(unit, deleted(rows, dead, ()))
