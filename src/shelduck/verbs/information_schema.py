"""The tables of SQL's ``information_schema``: what schemas, tables, views and columns there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shelduck.model.tables.table_version import SchemaInfo, TableVersion
from shelduck.spark.query import metadata_frame
from shelduck.spark.session import DataFrame
from shelduck.spark.types import spark_type
from shelduck.work.results import TableName
from shelduck.work.unit import UnitOfWork

NAME = "information_schema"
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
    for schema, table in _each_table(unit):
        yield schema.text, table.name, "MANAGED", table.comments.get(None)
    for schema, name in _each_view(unit):
        view = unit.workspace.view(TableName(schema.name, name))
        yield schema.text, name, "VIEW", None if view is None else view.definition.comment


def _views(unit: UnitOfWork) -> Rows:
    for schema, name in _each_view(unit):
        view = unit.workspace.view(TableName(schema.name, name))
        if view is not None:
            made = view.definition
            yield schema.text, name, made.spark_sql or made.sql, made.comment


def _columns(unit: UnitOfWork) -> Rows:
    for schema, table in _each_table(unit):
        for place, field in enumerate(table.columns, 1):
            kind = spark_type(field.type, field.name).simpleString()
            yield (
                *(schema.text, table.name, field.name, place),
                None if field.default is None else field.default.text,
                "YES" if field.nullable else "NO",
                *(kind.partition("(")[0].partition("<")[0].upper(), kind),
                table.comments.get(field.id),
            )


def _each_table(unit: UnitOfWork) -> Iterator[tuple[SchemaInfo, TableVersion]]:
    for schema in unit.workspace.schemas():
        for name in unit.workspace.table_names(schema):
            yield schema, unit.workspace.table(TableName(schema.name, name))


def _each_view(unit: UnitOfWork) -> Iterator[tuple[SchemaInfo, str]]:
    for schema in unit.workspace.schemas():
        for name in unit.workspace.view_names(schema):
            yield schema, name


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
