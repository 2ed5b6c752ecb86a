"""What DESCRIBE and SHOW CREATE TABLE say of a table."""

from __future__ import annotations

from shelduck.model.schema import Field, Path, path_text
from shelduck.model.table import TableVersion
from shelduck.spark.types import spark_type
from shelduck.sql.render import create_table_text
from shelduck.sql.statements import TableName

Row = tuple[str, str | None, str | None]


def table_rows(table: TableVersion, *, extended: bool) -> list[Row]:
    """Return name, Spark type and comment of each column; ``extended`` tells ids and more."""
    rows: list[Row] = [(f.name, spark_text(f), table.comments.get(f.id)) for f in table.columns]
    if not extended:
        return rows
    rows += [("", "", ""), ("# Column Details", "", "")]
    for top in table.columns:
        rows += [(path, detail, None) for path, detail in _details(top, ())]
    rows += [
        ("", "", ""),
        ("# Detailed Table Information", "", ""),
        ("Database", table.schema.name, None),
        ("Table", table.name, None),
        ("Table Id", str(table.id), None),
        ("Table UUID", table.uuid, None),
        ("Location", table.path, None),
        ("Snapshot", str(table.snapshot.id), None),
        ("Schema Version", str(table.snapshot.schema_version), None),
        ("Comment", table.comments.get(None), None),
    ]
    return rows


def column_rows(table: TableVersion, path: Path) -> list[tuple[str, str | None]]:
    """Return what DESCRIBE says of one column or nested field."""
    found = table.columns.get(path, table.full_name)
    return [
        ("col_name", path_text(path)),
        ("data_type", spark_text(found)),
        ("comment", table.comments.get(found.id)),
        ("field_id", str(found.id)),
        ("ducklake_type", str(found.type)),
        ("nullable", str(found.nullable).lower()),
        ("initial_default", found.initial_default),
        ("default", found.default.text if found.default else None),
    ]


def create_statement(table: TableVersion) -> str:
    """Return a CREATE TABLE statement that makes such a table."""
    name = TableName((table.schema.name, table.name))
    return create_table_text(name, table.columns, table.comments)


def spark_text(field: Field) -> str:
    """Return a field's type as Spark names it."""
    return spark_type(field.type, field.name).simpleString()


def _details(field: Field, above: Path) -> list[tuple[str, str]]:
    path = (*above, field.name)
    told = [f"id {field.id}", str(field.type)]
    if not field.nullable and not above:
        told.append("NOT NULL")
    if field.initial_default is not None:
        told.append(f"initial default {field.initial_default!r}")
    if field.default is not None:
        told.append(f"default {field.default.text!r}")
    found = [(path_text(path), ", ".join(told))]
    for child in field.children:
        found += _details(child, path)
    return found
