"""A light ALTER TABLE beside DuckDB's extension, on the same kind of catalog."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import count
from typing import TYPE_CHECKING

import shelduck
from benchmarks.catalogs import (
    KINDS,
    counting_statements,
    durable_postgres,
    fresh_url,
    multiply_only_file,
)
from benchmarks.harness import Section, Timing, at_most, interleaved, ratio, scratch
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.postgres import PostgresServer

SIZES = (10, 1_000, 100_000)
QUICK_SIZES = (10, 1_000)
_KEPT = "DuckDB file, kept open"
_KINDS = (*KINDS, _KEPT)
# Time against DuckDB's by kind of catalog.
_GOALS = {"SQLite": 0.1, "PostgreSQL": 0.1, "DuckDB file": 0.5, _KEPT: 0.5}
_WHY = {
    "SQLite": "Shelduck needs 4 ms of CPU, and SQLite's COMMIT takes the rest",
    "PostgreSQL": "half is Python's; creating the table for inlined rows takes 3 ms",
    "DuckDB file": "most is opening and closing the file; `keep_open` avoids it",
    _KEPT: "DuckDB plans one statement for 9 ms",
}
_ABOUT = (
    "`ALTER TABLE … ADD COLUMN`, then `RENAME COLUMN` of it, each a commit, in two catalogs of"
    " the same content (statistics of six columns for every file; PostgreSQL with its default"
    " durability). Times are of both statements. DuckDB keeps its catalog attached. Shelduck"
    " opens a DuckDB file for each `table.alter(…)`, unless `keep_open` is set."
)
COLUMNS = {"id": "bigint", "a": "int", "b": "double", "c": "varchar", "d": "date", "e": "boolean"}
_HEADER = ("catalog, files", "Shelduck", "statements", "DuckDB", "ratio")


def run(*, quick: bool) -> Section:
    section = Section("Light ALTER TABLE", _ABOUT, _HEADER)
    ratios: dict[str, dict[str, float]] = {kind: {} for kind in _KINDS}
    bests: dict[str, list[float]] = {kind: [] for kind in _KINDS}
    with scratch("alter") as folder, durable_postgres() as server:
        for kind in _KINDS:
            sizes = QUICK_SIZES if quick else SIZES
            for files in sizes:
                name = f"{kind}, {files:,} files"
                ours, statements, theirs = _measure(kind, files, folder, server, quick=quick)
                ratios[kind][name] = ratio(ours, theirs)
                bests[kind].append(ours.best)
                cells = (str(ours), str(statements), str(theirs), f"{ratios[kind][name]:.3f}")
                rows = section.rows if files == sizes[-1] else section.aside
                rows.append((name, *cells))
    # Of the best runs: what else the machine does must not look like growth.
    growth = {kind: seen[-1] / seen[0] for kind, seen in bests.items()}
    section.targets = [
        at_most(wanted, ratios[kind], f"Shelduck against DuckDB, {kind}", _WHY[kind])
        for kind, wanted in _GOALS.items()
    ]
    section.targets.append(at_most(1.5, growth, "Shelduck with most files against fewest"))
    return section


def _measure(
    kind: str, files: int, folder: Path, server: PostgresServer, *, quick: bool
) -> tuple[Timing, int, Timing]:
    kept = "-kept" if kind == _KEPT else ""
    with ExitStack() as stack:
        url, duckdb_url = (
            stack.enter_context(fresh_url(kind, folder, server, f"{who}-{files}{kept}"))
            for who in ("ours", "theirs")
        )
        with shelduck.connect(url, f"{folder}/ours-{files}/") as lake:
            lake.create_table("t", COLUMNS)
        fill(url, files)
        fill(duckdb_url, files, f"{folder}/theirs-{files}/")
        lake = stack.enter_context(shelduck.connect(f"{url}?keep_open=10" if kept else url))
        oracle = stack.enter_context(DuckDBOracle(duckdb_url))
        table = lake.table("t")
        subjects = {"ours": _alters(table.alter), "theirs": _statements(oracle.execute)}
        timings = interleaved(subjects, runs=4 if quick else 20, warm_ups=2)
        with counting_statements() as seen:
            subjects["ours"]()
        return timings["ours"], seen.total(), timings["theirs"]


def fill(url: str, files: int, data_path: str | None = None) -> None:
    """Give table `t` of a lake so many files; DuckDB makes lake and table first at a `data_path`.

    DuckDB writes the first file. The others are in the catalog only: an ALTER opens none.
    """
    with DuckDBOracle(url, data_path, {"DATA_INLINING_ROW_LIMIT": 0}) as oracle:
        if data_path is not None:
            listed = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
            oracle.execute(f"CREATE TABLE t ({listed})")
        oracle.execute("INSERT INTO t SELECT i, i, i, i, '2026-01-01', true FROM range(9) r(i)")
    multiply_only_file(url, files)


def _alters(alter: Callable[..., object]) -> Callable[[], object]:
    numbers = count()

    def step() -> object:
        name, is_rename = divmod(next(numbers), 2)
        if is_rename:
            return alter(shelduck.rename_column(f"new_{name}", f"old_{name}"))
        return alter(shelduck.add_column(f"new_{name}", "int"))

    return step


def _statements(execute: Callable[[str], object]) -> Callable[[], object]:
    numbers = count()

    def step() -> object:
        name, is_rename = divmod(next(numbers), 2)
        if is_rename:
            return execute(f"ALTER TABLE t RENAME COLUMN new_{name} TO old_{name}")
        return execute(f"ALTER TABLE t ADD COLUMN new_{name} INTEGER")

    return step
