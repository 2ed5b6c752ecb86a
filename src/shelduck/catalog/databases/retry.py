"""Work that runs again because the catalog was busy or another commit came first."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
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


@dataclass(frozen=True, slots=True)
class Try:
    """One of several attempts at the same work."""

    is_last: bool

    def may_lose(self, *lost: type[Exception], but: tuple[type[Exception], ...] = ()) -> _Held:
        """Suppress errors of these kinds in a ``with`` block, except in the last attempt.

        Errors of the kinds ``but`` are never suppressed.
        """
        return _Held(lost, but, self.is_last)


@dataclass(frozen=True, slots=True)
class _Held:
    lost: tuple[type[Exception], ...]
    but: tuple[type[Exception], ...]
    is_last: bool

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        if self.is_last or kind is None or issubclass(kind, self.but):
            return False
        if not issubclass(kind, self.lost):
            return False
        record(RETRIES, 1, {"error.type": kind.__name__})
        return True


def tries(sleep: Callable[[float], None] = clock.sleep) -> Iterator[Try]:
    """Yield ten attempts; wait before each but the first.

    For work of which only a part is repeated, or that continues in another way; otherwise use
    `with_retries`.
    """
    for number in range(ATTEMPTS):
        yield Try(is_last=number == ATTEMPTS - 1)
        longest = FIRST_WAIT * GROWTH**number
        sleep(random.uniform(longest / 2, longest))  # noqa: S311 - jitter, not a secret
