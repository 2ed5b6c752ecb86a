"""Computed columns of rows: generated values, and numbers that no two rows share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.errors import InvalidRequest
from shelduck.model.tables.computed import ComputedColumn, computed_of
from shelduck.model.tables.schema import Field
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.quoting import backticked, quote_name
from shelduck.spark.bridge import Named, select_named
from shelduck.spark.named_errors import first_line
from shelduck.spark.rows import store_rules
from shelduck.spark.rows.row_checks import checked
from shelduck.spark.types import spark_type

_PART = (1 << 33) - 1
"""Which bits of Spark's increasing ids count the rows of a part."""


def ruled(
    rows: DataFrame,
    table: TableVersion,
    is_given: Callable[[Field], bool | Column],
    *,
    only: Column | None = None,
) -> DataFrame:
    """Return rows of a table with generated values, held to its constraints.

    ``rows`` have the columns of the table, and may have others. ``is_given`` says for which rows
    somebody gave the value of a generated column, which must then be the right one. ``only`` are
    the rows that stay.
    """
    made = {
        field.name: _generated(field, one, table, is_given(field), only)
        for one, field in _fields(table)
        if one.expression is not None
    }
    if made:
        named = [Named(n, made.get(n, backticked(n))) for n in rows.columns]
        try:
            rows = select_named(rows, named)
        except AnalysisException as error:
            names = ", ".join(map(quote_name, made))
            raise InvalidRequest(
                f"{names} of {table.full_name} cannot be computed: {first_line(error)}"
            ) from error
    return checked(rows, table, only=only)


def numbered(
    rows: DataFrame, column: str, first: int, step: int, offsets: dict[int, int]
) -> DataFrame:
    """Return kept rows with a number of their own where the column is NULL.

    ``offsets`` are the numbers of rows in the parts before each part, from `part_sizes`.
    """
    parts = F.create_map(*[F.lit(n) for pair in offsets.items() for n in pair])
    before = F.element_at(parts, F.spark_partition_id()).cast(T.LongType())
    place = F.monotonically_increasing_id().bitwiseAND(F.lit(_PART))
    number = F.lit(first) + F.lit(step) * (before + place)
    value = F.coalesce(F.col(backticked(column)), number)
    return select_named(
        rows, [Named(n, value if n == column else backticked(n)) for n in rows.columns]
    )


def part_sizes(rows: DataFrame) -> dict[int, int]:
    """Return how many rows each part of kept rows has, by one small job."""
    found = rows.groupBy(F.spark_partition_id().alias("part")).count().collect()
    return {row[0]: row[1] for row in sorted(found)}


def wrong_values(rows: DataFrame, table: TableVersion) -> Iterator[str]:
    """Tell which computed columns have other values than they should; a query for each."""
    for one, field in _fields(table):
        name = F.col(backticked(field.name))
        if one.expression is not None:
            wrong = rows.where(~name.eqNullSafe(_value(field, one, table))).count()
            if wrong:
                yield f"{wrong} row(s) do not have the value of {_told(field, one, table)}"
        elif one.identity is not None and one.identity.always:
            twice = rows.groupBy(name).count().where("count > 1").count()
            if twice:
                yield f"{twice} value(s) of {_told(field, one, table)} are in several rows"


def _fields(table: TableVersion) -> Iterator[tuple[ComputedColumn, Field]]:
    for one in computed_of(table.properties, table.full_name):
        field = table.columns.by_id(one.column)
        # Another writer may have dropped it.
        if field is not None:
            yield one, field


def _generated(
    field: Field,
    one: ComputedColumn,
    table: TableVersion,
    is_given: bool | Column,
    only: Column | None,
) -> Column:
    kind = spark_type(field.type, field.name)
    right, now = _value(field, one, table), F.col(backticked(field.name))
    if not field.nullable:
        why = f"column {quote_name(field.name)} of {table.full_name} is NOT NULL, got NULL"
        right = F.coalesce(right, store_rules.fail(why, kind))
    if isinstance(is_given, bool) and not is_given:
        found = right
    else:
        got = F.coalesce(F.left(now.cast("string"), F.lit(100)), F.lit("NULL"))
        told = F.lit(f"{_told(field, one, table)} cannot be ")
        advice = F.lit("; leave the column out, or give what its expression gives")
        refused = store_rules.fail(F.concat(told, got, advice), kind)
        found = F.when(now.eqNullSafe(right), now).otherwise(refused)
        if isinstance(is_given, Column):
            found = F.when(is_given, found).otherwise(right)
    return found if only is None else F.when(only, found)


def _value(field: Field, one: ComputedColumn, table: TableVersion) -> Column:
    text = None if one.expression is None else one.expression.spelled(table.columns)
    if text is None:
        raise InvalidRequest(
            f"{_told(field, one, table)} needs a column that another writer dropped; drop it"
        )
    return F.expr(text).cast(spark_type(field.type, field.name))


def _told(field: Field, one: ComputedColumn, table: TableVersion) -> str:
    clause = one.clause(table.columns)
    return f"column {quote_name(field.name)} of {table.full_name} ({clause})"
