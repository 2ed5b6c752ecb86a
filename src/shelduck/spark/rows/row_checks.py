"""CHECK constraints over rows: a write fails at the first row that does not satisfy one.

A condition that is NULL is satisfied, as in SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.errors import InvalidRequest
from shelduck.model.tables.constraints import Constraint, constraints_of
from shelduck.model.tables.schema import Field
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.quoting import backticked, quote_name, quote_text
from shelduck.spark.bridge import Named, Sql, column_of, select_named
from shelduck.spark.named_errors import first_line
from shelduck.spark.rows import store_rules
from shelduck.spark.rows.bound import bound, by_zone, select_bound, tried

# How many columns of a row an error shows, and how much of each.
_MOST_COLUMNS, _MOST_CHARACTERS = 8, 100
_IS_WRONG = "__shelduck_wrong_{}"


def checked(
    rows: DataFrame, names: Sequence[str], table: TableVersion, only: Sql | None
) -> DataFrame:
    """Return rows of a table whose write fails if one does not satisfy a constraint.

    Their columns have these ``names``: those of the table, and maybe others behind them. ``only``
    are the rows that are checked. Raises InvalidRequest if a constraint can no longer be computed.
    """
    checks = constraints_of(table.properties, table.full_name).checks
    if not checks:
        return rows
    rows = _judged(rows, names, table, checks, only)
    cases = " ".join(_case(at, one, table) for at, one in enumerate(checks))
    first = backticked(table.columns.fields[0].name)
    value = Sql(f"CASE {cases} ELSE {first} END")
    return select_named(
        rows, [Named(n, value if backticked(n) == first else backticked(n)) for n in names]
    )


def _case(at: int, one: Constraint, table: TableVersion) -> str:
    told = quote_text(f"{store_rules.MARK}{_told(one, table)} is not satisfied by the row ")
    advice = "'; correct the row, or drop the constraint'"
    why = f"concat({told}, {_row(one, table)}, {advice})"
    return f"WHEN {_IS_WRONG.format(at)} THEN raise_error({why})"


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
    name = _IS_WRONG.format(0)
    return _judged(rows, rows.columns, table, [constraint], None).where(name).drop(name)


def _judged(
    rows: DataFrame,
    names: Sequence[str],
    table: TableVersion,
    checks: Sequence[Constraint],
    only: Sql | None,
) -> DataFrame:
    """Return rows with these columns and one for each constraint: whether it is not satisfied."""
    places = {one.name: _IS_WRONG.format(at) for at, one in enumerate(checks)}
    for zone, some in by_zone(checks):
        named = [Named(name, backticked(name)) for name in names]
        names = [*names, *(places[one.name] for one in some)]
        named += [Named(places[one.name], _is_wrong(one, table, only)) for one in some]
        try:
            rows = select_bound(rows, named, zone)
        except AnalysisException as error:
            told = ", ".join(_told(one, table) for one in some)
            raise InvalidRequest(
                f"{told} is no condition over its columns: {first_line(error)}"
            ) from error
    return rows


def violations(rows: DataFrame, table: TableVersion) -> Iterator[str]:
    """Tell which constraints the rows of a table do not satisfy; a query for each."""
    for one in constraints_of(table.properties, table.full_name).checks:
        if one.unproven:
            continue
        row = column_of(_row(one, table))
        counts = F.count("*"), F.first(row)
        found, failed = tried(partial(_counted, rows, table, one, counts))
        if failed is not None:
            yield failed
        elif found is not None and found[0]:
            yield f"{found[0]} row(s) do not satisfy {_told(one, table)}, such as {found[1]}"


def _counted(
    rows: DataFrame, table: TableVersion, one: Constraint, counts: tuple[Column, ...]
) -> Row:
    return wrong(rows, table, one).agg(*counts).collect()[0]


def refusal(table: TableVersion, constraint: Constraint, row: str) -> InvalidRequest:
    """Return the error for rows that are there and do not satisfy a constraint."""
    return InvalidRequest(
        f"{_told(constraint, table)} is not satisfied by the row {row}, which is there already;"
        " correct such rows first, or add the constraint with NOT VALID"
    )


def _is_wrong(constraint: Constraint, table: TableVersion, only: Sql | None) -> Sql:
    assert constraint.expression is not None
    name, told = quote_name(constraint.name), _told(constraint, table)
    way_out = f"use ALTER TABLE {table.full_name} DROP CONSTRAINT {name}"
    return bound(constraint.expression, table, told, way_out, within="NOT ({})", only=only)


def _told(constraint: Constraint, table: TableVersion) -> str:
    text = constraint.clause(table.columns).removeprefix("CHECK ")
    return f"CHECK constraint {quote_name(constraint.name)} {text} of {table.full_name}"


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
