"""Points in time as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

from shelduck.errors import InvalidRequest


def instant(value: str | datetime) -> datetime:
    """Return the instant that ``value`` means; without an offset it is UTC.

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
        raise InvalidRequest(f"{value!r} is not a timestamp; give text or a datetime")
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
