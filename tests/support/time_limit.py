"""A limit for how long an answer may take."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

WAIT = 10


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TimeoutError when the block takes too much CPU time, or waits ten times as long.

    A busy machine makes an answer late, but not expensive.
    """

    def stop(*_: object) -> None:
        raise TimeoutError(f"no answer in {seconds} s of CPU time, or {WAIT * seconds} s in all")

    limits = ((signal.SIGPROF, signal.ITIMER_PROF, 1), (signal.SIGALRM, signal.ITIMER_REAL, WAIT))
    before = [signal.signal(told, stop) for told, _, _ in limits]
    for _, timer, times in limits:
        signal.setitimer(timer, times * seconds)
    try:
        yield
    finally:
        for (told, timer, _), handler in zip(limits, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(told, handler)
