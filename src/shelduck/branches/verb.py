"""The verbs of branches: made, listed, looked into, merged and dropped."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from shelduck.branches.branch_diff import BranchDiff
from shelduck.branches.branch_tables import (
    BranchInfo,
    branch_called,
    require_branch,
    table_pairs,
    told_branches,
)
from shelduck.branches.creation import NewBranch, create_branch, drop_branch
from shelduck.branches.diff import diff_of
from shelduck.branches.merge import BranchMerge, merge_branch, undo_merge
from shelduck.branches.merging import MergeConflict, Resolution
from shelduck.catalog.read import read
from shelduck.errors import Conflict, NotFound
from shelduck.lake.lookup import LakeHandle
from shelduck.lake.results import Result, TableName
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork, refuse_in_transaction
from shelduck.model.changes.change import MOVES
from shelduck.model.tables.twin import branched_from


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
        retain: str | timedelta | None = None,
        if_not_exists: bool = False,
    ) -> Result:
        """Make a branch: a schema whose tables have the rows of another schema's, and its files.

        Whoever reads or writes the lake can read and write the branch, and nobody else sees it.

        Args:
            name: The schema to make.
            source: The schema, or the branch, that it begins with.
            version: As of this snapshot; by default the newest.
            timestamp: As of the last snapshot at or before this time.
            tables: Only these tables and views; by default all. Macros always come, pinned views
                and texts that nobody can read never.
            retain: A span such as "7 days", after which `Lake.expire_snapshots` drops the branch,
                merged or not; by default never.
            if_not_exists: Do nothing if the branch exists.

        Raises:
            AlreadyExists: a schema has that name.
            NotFound: the schema, the snapshot or a table does not exist.
            Unsupported: the catalog is a DuckDB file, or files cannot be shared.
        """
        refuse_in_transaction(self._unit, "CREATE BRANCH")
        wish = NewBranch(name, False, version, timestamp, retain, if_not_exists)
        return create_branch(self._state, wish, source, tables)

    def create_tag(
        self,
        name: str,
        source: str = "main",
        *,
        version: int | None = None,
        timestamp: str | datetime | None = None,
        tables: Collection[str] | None = None,
        retain: str | timedelta | None = None,
        if_not_exists: bool = False,
    ) -> Result:
        """Make a tag: a branch that no call of Shelduck changes or merges, such as of a release.

        Its rows stay, whoever expires snapshots. DuckDB could write it.
        Arguments and errors are those of `create_branch`.
        """
        refuse_in_transaction(self._unit, "CREATE TAG")
        wish = NewBranch(name, True, version, timestamp, retain, if_not_exists)
        return create_branch(self._state, wish, source, tables)

    def branches(self) -> list[BranchInfo]:
        """Return the branches of the lake, by name."""
        return told_branches(UnitOfWork(self._state), tags=False)

    def tags(self) -> list[BranchInfo]:
        """Return the tags of the lake, by name."""
        return told_branches(UnitOfWork(self._state), tags=True)

    def drop_branch(self, name: str, *, if_exists: bool = False) -> Result:
        """Drop a branch with its tables; NotFound if there is none, unless it may be missing."""
        return drop_branch(self._state, self._unit, name, is_tag=False, if_exists=if_exists)

    def drop_tag(self, name: str, *, if_exists: bool = False) -> Result:
        """Drop a tag with its tables; NotFound if there is none, unless it may be missing."""
        return drop_branch(self._state, self._unit, name, is_tag=True, if_exists=if_exists)

    def merge_branch(self, name: str, resolve: Sequence[Resolution] = ()) -> Result:
        """Give the tables that a branch came from what happened on it since, in one commit.

        A merge finds columns and rows by id, and takes what only one side changed. Files are
        shared. Spark compares rows only if both sides changed rows of one file, and copies changed
        rows only where files cannot be shared: they were compacted, or a side converted a column.
        In a UNIQUE or AGGREGATE table, the rows of the branch are loaded. Views and macros are
        found by their names. Afterwards the branch goes on; a second merge brings what is new.

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
        merge = BranchMerge(UnitOfWork(self._state), name, resolve)
        merge.look()
        return list(merge.conflicts)

    def branch_diff(
        self, name: str, rows: int = 0, resolve: Sequence[Resolution] = ()
    ) -> BranchDiff:
        """Return what happened on a branch since its base, and what a merge would refuse; print it.

        The base is the beginning of the branch, or its last merge. The catalog says how columns
        differ, and often how many rows. For the rest Spark compares row ids if it runs already.

        Args:
            name: The branch.
            rows: Also show up to so many rows of each table, at most 1,000; this starts Spark.
            resolve: As in `merge_branch`; conflicts that it decides are not listed.

        Raises:
            Conflict: the snapshot of the base has expired, or the source was dropped.
            NotFound: there is no such branch.
        """
        return diff_of(self._state, name, rows, resolve)


def fast_forward(state: LakeState, name: TableName, to: str) -> Result:
    """Merge a branch that changed one table, if nobody has changed this table since it began.

    Raises:
        Conflict: somebody has; or snapshots since then have expired, and nobody knows.
        InvalidRequest: the branch did not come from the schema of the table.
        NotFound: the branch has no twin of the table.
        Unsupported: the branch has changed other tables, which Iceberg would leave alone.
    """

    def require(unit: UnitOfWork) -> str:
        table = unit.workspace.table(name)
        require_branch(unit, to, table.schema.text)
        pairs = table_pairs(unit, *branch_called(unit, to))
        found = next((t for ours, t in pairs if t and ours and ours.id == table.id), None)
        if found is None:
            raise NotFound(f"branch {to!r} of {table.full_name} does not exist", about="schema")
        twin = branched_from(found)
        assert twin is not None
        with unit.workspace.reading() as connection:
            since = read.entries_since(connection, twin.base, unit.workspace.base.id)
        verbs = {entry.verb for _, entry in since if entry.id == table.id}
        if verbs - MOVES:
            raise Conflict(
                f"cannot fast-forward {table.full_name}: it was changed after branch {to!r} began;"
                f" use MERGE BRANCH {to}, which keeps both changes"
            )
        return table.full_name

    return merge_branch(state, to, require=require)
