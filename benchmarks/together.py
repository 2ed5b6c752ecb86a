"""Small commits of several threads at once, beside DuckDB's extension."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING

import duckdb

import shelduck
from benchmarks.catalogs import durable_postgres, fresh_url
from benchmarks.harness import Section, Target, at_least, scratch
from benchmarks.session import session
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

THREADS = 8
ROUNDS, QUICK_ROUNDS = 5, 1
_EACH, _QUICK_EACH = 10, 4
_WHY = (
    "a commit takes 6 ms of Python, which runs one thread at a time; DuckDB's threads run at once"
)
_ABOUT = (
    "{threads} threads of one process commit one row each, `INSERT INTO t VALUES (…)`, {each}"
    " times in a round, {rounds} rounds in turns: by `lake.sql` of one connection, and by"
    " DuckDB's extension with a connection for each thread, each into its own lake. What fails"
    " is not repeated and does not count. Commits per second; a ratio above 1: Shelduck"
    " is faster."
)


def run(*, quick: bool) -> Section:
    rounds, each = (QUICK_ROUNDS, _QUICK_EACH) if quick else (ROUNDS, _EACH)
    header = ("catalog", "tables", "Shelduck", "failed", "DuckDB", "failed", "ratio")
    about = _ABOUT.format(threads=THREADS, each=each, rounds=rounds)
    section = Section("Small commits of threads", about, header)
    ratios: dict[str, float] = {}
    lost = 0
    with scratch("together") as folder, session(folder) as spark, durable_postgres() as server:
        for kind in ("SQLite", "PostgreSQL"):
            for tables in (THREADS, 1):
                name = f"{kind}-{tables}"
                with (
                    fresh_url(kind, folder, server, f"ours{tables}") as ours,
                    fresh_url(kind, folder, server, f"theirs{tables}") as theirs,
                ):
                    found = _measured(spark, folder / name, (ours, theirs), tables, rounds * [each])
                rates = {who: landed / seconds for who, (landed, seconds) in found.items()}
                failed = {who: rounds * each * THREADS - n for who, (n, _) in found.items()}
                lost += failed["ours"]
                ratios[name] = rates["ours"] / max(rates["theirs"], 0.001)
                cells: list[str] = []
                for who in found:
                    cells += [f"{rates[who]:.1f}", str(failed[who])]
                section.rows.append((kind, str(tables), *cells, f"{ratios[name]:.2f}"))
    on_server = {name: found for name, found in ratios.items() if name.startswith("PostgreSQL")}
    section.targets = [
        at_least(1.5, on_server, "commits per second of threads against DuckDB", _WHY),
        Target("no commit of Shelduck fails", str(lost), lost == 0),
    ]
    return section


def _measured(
    spark: SparkSession, folder: Path, urls: tuple[str, str], tables: int, rounds: Sequence[int]
) -> dict[str, tuple[int, float]]:
    """The commits that landed, and the seconds that they took, by who made them."""
    folder.mkdir()
    with ExitStack() as stack:
        lake = stack.enter_context(
            shelduck.connect(urls[0], f"{folder}/ours/", spark, progress=False)
        )
        ducks = [
            stack.enter_context(DuckDBOracle(urls[1], folder / "theirs")) for _ in range(THREADS)
        ]
        writers = {"ours": [lake.sql] * THREADS, "theirs": [duck.execute for duck in ducks]}
        for writes in writers.values():
            for n in range(tables):
                writes[0](f"CREATE TABLE t{n} (id int, name string)")
                writes[0](f"INSERT INTO t{n} VALUES (-1, 'warm up')")
        landed, seconds = dict.fromkeys(writers, 0), dict.fromkeys(writers, 0.0)
        with ThreadPoolExecutor(THREADS) as pool:
            for each in rounds:
                for who, writes in writers.items():
                    began = time.perf_counter()
                    running = [
                        pool.submit(_insert, write, n % tables, each)
                        for n, write in enumerate(writes)
                    ]
                    landed[who] += sum(one.result() for one in running)
                    seconds[who] += time.perf_counter() - began
        counted = sum(lake.table(f"t{n}").read().count() for n in range(tables))
        if counted != landed["ours"] + tables:
            raise AssertionError("rows are missing")
    return {who: (landed[who], seconds[who]) for who in writers}


def _insert(write: Callable[[str], object], table: int, times: int) -> int:
    landed = 0
    for number in range(times):
        try:
            write(f"INSERT INTO t{table} VALUES ({number}, 'row {number}')")
        except (duckdb.Error, shelduck.ShelduckError):
            continue
        landed += 1
    return landed
