"""What the catalog says of branches and of the files of twins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from shelduck.catalog.databases.known import dialect_of
from shelduck.catalog.read.holdings import holdings_of
from shelduck.catalog.read.inlined_rows import is_shown, tables_with_rows
from shelduck.catalog.read.metadata_rows import with_deletes
from shelduck.catalog.read.queries import inlined_delete_table, inlined_deletes, live, visible
from shelduck.ducklake import tables
from shelduck.ducklake.checked import or_null
from shelduck.ducklake.format import schemas_of
from shelduck.model.tables.schema import SchemaId, TableId
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.tables.twin import BRANCH, STORED_BRANCH, TWIN, Branch, Twin, read_twin
from shelduck.model.text.names import shown_schema

NO_TRIGGERS = (
    "the catalog is a DuckDB file, which has no triggers to keep files that several tables name;"
    " use a lake in SQLite or PostgreSQL"
)
_tag, _file, _delete = tables.tag, tables.data_file, tables.delete_file


@dataclass(frozen=True, slots=True)
class TwinFile:
    """A data file at one snapshot, and the delete file that it has then.

    ``in_part``: one of them also has rows or deletes of later snapshots, which DuckDB adds to it.
    """

    id: int
    rows: int
    size: int
    delete_id: int | None = None
    delete_path: str | None = None
    in_part: bool = False


def branches_at(connection: sa.Connection, snapshot: int) -> dict[SchemaId, Branch]:
    """Return what the schemas that are branches come from, by id; one statement."""
    found = sa.select(_tag.c.object_id, _tag.c.value).where(
        _tag.c.key == BRANCH, visible(_tag, snapshot)
    )
    rows = connection.execute(found).all()
    return {SchemaId(owner): STORED_BRANCH.read(text, f"schema {owner}") for owner, text in rows}


def _of_twins(*asked: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Ask for columns of the tags of twins and of their tables."""
    table = tables.table
    joined = sa.select(*asked).join_from(_tag, table, table.c.table_id == _tag.c.object_id)
    return joined.where(_tag.c.key == TWIN)


def base_of_dropped(connection: sa.Connection, schema: SchemaId, source: TableId) -> int | None:
    """Return the base of the twin of a table that a schema had last, None if it had none."""
    table = tables.table
    query = (
        _of_twins(_tag.c.value)
        .where(table.c.schema_id == schema)
        .order_by(_tag.c.begin_snapshot.desc())
    )
    known = map(read_twin, connection.execute(query).scalars())
    return next((twin.base for twin in known if twin.source == source), None)


def twins_in(connection: sa.Connection, schema: SchemaId, snapshot: int) -> Mapping[TableId, str]:
    """Return the names of a schema's twins by the ids of the tables they come from; one statement.

    Of two twins of one table, the first one counts.
    """
    table = tables.table
    query = (
        _of_twins(_tag.c.value, table.c.table_name)
        .where(table.c.schema_id == schema)
        .where(visible(_tag, snapshot), visible(table, snapshot))
        .order_by(table.c.table_id.desc())
    )
    return {read_twin(text).source: name for text, name in connection.execute(query)}


def twins_of(
    connection: sa.Connection, source: TableId, snapshot: int
) -> Iterator[tuple[str, Branch, Twin]]:
    """Yield the branches and tags that have a twin of a table, each with that; one statement."""
    table, branch, schema = tables.table, _tag.alias(), schemas_of(connection)
    query = (
        _of_twins(schema.c.schema_name, branch.c.value.label("branch"), _tag.c.value.label("twin"))
        .join(branch, branch.c.object_id == table.c.schema_id)
        .join(schema, schema.c.schema_id == table.c.schema_id)
        .where(branch.c.key == BRANCH, visible(_tag, snapshot))
        .where(*(visible(each, snapshot) for each in (branch, table, schema)))
        .order_by(schema.c.schema_name)
    )
    for name, text, twin in connection.execute(query):
        if (found := read_twin(twin)).source == source:
            yield shown_schema(name), STORED_BRANCH.read(text, name), found


def bases_of_twins(connection: sa.Connection) -> set[int]:
    """Return the snapshots with which merges compare the tables and views of branches.

    Two statements.
    """
    table, branch = tables.table, _tag.alias()
    query = (
        _of_twins(_tag.c.value)
        .join(branch, branch.c.object_id == table.c.schema_id)
        .where(branch.c.key == BRANCH, live(_tag), live(branch), live(table))
    )
    found: list[Twin | Branch] = [*map(read_twin, connection.execute(query).scalars())]
    schema = schemas_of(connection)
    branches = (
        sa.select(branch.c.value)
        .join_from(branch, schema, branch.c.object_id == schema.c.schema_id)
        .where(branch.c.key == BRANCH, live(branch), live(schema))
    )
    texts = connection.execute(branches).scalars()
    found += [b for text in texts if not (b := STORED_BRANCH.read(text, "a schema")).is_tag]
    return {at for each in found for at in (each.base, each.since)}


def files_by_path(
    connection: sa.Connection, table: TableId, snapshot: int
) -> Mapping[str, TwinFile]:
    """Return the data files of a table at a snapshot, by path; one statement."""
    asked = sa.select(
        *(_file.c.path, _file.c.data_file_id, _file.c.record_count, _file.c.file_size_bytes),
        or_null(_delete.c.delete_file_id).label("delete_file_id"),
        or_null(_delete.c.path).label("delete_path"),
        or_null(sa.func.coalesce(_file.c.partial_max, 0)).label("newest_row"),
        or_null(sa.func.coalesce(_delete.c.partial_max, 0)).label("newest_delete"),
    )
    query = with_deletes(asked, table, snapshot)
    return {
        row.path: TwinFile(
            row.data_file_id,
            row.record_count,
            row.file_size_bytes,
            row.delete_file_id,
            row.delete_path,
            max(row.newest_row, row.newest_delete) > snapshot,
        )
        for row in connection.execute(query)
    }


def keeps_rows(connection: sa.Connection, table: TableId, snapshot: int) -> bool:
    """Return whether the catalog itself has rows of a table, or positions of deleted ones.

    Three statements at most.
    """
    known = holdings_of(connection, table)
    names = [name for name, _ in known.inlined if name in known.present]
    if names and tables_with_rows(connection, names, lambda found: is_shown(found, snapshot)):
        return True
    if not known.has_positions:
        return False
    # Those of files that have ended may stay.
    dead = inlined_deletes(inlined_delete_table(table))
    query = sa.select(sa.literal(1)).join_from(dead, _file, _file.c.data_file_id == dead.c.file_id)
    query = query.where(dead.c.begin_snapshot <= snapshot, visible(_file, snapshot))
    return connection.execute(query.limit(1)).first() is not None


def why_not_shared(connection: sa.Connection, table: TableVersion, at: int) -> str | None:
    """Return why no twin can have a table's files of a snapshot, None if one can.

    One statement. `keeps_rows` says whether all of its rows are in files.
    """
    if dialect_of(connection).kept_files is None:
        return NO_TRIGGERS
    c = _file.c
    odd = sa.or_(c.mapping_id.is_not(None), c.partial_max > at)
    query = sa.select(or_null(c.mapping_id), c.path).where(c.table_id == table.id, odd)
    found = connection.execute(query.where(visible(_file, at)).limit(1)).first()
    if found is None:
        return None
    if found.mapping_id is not None:
        return (
            f"{found.path} was adopted by add_files and tells no ids of columns; rewrite the table"
            " first, such as with OPTIMIZE"
        )
    return (
        f"a compaction has put rows of newer snapshots into {found.path}; choose a newer snapshot"
    )
