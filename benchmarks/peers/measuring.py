"""Measure every verb on all engines in turns, and compare what they answer."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

from benchmarks.chart import chart
from benchmarks.harness import Section, Target, Timing, duration, scratch, timed
from benchmarks.peers.engines import engines
from benchmarks.peers.jobs_seen import jobs_of, seconds_in_jobs
from benchmarks.peers.tpch import queries
from benchmarks.peers.verbs import Answer, Inputs, Verb, verbs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from benchmarks.peers.engines import Engine

T = TypeVar("T")
ROWS, QUICK_ROWS, MORE_ROWS = 3_000_000, 30_000, 10_000_000
# Processes, and rounds in each after the warm-up.
RUNS, QUICK_RUNS = 3, 1
ROUNDS, QUICK_ROUNDS, MORE_ROUNDS = 2, 1, 1
SCALE, QUICK_SCALE = 0.3, 0.01
CHART = Path(__file__).parents[2] / "docs" / "benchmarks-peers.svg"
_ABOUT = (
    "{rows:,} rows in 8 files; Delta Lake and Apache Iceberg (format 3) with deletion"
    " vectors, all three in one Spark session, in turns, the same SQL. {runs} runs, each a"
    " process of its own with {rounds} after a warm-up; a time is the median of the runs'"
    " medians. Ratio: Shelduck's over that of the faster peer, below 1 Shelduck is faster;"
    " then the lowest and the highest ratio of a run. Memory: peak heap of the one JVM, garbage"
    " included, in a round after a collection, of Shelduck, Delta and Iceberg."
)
_ABOUT_MORE = "The verbs of the section above with {rows:,} rows, without TPC-H."
_TPCH = " TPC-H: the sum of its 22 queries, each in one round after a warm-up."
_DRAWING = "\n\n![Shelduck's time over that of the faster peer](benchmarks-peers.svg)"
_HEADER = ("verb", "Shelduck", "Delta", "Iceberg", "ratio", "of runs", "memory, MB")


# Where the time of a verb goes that may be slower than the faster peer, for the page.
_PROFILES = {
    "change feed": "planning two scans takes a third; Delta wrote changed rows a second time"
    " while it updated",
    "UPDATE of 1 %, scattered": "three quarters are the job that writes, a fifth goes to eight"
    " delete files, which are merged with those of earlier rounds",
    "append of a tenth": "two thirds are the job that writes, a third is what comes before and"
    " the commit; the ratios of the runs lie on both sides of 1",
    "scan after DELETE": "nearly all of it is the job; the ratios of the runs lie on both sides"
    " of 1",
    "LIMIT 10": "three fifths of it are planning, in which Python tells the files",
    "scan": "three quarters are the job; the ratios of the runs lie on both sides of 1",
}


@dataclass
class Found:
    """One verb in one run: seconds by engine, the peaks of the heap, the share of jobs."""

    seconds: dict[str, list[float]]
    memory: list[float] = field(default_factory=list)
    in_jobs: float | None = None

    def medians(self) -> list[float]:
        return [Timing(tuple(each)).median for each in self.seconds.values()]

    def ratio(self) -> float:
        ours, *theirs = self.medians()
        return ours / min(theirs)


def run(*, quick: bool) -> Section:
    rows, rounds = (QUICK_ROWS, QUICK_ROUNDS) if quick else (ROWS, ROUNDS)
    section, ratios = _section(
        "Beside Delta and Iceberg", rows, rounds, QUICK_SCALE if quick else SCALE, quick=quick
    )
    section.about += _TPCH + _DRAWING
    if not quick:
        title = "Shelduck's time over that of the faster of Delta and Iceberg"
        CHART.write_text(chart(ratios, title), encoding="utf-8")
    return section


def run_more(*, quick: bool) -> Section:
    """The same verbs with more rows, without TPC-H."""
    rows, rounds = (QUICK_ROWS, QUICK_ROUNDS) if quick else (MORE_ROWS, MORE_ROUNDS)
    section, _ = _section("Beside Delta and Iceberg, more rows", rows, rounds, 0, quick=quick)
    section.about = _ABOUT_MORE.format(rows=rows)
    section.aside, section.rows = section.rows, []
    return section


def _section(
    title: str, rows: int, rounds: int, scale: float, *, quick: bool
) -> tuple[Section, dict[str, float]]:
    """Measure in processes of their own; the ratio of each verb."""
    runs = QUICK_RUNS if quick else RUNS
    told = "1 round" if rounds == 1 else f"{rounds} rounds"
    about = _ABOUT.format(rows=rows, runs=runs, rounds=told)
    section, ratios = Section(title, about, _HEADER), {}
    measured = [_apart(rows, rounds, scale) for _ in range(runs)]
    for verb in measured[0]:
        found = [each[verb] for each in measured]
        medians = [median(each) for each in zip(*(f.medians() for f in found), strict=True)]
        own = [f.ratio() for f in found]
        ratios[verb] = medians[0] / min(medians[1:])
        memory = [median(each) for each in zip(*(f.memory for f in found), strict=True)]
        section.rows.append(
            (
                *(verb, *map(duration, medians), f"{ratios[verb]:.2f}"),
                f"{min(own):.2f}-{max(own):.2f}",
                "/".join(f"{n:,.0f}" for n in memory),
            )
        )
    section.targets = _targets(ratios)
    return section, ratios


def _targets(ratios: Mapping[str, float]) -> list[Target]:
    slower = {name: n for name, n in ratios.items() if n > 1}
    fast = [name for name, n in ratios.items() if n <= 0.5]
    worst = ", ".join(_missed(name, n) for name, n in slower.items()) or "none slower"
    half = len(fast) * 2 >= len(ratios)
    return [
        Target("every verb at most 1.0 of the faster peer", worst, not slower),
        Target("half of the verbs at most 0.5", f"{len(fast)} of {len(ratios)}", half),
    ]


def _missed(name: str, ratio: float) -> str:
    profile = _PROFILES.get(name, "")
    return f"{name} {ratio:.2f}" + (f" ({profile})" if profile else "")


def _apart(rows: int, rounds: int, scale: float) -> dict[str, Found]:
    asked = ["-m", "benchmarks.peers.measuring", *map(str, (rows, rounds, scale))]
    command = [sys.executable, "-W", "ignore", *asked]
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    told = json.loads(answer.stdout.splitlines()[-1])
    return {verb: Found(**found) for verb, found in told.items()}


def main() -> None:
    """One run: print what each verb takes as JSON."""
    rows, rounds, scale = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    told: dict[str, Found] = {}
    with scratch("peers") as folder, engines(folder) as known:
        heap = Heap(known[0].spark)
        for verb in verbs(Inputs(known[0].spark, folder, rows)):
            told[verb.name] = _measured(verb, known, rounds, heap)
            _show(verb.name, told[verb.name])
        if scale:
            told["TPC-H"] = Found(queries(known, folder, scale=scale))
            _show("TPC-H", told["TPC-H"])
    print(json.dumps({name: asdict(found) for name, found in told.items()}))


def _show(name: str, found: Found) -> None:
    cells = [duration(each) for each in found.medians()]
    share = "" if found.in_jobs is None else f"{found.in_jobs:.0%} in jobs"
    print(name, *cells, f"{found.ratio():.2f}", share, sep="\t", file=sys.stderr, flush=True)


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


def _measured(verb: Verb, known: list[Engine], rounds: int, heap: Heap) -> Found:
    """What each engine takes, in turns; round 0 is the warm-up, in which the heap is watched."""
    found = Found({engine.name: [] for engine in known})
    shares: list[float] = []
    for number in range(rounds + 1):
        verb.before(number)
        answers: dict[str, Answer] = {}
        for engine in known if number % 2 == 0 else list(reversed(known)):
            verb.prepare(engine, number)
            act = partial(_timed, verb, engine, number)
            if number:
                before = jobs_of(engine.spark)
                taken, answers[engine.name] = act()
                found.seconds[engine.name].append(taken)
                if engine is known[0]:
                    shares.append(seconds_in_jobs(engine.spark, before) / taken)
            else:
                peak, (_, answers[engine.name]) = heap.peak(act)
                found.memory.append(peak)
        if any(answer != answers["Shelduck"] for answer in answers.values()):
            raise AssertionError(f"{verb.name}: the engines answer differently: {answers}")
    found.in_jobs = median(shares)
    return found


def _timed(verb: Verb, engine: Engine, number: int) -> tuple[float, Answer]:
    answers: list[Answer] = []
    taken = timed(lambda: answers.append(verb.run(engine, number)))
    return taken, answers[0]


if __name__ == "__main__":
    main()
