"""Finding values that other readers do not hold, in Spark's own expressions.

The rules, and what is wrong with a value, are in `shelduck.model.tables.held`. With the bridge, the
writer of files checks the values itself, which costs less (``HeldValues.java``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import Named, select_named
from shelduck.engine.rows.store_rules import UNHELD, fail, failed
from shelduck.engine.types import spark_type
from shelduck.errors import InvalidRequest
from shelduck.model.tables.held import (
    INFINITE_PAST,
    LEAST_DATE,
    LEAST_MOMENT,
    MOST_SHOWN,
    is_moment,
    told_of,
)
from shelduck.model.tables.schema import Field, FieldId, Kind
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.model.types.data_types import Leaf
from shelduck.model.types.temporal import DAY_MICROS, INFINITE_DATE, INFINITE_TIMESTAMP


def unheld_failure(error: BaseException, table: TableVersion) -> InvalidRequest | None:
    """Return which value of a failed write was wrong, None if it failed for another reason."""
    found = failed(error)
    if found is None or found[0] != UNHELD:
        return None
    # As in HeldValues.java: the id of a field, and its value.
    number, value = found[1].split()[:2]
    return InvalidRequest(told_of(table, int(number), value))


def refusing_unheld(
    rows: DataFrame, fields: Iterable[Field], moved: Collection[FieldId]
) -> DataFrame:
    """Return the rows; a value that other readers do not hold fails the job that computes it.

    Only columns that may have one are computed. Those that are ``moved`` come from files.
    """
    columns: list[Named] = []
    for field in fields:
        name = backticked(field.name)
        value = F.col(name)
        bad = None if field.id in moved else _unheld(value, field)
        if bad is not None:
            value = F.when(bad.isNull(), value).otherwise(fail(bad, spark_type(field.type), UNHELD))
        columns.append(Named(field.name, name if bad is None else value))
    rest = rows.columns[len(columns) :]
    return select_named(rows, columns + [Named(name, backticked(name)) for name in rest])


def require_held(rows: DataFrame, table: TableVersion) -> None:
    """Raise InvalidRequest for the first value that other readers do not hold; one small job.

    ``rows`` begin with the columns of the table.
    """
    found = [_unheld(F.col(backticked(f.name)), f) for f in table.columns]
    parts = [c for c in found if c is not None]
    told = rows.select(F.coalesce(*parts, F.lit(None).cast("string")).alias("told"))
    for row in told.where(F.col("told").isNotNull()).limit(1).collect():
        number, value = row[0].split(" ", 1)
        raise InvalidRequest(told_of(table, int(number), value))


def held_or_null(value: Column, leaf: Leaf) -> Column:
    """Return a value of a leaf; NULL if other readers do not hold it."""
    bad = _is_unheld(value, leaf)
    return value if bad is None else F.when(~bad, value)


def may_be_unheld(leaf: Leaf) -> bool:
    """Return whether Spark's type has values that other readers do not hold."""
    return isinstance(spark_type(leaf), T.StringType) or is_moment(leaf)


def _unheld(value: Column, field: Field) -> Column | None:
    """Return the id of the first field with such a value, and the value; None if it has none.

    The column is NULL where every reader holds the value.
    """
    if field.shape is Kind.STRUCT:
        return _first(_unheld(value.getField(c.name), c) for c in field.children)
    if field.shape is Kind.LIST:
        return _of_items(value, field.children[0])
    if field.shape is Kind.MAP:
        key, item = field.children
        both = (_of_items(F.map_keys(value), key), _of_items(F.map_values(value), item))
        return _first(both)
    bad = _is_unheld(value, field.shape)
    if bad is None:
        return None
    return F.when(bad, F.concat(F.lit(f"{field.id} "), _shown(value, field.shape)))


def _first(parts: Iterable[Column | None]) -> Column | None:
    known = [part for part in parts if part is not None]
    return F.coalesce(*known) if known else None


def _of_items(items: Column, field: Field) -> Column | None:
    shapes = (leaf.shape for leaf in field.leaves())
    if not any(may_be_unheld(shape) for shape in shapes if not isinstance(shape, Kind)):
        return None
    bad = F.transform(items, lambda item: cast("Column", _unheld(item, field)))
    return F.get(F.filter(bad, lambda told: told.isNotNull()), F.lit(0))


def _is_unheld(value: Column, leaf: Leaf) -> Column | None:
    """Return whether other readers do not hold a value; None if they hold all of the type."""
    if isinstance(spark_type(leaf), T.StringType):
        return ~F.is_valid_utf8(value)
    if str(leaf) == "date":
        return F.unix_date(value) < LEAST_DATE
    if is_moment(leaf):
        number = micros(value, leaf)
        return (number < LEAST_MOMENT) & (number != INFINITE_PAST)
    return None


def _shown(value: Column, leaf: Leaf) -> Column:
    if str(leaf) == "date":
        return F.unix_date(value).cast("string")
    if is_moment(leaf):
        return micros(value, leaf).cast("string")
    data = value.cast("binary")
    end = F.when(F.octet_length(data) > MOST_SHOWN, "...'").otherwise("'")
    return F.concat(F.lit("X'"), F.hex(F.substring(data, 1, MOST_SHOWN)), end)


_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
_HOUR_MICROS = 3600 * 10**6
_FIRST_USUAL = -62_135_596_800_000_000  # 0001-01-01
_LAST_USUAL = 253_402_300_799_999_999  # 9999-12-31 23:59:59.999999


def micros(value: Column, leaf: Leaf) -> Column:
    """Return the microseconds since 1970 of a timestamp, UTC for ``timestamptz``."""
    if str(leaf) == "timestamptz":
        return F.unix_micros(value)
    return F.timestamp_diff("MICROSECOND", F.expr(_EPOCH), value)


def day_of(value: Column, leaf: Leaf) -> Column:
    """Return the date of a timestamp, UTC for ``timestamptz``."""
    return F.date_from_unix_date(floor_div(micros(value, leaf), DAY_MICROS).cast("int"))


def hour_of(value: Column, leaf: Leaf) -> Column:
    """Return the hour of the day of a timestamp, UTC for ``timestamptz``."""
    return floor_div(F.pmod(micros(value, leaf), F.lit(DAY_MICROS)), _HOUR_MICROS)


def part_of(kind: str, value: Column, leaf: Leaf) -> Column:
    """Return what a transform makes of a date or a timestamp; NULL for an infinite one.

    ``year``, ``month``, ``day`` and ``hour`` are parts of it, UTC for ``timestamptz``; behind
    ``epoch_``, how many of them have begun since 1970.
    """
    is_date, unit = str(leaf) == "date", kind.removeprefix("epoch_")
    day = value if is_date else day_of(value, leaf)
    number = F.unix_date(value) if is_date else micros(value, leaf)
    most = INFINITE_DATE if is_date else INFINITE_TIMESTAMP
    if kind == "epoch_day":
        found = F.unix_date(day)
    elif unit == "hour":
        hour = F.lit(0) if is_date else hour_of(value, leaf)
        found = hour if kind == unit else F.unix_date(day) * 24 + hour
    elif kind == unit:
        found = _FIELDS[unit](day)
    else:
        years = F.year(day) - 1970
        found = years if unit == "year" else years * 12 + F.month(day) - 1
    return F.when(~number.isin(most, -most), found)


_FIELDS = {"year": F.year, "month": F.month, "day": F.dayofmonth}


def moment_text(value: Column, leaf: Leaf) -> Column:
    """Return a timestamp as DuckDB writes it, or its microseconds if the year is not 1 to 9999."""
    number = micros(value, leaf)
    usual = number.between(_FIRST_USUAL, _LAST_USUAL)
    clock = F.pmod(number, F.lit(DAY_MICROS))
    text = F.format_string(
        "%s %02d:%02d:%02d.%06d",
        day_of(value, leaf).cast("string"),
        floor_div(clock, _HOUR_MICROS),
        floor_div(clock, 60 * 10**6) % 60,
        floor_div(clock, 10**6) % 60,
        clock % 10**6,
    )
    text = F.regexp_replace(text, r"\.?0*$", "")
    if str(leaf) == "timestamptz":
        text = F.concat(text, F.lit("+00"))
    return F.when(usual, text).otherwise(number.cast("string"))


def date_text(value: Column) -> Column:
    """Return a date as text, or its days since 1970 if the year does not have four digits."""
    usual = F.year(value).between(1, 9999)
    return F.when(usual, value.cast("string")).otherwise(F.unix_date(value).cast("string"))


def clock_micros(text: Column) -> Column:
    """Return the microseconds since midnight of a time's text, whatever offset follows it."""
    fraction = F.rpad(F.regexp_extract(text, r"\.(\d+)", 1), 6, "0")
    seconds = (_part(text, 1) * 60 + _part(text, 4)) * 60 + _part(text, 7)
    return F.when(text.isNotNull(), seconds * 10**6 + fraction.cast("bigint"))


def zone_seconds(text: Column) -> Column:
    """Return the seconds east of UTC in the text of a time with an offset, ``+HH[:MM[:SS]]``."""
    zone = F.regexp_extract(text, r"([+-]\d\d(:\d\d){0,2})$", 1)
    padded = F.concat(zone, F.lit(":00:00"))
    size = (_part(padded, 2) * 60 + _part(padded, 5)) * 60 + _part(padded, 8)
    return F.when(zone.startswith("-"), -size).otherwise(size)


def floor_div(value: Column, by: int) -> Column:
    """Return the quotient of integers, rounded down."""
    if by == 1:
        return value
    return F.call_function("div", value - F.pmod(value, F.lit(by)), F.lit(by))


def _part(text: Column, at: int) -> Column:
    return F.substring(text, at, 2).cast("bigint")
