"""Rows by the rules of their table: generated values, CHECK constraints, and identity numbers.

A write fails at the first row that does not satisfy a condition. A condition that is NULL is
satisfied, as in SQL. Nothing else hands text that a lake stores to the parser of Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import Named, Sql, column_of, engine_for, select_named
from shelduck.engine.named_errors import SparkError, data_fault, first_line
from shelduck.engine.rows import store_rules
from shelduck.engine.types import spark_type
from shelduck.errors import InvalidRequest, ShelduckError, Unsupported
from shelduck.model.tables.computed import ComputedColumn, computed_of
from shelduck.model.tables.constraints import Constraint, constraints_of
from shelduck.model.tables.row_expressions import RowExpression
from shelduck.model.tables.schema import Field, FieldId
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked, quote_name, quote_text
from shelduck.text.query.harmless import refuse_harmful
from shelduck.text.query.rewriting import looks_at_other_rows

Fitting = Callable[[T.DataType, Field], Callable[[Column], Column] | None]
_MADE, _IS_WRONG = "__shelduck_made_{}", "__shelduck_wrong_{}"
# How many columns of a row an error shows, and how much of each.
_MOST_COLUMNS, _MOST_CHARACTERS = 8, 100
_PART = (1 << 33) - 1
"""Which bits of Spark's increasing ids count the rows of a part."""
_FAILED = re.compile(r"== SQL of shelduck (.+?) \(line \d+, position \d+\) ==", re.DOTALL)


def ruled(
    rows: DataFrame,
    table: TableVersion,
    is_given: Callable[[Field], bool | Column],
    fitting: Fitting,
    *,
    only: Sql | None = None,
    is_set: Callable[[Field], bool] | None = None,
) -> DataFrame:
    """Return rows of a table with generated values, held to its constraints.

    ``rows`` have the columns of the table, and may have others. ``is_given`` says for which rows
    somebody gave the value of a generated column, which must then be the right one; ``fitting``
    makes a column's value of one of another type. ``only`` are the rows that stay. Values that
    follow from none of the columns which a statement sets (``is_set``) stay as they are.
    """
    generated = [
        (one, field)
        for one, field in _fields(table)
        if one.expression is not None
        and (is_set is None or any(map(is_set, (field, *one.expression.tops(table.columns)))))
    ]
    columns = rows.columns
    if generated:
        right = {}
        rows, made = _with_values(rows, columns, table, generated, only)
        for one, field in generated:
            value = _fitted(field, made[field.id], fitting, table)
            given = is_given(field)
            if given is not False:
                value = _given_or(column_of(value), field, _told(field, one, table), given)
            right[field.name] = value if only is None else F.when(column_of(only), column_of(value))
        rows = select_named(rows, [Named(n, right.get(n, backticked(n))) for n in columns])
    return checked(rows, columns, table, only)


def numbered(
    rows: DataFrame, column: str, first: int, step: int, offsets: dict[int, int]
) -> DataFrame:
    """Return kept rows with a number of their own where the column is NULL.

    ``offsets`` are the numbers of rows in the parts before each part, from `numbers_of_parts`.
    """
    parts = F.create_map(*[F.lit(n) for pair in offsets.items() for n in pair])
    before = F.element_at(parts, F.spark_partition_id()).cast(T.LongType())
    place = F.monotonically_increasing_id().bitwiseAND(F.lit(_PART))
    number = F.lit(first) + F.lit(step) * (before + place)
    value = F.coalesce(F.col(backticked(column)), number)
    return select_named(
        rows, [Named(n, value if n == column else backticked(n)) for n in rows.columns]
    )


class PartNumbers(NamedTuple):
    """A part of kept rows: how many there are and lack a number, and the ends of the others'."""

    number: int
    rows: int
    lacking: int
    low: int | None
    high: int | None


def numbers_of_parts(rows: DataFrame, column: str) -> list[PartNumbers]:
    """Return what each part of kept rows has in a column of numbers, by one small job."""
    value = F.col(backticked(column))
    told = (F.count(F.lit(1)), F.count_if(value.isNull()), F.min(value), F.max(value))
    found = rows.groupBy(F.spark_partition_id().alias("part")).agg(*told).collect()
    return sorted(PartNumbers(*row) for row in found)


def numbers_of_plan(rows: DataFrame, column: str) -> list[int]:
    """Return the numbers that rows have in a column, without a job if the plan holds the rows."""
    value = F.col(backticked(column))
    return [row[0] for row in rows.select(value).collect() if row[0] is not None]


def wrong_values(rows: DataFrame, table: TableVersion, fitting: Fitting) -> Iterator[str]:
    """Tell which computed columns have other values than they should; a query for each."""
    for one, field in _fields(table):
        if one.expression is not None:
            wrong, failed = tried(partial(_count_wrong, rows, table, one, field, fitting))
            if failed is not None:
                yield failed
            elif wrong:
                yield f"{wrong} row(s) do not have the value of {_told(field, one, table)}"
        else:
            name = F.col(backticked(field.name))
            twice = rows.groupBy(name).count().where("count > 1").count()
            if twice:
                yield f"{twice} value(s) of {_told(field, one, table)} are in several rows"


def _fields(table: TableVersion) -> Iterator[tuple[ComputedColumn, Field]]:
    for one in computed_of(table.properties, table.full_name):
        field = table.columns.by_id(one.column)
        # Another writer may have dropped it.
        if field is not None:
            yield one, field


def _with_values(
    rows: DataFrame,
    names: Sequence[str],
    table: TableVersion,
    generated: Sequence[tuple[ComputedColumn, Field]],
    only: Sql | None,
) -> tuple[DataFrame, dict[FieldId, T.DataType]]:
    """Return rows followed by generated values as their expressions give them, and their types."""
    fields = {one.column: field for one, field in generated}

    def value(one: ComputedColumn) -> Named:
        return Named(_MADE.format(one.column), _value(fields[one.column], one, table, only))

    def cannot(some: list[ComputedColumn]) -> str:
        told = ", ".join(quote_name(fields[one.column].name) for one in some)
        return f"{told} of {table.full_name} cannot be computed"

    rows = _computed(rows, names, [one for one, _ in generated], value, cannot)
    kinds = {field.name: field.dataType for field in rows.schema.fields[-len(generated) :]}
    return rows, {number: kinds[_MADE.format(number)] for number in fields}


def _count_wrong(
    rows: DataFrame, table: TableVersion, one: ComputedColumn, field: Field, fitting: Fitting
) -> int:
    found, made = _with_values(rows, rows.columns, table, [(one, field)], None)
    right = column_of(_fitted(field, made[field.id], fitting, table))
    return found.where(~F.col(backticked(field.name)).eqNullSafe(right)).count()


def _fitted(field: Field, given: T.DataType, fitting: Fitting, table: TableVersion) -> str | Column:
    """Return a generated value of `_with_values` as one of its column."""
    name, convert = _MADE.format(field.id), fitting(given, field)
    value = name if convert is None else convert(F.col(name))
    if field.nullable:
        return value
    why = f"column {quote_name(field.name)} of {table.full_name} is NOT NULL, got NULL"
    return F.coalesce(value, store_rules.fail(why, spark_type(field.type, field.name)))


def _given_or(right: Column, field: Field, told: str, is_given: bool | Column) -> Column:
    """Return the right value, or fail at one that somebody gave and that is another."""
    kind, now = spark_type(field.type, field.name), F.col(backticked(field.name))
    got = F.coalesce(F.left(now.cast("string"), F.lit(100)), F.lit("NULL"))
    advice = F.lit("; leave the column out, or give what its expression gives")
    refused = store_rules.fail(F.concat(F.lit(f"{told} cannot be "), got, advice), kind)
    found = F.when(now.eqNullSafe(right), now).otherwise(refused)
    return F.when(is_given, found).otherwise(right) if isinstance(is_given, Column) else found


def _value(field: Field, one: ComputedColumn, table: TableVersion, only: Sql | None) -> Sql:
    assert one.expression is not None
    way_out = f"use ALTER TABLE {table.full_name} DROP COLUMN {quote_name(field.name)}"
    return bound(one.expression, table, _told(field, one, table), way_out, only=only)


def _told(field: Field, one: ComputedColumn, table: TableVersion) -> str:
    clause = one.clause(table.columns)
    return f"column {quote_name(field.name)} of {table.full_name} ({clause})"


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
    told = quote_text(f"{store_rules.MARK}{_told_check(one, table)} is not satisfied by the row ")
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

    Raises InvalidRequest if Spark cannot compute it, or if it is not a condition.
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

    def judged(one: Constraint) -> Named:
        return Named(places[one.name], _is_wrong(one, table, only))

    def cannot(some: list[Constraint]) -> str:
        told = ", ".join(_told_check(one, table) for one in some)
        return f"{told} is not a condition over its columns"

    return _computed(rows, names, checks, judged, cannot)


def _computed(
    rows: DataFrame,
    names: Sequence[str],
    ones: Sequence[Ruling],
    value: Callable[[Ruling], Named],
    cannot: Callable[[list[Ruling]], str],
) -> DataFrame:
    """Return rows with these columns, and the value of each expression behind them.

    ``cannot`` says of which expressions Spark can make none.
    """
    for zone, some in by_zone(ones):
        more: list[Named] = [value(one) for one in some]
        kept: list[Named] = [Named(name, backticked(name)) for name in names]
        try:
            rows = engine_for(rows.sparkSession).select_bound(rows, [*kept, *more], zone)
        except AnalysisException as error:
            raise InvalidRequest(f"{cannot(some)}: {first_line(error)}") from error
        names = [*names, *(one.name for one in more)]
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
            yield f"{found[0]} row(s) do not satisfy {_told_check(one, table)}, such as {found[1]}"


def _counted(
    rows: DataFrame, table: TableVersion, one: Constraint, counts: tuple[Column, ...]
) -> Row:
    return wrong(rows, table, one).agg(*counts).collect()[0]


def refusal(table: TableVersion, constraint: Constraint, row: str) -> InvalidRequest:
    """Return the error for rows that are there and do not satisfy a constraint."""
    return InvalidRequest(
        f"{_told_check(constraint, table)} is not satisfied by the row {row}, which is there"
        " already; correct such rows first, or add the constraint with NOT VALID"
    )


def _is_wrong(constraint: Constraint, table: TableVersion, only: Sql | None) -> Sql:
    assert constraint.expression is not None
    name, told = quote_name(constraint.name), _told_check(constraint, table)
    way_out = f"use ALTER TABLE {table.full_name} DROP CONSTRAINT {name}"
    return bound(constraint.expression, table, told, way_out, within="NOT ({})", only=only)


def _told_check(constraint: Constraint, table: TableVersion) -> str:
    text = constraint.clause(table.columns).removeprefix("CHECK ")
    return f"CHECK constraint {quote_name(constraint.name)} {text} of {table.full_name}"


def _row(constraint: Constraint, table: TableVersion) -> Sql:
    """Return a row in words: the columns that the constraint uses first."""
    used = [] if constraint.expression is None else constraint.expression.tops(table.columns)
    others = [f for f in table.columns if f not in used and f.is_leaf]
    shown = [f for f in (*used, *others) if str(f.shape) != "blob"][:_MOST_COLUMNS]
    return Sql(f"concat('(', concat_ws(', ', {', '.join(map(_shown, shown))}), ')')")


def _shown(field: Field) -> str:
    text = f"left(CAST({backticked(field.name)} AS STRING), {_MOST_CHARACTERS})"
    told = quote_text(f"{quote_name(field.name)} = ")
    return f"concat({told}, coalesce({text}, 'NULL'))"


Value = TypeVar("Value")
Ruling = TypeVar("Ruling", Constraint, ComputedColumn)


def stored(text: str, what: str, way_out: str) -> Sql:
    """Return an expression that comes from the catalog, and that others may have written.

    Raises Unsupported, naming ``what`` it is, if it does more than compute with one row.
    """
    if looks_at_other_rows(text):
        raise Unsupported(f"{what} depends on other rows; {way_out}")
    try:
        refuse_harmful(text, way_out)
    except Unsupported as error:
        raise Unsupported(f"{what}: {error}") from error
    return Sql(text)


def bound(
    expression: RowExpression,
    table: TableVersion,
    what: str,
    way_out: str,
    *,
    within: str = "{}",
    only: Sql | None = None,
) -> Sql:
    """Return an expression over the row of `Engine.select_bound`; ``what`` names it in errors.

    ``within`` is what is asked of its value. It is NULL and not computed but for ``only`` rows.
    """
    text = expression.evaluated(table.columns)
    if text is None:
        raise InvalidRequest(f"{what} uses a column that another writer dropped; {way_out}")
    made = within.format(stored(text, what, way_out))
    return Sql(made if only is None else f"if({only}, {made}, NULL)", what)


def failed_rule(error: BaseException) -> str | None:
    """Return that an expression cannot be computed for a row, and why; None for other errors."""
    if not isinstance(error, SparkError):
        return None
    named = _FAILED.search(str(error))
    if named is None:
        return None
    return f"{named[1]} cannot be computed for a row: {data_fault(error) or first_line(error)}"


def tried(act: Callable[[], Value]) -> tuple[Value | None, str | None]:
    """Return what an act with expressions gives, or else which of them failed and why."""
    try:
        return act(), None
    except ShelduckError as error:
        return None, str(error)
    except SparkError as error:
        failed = failed_rule(error)
        if failed is None:
            raise
        return None, failed


def by_zone(ones: Iterable[Ruling]) -> list[tuple[str, list[Ruling]]]:
    """Return what has expressions by their time zones: a select for each."""
    found: dict[str, list[Ruling]] = {}
    for one in ones:
        found.setdefault("" if one.expression is None else one.expression.zone, []).append(one)
    return list(found.items())
