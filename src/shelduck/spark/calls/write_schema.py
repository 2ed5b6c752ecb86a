"""A table's columns for Spark's own writers, with the defaults of columns that a row lacks.

Spark itself fills in missing columns before the lake sees a row; if a column has no default in its
metadata, Spark uses NULL. So each column gets Spark SQL for the value that `assign` gives it.
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
    """Return the columns, all of them nullable, as those of a table to write to.

    The lake, which sees the rows next, checks whether a column accepts NULL. ``render_expression``
    converts the text of a default that is an expression (DuckDB's SQL) to Spark's SQL.
    """
    found = T.StructType()
    for column in columns.fields:
        kind = spark_type(column.type, column.name)
        metadata = None
        if column.default is not None:
            text = _default(column, kind, render_expression)
            # For Spark, a column has a default if it has both. The second one is for existing rows,
            # which do not matter for a table that is only written to.
            metadata = {"CURRENT_DEFAULT": text, "EXISTS_DEFAULT": "NULL"}
        found.add(T.StructField(column.name, kind, nullable=True, metadata=metadata))
    return found


def _default(column: Field, kind: T.DataType, render_expression: Callable[[str], str]) -> str:
    """Return the SQL of a column's default; without one, SQL that fails the write."""
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
