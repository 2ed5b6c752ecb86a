"""The time of this process: what it is now, and how to wait.

Whatever decides by the time asks here, so that a simulation can set the clock and never waits. The
clock belongs to the context (`contextvars`) of the caller; without `using`, it is the machine's.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A clock: the time, and a way to wait."""

    def now(self) -> datetime:
        """Return the date and time in UTC; it may jump."""

    def monotonic(self) -> float:
        """Return seconds that only grow."""

    def sleep(self, seconds: float) -> None:
        """Return after some seconds."""


class _Machine:
    """The clock of the machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


_MACHINE = _Machine()
_clock: ContextVar[Clock] = ContextVar("shelduck_clock", default=_MACHINE)


def now() -> datetime:
    """Return the date and time in UTC."""
    return _clock.get().now()


def monotonic() -> float:
    """Return seconds that only grow, to measure how long something takes."""
    return _clock.get().monotonic()


def sleep(seconds: float) -> None:
    """Wait."""
    _clock.get().sleep(seconds)


@contextmanager
def using(clock: Clock) -> Iterator[None]:
    """Use another clock inside a ``with`` block, in this context only."""
    token = _clock.set(clock)
    try:
        yield
    finally:
        _clock.reset(token)
