"""The views and macros of a lake at a snapshot, and absolute paths from relative ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import groupby, pairwise
from typing import Any
from urllib.parse import unquote

import sqlalchemy as sa

from shelduck.catalog.read.queries import (
    SNAPSHOT,
    about_schema,
    has_columns,
    shown_or_broken,
    visible,
)
from shelduck.catalog.schema.lake_schema import LakeInfo
from shelduck.ducklake import tables
from shelduck.ducklake.checked import BIGINT, RESTORE, TEXT, begin_of, or_null, two_rows
from shelduck.ducklake.descriptions import VIEW_TAGS, bodies_of, definition_of
from shelduck.ducklake.format import format_of, schemas_of
from shelduck.errors import CorruptLake, Unsupported
from shelduck.model.files.place import is_absolute, joined, require_allowed, split_address
from shelduck.model.tables.partition import NULL_DIRECTORY
from shelduck.model.tables.schema import SchemaId, SnapshotId
from shelduck.model.tables.table_version import SchemaInfo, Snapshot, TableVersion
from shelduck.model.tables.view import MacroKind, MacroVersion, ViewVersion
from shelduck.model.text.names import shown_schema

# Other people's servers, which no lake can write, and which a reader must not call for a stranger.
_SERVERS = ("http", "https", "ftp", "ftps")


def view(
    connection: sa.Connection, at: Snapshot, schema: str, name: str, lake: LakeInfo
) -> ViewVersion | None:
    """Return a view at a snapshot by its name in any case, None if there is none.

    One statement, two if there is one.
    """
    wanted = {"schema": schema, "name": name, "snapshot": at.id}
    rows = connection.execute(_view_called(schemas_of(connection)), wanted).all()
    if not rows:
        return None
    if len(rows) > 1:
        raise two_rows(tables.view, f"{shown_schema(schema)}.{name}", at.id)
    return _views(connection, at, rows, lake)[0]


def views(
    connection: sa.Connection, at: Snapshot, ids: Sequence[int], lake: LakeInfo
) -> list[ViewVersion]:
    """Return those of these views that a snapshot has, in their order; two statements."""
    asked = _any_view(schemas_of(connection)).where(tables.view.c.view_id.in_(ids))
    rows = connection.execute(asked, {"snapshot": at.id}).all()
    return sorted(_views(connection, at, rows, lake), key=lambda found: ids.index(found.id))


def views_in(
    connection: sa.Connection, at: Snapshot, schema: SchemaInfo, lake: LakeInfo
) -> list[ViewVersion]:
    """Return the views of a schema at a snapshot; one statement, two if there are any."""
    asked = _any_view(schemas_of(connection)).where(tables.view.c.schema_id == schema.id)
    rows = connection.execute(asked, {"snapshot": at.id}).all()
    return _views(connection, at, rows, lake) if rows else []


def _views(
    connection: sa.Connection, at: Snapshot, rows: Sequence[sa.Row[Any]], lake: LakeInfo
) -> list[ViewVersion]:
    asked = _view_tags(format_of(connection).view_column_tag)
    wanted = {"views": [row.view_id for row in rows], "snapshot": at.id}
    tags = connection.execute(asked, wanted).all()
    return [
        ViewVersion(
            row.view_id,
            str(row.view_uuid),
            schema_of_row(row, lake.data_path),
            row.view_name,
            definition_of(row, (tag for tag in tags if tag.view_id == row.view_id)),
            at,
            SnapshotId(row.begin_snapshot),
            row.dialect,
        )
        for row in rows
    ]


def view_names(connection: sa.Connection, at: Snapshot, schema: SchemaInfo) -> list[str]:
    """Return the names of a schema's views at a snapshot, sorted; one statement."""
    return distinct_names(connection, tables.view.c.view_name, schema, at)


def distinct_names(
    connection: sa.Connection, name: sa.Column[Any], schema: SchemaInfo, at: Snapshot
) -> list[str]:
    """Return the names of a schema's tables or views at a snapshot, sorted; one statement.

    Raises CorruptLake if two of them have one name.
    """
    source = name.table
    query = sa.select(name, begin_of(source)).where(
        source.c.schema_id == schema.id, shown_or_broken(source, at.id)
    )
    if source is tables.table:
        query = query.where(has_columns(at.id))
    found = list(connection.execute(query.order_by(name)).scalars())
    for one, other in pairwise(sorted(found, key=str.lower)):
        if one.lower() == other.lower():
            raise two_rows(source, f"{schema.text}.{one}", at.id)
    return found


def macros(connection: sa.Connection, at: Snapshot, lake: LakeInfo) -> list[MacroVersion]:
    """Return all macros at a snapshot, by id; one statement, two if there are any."""
    asked = _bodies(schemas_of(connection))
    rows = connection.execute(asked, {"snapshot": at.id}).all()
    if not rows:
        return []
    found = connection.execute(_macro_texts(), {"snapshot": at.id})
    texts = {(row.object_id, row.key): row.value for row in found}
    return [
        _macro(list(group), texts, lake) for _, group in groupby(rows, key=lambda r: r.macro_id)
    ]


def _macro(rows: Sequence[sa.Row[Any]], texts: dict[Any, str], lake: LakeInfo) -> MacroVersion:
    first = rows[0]
    return MacroVersion(
        first.macro_id,
        schema_of_row(first, lake.data_path),
        first.macro_name,
        MacroKind(first.type),
        bodies_of(rows, texts),
        SnapshotId(first.begin_snapshot),
    )


@cache
def _view_called(schemas: sa.FromClause) -> sa.Select[Any]:
    s, v = schemas.c, tables.view.c
    return (
        _any_view(schemas)
        .where(sa.func.lower(s.schema_name) == sa.func.lower(sa.bindparam("schema", type_=TEXT)))
        .where(sa.func.lower(v.view_name) == sa.func.lower(sa.bindparam("name", type_=TEXT)))
    )


@cache
def _any_view(schemas: sa.FromClause) -> sa.Select[Any]:
    s, v = schemas.c, tables.view.c
    return (
        sa.select(
            *(v.view_id, v.view_uuid, v.view_name, v.dialect, v.sql, v.column_aliases),
            *(begin_of(tables.view), *about_schema(schemas)),
        )
        .join_from(tables.view, schemas, v.schema_id == s.schema_id)
        .where(shown_or_broken(tables.view, SNAPSHOT), visible(schemas, SNAPSHOT))
    )


@cache
def _view_tags(of_columns: sa.Table | None) -> sa.Select[Any] | sa.CompoundSelect[Any]:
    """Ask for the tags of :views, each with None, and for the comments on their columns."""
    t, ids = tables.tag, sa.bindparam("views", type_=BIGINT, expanding=True)
    own = sa.select(
        *(t.c.object_id.label("view_id"), t.c.key, t.c.value),
        sa.cast(sa.null(), TEXT).label("column_name"),
    ).where(t.c.object_id.in_(ids), t.c.key.in_(VIEW_TAGS), visible(t, SNAPSHOT))
    if of_columns is None:
        return own
    c = of_columns.c
    comments = sa.select(c.view_id, c.key, c.value, or_null(c.column_name)).where(
        c.view_id.in_(ids), c.key == "comment", visible(of_columns, SNAPSHOT)
    )
    return sa.union_all(own, comments)


@cache
def _bodies(schemas: sa.FromClause) -> sa.Select[Any]:
    m, s = tables.macro.c, schemas.c
    i, p = tables.macro_impl.c, tables.macro_parameters.c
    return (
        sa.select(
            *(m.macro_id, m.macro_name, begin_of(tables.macro)),
            *about_schema(schemas),
            *(i.impl_id, i.dialect, i.sql, i.type),
            *(or_null(p.parameter_name), p.parameter_type, p.default_value, p.default_value_type),
        )
        .join_from(tables.macro, schemas, m.schema_id == s.schema_id)
        .join(tables.macro_impl, i.macro_id == m.macro_id)
        .outerjoin(
            tables.macro_parameters, sa.and_(p.macro_id == i.macro_id, p.impl_id == i.impl_id)
        )
        .where(shown_or_broken(tables.macro, SNAPSHOT), visible(schemas, SNAPSHOT))
        .order_by(m.macro_id, i.impl_id, p.column_id)
    )


@cache
def _macro_texts() -> sa.Select[Any]:
    t, m = tables.tag.c, tables.macro.c
    return (
        sa.select(t.object_id, t.key, t.value)
        .join_from(tables.tag, tables.macro, t.object_id == m.macro_id)
        .where(visible(tables.tag, SNAPSHOT), visible(tables.macro, SNAPSHOT))
    )


def resolve(base: str, path: str | None, is_relative: object) -> str:
    """Return ``path`` below ``base``, which ends in '/', unless it is already absolute.

    Clients that know only DuckLake's page about queries give schemas and tables no path: their
    files are below ``base`` itself. Raises CorruptLake for a relative path that leaves ``base``,
    and for one that is neither relative nor absolute.
    """
    if path is None:
        return base
    if is_relative:
        return joined(base, path)
    if is_relative is None or not is_absolute(path):
        raise CorruptLake(
            f"the path {path!r} in the catalog is not absolute, and path_is_relative is"
            f" {'NULL' if is_relative is None else 'false'}; {RESTORE}"
        )
    return path


def schema_of_row(row: Any, data_path: str, prefix: str = "") -> SchemaInfo:
    """Return the schema that a row with columns of `queries.about_schema` describes."""
    relative = getattr(row, f"{prefix}path_is_relative")
    path = resolve(data_path, getattr(row, f"{prefix}path"), relative)
    parent = getattr(row, "parent_schema_id", None)
    return SchemaInfo(
        SchemaId(row.schema_id), row.schema_name, path, None if parent is None else SchemaId(parent)
    )


def file_place(table: TableVersion, path: str, is_relative: object) -> str:
    """Return the absolute path of a file of a table that is about to be read.

    Raises CorruptLake for a relative path that leaves the table's directory, InvalidRequest for a
    file outside of the places that the user allows, and Unsupported for a file on a web server.
    """
    place = resolve(table.path, path, is_relative)
    if split_address(place)[0] in _SERVERS:
        raise Unsupported(
            f"file {place!r} of {table.full_name} is on a web server, which Shelduck does not read;"
            " copy it into the lake"
        )
    require_allowed(place, table.roots, f"file {place!r} of {table.full_name}")
    return place


def hive_values(path: str) -> dict[str, str | None]:
    """Return the ``name=value`` directories of a path by lower-cased name, None for Hive's null.

    If a name occurs twice, the first one counts, as in DuckDB.
    """
    values: dict[str, str | None] = {}
    for name, value in hive_parts(path):
        values.setdefault(name.lower(), value)
    return values


def hive_parts(path: str) -> list[tuple[str, str | None]]:
    """Return the ``name=value`` directories of a path in order, None for Hive's null."""
    parts: list[tuple[str, str | None]] = []
    for part in path.split("/")[:-1]:
        name, equals, value = part.partition("=")
        if equals:
            parts.append((unquote(name), None if value == NULL_DIRECTORY else unquote(value)))
    return parts
