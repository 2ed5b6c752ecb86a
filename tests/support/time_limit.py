"""How long a test waits: so long that only what hangs is stopped, on any machine."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 240
"""Seconds after which something that comes at once hangs. No right machine is so slow."""


@contextmanager
def limited() -> Iterator[None]:
    """Raise TimeoutError when the block hangs."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"no answer in {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def until(true: Callable[[], object]) -> None:
    """Wait until a condition holds; fail when that hangs."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)
