"""How much of what a large test could run it runs now: all in `make soak`, a part in a share.

Seeds are run in turns. With every twelve commits, each share has run once, and each test goes on to
its next seeds: after some time, all of them were run. SHELDUCK_TEST_COMMITS says how many commits
there are, so that a failure can be replayed; pytest prints the number when it begins.
"""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SHARES = 12
"""How many shares the slow tests have."""
SOAKS = os.environ.get("SHELDUCK_TEST_LAWS") == "soak"
T = TypeVar("T")
_ROOT = Path(__file__).parents[2]


def long(soak: int, share: int) -> int:
    """How many examples a law draws: so many in `make soak`, and so many in a share."""
    return soak if SOAKS else share


def turns(seeds: Sequence[T], size: int) -> list[Sequence[T]]:
    """Stretches of seeds, each a case of a test: all in `make soak`, or the one of this turn."""
    stretches = [seeds[at : at + size] for at in range(0, len(seeds), size)]
    return stretches if SOAKS else [stretches[commits() // SHARES % len(stretches)]]


def one_by_one(values: Sequence[T], size: int = 1) -> list[T]:
    """Cases of a test: all of them in `make soak`, or so many of this turn."""
    return [value for stretch in turns(values, size) for value in stretch]


def with_slow(fast: Iterable[object], slow: Iterable[object]) -> list[object]:
    """Cases of a test, the fast ones first; a tuple has several arguments."""
    every = (each if isinstance(each, tuple) else (each,) for each in slow)
    return [*fast, *(pytest.param(*each, marks=pytest.mark.slow) for each in every)]


def shown(seeds: Sequence[object]) -> str:
    """A stretch of seeds as the id of a case, such as 60-139."""
    return f"{seeds[0]}-{seeds[-1]}"


@cache
def commits() -> int:
    """How many commits lead here; a shallow checkout has few, and what is no checkout has none."""
    if told := os.environ.get("SHELDUCK_TEST_COMMITS"):
        return int(told)
    command = ["git", "rev-list", "--count", "HEAD"]
    try:
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return 0
    return int(done.stdout)
