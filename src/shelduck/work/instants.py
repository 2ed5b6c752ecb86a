"""Points in time as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from shelduck import clock
from shelduck.errors import InvalidRequest
from shelduck.model.text.intervals import Interval, parse_interval


def instant(value: str | datetime) -> datetime:
    """Return the instant of ``value``; without an offset it is UTC.

    >>> instant("2026-01-01").isoformat()
    '2026-01-01T00:00:00+00:00'
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError as error:
            raise InvalidRequest(
                f"{value!r} is not a timestamp; write 2026-01-31 or 2026-01-31 12:30:00+00:00"
            ) from error
    if not isinstance(value, datetime):
        raise InvalidRequest(f"{value!r} is not a timestamp; pass text or a datetime")
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def earlier(value: str | datetime | timedelta | Interval) -> datetime:
    """Return a point in time, or the one a span such as ``"7 days"`` before now."""
    now = clock.now()
    if isinstance(value, timedelta):
        return now - value
    if isinstance(value, str):
        value = parse_interval(value) or value
    return value.before(now) if isinstance(value, Interval) else instant(value)


def seconds_of(name: str, value: str | timedelta) -> float:
    """Return the seconds of a span such as ``"10 minutes"``; InvalidRequest names the argument."""
    found = parse_interval(value) if isinstance(value, str) else value
    if isinstance(found, Interval):
        now = clock.now()
        found = now - found.before(now)
    if not isinstance(found, timedelta) or found <= timedelta(0):
        raise InvalidRequest(
            f"{name} does not accept {value!r}; give a time above zero, such as '10 minutes'"
        )
    return found.total_seconds()
