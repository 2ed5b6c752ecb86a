"""The verbs of branches: made, listed, looked into, merged and dropped."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from shelduck.branches.branch_diff import BranchDiff
from shelduck.branches.branch_tables import (
    BranchInfo,
    branch_called,
    branches_by_id,
    branches_of,
    flush_kept,
    make_beside,
    tables_shared,
    told_branch,
)
from shelduck.branches.diff import diff_of
from shelduck.branches.merge import BranchMerge, merge_branch
from shelduck.branches.merging import MergeConflict, Resolution
from shelduck.branches.undo_merge import undo_merge
from shelduck.catalog.read import read
from shelduck.errors import AlreadyExists, NotFound
from shelduck.lake.handle import LakeHandle
from shelduck.lake.lookup import instant
from shelduck.lake.results import Result, TableName, Unchanged
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork, carry_out, refuse_in_transaction
from shelduck.model.tables.table_version import SchemaInfo, Snapshot, TableVersion
from shelduck.model.tables.twin import MarkBranch, ShareFiles, counter_of


class BranchVerbs(LakeHandle, in_parts=True):
    """Branches of a schema: its tables once more, without a copy of their files."""

    def create_branch(
        self,
        name: str,
        source: str = "main",
        *,
        version: int | None = None,
        timestamp: str | datetime | None = None,
        tables: Collection[str] | None = None,
        if_not_exists: bool = False,
    ) -> Result:
        """Make a branch: a schema whose tables have the rows of another schema's, and its files.

        Whoever reads or writes the lake can read and write the branch, and nobody else sees it.

        Args:
            name: The schema to make.
            source: The schema, or the branch, that it begins with.
            version: As of this snapshot; by default the newest.
            timestamp: As of the last snapshot at or before this time.
            tables: Only these tables; by default all. Views and rollups are left out.
            if_not_exists: Do nothing if the branch exists.

        Raises:
            AlreadyExists: a schema has that name.
            NotFound: the schema, the snapshot or a table does not exist.
            Unsupported: the catalog is a DuckDB file, or files cannot be shared.
        """
        refuse_in_transaction(self._unit, "CREATE BRANCH")
        return create_branch(
            self._state,
            name,
            source=source,
            version=version,
            timestamp=timestamp,
            tables=tables,
            if_not_exists=if_not_exists,
        )

    def branches(self) -> list[BranchInfo]:
        """Return the branches of the lake, by name."""
        unit = UnitOfWork(self._state)
        return sorted(
            (told_branch(unit, *each) for each in branches_of(unit)), key=lambda b: b.name
        )

    def drop_branch(self, name: str, *, if_exists: bool = False) -> Result:
        """Drop a branch with its tables; NotFound if there is none, unless it may be missing."""

        def stage(unit: UnitOfWork) -> None:
            try:
                schema, _ = branch_called(unit, name)
            except NotFound:
                if if_exists:
                    return
                raise
            unit.workspace.drop_schema(schema.name, if_exists=False, cascade=True)

        return carry_out(self._state, self._unit, stage)

    def merge_branch(self, name: str, resolve: Sequence[Resolution] = ()) -> Result:
        """Give the tables that a branch came from what happened on it since, in one commit.

        A merge finds columns and rows by id, and takes what only one side changed. Files are
        shared. Spark compares rows only if both sides changed rows of one file, and copies changed
        rows only where files cannot be shared: they were compacted, or a side converted a column.
        In a UNIQUE or AGGREGATE table, the rows of the branch are loaded. Afterwards the branch
        goes on; a second merge brings what is new.

        If the branch converted a column, and the source has new rows since, the branch gets them
        first, converted, in a commit of its own.

        Args:
            name: The branch.
            resolve: Which side decides what both changed; the first that fits a conflict.

        Raises:
            Conflict: both sides changed the same; `merge_conflicts` lists it. Nothing is merged.
            NotFound: there is no such branch, or a resolution names no table or column of it.
        """
        refuse_in_transaction(self._unit, "MERGE BRANCH")
        return merge_branch(self._state, name, resolve)

    def undo_merge(self, name: str) -> Result:
        """Take back the last merge of a branch, in one commit; rows written since stay.

        The branch keeps what it has, and a later merge does not bring it again.

        Raises:
            Conflict: somebody has changed a row or a column since that the merge changed, or rows
                of a table with a key model or a converted column. RESTORE takes back those, too.
            InvalidRequest: the branch has not been merged since it was made, or since an undo.
        """
        refuse_in_transaction(self._unit, "UNDO MERGE BRANCH")
        return undo_merge(self._state, name)

    def merge_conflicts(self, name: str, resolve: Sequence[Resolution] = ()) -> list[MergeConflict]:
        """Return what both sides changed, each in its own way, and no resolution decides.

        Rows that both sides changed are compared only once columns and the like do not conflict.
        """
        return list(_looked(self._state, name, resolve).conflicts)

    def branch_diff(
        self, name: str, rows: int = 0, resolve: Sequence[Resolution] = ()
    ) -> BranchDiff:
        """Return what happened on a branch since its base, and what a merge would refuse; print it.

        The base is the beginning of the branch, or its last merge. The catalog says how columns
        differ, and often how many rows. For the rest Spark compares row ids if it runs already.

        Args:
            name: The branch.
            rows: Also show up to so many rows of each table, at most 1,000; this starts Spark.
            resolve: As in `merge_branch`; what it decides is no conflict.

        Raises:
            Conflict: the snapshot of the base has expired, or the source was dropped.
            NotFound: there is no such branch.
        """
        return diff_of(self._state, name, rows, resolve)


def create_branch(
    state: LakeState,
    name: str,
    *,
    source: str,
    version: int | None,
    timestamp: str | datetime | None,
    tables: Collection[str] | None,
    if_not_exists: bool,
) -> Result:
    """Make a branch; what the catalog itself keeps of its tables is flushed before."""
    view = UnitOfWork(state).workspace
    taken = [s for s in view.schemas() if s.name.lower() == view.word_of(name).lower()]
    if taken and if_not_exists and taken[0].id in branches_by_id(UnitOfWork(state)):
        return Unchanged(view.base.id)
    if taken:
        raise AlreadyExists(f"schema {name!r} already exists", about="schema")
    when = None if timestamp is None else instant(timestamp, state.time_zone)

    def read_tables(unit: UnitOfWork) -> tuple[SchemaInfo, Snapshot, list[TableVersion]]:
        with unit.workspace.reading() as connection:
            at = unit.workspace.base
            if version is not None or when is not None:
                at = read.snapshot(connection, version=version, timestamp=when)
            known = read.schemas(connection, at, state.info)
            schema = read.schema_named(known, unit.workspace.word_of(source), state.store.format)
            return schema, at, list(tables_shared(connection, state, at, schema, tables))

    flush_kept(state, *read_tables(UnitOfWork(state))[1:])

    def stage(unit: UnitOfWork) -> None:
        schema, at, found = read_tables(unit)
        workspace = unit.workspace
        workspace.create_schema(workspace.word_of(name), if_not_exists=False, beside=schema)
        made = workspace.schema(workspace.word_of(name))
        for table in found:
            twin = make_beside(unit, TableName(made.name, table.name), table)
            workspace.share(ShareFiles(twin.id, table, counter=counter_of(table)))
        workspace.share(MarkBranch(made, schema, at.id, tuple(t.id for t in found)))

    return carry_out(state, None, stage)


def _looked(state: LakeState, name: str, resolve: Sequence[Resolution]) -> BranchMerge:
    merge = BranchMerge(UnitOfWork(state), name, resolve)
    merge.look()
    return merge
