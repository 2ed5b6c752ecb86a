"""Numbers, sizes, times, addresses and bars of pages as people read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from starlette.requests import Request

from shelduck.errors import InvalidRequest
from shelduck.model.text.intervals import whole_number

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")
_STEPS = ((60, "second"), (60, "minute"), (24, "hour"), (30, "day"), (12, "month"), (0, "year"))
_LEAST = 2.0
"""The height of a bar that is not zero, in percent, so that it can be seen."""


def number(value: float) -> str:
    """Return a whole number with thousands apart: ``1,234,567``."""
    return f"{value:,.0f}"


def plural(count: int, noun: str, more: str = "") -> str:
    """Return a count with its noun: ``1 file``, ``2 files``; ``more`` is an unusual plural."""
    return f"{number(count)} {noun if count == 1 else more or noun + 's'}"


def size(count: float) -> str:
    """Return bytes in the unit that suits them, with a decimal below ten: ``1.4 MB``."""
    at = 0
    while count >= 999.5 and at < len(_UNITS) - 1:
        count, at = count / 1000, at + 1
    if at == 0:
        return f"{count:.0f} {'byte' if count == 1 else _UNITS[0]}"
    return f"{count:.1f} {_UNITS[at]}" if count < 9.95 else f"{count:.0f} {_UNITS[at]}"


def share(part: float, whole: float) -> str:
    """Return a part in percent; ``<0.1%`` rather than nothing for something."""
    if not whole or not part:
        return "0%"
    percent = 100 * part / whole
    if percent < 0.1:
        return "<0.1%"
    if 99.9 < percent < 100:
        return ">99.9%"
    return f"{percent:.1f}%" if percent < 10 else f"{percent:.0f}%"


def day(time: datetime) -> str:
    """Return the date of an instant, in UTC: ``3 Mar 2026``."""
    told = time.astimezone(UTC)
    return f"{told.day} {told:%b %Y}"


def short_day(time: datetime) -> str:
    """Return day and month of an instant, in UTC: ``3 Mar``."""
    told = time.astimezone(UTC)
    return f"{told.day} {told:%b}"


def moment(time: datetime) -> str:
    """Return an instant to the second, in UTC."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def ago(time: datetime, now: datetime | None = None) -> str:
    """Return how long ago an instant was: ``3 days ago``."""
    return f"{lasting((now or datetime.now(UTC)) - time)} ago"


def lasting(span: timedelta) -> str:
    """Return a length of time in its largest unit: ``3 days``."""
    left = max(0.0, span.total_seconds())
    for length, noun in _STEPS:
        if not length or left < length:
            return plural(int(left), noun)
        left /= length
    raise AssertionError("years have no length")


class Here:
    """The address of a page: its path and the query that was asked for, with one value each."""

    def __init__(self, path: str, query: Mapping[str, str]) -> None:
        self.path = path
        self.query = dict(query)

    def but(self, **changed: object) -> str:
        """Return the address with other values; None and "" remove a value."""
        query = self.query | {name: str(value) for name, value in changed.items()}
        gone = {name for name, value in changed.items() if value is None or value == ""}
        left = sorted((name, value) for name, value in query.items() if name not in gone)
        return f"{self.path}?{urlencode(left)}" if left else self.path


def here(request: Request) -> Here:
    """Return where a request is."""
    return Here(request.url.path, {k: v for k, v in request.query_params.items() if v})


def asked_number(request: Request, name: str) -> int | None:
    """Return a whole number of the query, None without it; InvalidRequest for text."""
    text = request.query_params.get(name, "").strip()
    if not text:
        return None
    number = whole_number(text)
    if number is None:
        raise InvalidRequest(f"{name} must be a whole number from 0, not {text[:40]!r}")
    return number


@dataclass(frozen=True, slots=True)
class Bar:
    """One upright bar: its place and size in percent; ``y`` is its upper edge."""

    label: str
    value: int
    x: float
    width: float
    y: float
    height: float


def bars(values: Sequence[tuple[str, int]], gap: float = 0.25) -> list[Bar]:
    """Return a bar for each label and value; ``gap`` is the part of a place that stays empty."""
    most = max((value for _, value in values), default=0)
    step = 100 / max(1, len(values))
    found = []
    for at, (label, value) in enumerate(values):
        height = max(_LEAST, 100 * value / most) if value else 0.0
        x = round(at * step + step * gap / 2, 4)
        found.append(
            Bar(
                label,
                value,
                x,
                round(step * (1 - gap), 4),
                round(100 - height, 4),
                round(height, 4),
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class BarPart:
    """One part of a bar that lies: its place and width in percent."""

    label: str
    value: int
    x: float
    width: float


def parts(values: Sequence[tuple[str, int]]) -> list[BarPart]:
    """Return what each value is of their sum, side by side; nothing if the sum is 0."""
    total = sum(value for _, value in values)
    if not total:
        return []
    found, at = [], 0
    for label, value in values:
        start, end = round(100 * at / total, 4), round(100 * (at + value) / total, 4)
        found.append(BarPart(label, value, start, round(end - start, 4)))
        at += value
    return found
