"""The merge of a branch: what it does to each table, and its one commit."""

from __future__ import annotations

from collections.abc import Sequence

from shelduck.branches.branch_tables import (
    branch_called,
    flush_kept,
    make_beside,
    source_of_branch,
    table_pairs,
)
from shelduck.branches.merging import OURS, MergeConflict, Merging, Resolution
from shelduck.branches.table_merge import LakeHistory, TableMerge, is_changed
from shelduck.errors import Conflict, NotFound
from shelduck.keys.verb import KeyVerbs
from shelduck.lake.results import Result, TableName
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork, carry_out, carry_out_anew
from shelduck.model.tables.keys import folds
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.tables.twin import MarkBranch, ShareFiles, Twin, twin_of


class _Rebased(Conflict):
    """The branch has got what happened to its source: look at it again."""


def merge_branch(state: LakeState, name: str, resolutions: Sequence[Resolution] = ()) -> Result:
    """Merge a branch into the schema that it came from."""
    view = UnitOfWork(state)
    for pair in table_pairs(view, *branch_called(view, name)):
        tables = [t for t in pair if t is not None]
        for table in tables:
            if folds(table) and len(tables) > 1:
                KeyVerbs(state, TableName.of(table)).fold()
        flush_kept(state, view.workspace.base, tables)

    def looked(unit: UnitOfWork) -> BranchMerge:
        merge = BranchMerge(unit, name, resolutions)
        merge.look()
        if merge.conflicts:
            raise _refused(name, merge.conflicts)
        return merge

    def prepare(unit: UnitOfWork, _lost: Exception | None) -> None:
        merge = looked(unit)
        if merge.rebases:
            carry_out_anew(state, lambda own: looked(own).stage_rebase())
            raise _Rebased(f"branch {name!r} got new rows of its source; merge it again")
        merge.stage()

    return carry_out(state, None, lambda _unit: None, prepare=prepare, lost=(_Rebased,))


def _refused(name: str, conflicts: list[MergeConflict]) -> Conflict:
    one = conflicts[0]
    return Conflict(
        f"cannot merge branch {name!r}: {len(conflicts)} change(s) conflict, such as {one.kind}"
        f" {one.item} of {one.table}: it was {one.base or 'nothing'}, is now"
        f" {one.ours or 'nothing'}, and {one.theirs or 'nothing'} on the branch; see"
        " merge_conflicts, and change one side"
    )


_TwoSides = tuple[TableVersion | None, TableVersion | None, TableMerge | None]


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
        self.rows: list[tuple[object, ...]] = []
        self._steps: list[_TwoSides] = []

    def look(self) -> None:
        """Compare the tables; nothing is staged yet."""
        with self._unit.workspace.reading() as connection:
            history = LakeHistory(connection, self._unit.workspace.base.id)
            pairs = list(table_pairs(self._unit, self._schema, self._branch))
            names = {t.name for pair in pairs for t in pair if t is not None}
            for each in self._resolutions:
                if not any(map(each.is_about, names)):
                    where = f"branch {self._schema.text!r}"
                    raise NotFound.named("table", each.table or "", sorted(names), where=where)
            for ours, theirs in pairs:
                self._look(history, ours, theirs)

    def _look(
        self, history: LakeHistory, ours: TableVersion | None, theirs: TableVersion | None
    ) -> None:
        known = ours or theirs
        assert known is not None
        about = [one for one in self._resolutions if one.is_about(known.name)]
        merging = Merging(str(TableName(self._source.name, known.name)), about)
        twin = None if theirs is None else twin_of(theirs.properties, theirs.full_name)
        if theirs is None:
            assert ours is not None
            if is_changed(history, ours, self._branch.base):
                self._decide(merging, known, "changed", "dropped", (ours, None, None))
            else:
                self._add(merging, (ours, None, None), (merging.table, "dropped", 0, 0, ""))
        elif ours is None:
            self._new(history, merging, theirs, twin)
        else:
            assert twin is not None
            step = TableMerge(history, self._unit, (ours, theirs), twin, about)
            step.look()
            if not step.is_empty or step.merging.conflicts:
                self._add(step.merging, (ours, theirs, step), step.told())

    def _new(
        self, history: LakeHistory, merging: Merging, theirs: TableVersion, twin: Twin | None
    ) -> None:
        step = (None, theirs, None)
        if twin is not None:
            if is_changed(history, theirs, twin.since):
                self._decide(merging, theirs, "dropped", "changed", step)
        elif not self._unit.workspace.has_table(TableName(self._source.name, theirs.name)):
            self._add(merging, step, (merging.table, "created", 0, 0, ""))
        elif merging.decided() != OURS:
            merging.refuse("table", theirs.name, "", "another table", "a new table")
            self._add(merging, step, (merging.table, "conflict", 0, 0, ""))

    def _decide(
        self, merging: Merging, table: TableVersion, ours: str, theirs: str, step: _TwoSides
    ) -> None:
        """Let a resolution decide on a table that one side dropped, and the other one changed."""
        side = merging.decided()
        if side is None:
            merging.refuse("table", table.name, "as it was", ours, theirs)
        if side != OURS:
            word = "conflict" if side is None else "dropped" if step[1] is None else "created"
            self._add(merging, step, (merging.table, word, 0, 0, ""))

    def _add(self, merging: Merging, step: _TwoSides, row: tuple[object, ...]) -> None:
        self.conflicts += merging.conflicts
        self._steps.append(step)
        self.rows.append(row)

    @property
    def rebases(self) -> bool:
        """True if the branch must get rows of the source before."""
        return any(step is not None and step.rebases for _, _, step in self._steps)

    def stage_rebase(self) -> None:
        """Stage what the branch gets of its source before the merge."""
        for _, _, step in self._steps:
            if step is not None:
                step.stage_rebase()

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
