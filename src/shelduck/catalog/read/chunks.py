"""Long lists of values for statements, split into parts that every database accepts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

Value = TypeVar("Value")

# SQLite accepts 32,766 parameters in one statement, PostgreSQL 65,535.
_CHUNK = 10_000


def chunks(values: Iterable[Value], size: int = _CHUNK) -> Iterator[list[Value]]:
    """Yield the values in lists that are short enough for one statement."""
    left = iter(values)
    while part := list(islice(left, size)):
        yield part
