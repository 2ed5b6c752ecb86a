"""Measure every verb on all engines in turns, and compare what they answer."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from benchmarks.chart import chart
from benchmarks.harness import Section, Target, Timing, duration, scratch, timed
from benchmarks.peers.engines import engines
from benchmarks.peers.tpch import queries
from benchmarks.peers.verbs import Answer, Inputs, Verb, verbs

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from benchmarks.peers.engines import Engine

T = TypeVar("T")
ROWS, QUICK_ROWS, MORE_ROWS = 3_000_000, 30_000, 10_000_000
RUNS, QUICK_RUNS, MORE_RUNS = 5, 1, 3
CHART = Path(__file__).parents[2] / "docs" / "benchmarks-peers.svg"
_ABOUT = (
    "{rows:,} rows in 8 files; Delta Lake and Apache Iceberg (format 3) with deletion vectors, all"
    " three in one Spark session, in turns, the same SQL. Median of {runs} runs after a warm-up;"
    " the ratio is Shelduck's median over that of the faster peer: below 1, Shelduck is faster."
    " Memory is the peak of the heap of the one JVM that is driver and executor, garbage included,"
    " in a run after a collection: Shelduck's, Delta's and Iceberg's."
)
_TPCH = " TPC-H is the sum of the medians of its 22 queries."
_DRAWING = "\n\n![Shelduck's time over that of the faster peer](benchmarks-peers.svg)"
_HEADER = ("verb", "Shelduck", "Delta", "Iceberg", "ratio", "memory, MB")


# Why a verb may be slower than the faster peer, for the page.
_REASONS = {
    "change feed": "Delta writes changed rows a second time while it updates, and only reads those;"
    " Shelduck finds them in the data files when somebody asks",
    "scan after": "rows of files with deletes are found through one more array, and the rows that"
    " changed lie in files of their own; delete files are Parquet, not bitmaps",
    "LIMIT 10": "planning asks Python for the files",
    "append": "the statement is analyzed twice, here and by Spark",
    "CREATE TABLE AS": "the statement is analyzed twice, here and by Spark",
}


def run(*, quick: bool) -> Section:
    rows, runs = (QUICK_ROWS, QUICK_RUNS) if quick else (ROWS, RUNS)
    about = _ABOUT.format(rows=rows, runs=runs) + _TPCH + _DRAWING
    section = Section("Beside Delta and Iceberg", about, _HEADER)
    ratios = _measure(section, rows, runs, scale=0.01 if quick else 0.3)
    if not quick:
        title = "Shelduck's time over that of the faster of Delta and Iceberg"
        CHART.write_text(chart(ratios, title), encoding="utf-8")
    return section


def run_more(*, quick: bool) -> Section:
    """The same verbs with more rows, without TPC-H."""
    rows, runs = (QUICK_ROWS, QUICK_RUNS) if quick else (MORE_ROWS, MORE_RUNS)
    about = _ABOUT.format(rows=rows, runs=runs)
    section = Section("Beside Delta and Iceberg, more rows", about, _HEADER)
    _measure(section, rows, runs, scale=None)
    return section


def _measure(section: Section, rows: int, runs: int, scale: float | None) -> dict[str, float]:
    """Add a line for each verb, and the goals; the ratio of each."""
    ratios: dict[str, float] = {}
    with scratch("peers") as folder, engines(folder) as known:
        heap = Heap(known[0].spark)
        for verb in verbs(Inputs(known[0].spark, folder, rows)):
            seconds, peaks = _measured(verb, known, runs, heap)
            _add(section, ratios, verb.name, seconds, " / ".join(f"{n:,.0f}" for n in peaks))
        if scale is not None:
            found = queries(known, folder, scale=scale, runs=runs)
            _add(section, ratios, "TPC-H", {name: [sum(n)] for name, n in found.items()}, "")
    slower = {name: n for name, n in ratios.items() if n > 1}
    fast = [name for name, n in ratios.items() if n <= 0.7]
    worst = ", ".join(_missed(name, n) for name, n in slower.items()) or "none slower"
    section.targets = [
        Target("every verb at most 1.0 of the faster peer", worst, not slower),
        Target(
            "half of the verbs at most 0.7",
            f"{len(fast)} of {len(ratios)}",
            len(fast) * 2 >= len(ratios),
        ),
    ]
    return ratios


class Heap:
    """The heap of the JVM of a session."""

    def __init__(self, spark: SparkSession) -> None:
        java: Any = spark._jvm.java.lang  # type: ignore[union-attr]  # noqa: SLF001 - no other way
        self._system = java.System
        pools = java.management.ManagementFactory.getMemoryPoolMXBeans()
        self._pools = [pool for pool in pools if pool.getType().name() == "HEAP"]

    def peak(self, act: Callable[[], T]) -> tuple[float, T]:
        """The most megabytes that its pools had while something ran, after a collection."""
        self._system.gc()
        for pool in self._pools:
            pool.resetPeakUsage()
        found = act()
        return sum(pool.getPeakUsage().getUsed() for pool in self._pools) / 1e6, found


def _missed(name: str, ratio: float) -> str:
    reason = next((why for start, why in _REASONS.items() if name.startswith(start)), "")
    return f"{name} {ratio:.2f}" + (f" ({reason})" if reason else "")


def _add(
    section: Section,
    ratios: dict[str, float],
    name: str,
    seconds: dict[str, list[float]],
    memory: str,
) -> None:
    ours, *theirs = [Timing(tuple(each)).median for each in seconds.values()]
    ratios[name] = ours / min(theirs)
    cells = [duration(each) for each in (ours, *theirs)]
    section.rows.append((name, *cells, f"{ratios[name]:.2f}", memory))
    print(*section.rows[-1], sep="\t", file=sys.stderr, flush=True)


def _measured(
    verb: Verb, known: list[Engine], runs: int, heap: Heap
) -> tuple[dict[str, list[float]], list[float]]:
    """The seconds of each engine, in turns, and the peaks of the heap; run 0 is the warm-up."""
    seconds: dict[str, list[float]] = {engine.name: [] for engine in known}
    peaks: list[float] = []
    for number in range(runs + 1):
        verb.before(number)
        answers: dict[str, Answer] = {}
        for engine in known if number % 2 == 0 else list(reversed(known)):
            verb.prepare(engine, number)
            act = partial(_timed, verb, engine, number)
            if number:
                taken, answers[engine.name] = act()
                seconds[engine.name].append(taken)
            else:
                peak, (_, answers[engine.name]) = heap.peak(act)
                peaks.append(peak)
        if any(answer != answers["Shelduck"] for answer in answers.values()):
            raise AssertionError(f"{verb.name}: the engines answer differently: {answers}")
    return seconds, peaks


def _timed(verb: Verb, engine: Engine, number: int) -> tuple[float, Answer]:
    answers: list[Answer] = []
    taken = timed(lambda: answers.append(verb.run(engine, number)))
    return taken, answers[0]
