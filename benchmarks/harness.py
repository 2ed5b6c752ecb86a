"""Timing side by side, and results as Markdown."""

from __future__ import annotations

import gc
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Timing:
    """The seconds of several runs of one thing."""

    seconds: tuple[float, ...]

    @property
    def best(self) -> float:
        return min(self.seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        return duration(self.median)


@dataclass(frozen=True)
class Target:
    """What a number is meant to be, and what it was."""

    wanted: str
    seen: str
    is_met: bool
    why: str = ""
    """Why it is missed, if it is."""

    @property
    def found(self) -> str:
        """What was seen, and why it misses the target, if it does."""
        return self.seen if self.is_met or not self.why else f"{self.seen} ({self.why})"

    def __str__(self) -> str:
        return f"{'met' if self.is_met else '**missed**'}: {self.wanted}; seen {self.found}"


@dataclass
class Section:
    """One table of results with the targets that it answers."""

    title: str
    about: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    aside: list[tuple[str, ...]] = field(default_factory=list)
    """Rows of other sizes: printed, and not kept in the page."""

    def markdown(self, *, whole: bool = False) -> str:
        """The section as the page has it, or with rows and targets that are only printed."""
        lines = [f"## {self.title}", "", self.about]
        if rows := [*(self.aside if whole else ()), *self.rows]:
            rule = ["---"] + ["--:"] * (len(self.header) - 1)
            lines += ["", *map(_line, (self.header, rule, *rows))]
        if told := [target for target in self.targets if whole or not target.is_met]:
            lines += ["", *(f"- {target}" for target in told)]
        return "\n".join([*lines, ""])

    def verdicts(self, name: str, when: str) -> list[str]:
        """Its targets as rows of a table of several benchmarks."""
        return [
            _line((name, target.wanted, target.found, "yes" if target.is_met else "**no**", when))
            for target in self.targets
        ]


def interleaved(
    subjects: Mapping[str, Callable[[], object]], *, runs: int, warm_ups: int = 1
) -> dict[str, Timing]:
    """Time subjects in turns (a b b a ...), so that what the machine does else hits all alike.

    Warm-ups are run and not counted.
    """
    seconds: dict[str, list[float]] = {name: [] for name in subjects}
    for number in range(warm_ups + runs):
        order = list(subjects) if number % 2 == 0 else list(reversed(subjects))
        for name in order:
            taken = timed(subjects[name])
            if number >= warm_ups:
                seconds[name].append(taken)
    return {name: Timing(tuple(taken)) for name, taken in seconds.items()}


def beside(
    section: Section, what: str, subjects: Mapping[str, Callable[[], object]], *, quick: bool
) -> float:
    """Add a row of the first subject beside the second, and return their ratio."""
    timings = interleaved(subjects, runs=3 if quick else 7)
    found = ratio(*timings.values())
    section.rows.append((what, *map(str, timings.values()), f"{found:.3f}"))
    return found


def timed(subject: Callable[[], object]) -> float:
    """The seconds that a call takes; garbage is collected before, not within."""
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        subject()
        return time.perf_counter() - start
    finally:
        gc.enable()


def ratio(ours: Timing, theirs: Timing) -> float:
    """Our median against theirs: below 1 is faster."""
    return ours.median / theirs.median


def at_most(wanted: float, seen: Mapping[str, float], what: str, why: str = "") -> Target:
    """The target that every value seen stays at or below a number; tells the worst one.

    ``why``: what is in the way, if it is missed.
    """
    name, worst = max(seen.items(), key=lambda item: item[1])
    told = f"{worst:.3g} at worst ({name})"
    return Target(f"{what} at most {wanted:g}", told, worst <= wanted, why)


def at_least(wanted: float, seen: Mapping[str, float], what: str, why: str = "") -> Target:
    """The target that every value seen stays at or above a number; tells the worst one.

    ``why``: what is in the way, if it is missed.
    """
    name, worst = min(seen.items(), key=lambda item: item[1])
    told = f"{worst:.3g} at worst ({name})"
    return Target(f"{what} at least {wanted:g}", told, worst >= wanted, why)


def duration(seconds: float) -> str:
    """Seconds as people read them."""
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


@contextmanager
def scratch(name: str) -> Iterator[Path]:
    """A folder that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=f"shelduck-bench-{name}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
