"""Work that runs again because the catalog was busy or another commit came first."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import sqlalchemy as sa

from shelduck import clock
from shelduck.catalog.databases.database import Contention
from shelduck.catalog.databases.store import Store
from shelduck.metrics import RETRIES, record

ATTEMPTS = 10
FIRST_WAIT = 0.02
GROWTH = 1.6

T = TypeVar("T")


def write_with_retries(store: Store, act: Callable[[sa.Connection], T]) -> T:
    """Return what ``act`` returns in a transaction of `Store.write_together`.

    All of it runs again while it raises Contention.
    """
    return with_retries(lambda: store.write_together(act))


def with_retries(
    attempt: Callable[[], T],
    sleep: Callable[[float], None] = clock.sleep,
    *,
    lost: type[Exception] = Contention,
) -> T:
    """Return what ``attempt`` returns; run it up to ten times while it raises ``lost``.

    Waits between 0.02 and about 1 s, with jitter so that two losers do not meet again. Every other
    error, and the last ``lost``, goes to the caller.
    """
    for each in tries(sleep):
        with each.may_lose(lost):
            return attempt()
    raise AssertionError("unreachable")


@dataclass(slots=True)
class Try:
    """One of several attempts at the same work."""

    is_last: bool
    before: Exception | None
    """The error to which the attempt before it lost."""
    lost_to: Exception | None = None

    @contextmanager
    def may_lose(
        self, *lost: type[Exception], but: tuple[type[Exception], ...] = ()
    ) -> Iterator[None]:
        """Suppress errors of these kinds in a ``with`` block, except in the last attempt.

        Errors of the kinds ``but`` are never suppressed.
        """
        try:
            yield
        except lost as error:
            if self.is_last or isinstance(error, but):
                raise
            self.lost_to = error
            record(RETRIES, 1, {"error.type": type(error).__name__})


def tries(sleep: Callable[[float], None] = clock.sleep) -> Iterator[Try]:
    """Yield ten attempts; wait before each but the first.

    For work of which only a part is repeated, or that continues in another way; otherwise use
    `with_retries`.
    """
    before = None
    for number in range(ATTEMPTS):
        each = Try(number == ATTEMPTS - 1, before)
        yield each
        before = each.lost_to
        longest = FIRST_WAIT * GROWTH**number
        sleep(random.uniform(longest / 2, longest))  # noqa: S311 - jitter, not a secret
