"""Running locked work again when the catalog was busy or a race was lost."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from shelduck.catalog.databases.failures import Contention
from shelduck.catalog.databases.store import Store

ATTEMPTS = 10
FIRST_WAIT = 0.02
GROWTH = 1.6

T = TypeVar("T")


def write_with_retries(store: Store, act: Callable[[Connection], T]) -> T:
    """Return what ``act`` returns in a transaction of `Store.write`, which is committed then.

    All of it is run again while it raises Contention.
    """

    def attempt() -> T:
        with store.write() as connection:
            return act(connection)

    return with_retries(attempt)


def with_retries(attempt: Callable[[], T], sleep: Callable[[float], None] = time.sleep) -> T:
    """Return what ``attempt`` returns, running it up to ten times while it raises Contention.

    Waits between 0.02 and about 1 s, jittered so that two losers do not meet again. Every other
    error, and the last Contention, goes to the caller.
    """
    for number in range(ATTEMPTS - 1):
        try:
            return attempt()
        except Contention:
            longest = FIRST_WAIT * GROWTH**number
            sleep(random.uniform(longest / 2, longest))  # noqa: S311 - jitter, not a secret
    return attempt()
