"""The undo of a merge: the last one of a branch is taken back, and later writes stay.

It is a merge, too: of the tables as they were before that merge, compared with those it made.
"""

from __future__ import annotations

from shelduck.branches.branch_tables import (
    branch_called,
    refresh_rollups,
    source_of_branch,
    table_pairs,
)
from shelduck.branches.branch_views import ViewMerge
from shelduck.branches.changed_rows import RowMerge, Side, give_rows
from shelduck.branches.merging import MergeConflict, Merging, merged_table, refused
from shelduck.branches.table_merge import (
    LakeHistory,
    RollupsTaken,
    alter_to,
    is_changed,
    merged_rollups,
)
from shelduck.catalog.read import read
from shelduck.errors import InvalidRequest
from shelduck.lake.results import Result
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork, carry_out_anew
from shelduck.model.changes.change import DELETES, INSERTS
from shelduck.model.tables.keys import folds
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.tables.twin import MarkBranch, Twin, branched_from
from shelduck.rollups.following import drop_with_rollups


def undo_merge(state: LakeState, name: str) -> Result:
    """Take back the last merge of a branch in one commit."""
    found: list[TableVersion] = []
    done = carry_out_anew(state, lambda unit: found.extend(_undo(unit, name)))
    refresh_rollups(state, found)
    return done


def _undo(unit: UnitOfWork, name: str) -> list[TableVersion]:
    """Stage it, and return the tables that it changes."""
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
    return [each.ours for each in undone]


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
        self._then, self._before = tables
        self._converted = {c.shadow_id for c in history.conversions_of(theirs)}
        self._is_changed = is_changed(history, ours, at)
        self._now = Side(unit, ours, at, history.conversions(ours, at))
        brought = history.changes(ours, at - 1) if self._before is not None else set()
        self._has_rows = bool(brought & (INSERTS | DELETES))

    def look(self) -> list[MergeConflict]:
        """Return what the undo cannot take back, because somebody has changed it since."""
        then, before, merging = self._then, self._before, self._merging
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
        if self._before is None:
            drop_with_rollups(self._unit, self.ours)
            return
        alter_to(self._unit, self.ours, self._made)
        if self._past is not None:
            give_rows(self._unit, self._past, self._now, None)
        self._rollups.stage(self._unit, self.ours)
