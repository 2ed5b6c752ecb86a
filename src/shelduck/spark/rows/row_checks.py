"""CHECK constraints over rows: a write fails at the first row that does not satisfy one.

A condition that is NULL is satisfied, as in SQL.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.errors import InvalidRequest
from shelduck.model.tables.constraints import Constraint, constraints_of
from shelduck.model.tables.schema import Field
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.quoting import backticked, quote_name, quote_text
from shelduck.spark.bridge import Named, Sql, column_of, select_named
from shelduck.spark.named_errors import first_line
from shelduck.spark.rows import store_rules
from shelduck.spark.types import spark_type

# How many columns of a row an error shows, and how much of each.
_MOST_COLUMNS, _MOST_CHARACTERS = 8, 100


def checked(rows: DataFrame, table: TableVersion, *, only: Column | None = None) -> DataFrame:
    """Return rows of a table whose write fails if one does not satisfy a constraint.

    ``rows`` have the columns of the table, and may have others behind them. ``only`` are the rows
    that are checked. Raises InvalidRequest if a constraint can no longer be computed.
    """
    checks = constraints_of(table.properties, table.full_name).checks
    if not checks:
        return rows
    first = table.columns.fields[0]
    kind = spark_type(first.type, first.name)
    value = F.col(backticked(first.name))
    for one in reversed(checks):
        told = quote_text(f"{_told(one, table)} is not satisfied by the row ")
        advice = "'; correct the row, or drop the constraint'"
        why = Sql(f"concat({told}, {_row(one, table)}, {advice})")
        is_wrong = _is_wrong(one, table)
        is_wrong = is_wrong if only is None else only & is_wrong
        value = F.when(is_wrong, store_rules.fail(why, kind)).otherwise(value)
    named = [Named(n, value if n == first.name else backticked(n)) for n in rows.columns]
    try:
        return select_named(rows, named)
    except AnalysisException as error:
        names = ", ".join(_told(one, table) for one in checks)
        raise InvalidRequest(f"{names} cannot be computed: {first_line(error)}") from error


def first_wrong(rows: DataFrame, table: TableVersion, constraint: Constraint) -> str | None:
    """Return a row that does not satisfy a constraint, in words; None if all do.

    Spark leaves out files whose bounds prove that their rows do.
    """
    row = column_of(_row(constraint, table))
    found = wrong(rows, table, constraint).limit(1).select(row).collect()
    return None if not found else str(found[0][0])


def wrong(rows: DataFrame, table: TableVersion, constraint: Constraint) -> DataFrame:
    """Return the rows that do not satisfy a constraint.

    Raises InvalidRequest if Spark cannot compute it, or if it is no condition.
    """
    try:
        return rows.where(_is_wrong(constraint, table))
    except AnalysisException as error:
        told = f"{_told(constraint, table)} is no condition over its columns"
        raise InvalidRequest(f"{told}: {first_line(error)}") from error


def violations(rows: DataFrame, table: TableVersion) -> Iterator[str]:
    """Tell which constraints the rows of a table do not satisfy; a query for each."""
    for one in constraints_of(table.properties, table.full_name).checks:
        if one.unproven:
            continue
        row = column_of(_row(one, table))
        found = wrong(rows, table, one).agg(F.count("*"), F.first(row)).collect()[0]
        if found[0]:
            yield f"{found[0]} row(s) do not satisfy {_told(one, table)}, such as {found[1]}"


def refusal(table: TableVersion, constraint: Constraint, row: str) -> InvalidRequest:
    """Return the error for rows that are there and do not satisfy a constraint."""
    return InvalidRequest(
        f"{_told(constraint, table)} is not satisfied by the row {row}, which is there already;"
        " correct such rows first, or add the constraint with NOT VALID"
    )


def _is_wrong(constraint: Constraint, table: TableVersion) -> Column:
    return F.expr(f"NOT ({_condition(constraint, table)})")


def _condition(constraint: Constraint, table: TableVersion) -> str:
    expression = constraint.expression
    text = None if expression is None else expression.spelled(table.columns)
    if text is None:
        raise InvalidRequest(
            f"CHECK constraint {quote_name(constraint.name)} of {table.full_name} uses a column"
            f" that another writer dropped; use ALTER TABLE {table.full_name} DROP CONSTRAINT"
            f" {quote_name(constraint.name)}"
        )
    return text


def _told(constraint: Constraint, table: TableVersion) -> str:
    name = quote_name(constraint.name)
    return f"CHECK constraint {name} ({_condition(constraint, table)}) of {table.full_name}"


def _row(constraint: Constraint, table: TableVersion) -> Sql:
    """Return a row in words: the columns that the constraint uses first."""
    used = [] if constraint.expression is None else constraint.expression.tops(table.columns)
    others = [f for f in table.columns if f not in used and f.is_leaf]
    shown = [f for f in (*used, *others) if str(f.shape) != "blob"][:_MOST_COLUMNS]
    return Sql(f"concat('(', concat_ws(', ', {', '.join(map(_value, shown))}), ')')")


def _value(field: Field) -> str:
    text = f"left(CAST({backticked(field.name)} AS STRING), {_MOST_CHARACTERS})"
    told = quote_text(f"{quote_name(field.name)} = ")
    return f"concat({told}, coalesce({text}, 'NULL'))"
