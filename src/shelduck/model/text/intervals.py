"""Whole numbers, and time spans in DuckDB's words: ``2 days``, ``7 days 12:00:00``."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

_PART = re.compile(
    r"([+-]?\d{1,18}(?:\.\d{1,18})?)\s*([a-z]+)|([+-])?(\d{1,6}):(\d\d)(?::(\d\d(?:\.\d{1,6})?))?",
    re.IGNORECASE,
)
# More is a mistake, and the calendar ends there.
_YEARS = 1000
_UNITS: dict[str, tuple[int, timedelta]] = {}
for _names, _months, _rest in (
    ("year years yr yrs y", 12, timedelta()),
    ("month months mon mons", 1, timedelta()),
    ("week weeks w", 0, timedelta(weeks=1)),
    ("day days d", 0, timedelta(days=1)),
    ("hour hours hr hrs h", 0, timedelta(hours=1)),
    ("minute minutes min mins m", 0, timedelta(minutes=1)),
    ("second seconds sec secs s", 0, timedelta(seconds=1)),
    ("millisecond milliseconds msec msecs ms", 0, timedelta(milliseconds=1)),
    ("microsecond microseconds us", 0, timedelta(microseconds=1)),
):
    _UNITS.update(dict.fromkeys(_names.split(), (_months, _rest)))


@dataclass(frozen=True, slots=True)
class Interval:
    """Calendar months and a fixed length of time."""

    months: int
    rest: timedelta

    def before(self, moment: datetime) -> datetime:
        """Return the moment this long before; in a shorter month, its last day."""
        count = moment.year * 12 + moment.month - 1 - self.months
        year, month = divmod(count, 12)
        day = min(moment.day, calendar.monthrange(year, month + 1)[1])
        return moment.replace(year=year, month=month + 1, day=day) - self.rest


def whole_number(text: str, digits: int = 18) -> int | None:
    """Return the number from 0 that a text means, None if it has more digits or other characters.

    18 digits always fit into the catalog's integers of 64 bits.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


def parse_interval(text: str) -> Interval | None:
    """Return the span that a text means, None if it is not a span."""
    months, rest, at = 0, timedelta(), 0
    words = text.strip()
    if not words:
        return None
    while at < len(words):
        match = _PART.match(words, at)
        if match is None:
            return None
        if match[1] is not None:
            unit = _UNITS.get(match[2].lower())
            if unit is None or (unit[0] and "." in match[1]):
                return None
            months += unit[0] * int(float(match[1]))
            try:
                rest += unit[1] * float(match[1])
            except OverflowError:
                return None
        else:
            clock = timedelta(
                hours=int(match[4]), minutes=int(match[5]), seconds=float(match[6] or 0)
            )
            rest += -clock if match[3] == "-" else clock
        at = match.end()
        while at < len(words) and words[at] in " ,":
            at += 1
    if abs(months) > _YEARS * 12 or abs(rest) > timedelta(days=_YEARS * 366):
        return None
    return Interval(months, rest)
