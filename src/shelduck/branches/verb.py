"""Branches and tags: made of a schema or of one table, looked into, merged and dropped."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NoReturn

from shelduck import clock
from shelduck.branches.branch_diff import BranchDiff
from shelduck.branches.branch_tables import (
    BranchInfo,
    branch_called,
    branches_by_id,
    branches_of,
    flush_kept,
    require_branch,
    require_inside,
    schema_called,
    share_table,
    table_pairs,
    tables_shared,
    told_branches,
)
from shelduck.branches.branch_views import copies, definitions_in, stage_definition
from shelduck.branches.diff import diff_of
from shelduck.branches.merge import BranchMerge, merge_branch, undo_merge
from shelduck.branches.merging import MergeConflict, Resolution
from shelduck.catalog.read import read
from shelduck.catalog.read.read import Connection
from shelduck.catalog.read.twins import twins_in
from shelduck.errors import AlreadyExists, Conflict, InvalidRequest, NotFound
from shelduck.lake.followed_views import Defined
from shelduck.lake.lookup import LakeHandle, instant, seconds_of
from shelduck.lake.results import Committed, Result, TableName, Unchanged
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork, carry_out, refuse_in_transaction
from shelduck.model.changes.change import MOVES
from shelduck.model.tables.schema import TableId
from shelduck.model.tables.table_version import SchemaInfo, Snapshot, TableVersion
from shelduck.model.tables.twin import Branch, MarkBranch, ShareFiles, branched_from, counter_of
from shelduck.rollups.following import drop_with_rollups
from shelduck.text.query.translate import Move


@dataclass(frozen=True, slots=True)
class NewBranch:
    """What somebody asks for: a branch or a tag of tables as of a snapshot, by default the newest.

    ``retain`` is the span after which an expiry drops it, None for never.
    """

    name: str
    is_tag: bool = False
    version: int | None = None
    timestamp: str | datetime | None = None
    retain: str | timedelta | None = None
    if_not_exists: bool = False

    @property
    def kind(self) -> str:
        """The word for it."""
        return "tag" if self.is_tag else "branch"

    @property
    def until(self) -> str:
        """The end of its time, counted from now, as `Branch` keeps it."""
        if self.retain is None:
            return ""
        return (clock.now() + timedelta(seconds=seconds_of("retain", self.retain))).isoformat()

    def snapshot(self, state: LakeState, connection: Connection, newest: Snapshot) -> Snapshot:
        """Return the snapshot that it begins with."""
        if self.version is None and self.timestamp is None:
            return newest
        when = None if self.timestamp is None else instant(self.timestamp, state.time_zone)
        return read.snapshot(connection, version=self.version, timestamp=when)


@dataclass(frozen=True, slots=True)
class _Begin:
    """What a branch gets of a schema as of a snapshot: tables, and views and macros.

    ``missed`` are the names of those that nobody can copy.
    """

    source: SchemaInfo
    at: Snapshot
    tables: Sequence[TableVersion]
    definitions: Sequence[Defined] = ()
    missed: Sequence[str] = ()


def create_branch(
    state: LakeState,
    unit: UnitOfWork | None,
    wish: NewBranch,
    source: str,
    tables: Collection[str] | None,
) -> Result:
    """Make a branch of all tables of a schema, or of some; outside of a transaction."""
    refuse_in_transaction(unit, f"CREATE {wish.kind.upper()}")
    view = UnitOfWork(state)
    taken = schema_called(view, wish.name)
    known = None if taken is None else branches_by_id(view).get(taken.id)
    if wish.if_not_exists and known is not None and known.is_tag == wish.is_tag:
        return Unchanged(view.workspace.base.id)

    def begin(unit: UnitOfWork) -> _Begin:
        workspace = unit.workspace
        if schema_called(unit, wish.name) is not None:
            raise AlreadyExists(f"schema {wish.name!r} already exists", about="schema")
        with workspace.reading() as connection:
            at = wish.snapshot(state, connection, workspace.base)
            schemas = read.schemas(connection, at, state.info)
            schema = read.schema_named(schemas, workspace.word_of(source), state.store.format)
            known = definitions_in(unit, connection, schema, at)
            views = {name for kind, name in known if kind == "view"}
            wanted = None if tables is None else [n for n in tables if n.lower() not in views]
            found = list(tables_shared(connection, state, at, schema, wanted))
            lacks = {*read.table_names(connection, at, schema)} - {t.name for t in found}
        names = views if tables is None else {name.lower() for name in tables}
        chosen = {key: one for key, one in known.items() if key[0] != "view" or key[1] in names}
        move = Move(schema.name, workspace.word_of(wish.name), {name.lower() for name in lacks})
        made = copies(known, chosen, move)
        missed = [one.full_name for one in chosen.values() if one.id not in {m.id for m in made}]
        return _Begin(schema, at, found, made, missed)

    return _made(state, wish, begin)


def branch_table(
    state: LakeState, name: TableName, wish: NewBranch, *, creates: bool, replaces: bool
) -> Result:
    """Give a branch a twin of one table; make the branch if there is none.

    Raises:
        AlreadyExists: the branch has one, and nobody ``replaces`` it; or another schema has the
            name of the branch.
        NotFound: nobody ``creates`` it, and it has none; or the table was not there.
        InvalidRequest: the branch came from another schema.
    """
    view = UnitOfWork(state)
    if wish.if_not_exists and _has_twin(view, view.workspace.table(name), wish):
        return Unchanged(view.workspace.base.id)

    def begin(unit: UnitOfWork) -> _Begin:
        workspace = unit.workspace
        now = workspace.table(name)
        has_twin = _has_twin(unit, now, wish)
        if not (has_twin or creates):
            _refuse_missing(wish, now)
        if has_twin and not replaces:
            raise AlreadyExists(f"{wish.kind} {wish.name!r} of {now.full_name} already exists")
        with workspace.reading() as connection:
            at = wish.snapshot(state, connection, workspace.base)
            then = read.table_by_id(connection, now.id, at, state.info)
        if then is None:
            raise NotFound(
                f"table {now.full_name} does not exist at snapshot {at.id}", about="table"
            )
        require_inside(then)
        return _Begin(now.schema, at, [replace(then, name=now.name)])

    return _made(state, wish, begin)


def _made(state: LakeState, wish: NewBranch, begin: Callable[[UnitOfWork], _Begin]) -> Result:
    """Make twins; what the catalog itself keeps of their sources is flushed before."""
    until = wish.until
    first = begin(UnitOfWork(state))
    flush_kept(state, first.tables)

    def stage(unit: UnitOfWork) -> None:
        found, workspace = begin(unit), unit.workspace
        made, base = schema_called(unit, wish.name), found.at.id
        tables = tuple(table.id for table in found.tables)
        is_new = made is None
        if made is None:
            word = workspace.word_of(wish.name)
            workspace.create_schema(word, if_not_exists=False, beside=found.source)
            made = workspace.schema(word)
        else:
            base = _require_same(unit, found.tables[0], made, wish).base
            _drop_twin(unit, made, found.tables[0].id)
        # From now on the unit may make tables in it.
        more = (not is_new, wish.is_tag, until)
        workspace.share(MarkBranch(made, found.source, base, tables, (), *more))
        for table in found.tables:
            sharing = ShareFiles(table.id, table, counter=counter_of(table), is_tagged=wish.is_tag)
            share_table(unit, TableName(made.name, table.name), table, sharing)
        for each in found.definitions:
            stage_definition(unit, made, each)

    done = carry_out(state, None, stage)
    if not first.missed or not isinstance(done, Committed):
        return done
    told = f"left out {', '.join(first.missed)}: pinned, or of a text that cannot be read"
    return replace(done, note=told)


def drop_branch(
    state: LakeState, unit: UnitOfWork | None, name: str, *, is_tag: bool, if_exists: bool
) -> Result:
    """Drop a branch, or a tag, with its tables."""

    def stage(unit: UnitOfWork) -> None:
        try:
            schema, _ = branch_called(unit, name, is_tag=is_tag)
        except NotFound:
            if if_exists:
                return
            raise
        unit.workspace.drop_schema(schema.name, if_exists=False, cascade=True)

    return carry_out(state, unit, stage)


def drop_branch_of_table(
    state: LakeState, unit: UnitOfWork | None, table: TableName, wish: NewBranch, *, if_exists: bool
) -> Result:
    """Drop a branch's twin of a table, and the branch with its last table."""

    def stage(unit: UnitOfWork) -> None:
        now, workspace = unit.workspace.table(table), unit.workspace
        schema = schema_called(unit, wish.name)
        if schema is None or not _has_twin(unit, now, wish):
            if if_exists:
                return
            _refuse_missing(wish, now)
        branch = branches_by_id(unit)[schema.id]
        _drop_twin(unit, schema, now.id)
        if workspace.table_names(schema) or workspace.view_names(schema):
            mark = MarkBranch(schema, now.schema, branch.base, (), (now.id,), stays=True)
            workspace.share(mark)
        else:
            workspace.drop_schema(schema.name, if_exists=False, cascade=True)

    return carry_out(state, unit, stage)


def drop_overdue(state: LakeState) -> bool:
    """Drop the branches and tags whose time is over; return whether there were any."""

    def stage(unit: UnitOfWork) -> None:
        for schema, branch in branches_of(unit):
            if branch.until and datetime.fromisoformat(branch.until) <= clock.now():
                unit.workspace.drop_schema(schema.name, if_exists=True, cascade=True)

    return isinstance(carry_out(state, None, stage), Committed)


def _require_same(
    unit: UnitOfWork, table: TableVersion, schema: SchemaInfo, wish: NewBranch
) -> Branch:
    """Return the branch, or the tag, that a schema is, if it came from that of a table."""
    branch = branches_by_id(unit).get(schema.id)
    if branch is None:
        raise AlreadyExists(f"schema {schema.text!r} already exists", about="schema")
    if branch.is_tag != wish.is_tag:
        kind = "tag" if branch.is_tag else "branch"
        raise AlreadyExists(f"{kind} {schema.text!r} already exists", about="schema")
    if branch.source != table.schema.id:
        raise InvalidRequest(
            f"{wish.kind} {schema.text!r} did not come from schema {table.schema.text!r}; choose"
            " another name"
        )
    return branch


def _has_twin(unit: UnitOfWork, table: TableVersion, wish: NewBranch) -> bool:
    schema = schema_called(unit, wish.name)
    if schema is None:
        return False
    _require_same(unit, table, schema, wish)
    with unit.workspace.reading() as connection:
        return table.id in twins_in(connection, schema.id, unit.workspace.base.id)


def _drop_twin(unit: UnitOfWork, schema: SchemaInfo, source: TableId) -> None:
    with unit.workspace.reading() as connection:
        name = twins_in(connection, schema.id, unit.workspace.base.id).get(source)
    if name is not None:
        drop_with_rollups(unit, unit.workspace.table(TableName(schema.name, name)))


def _refuse_missing(wish: NewBranch, table: TableVersion) -> NoReturn:
    raise NotFound(f"{wish.kind} {wish.name!r} of {table.full_name} does not exist", about="schema")


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
        wish = NewBranch(name, False, version, timestamp, retain, if_not_exists)
        return create_branch(self._state, self._unit, wish, source, tables)

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
        wish = NewBranch(name, True, version, timestamp, retain, if_not_exists)
        return create_branch(self._state, self._unit, wish, source, tables)

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
