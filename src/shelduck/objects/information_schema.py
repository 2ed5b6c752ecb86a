"""The tables of SQL's ``information_schema``: what schemas, tables, views and columns there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from shelduck.engine.query import metadata_frame
from shelduck.engine.session import DataFrame
from shelduck.engine.types import kind_text
from shelduck.errors import ShelduckError
from shelduck.lake.results import TableName
from shelduck.lake.unit import UnitOfWork
from shelduck.lake.workspace import Workspace
from shelduck.model.tables.table_version import SchemaInfo, TableVersion
from shelduck.model.tables.view import ViewVersion

NAME = "information_schema"
T = TypeVar("T")
Rows = Iterator[tuple[object, ...]]


def information_table(unit: UnitOfWork, name: str) -> DataFrame | None:
    """Return one of these tables as a unit sees the lake, None for a name that is none of them."""
    found = _TABLES.get(name.lower())
    if found is None:
        return None
    columns, rows = found
    return metadata_frame(unit.state.spark, columns, rows(unit))


def _schemata(unit: UnitOfWork) -> Rows:
    for schema in unit.workspace.schemas():
        yield (schema.text,)


def _tables(unit: UnitOfWork) -> Rows:
    for schema, name, table in _each(unit, Workspace.table_names, Workspace.table):
        yield schema, name, "MANAGED", _comment(table)
    for schema, name, view in _each(unit, Workspace.view_names, Workspace.view):
        yield schema, name, "VIEW", _comment(view)


def _views(unit: UnitOfWork) -> Rows:
    for schema, name, view in _each(unit, Workspace.view_names, Workspace.view):
        made = view.definition if isinstance(view, ViewVersion) else None
        yield schema, name, made and (made.spark_sql or made.sql), _comment(view)


def _columns(unit: UnitOfWork) -> Rows:
    for schema, name, table in _each(unit, Workspace.table_names, Workspace.table):
        if not isinstance(table, TableVersion):
            yield schema, name, *(None,) * 6, _comment(table)
            continue
        for place, field in enumerate(table.columns, 1):
            kind = kind_text(field.type)
            yield (
                *(schema, name, field.name, place),
                None if field.default is None else field.default.text,
                "YES" if field.nullable else "NO",
                *(kind.partition("(")[0].partition("<")[0].upper(), kind),
                table.comments.get(field.id),
            )


def _each(
    unit: UnitOfWork,
    names: Callable[[Workspace, SchemaInfo], list[str]],
    get: Callable[[Workspace, TableName], T | None],
) -> Iterator[tuple[str, str, T | ShelduckError | None]]:
    """Yield the tables or views of all schemas; the error of one hides no others."""
    for schema in unit.workspace.schemas():
        for name in names(unit.workspace, schema):
            try:
                yield schema.text, name, get(unit.workspace, TableName(schema.name, name))
            except ShelduckError as error:
                yield schema.text, name, error


def _comment(found: TableVersion | ViewVersion | ShelduckError | None) -> str | None:
    if isinstance(found, TableVersion):
        return found.comments.get(None)
    if isinstance(found, ViewVersion):
        return found.definition.comment
    return None if found is None else f"cannot be read: {found}"


_NAMED = {"table_schema": "string", "table_name": "string"}
_TABLES: dict[str, tuple[dict[str, str], Callable[[UnitOfWork], Rows]]] = {
    "schemata": ({"schema_name": "string"}, _schemata),
    "tables": (_NAMED | {"table_type": "string", "comment": "string"}, _tables),
    "views": (_NAMED | {"view_definition": "string", "comment": "string"}, _views),
    "columns": (
        {
            **_NAMED,
            "column_name": "string",
            "ordinal_position": "bigint",
            "column_default": "string",
            "is_nullable": "string",
            "data_type": "string",
            "full_data_type": "string",
            "comment": "string",
        },
        _columns,
    ),
}
