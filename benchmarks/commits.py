"""Many small commits beside DuckDB's extension."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import shelduck
from benchmarks.catalogs import durable_postgres, fresh_url
from benchmarks.harness import Section, at_least, scratch
from benchmarks.session import session
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

COMMITS, QUICK_COMMITS = 1_000, 40
_BATCH = 20
_WHY = "a commit takes 6 ms of Python, and Java takes 2 ms to make the DataFrame of the answer"
_ABOUT = (
    "{commits:,} commits of one row each, `INSERT INTO t VALUES (…)`, by `lake.sql` and by"
    " DuckDB's extension with its default limit for inlined rows, each into its own lake,"
    " {batch} in turns. Commits per second; a ratio above 1: Shelduck is faster."
)


def run(*, quick: bool) -> Section:
    commits = QUICK_COMMITS if quick else COMMITS
    about = _ABOUT.format(commits=commits, batch=_BATCH)
    section = Section("Small commits", about, ("catalog", "Shelduck", "DuckDB", "ratio"))
    ratios: dict[str, float] = {}
    with scratch("commits") as folder, session(folder) as spark, durable_postgres() as server:
        for kind in ("SQLite", "PostgreSQL"):
            with (
                fresh_url(kind, folder, server, "ours") as ours,
                fresh_url(kind, folder, server, "theirs") as theirs,
            ):
                seconds = _measured(spark, folder, ours, theirs, commits)
            ratios[kind] = seconds["theirs"] / seconds["ours"]
            cells = (f"{commits / seconds[name]:.1f}" for name in ("ours", "theirs"))
            section.rows.append((kind, *cells, f"{ratios[kind]:.3f}"))
    section.targets = [at_least(1, ratios, "commits per second against DuckDB", _WHY)]
    return section


def _measured(
    spark: SparkSession, folder: Path, ours: str, theirs: str, commits: int
) -> dict[str, float]:
    with (
        shelduck.connect(ours, f"{folder}/ours/", spark, progress=False) as lake,
        DuckDBOracle(theirs, folder / "theirs") as duck,
    ):
        writers: dict[str, Callable[[str], object]] = {"ours": lake.sql, "theirs": duck.execute}
        for write in writers.values():
            write("CREATE TABLE t (id int, name string)")
            write("INSERT INTO t VALUES (-1, 'warm up')")
        seconds = dict.fromkeys(writers, 0.0)
        for start in range(0, commits, _BATCH):
            for name, write in writers.items():
                began = time.perf_counter()
                for number in range(start, min(start + _BATCH, commits)):
                    write(f"INSERT INTO t VALUES ({number}, 'row {number}')")
                seconds[name] += time.perf_counter() - began
        if lake.table("t").read().count() != commits + 1:
            raise AssertionError("rows are missing")
    return seconds
