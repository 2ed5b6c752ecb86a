"""From snapshots to places: percent of the width, to scale or one step for each change."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from enum import Enum
from itertools import pairwise

_NARROW = 1.5
"""Changes closer than this part of the width, in percent, cannot be told apart."""


class Scale(Enum):
    """How wide a snapshot is."""

    SNAPSHOTS = "snapshots"
    """Each snapshot has the same width."""
    CHANGES = "changes"
    """All snapshots from one change of the columns to the next together have the same width."""


class Axis:
    """The snapshots from ``first`` to ``last``, both included, on a line of 100 percent."""

    def __init__(self, first: int, last: int, changes: Iterable[int], scale: Scale) -> None:
        self.first, self.last, self.scale = first, last, scale
        self.changes = sorted({c for c in changes if first <= c <= last})
        self._cuts = sorted({first, *self.changes, last + 1})

    def place(self, snapshot: int) -> float:
        """Return where a snapshot begins; before the first is 0, after the last is 100."""
        inside = min(max(snapshot, self.first), self.last + 1)
        if self.scale is Scale.SNAPSHOTS:
            found = (inside - self.first) / (self.last + 1 - self.first)
        else:
            found = (bisect_right(self._cuts, inside) - 1) / (len(self._cuts) - 1)
        return round(100 * found, 4)

    def shows(self, begin: int, end: int | None) -> bool:
        """Return whether a part of ``begin`` to ``end``, which is excluded, is on the line."""
        return begin <= self.last and (end is None or end > self.first)


def readable_scale(first: int, last: int, changes: Iterable[int]) -> Scale:
    """Return the scale by snapshots if all changes can be told apart on it."""
    edges = sorted({c for c in changes if first <= c <= last})
    width = last + 1 - first
    gaps = [100 * (b - a) / width for a, b in pairwise([*edges, last + 1])]
    return Scale.CHANGES if min(gaps, default=100.0) < _NARROW else Scale.SNAPSHOTS
