"""The merge of a branch: what it does to each table, its one commit, and its undo.

An undo takes back the last merge of a branch, and later writes stay. It is a merge, too: of the
tables as they were before that merge, compared with those it made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from shelduck.branches.branch_tables import (
    branch_called,
    flush_kept,
    refresh_rollups,
    share_table,
    source_of_branch,
    table_pairs,
)
from shelduck.branches.branch_views import ViewMerge
from shelduck.branches.changed_rows import RowMerge, Side, give_rows
from shelduck.branches.merging import (
    OURS,
    MergeConflict,
    Merging,
    Resolution,
    merged_table,
    refused,
)
from shelduck.branches.table_merge import (
    LakeHistory,
    RollupsTaken,
    TableMerge,
    alter_to,
    is_changed,
    merged_rollups,
)
from shelduck.catalog.read import read
from shelduck.catalog.read.twins import base_of_dropped
from shelduck.errors import Conflict, InvalidRequest, NotFound, Unsupported
from shelduck.keys.unique_keys import KeyVerbs
from shelduck.lake.results import Result, TableName
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork, carry_out, carry_out_anew
from shelduck.model.changes.change import DELETES, INSERTS
from shelduck.model.tables.keys import folds
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.tables.twin import MarkBranch, ShareFiles, Twin, branched_from
from shelduck.rollups.following import drop_with_rollups

T = TypeVar("T")


class _Rebased(Conflict):
    """The branch has got what happened to its source: look at it again."""


def merge_branch(
    state: LakeState,
    name: str,
    resolutions: Sequence[Resolution] = (),
    require: Callable[[UnitOfWork], str] | None = None,
) -> Result:
    """Merge a branch into the schema that it came from.

    ``require`` raises if the lake, as the merge sees it, must not get it, and returns the name of
    the only table that the branch may have changed.
    """
    view = UnitOfWork(state)
    schema, branch = branch_called(view, name)
    pairs = list(table_pairs(view, schema, branch))
    for pair in pairs:
        tables = [t for t in pair if t is not None]
        for table in tables:
            if folds(table) and len(tables) > 1:
                KeyVerbs(state, TableName.of(table)).fold()
        flush_kept(state, tables)

    def looked(unit: UnitOfWork) -> BranchMerge:
        only = None if require is None else require(unit)
        merge = BranchMerge(unit, name, resolutions)
        merge.look()
        other = next((table for table in merge.changed if only not in (None, table)), None)
        if other is not None:
            raise Unsupported(
                f"cannot fast-forward {only} alone: branch {name!r} has changed {other}, too; use"
                f" MERGE BRANCH {name}, which merges all of its tables"
            )
        if merge.conflicts:
            raise refused(f"merge branch {name!r}", merge.conflicts)
        return merge

    def prepare(unit: UnitOfWork, _lost: Exception | None) -> None:
        merge = looked(unit)
        if merge.rebases:
            carry_out_anew(state, lambda own: looked(own).stage_rebase())
            raise _Rebased(f"branch {name!r} got new rows of its source; merge it again")
        merge.stage()

    message = f"merge branch {schema.text} since snapshot {branch.base}"
    lost = (_Rebased,)
    done = carry_out(state, None, lambda _unit: None, message=message, prepare=prepare, lost=lost)
    refresh_rollups(state, pairs)
    return done


class BranchMerge:
    """What the merge of a branch does to each table."""

    def __init__(self, unit: UnitOfWork, name: str, resolutions: Sequence[Resolution] = ()) -> None:
        self._unit, self._resolutions = unit, resolutions
        self._schema, self._branch = branch_called(unit, name)
        source = source_of_branch(unit, self._branch)
        if source is None:
            raise Conflict(f"the schema that branch {name!r} came from was dropped")
        self._source = source
        self.conflicts: list[MergeConflict] = []
        self._both: list[TableMerge] = []
        self._fresh: list[tuple[Merging, TableVersion]] = []
        self._dropped: list[TableVersion] = []
        self._made: list[TableVersion] = []
        self._pairs: list[tuple[TableVersion, TableVersion]] = []
        self.views = ViewMerge(unit, source)

    def look(self) -> None:
        """Compare the tables; nothing is staged yet."""
        with self._unit.workspace.reading() as connection:
            history = LakeHistory(connection, self._unit.workspace.base.id)
            pairs = list(table_pairs(self._unit, self._schema, self._branch))
            self.views.look(connection, self._schema, self._branch, self._resolutions)
            names = {t.name for pair in pairs for t in pair if t is not None} | self.views.names
            for each in self._resolutions:
                if not any(map(each.is_about, names)):
                    where = f"branch {self._schema.text!r}"
                    raise NotFound.named("table", each.table or "", sorted(names), where=where)
            self._pairs = [(ours, t) for ours, t in pairs if ours is not None and t is not None]
            for ours, theirs in pairs:
                self._look(history, ours, theirs)
        for merging, theirs in self._fresh:
            self._look_at_new(merging, theirs)
        self.views.require_free({t.name.lower() for t in self._dropped})
        self.conflicts += self.views.conflicts
        looked, self._both = self._both, []
        for step in looked:
            step.look_at_rows()
            if not step.is_empty or step.merging.conflicts:
                self._add(step.merging, step, self._both)

    def _look(
        self, history: LakeHistory, ours: TableVersion | None, theirs: TableVersion | None
    ) -> None:
        known = ours or theirs
        assert known is not None
        about = [one for one in self._resolutions if one.is_about(known.name)]
        merging = Merging(str(self._named(known)), about)
        twin = None if theirs is None else branched_from(theirs)
        if ours is not None and theirs is not None:
            assert twin is not None
            self._both.append(TableMerge(history, self._unit, (ours, theirs), twin, about))
            self._both[-1].look()
        elif ours is not None:
            base = base_of_dropped(history.connection, self._schema.id, ours.id)
            if is_changed(history, ours, self._branch.base if base is None else base):
                self._decide(merging, ours, self._dropped, ("changed", "dropped"))
            else:
                self._add(merging, ours, self._dropped)
        elif twin is None or is_changed(history, known, twin.since):
            self._fresh.append((merging, known))

    def _look_at_new(self, merging: Merging, theirs: TableVersion) -> None:
        """Look at a table that only the branch has, for which the branch may have dropped one."""
        named, workspace = self._named(theirs), self._unit.workspace
        gone = {*(t.name.lower() for t in self._dropped), *self.views.dropped}
        there = "another table" if workspace.has_table(named) else "a view"
        is_taken = there != "a view" or workspace.view(named) is not None
        is_taken &= theirs.name.lower() not in gone
        if is_taken and merging.decided() != OURS:
            merging.refuse("table", theirs.name, "", there, "a new table")
            self._add(merging, theirs, self._made)
        elif branched_from(theirs) is not None:
            self._decide(merging, theirs, self._made, ("dropped", "changed"))
        elif not is_taken:
            self._add(merging, theirs, self._made)

    def _decide(
        self, merging: Merging, table: TableVersion, into: list[TableVersion], done: tuple[str, str]
    ) -> None:
        """Let a resolution decide on a table that one side dropped, and the other one changed."""
        side = merging.decided()
        if side is None:
            merging.refuse("table", table.name, "as it was", *done)
        if side != OURS:
            self._add(merging, table, into)

    def _add(self, merging: Merging, what: T, into: list[T]) -> None:
        self.conflicts += merging.conflicts
        into.append(what)

    @property
    def changed(self) -> list[str]:
        """The names of the tables and views that the merge changes, as the source has them."""
        others = (str(self._named(t)) for t in (*self._dropped, *self._made))
        return [*(s.merging.table for s in self._both), *others, *self.views.changed]

    def _named(self, table: TableVersion) -> TableName:
        return TableName(self._source.name, table.name)

    @property
    def rebases(self) -> bool:
        """True if the branch must get rows of the source before."""
        return any(step.rebases for step in self._both)

    def stage_rebase(self) -> None:
        """Stage what the branch gets of its source before the merge."""
        for step in self._both:
            step.stage_rebase()

    def stage(self) -> None:
        """Stage the changes of all tables."""
        workspace = self._unit.workspace
        for ours in self._dropped:
            drop_with_rollups(self._unit, ours)
        self.views.stage_drops()
        for step in self._both:
            step.stage()
        for theirs in self._made:
            sharing = ShareFiles(theirs.id, theirs, is_source=True)
            share_table(self._unit, self._named(theirs), theirs, sharing)
        merged = ((theirs, workspace.table_of(ours.id)) for ours, theirs in self._pairs)
        self.views.stage([(twin, table) for twin, table in merged if table is not None])
        if self.changed or self.views.is_decided:
            branch = self._branch
            mark = MarkBranch(self._schema, self._source, branch.base, branch.tables)
            workspace.share(mark)


def undo_merge(state: LakeState, name: str) -> Result:
    """Take back the last merge of a branch in one commit."""
    found: list[tuple[TableVersion, TableVersion | None]] = []
    done = carry_out_anew(state, lambda unit: found.extend(_undo(unit, name)))
    refresh_rollups(state, found)
    return done


def _undo(unit: UnitOfWork, name: str) -> list[tuple[TableVersion, TableVersion | None]]:
    """Stage it, and return the tables that it changes, each with its state before the merge."""
    schema, branch = branch_called(unit, name)
    source = source_of_branch(unit, branch)
    undone = []
    if source is None:
        raise InvalidRequest(f"branch {name!r} has no merge to undo")
    views = ViewMerge(unit, source)
    with unit.workspace.reading() as connection:
        history = LakeHistory(connection, unit.workspace.base.id)
        for ours, theirs in table_pairs(unit, schema, branch):
            twin = None if theirs is None else branched_from(theirs)
            if ours is not None and theirs is not None and _is_merged(twin, branch.base):
                undone.append(_UndoneTable(unit, history, ours, theirs, branch.base))
        if branch.since == branch.base:
            views.look_back(connection, branch.base)
    if not (undone or views.changed):
        raise InvalidRequest(f"branch {name!r} has no merge to undo")
    conflicts = [conflict for each in undone for conflict in each.look()] + views.conflicts
    if conflicts:
        raise refused(f"undo the merge of branch {name!r}", conflicts)
    views.stage_drops()
    for each in undone:
        each.stage()
    views.stage()
    mark = MarkBranch(schema, source, branch.base, branch.tables, since=branch.since)
    unit.workspace.share(mark)
    return [(each.ours, each.before) for each in undone]


def _is_merged(twin: Twin | None, at: int) -> bool:
    return twin is not None and twin.base == twin.since == at


class _UndoneTable:
    """One table that a merge changed, or made; ``at`` is its snapshot."""

    def __init__(
        self,
        unit: UnitOfWork,
        history: LakeHistory,
        ours: TableVersion,
        theirs: TableVersion,
        at: int,
    ) -> None:
        self._unit, self.ours = unit, ours
        self._merging = Merging(ours.full_name)
        self._made = ours
        self._past: Side | None = None
        self._rollups = RollupsTaken()
        tables = [
            read.table_by_id(history.connection, ours.id, snapshot, unit.state.info)
            for n in (at, at - 1)
            for snapshot in [read.snapshot(history.connection, version=n)]
        ]
        self._then, self.before = tables
        self._converted = {c.shadow_id for c in history.conversions_of(theirs)}
        self._is_changed = is_changed(history, ours, at)
        self._now = Side(unit, ours, at, history.conversions(ours, at))
        brought = history.changes(ours, at - 1) if self.before is not None else set()
        self._has_rows = bool(brought & (INSERTS | DELETES))

    def look(self) -> list[MergeConflict]:
        """Return what the undo cannot take back, because somebody has changed it since."""
        then, before, merging = self._then, self.before, self._merging
        assert then is not None
        if before is None:
            if self._is_changed:
                merging.refuse("table", self.ours.name, "made by the merge", "changed", "missing")
            return merging.conflicts
        new = {f.id for f in then.columns} - {f.id for f in before.columns}
        if self._is_changed and (new & self._converted or folds(self.ours)):
            told = "has a key model" if folds(self.ours) else "got a converted column"
            merging.refuse("table", f"which {told}", "merged", "changed since", "before the merge")
            return merging.conflicts
        self._made = merged_table(merging, then, self.ours, before)
        states = (then, self.ours, before)
        self._rollups = merged_rollups(self._unit, merging, self._made, states)
        if self._has_rows and not merging.conflicts:
            self._past = Side(self._unit, before, self._now.since - 1, goes_back=True)
            rows = RowMerge(self._made, then, self._now, self._past)
            if rows.is_known:
                rows.stay(merging)
            else:
                merging.refuse("table", "its rows", "", "", "changes that nobody knows any more")
        return merging.conflicts

    def stage(self) -> None:
        """Stage the table as it was, with what came since."""
        if self.before is None:
            drop_with_rollups(self._unit, self.ours)
            return
        alter_to(self._unit, self.ours, self._made)
        if self._past is not None:
            give_rows(self._unit, self._past, self._now, None)
        self._rollups.stage(self._unit, self.ours)
