"""Points in time as people write them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo

from shelduck import clock
from shelduck.errors import InvalidRequest
from shelduck.model.text.intervals import Interval, parse_interval

Zone = Callable[[], tzinfo | None]
"""Tells the time zone of times without an offset, None for the machine's; asked only for those."""


def instant(value: str | datetime, zone: Zone) -> datetime:
    """Return the instant of ``value``; without an offset it is a local time of ``zone``.

    A time that the zone has twice is the earlier one; one that it never has is as much later as the
    clocks are set forward, as in Spark.

    >>> from datetime import timezone
    >>> instant("2026-01-01", lambda: timezone(timedelta(hours=2))).isoformat()
    '2026-01-01T00:00:00+02:00'
    >>> instant("2026-01-01 12:00Z", lambda: timezone(timedelta(hours=2))).isoformat()
    '2026-01-01T12:00:00+00:00'
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
    if value.tzinfo is not None:
        return value
    local = value.replace(tzinfo=zone(), fold=0)
    # The way over UTC gives a time that the zone never has its true offset.
    return local.astimezone(UTC).astimezone(local.tzinfo)


def earlier(value: str | datetime | timedelta | Interval, zone: Zone) -> datetime:
    """Return a point in time as `instant` does, or a span such as ``"7 days"`` before now."""
    now = clock.now()
    if isinstance(value, timedelta):
        return now - value
    if isinstance(value, str):
        value = parse_interval(value) or value
    return value.before(now) if isinstance(value, Interval) else instant(value, zone)


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
