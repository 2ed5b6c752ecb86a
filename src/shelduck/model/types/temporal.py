"""Texts of dates, times and timestamps as DuckDB writes them, and the numbers that they mean.

The numbers are those of Parquet and Spark: days, microseconds or nanoseconds since 1970-01-01 in
the proleptic Gregorian calendar, of any year. ``infinity`` is the number as which DuckDB stores it.
"""

from __future__ import annotations

import re
from datetime import date

from shelduck.model.types.data_types import Leaf

DAY = 86_400
DAY_MICROS = DAY * 10**6
INFINITE_DATE = 2**31 - 1
INFINITE_TIMESTAMP = 2**63 - 1
_DATE = r"(?P<year>\d{1,7})-(?P<month>\d{1,2})-(?P<day>\d{1,2})(?P<bc>\s*\(BC\))?"
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d*))?)?"
_ZONE = r"(?P<zone>Z|UTC|[+-]\d{2}(?::?\d{2}(?::\d{2})?)?)"
_DATE_ONLY = re.compile(_DATE, re.IGNORECASE | re.ASCII)
_TIME_ONLY = re.compile(rf"{_CLOCK}(?:\s*{_ZONE})?", re.IGNORECASE | re.ASCII)
_TIMESTAMP = re.compile(rf"{_DATE}(?:(?:\s+|T){_CLOCK}(?:\s*{_ZONE})?)?", re.IGNORECASE | re.ASCII)
# The calendar repeats after as many years, and these have as many days.
_CYCLE, _CYCLE_DAYS = 400, 146_097
_EPOCH = date(1970, 1, 1).toordinal()

ZONELESS = ("timestamp", "timestamp_s", "timestamp_ms")
MICROSECONDS = (*ZONELESS, "timestamptz")
NANOSECONDS = ("timestamp_ns", "timestamptz_ns")
TIMESTAMP_NAMES = (*MICROSECONDS, *NANOSECONDS)
ZONED = ("timestamptz", "timestamptz_ns")
_DIGITS = {
    "timestamp_s": 0,
    "timestamp_ms": 3,
    "timestamp_ns": 9,
    "timestamptz_ns": 9,
    "time_ns": 9,
}


def units_per_second(leaf: Leaf) -> int:
    """Return how many of a leaf's units are a second: nanoseconds for ``_ns``, else micros."""
    return 10**9 if str(leaf).endswith("_ns") else 10**6


def fraction_digits(leaf: Leaf) -> int:
    """Return how many digits after the second a type holds."""
    return _DIGITS.get(str(leaf), 6)


def date_number(text: str) -> int | None:
    """Return the days since 1970-01-01, or None if ``text`` is not a date."""
    infinite = _infinity(text, INFINITE_DATE)
    match = _DATE_ONLY.fullmatch(text.strip())
    if infinite is not None or match is None:
        return infinite
    days = _days(match)
    return days if days is not None and abs(days) < INFINITE_DATE else None


def date_text(days: int) -> str:
    """Return DuckDB's text of a date: ``2024-01-02``, ``0044-03-15 (BC)``, ``infinity``."""
    if abs(days) == INFINITE_DATE:
        return "infinity" if days > 0 else "-infinity"
    year, month, day = _civil(days)
    suffix = " (BC)" if year < 1 else ""
    return f"{year if year > 0 else 1 - year:04d}-{month:02d}-{day:02d}{suffix}"


def time_number(text: str, leaf: Leaf) -> int | None:
    """Return the units since midnight, or None if ``text`` is not a time of that type."""
    match = _TIME_ONLY.fullmatch(text.strip())
    if match is None or match["zone"]:
        return None
    return _clock(match, leaf)


def time_text(number: int, leaf: Leaf) -> str:
    """Return DuckDB's text of a time: ``01:02:03.000004``."""
    seconds, fraction = divmod(number, units_per_second(leaf))
    digits = len(str(units_per_second(leaf))) - 1
    tail = f".{fraction:0{digits}d}".rstrip("0").rstrip(".")
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{tail}"


def zoned_time_text(text: str, leaf: Leaf) -> str | None:
    """Return the canonical text of a time with an offset (none is ``+00``), or None."""
    match = _TIME_ONLY.fullmatch(text.strip())
    number = _clock(match, leaf) if match else None
    if match is None or number is None:
        return None
    offset = _offset(match["zone"] or "+00")
    if offset is None:
        return None
    return time_text(number, leaf) + _offset_text(offset)


def timestamp_number(text: str, leaf: Leaf) -> int | None:
    """Return the units since the epoch, UTC for an instant; None if ``text`` is invalid.

    A type without a time zone accepts only a zero offset. An instant without an offset counts as
    UTC.
    """
    infinite = _infinity(text, INFINITE_TIMESTAMP)
    if infinite is not None:
        # Seconds and milliseconds are stored in other units than they have in Parquet.
        return None if str(leaf) in ("timestamp_s", "timestamp_ms") else infinite
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        return None
    days = _days(match)
    clock = _clock(match, leaf) if match["hour"] else 0
    offset = _offset(match["zone"]) if match["zone"] else 0
    if days is None or clock is None or offset is None:
        return None
    if offset and str(leaf) not in ZONED:
        return None
    number = days * DAY * units_per_second(leaf) + clock - offset * units_per_second(leaf)
    return number if abs(number) < INFINITE_TIMESTAMP else None


def timestamp_text(number: int, leaf: Leaf) -> str:
    """Return DuckDB's text of a timestamp; an instant is written in UTC with ``+00``."""
    if abs(number) == INFINITE_TIMESTAMP:
        return "infinity" if number > 0 else "-infinity"
    days, clock = divmod(number, DAY * units_per_second(leaf))
    zone = "+00" if str(leaf) in ZONED else ""
    return f"{date_text(days)} {time_text(clock, leaf)}{zone}"


def calendar_field(leaf: Leaf, text: str, unit: str) -> int | None:
    """Return the year, month, day or hour of a value's text, UTC for an instant.

    ``epoch_`` before the unit: how many of them have begun since 1970. None for a text that is not
    a value of the type, or a type without that field.
    """
    name = str(leaf)
    if name.startswith("time") and name not in TIMESTAMP_NAMES:
        return int(text[:2]) if unit == "hour" and text[:2].isdecimal() else None
    if name == "date":
        days, clock = date_number(text), 0
    else:
        number = timestamp_number(text, leaf) if name in TIMESTAMP_NAMES else None
        if number is None:
            return None
        days, clock = divmod(number, DAY * units_per_second(leaf))
    if days is None:
        return None
    hour, (year, month, day) = clock // (3600 * units_per_second(leaf)), _civil(days)
    return {
        "year": year,
        "month": month,
        "day": day,
        "hour": hour,
        "epoch_year": year - 1970,
        "epoch_month": (year - 1970) * 12 + month - 1,
        "epoch_day": days,
        "epoch_hour": days * 24 + hour,
    }[unit]


def is_infinite(text: str) -> bool:
    """Return whether a text is one of DuckDB's words for infinity."""
    return _infinity(text, 1) is not None


def _infinity(text: str, number: int) -> int | None:
    return {"infinity": number, "-infinity": -number}.get(text.strip().lower())


def _clock(match: re.Match[str], leaf: Leaf) -> int | None:
    hour, minute, second = (int(match[p] or 0) for p in ("hour", "minute", "second"))
    fraction = (match["fraction"] or "").rstrip("0")
    if len(fraction) > fraction_digits(leaf) or minute > 59 or second > 59:
        return None
    units = units_per_second(leaf)
    number = ((hour * 60 + minute) * 60 + second) * units
    number += int(fraction.ljust(len(str(units)) - 1, "0") or "0")
    # DuckDB has 24:00:00 as a time of day, but not as part of a timestamp.
    midnight = number == DAY * units and "day" not in match.groupdict()
    return number if number < DAY * units or midnight else None


def _offset(zone: str) -> int | None:
    if zone.upper() in ("Z", "UTC"):
        return 0
    digits = zone[1:].replace(":", "").ljust(6, "0")
    hours, minutes, seconds = int(digits[:2]), int(digits[2:4]), int(digits[4:6])
    if hours > 15 or minutes > 59 or seconds > 59:
        return None
    return (hours * 3600 + minutes * 60 + seconds) * (-1 if zone[0] == "-" else 1)


def _offset_text(offset: int) -> str:
    hours, rest = divmod(abs(offset), 3600)
    minutes, seconds = divmod(rest, 60)
    text = f"{'-' if offset < 0 else '+'}{hours:02d}"
    if minutes or seconds:
        text += f":{minutes:02d}"
    return text + (f":{seconds:02d}" if seconds else "")


def _days(match: re.Match[str]) -> int | None:
    year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    if match["bc"]:
        year = 1 - year
    cycle, rest = divmod(year - 1, _CYCLE)
    try:
        return cycle * _CYCLE_DAYS + date(rest + 1, month, day).toordinal() - _EPOCH
    except ValueError:
        return None


def _civil(days: int) -> tuple[int, int, int]:
    cycle, rest = divmod(days + _EPOCH - 1, _CYCLE_DAYS)
    found = date.fromordinal(rest + 1)
    return cycle * _CYCLE + found.year, found.month, found.day
