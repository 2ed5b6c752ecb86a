"""Measure every verb on all engines in turns, and compare what they answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.chart import chart
from benchmarks.harness import Section, Target, Timing, duration, scratch, timed
from benchmarks.peers.engines import engines
from benchmarks.peers.tpch import queries
from benchmarks.peers.verbs import Answer, Inputs, Verb, verbs

if TYPE_CHECKING:
    from benchmarks.peers.engines import Engine

ROWS, QUICK_ROWS = 3_000_000, 30_000
RUNS, QUICK_RUNS = 5, 1
CHART = Path(__file__).parents[2] / "docs" / "benchmarks-peers.svg"
_ABOUT = (
    "{rows:,} rows in 8 files; Delta Lake and Apache Iceberg (format 3) with deletion vectors, all"
    " three in one Spark session, in turns, the same SQL. Median of {runs} runs after a warm-up;"
    " the ratio is Shelduck's median over that of the faster peer: below 1, Shelduck is faster."
    " TPC-H is the sum of the medians of its 22 queries.\n\n"
    "![Shelduck's time over that of the faster peer](benchmarks-peers.svg)"
)


# Why a verb may be slower than the faster peer, for the page.
_REASONS = {
    "change feed": "Delta writes changed rows a second time while it updates, and only reads those;"
    " Shelduck finds them in the data files when somebody asks",
    "STRING to INT, a third": "a job beside which writers and readers go on (leases, a shadow"
    " column, 150 statements of the catalog); the peers replace the table",
    "scan after": "rows of files with deletes are found through one more array, and the rows that"
    " changed lie in files of their own; delete files are Parquet, not bitmaps",
    "LIMIT 10": "planning asks Python for the files",
    "append": "the statement is analyzed twice, here and by Spark",
    "CREATE TABLE AS": "the statement is analyzed twice, here and by Spark",
}


def run(*, quick: bool) -> Section:
    rows, runs = (QUICK_ROWS, QUICK_RUNS) if quick else (ROWS, RUNS)
    header = ("verb", "Shelduck", "Delta", "Iceberg", "ratio")
    section = Section("Beside Delta and Iceberg", _ABOUT.format(rows=rows, runs=runs), header)
    ratios: dict[str, float] = {}
    with scratch("peers") as folder, engines(folder) as known:
        inputs = Inputs(known[0].spark, folder, rows)
        for verb in verbs(inputs):
            _add(section, ratios, verb.name, _measured(verb, known, runs))
        found = queries(known, folder, scale=0.01 if quick else 0.3, runs=runs)
        _add(section, ratios, "TPC-H", {name: [sum(each)] for name, each in found.items()})
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
    if not quick:
        title = "Shelduck's time over that of the faster of Delta and Iceberg"
        CHART.write_text(chart(ratios, title), encoding="utf-8")
    return section


def _missed(name: str, ratio: float) -> str:
    reason = next((why for start, why in _REASONS.items() if name.startswith(start)), "")
    return f"{name} {ratio:.2f}" + (f" ({reason})" if reason else "")


def _add(
    section: Section, ratios: dict[str, float], name: str, seconds: dict[str, list[float]]
) -> None:
    ours, *theirs = [Timing(tuple(each)).median for each in seconds.values()]
    ratios[name] = ours / min(theirs)
    cells = [duration(each) for each in (ours, *theirs)]
    section.rows.append((name, *cells, f"{ratios[name]:.2f}"))
    print(*section.rows[-1], sep="\t", file=sys.stderr, flush=True)


def _measured(verb: Verb, known: list[Engine], runs: int) -> dict[str, list[float]]:
    """The seconds of each engine, in turns; run 0 is the warm-up."""
    seconds: dict[str, list[float]] = {engine.name: [] for engine in known}
    for number in range(runs + 1):
        verb.before(number)
        answers: dict[str, Answer] = {}
        for engine in known if number % 2 == 0 else list(reversed(known)):
            verb.prepare(engine, number)
            taken, answers[engine.name] = _timed(verb, engine, number)
            if number:
                seconds[engine.name].append(taken)
        if any(answer != answers["Shelduck"] for answer in answers.values()):
            raise AssertionError(f"{verb.name}: the engines answer differently: {answers}")
    return seconds


def _timed(verb: Verb, engine: Engine, number: int) -> tuple[float, Answer]:
    answers: list[Answer] = []
    taken = timed(lambda: answers.append(verb.run(engine, number)))
    return taken, answers[0]
