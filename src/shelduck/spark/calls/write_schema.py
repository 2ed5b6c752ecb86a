"""A table's columns as Spark's own writers want them: with what a row gets that leaves one out.

Spark fills such columns itself, before the lake sees a row; of a column that has no default in its
metadata it makes a NULL. So each gets Spark SQL for the value that `assign` gives it.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.errors import ShelduckError
from shelduck.model.tables.schema import Field, Kind, Schema
from shelduck.model.text.quoting import quote_text
from shelduck.spark.rows.store_rules import MARK, default_text
from shelduck.spark.types import spark_type


def write_schema(columns: Schema, render_expression: Callable[[str], str]) -> T.StructType:
    """Return the columns, every one of them nullable, as those of a table to write into.

    That a null is none of a column's values is told by the lake, which sees the rows next.
    ``render_expression`` turns the text of a default that is an expression (DuckDB's SQL) into
    Spark's SQL.
    """
    found = T.StructType()
    for column in columns.fields:
        kind = spark_type(column.type, column.name)
        metadata = None
        if column.default is not None:
            text = _default(column, kind, render_expression)
            # Spark takes a column to have a default when it has both. The second one is that of
            # rows which are there; a table that is only written into has none.
            metadata = {"CURRENT_DEFAULT": text, "EXISTS_DEFAULT": "NULL"}
        found.add(T.StructField(column.name, kind, nullable=True, metadata=metadata))
    return found


def _default(column: Field, kind: T.DataType, render_expression: Callable[[str], str]) -> str:
    """Return the SQL of a column's default; where there is none, SQL that fails the write."""
    default = column.default
    assert default is not None
    assert not isinstance(column.shape, Kind)
    name = kind.simpleString()
    try:
        if default.literal:
            return default_text(column.shape, default.text, column.name)
        return f"CAST({render_expression(default.text)} AS {name})"
    except ShelduckError as error:
        told = f"{MARK}column {column.name!r} is missing and its default fails: {error}"
        return f"CAST(raise_error({quote_text(told)}) AS {name})"
