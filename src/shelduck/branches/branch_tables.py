"""Branches by name, and which of their tables belong to which table of their source."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from shelduck.catalog.read import read
from shelduck.catalog.read.read import Connection
from shelduck.catalog.read.twins import branches_at, keeps_rows
from shelduck.errors import Conflict, InvalidRequest, NotFound, Unsupported
from shelduck.files.verb import FlushVerbs
from shelduck.lake.evolution.arrangement import arrangement_of
from shelduck.lake.lookup import table_then
from shelduck.lake.results import TableName
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork
from shelduck.model.tables.properties import copied_properties
from shelduck.model.tables.rollup import Rollup, definition_of, rollup_names, rollup_of, with_rollup
from shelduck.model.tables.schema import SchemaId, TableId
from shelduck.model.tables.table_version import SchemaInfo, Snapshot, TableVersion
from shelduck.model.tables.twin import Branch, ShareFiles, Twin, branched_from
from shelduck.rollups.following import is_fresh, refresh_by_id
from shelduck.rollups.rollup_tables import list_rollups, rollup_name, rollups_of, settling


@dataclass(frozen=True, slots=True)
class BranchInfo:
    """A branch or a tag: its name, the schema that it came from, and the snapshot of that."""

    name: str
    source: str
    base: int
    tables: int
    until: datetime | None = None
    """When an expiry drops it, None for never."""


def tables_shared(
    connection: Connection,
    state: LakeState,
    at: Snapshot,
    schema: SchemaInfo,
    names: Collection[str] | None,
) -> Iterator[TableVersion]:
    """Yield the tables of a schema of which a branch gets twins; rollups come with their bases."""
    present = read.table_names(connection, at, schema)
    for name in present if names is None else names:
        found = read.table(connection, at, schema.name, name, state.info)
        require_inside(found)
        if rollup_of(found) is None:
            yield found


def require_inside(table: TableVersion) -> None:
    """Raise Unsupported for a table whose files are not below those of its schema."""
    if not table.path.startswith(table.schema.path):
        raise Unsupported(
            f"cannot share the files of {table.full_name}: they are in {table.path}, outside of the"
            " directory of its schema"
        )


def share_table(
    unit: UnitOfWork, name: TableName, table: TableVersion, sharing: ShareFiles
) -> None:
    """Stage a table that is all that another one is, with its files, and the same for its rollups.

    A rollup that is right is right there, too; another one waits for the next write.
    """
    rollups = rollups_then(unit, table)
    made = _made_beside(unit, name, table)
    names = tuple(definition_of(each).name for each in rollups)
    list_rollups(unit, made, names)
    unit.workspace.share(replace(sharing, table=made.id, counter=sharing.counter or made.uuid))
    for each in rollups:
        rollup = replace(definition_of(each), base=made.uuid)
        twin = _made_beside(unit, rollup_name(made, rollup.name), each, rollup)
        unit.workspace.share(ShareFiles(twin.id, each, is_tagged=sharing.is_tagged))
        if table.snapshot == unit.workspace.base and is_fresh(unit, table, each):
            unit.settle(settling(unit, made, twin))


def rollups_then(unit: UnitOfWork, table: TableVersion) -> list[TableVersion]:
    """Return the rollups of a table at its snapshot."""
    with unit.workspace.reading() as connection:

        def find(name: TableName) -> TableVersion:
            return read.table(connection, table.snapshot, name.home, name.name, unit.state.info)

        return list(rollups_of(unit, table, find))


def _made_beside(
    unit: UnitOfWork, name: TableName, other: TableVersion, rollup: Rollup | None = None
) -> TableVersion:
    copied = copied_properties(other.properties)
    return unit.workspace.create_table(
        *(name, other.columns, other.comments),
        arrangement=arrangement_of(other),
        properties=copied if rollup is None else with_rollup(copied, rollup),
        beside=other,
    )


def flush_kept(state: LakeState, tables: Collection[TableVersion]) -> None:
    """Move rows that the catalog keeps into files, so that tables can share them."""
    unit = UnitOfWork(state)
    for table in tables:
        for each in (table, *rollups_then(unit, table)):
            if state.store.ask(keeps_rows, each.id, table.snapshot.id):
                FlushVerbs(state, TableName.of(each)).flush_inlined_data()


def refresh_rollups(state: LakeState, tables: Iterable[Sequence[TableVersion | None]]) -> None:
    """Update the rollups of tables after a commit; without Spark, their next writes do.

    Each table comes with another state of it, from which it may have got its rollups.
    """
    for table, *others in tables:
        states = (each for each in (table, *others) if each is not None)
        if table is not None and state.has_spark and any(map(rollup_names, states)):
            refresh_by_id(state, table)


def branches_by_id(unit: UnitOfWork) -> dict[SchemaId, Branch]:
    """Return the branches that the unit sees, by the ids of their schemas."""
    with unit.workspace.reading() as connection:
        return branches_at(connection, unit.workspace.base.id)


def branches_of(unit: UnitOfWork) -> Iterator[tuple[SchemaInfo, Branch]]:
    """Yield each branch with its schema."""
    known = branches_by_id(unit)
    return ((s, known[s.id]) for s in unit.workspace.schemas() if s.id in known)


def schema_called(unit: UnitOfWork, name: str) -> SchemaInfo | None:
    """Return a schema by its name, None if there is none."""
    wanted = unit.workspace.word_of(name).lower()
    return next((s for s in unit.workspace.schemas() if s.name.lower() == wanted), None)


def branch_called(
    unit: UnitOfWork, name: str, *, is_tag: bool | None = False
) -> tuple[SchemaInfo, Branch]:
    """Return a branch, a tag, or one of both (None), and its schema by name.

    Raises NotFound if there is none, and InvalidRequest for a tag instead of a branch.
    """
    found = list(branches_of(unit))
    wanted = unit.workspace.word_of(name).lower()
    for schema, branch in found:
        if schema.name.lower() == wanted:
            if is_tag in (None, branch.is_tag):
                return schema, branch
            told = "a branch; DROP BRANCH drops it" if is_tag else "a tag, which nobody changes"
            raise InvalidRequest(f"{schema.text!r} is {told}")
    kind = "tag" if is_tag else "branch"
    raise NotFound.named(kind, name, [s.text for s, b in found if is_tag in (None, b.is_tag)])


def told_branch(unit: UnitOfWork, schema: SchemaInfo, branch: Branch) -> BranchInfo:
    """Return what people see of a branch."""
    source = source_of_branch(unit, branch)
    names = unit.workspace.table_names(schema)
    tables = [n for n in names if n.partition("$")[0] == n or n.partition("$")[0] not in names]
    until = datetime.fromisoformat(branch.until) if branch.until else None
    known = schema.text, source.text if source else "", branch.base
    return BranchInfo(*known, len(tables), until)


def told_branches(unit: UnitOfWork, *, tags: bool) -> list[BranchInfo]:
    """Return what people see of all branches, or of all tags, by name."""
    found = (told_branch(unit, *each) for each in branches_of(unit) if each[1].is_tag == tags)
    return sorted(found, key=lambda branch: branch.name)


def source_of_branch(unit: UnitOfWork, branch: Branch) -> SchemaInfo | None:
    """Return the schema from which a branch came, None if it was dropped."""
    return next((s for s in unit.workspace.schemas() if s.id == branch.source), None)


def table_pairs(
    unit: UnitOfWork, schema: SchemaInfo, branch: Branch
) -> Iterator[tuple[TableVersion | None, TableVersion | None]]:
    """Yield the tables of the source and of the branch that belong together; None for none."""
    workspace = unit.workspace
    theirs = [workspace.table(TableName(schema.name, t)) for t in workspace.table_names(schema)]
    theirs = [t for t in theirs if rollup_of(t) is None]
    seen: set[TableId] = set()
    for table in theirs:
        twin = branched_from(table)
        ours = None if twin is None else workspace.table_of(twin.source)
        if twin is not None:
            seen.add(twin.source)
        yield ours, table
    for number in branch.tables:
        if number not in seen and (ours := workspace.table_of(number)) is not None:
            yield ours, None


def twin_as_begun(
    unit: UnitOfWork, connection: Connection, table: TableVersion, twin: Twin
) -> TableVersion:
    """Return a twin as it was when it was made, or merged the last time.

    Raises Conflict if the snapshot has expired.
    """
    found = table_then(connection, table.id, twin.since, unit.state.info)
    if found is not None:
        return found
    raise Conflict(
        f"snapshot {twin.since}, with which a merge compares {table.full_name}, has expired; expire"
        " snapshots with Shelduck, which keeps it, and merge by INSERT, DELETE or MERGE INTO"
    )


def require_branch(unit: UnitOfWork, name: str, into: str | None = None) -> str:
    """Return the name of a branch as it is stored; one to read may be a tag.

    Raises NotFound if there is none, and InvalidRequest if it did not come from ``into``.
    """
    schema, branch = branch_called(unit, name, is_tag=None if into is None else False)
    if into is None:
        return schema.name
    workspace = unit.workspace
    if workspace.schema(workspace.word_of(into)).id != branch.source:
        source = told_branch(unit, schema, branch).source
        raise InvalidRequest(
            f"branch {schema.text!r} came from {source!r}; merge it into that, not {into!r}"
        )
    return schema.name
