"""How far a job is and how fast, and how often its worker looks at it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict

from shelduck.model.changes.job import JobSpeed
from shelduck.planning.upkeep.compaction import Bin

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


class Told(TypedDict):
    """What a commit of converted files records in its job."""

    done: int
    total: int
    speed: JobSpeed


@dataclass(frozen=True, slots=True)
class Progress:
    """The files that are converted before a lot, of how many, and how fast the lot was written."""

    done: int
    total: int
    speed: JobSpeed

    def after(self, bins: Sequence[Bin]) -> Told:
        """Return what is done with these bins of the lot."""
        size = sum(b.bytes for b in bins)
        spent = self.speed.milliseconds * size // max(1, self.speed.bytes)
        return {
            "done": self.done + sum(len(b.files) for b in bins),
            "total": self.total,
            "speed": JobSpeed(size, spent, self.speed.cores),
        }


def pauses() -> Iterator[float]:
    """Yield the seconds to wait before each new look."""
    pause = _FIRST_PAUSE
    while True:
        yield pause
        pause = min(pause * 1.5, _LONGEST_PAUSE)
