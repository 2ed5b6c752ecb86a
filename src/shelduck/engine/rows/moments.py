"""Dates, times and timestamps as integers and texts, whatever the session's time zone is."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.model.types.data_types import Leaf
from shelduck.model.types.temporal import DAY_MICROS, INFINITE_DATE, INFINITE_TIMESTAMP

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
