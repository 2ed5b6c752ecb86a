"""Hundreds of small loads into a large UNIQUE KEY table, while upkeep runs by itself."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import shelduck
from benchmarks.harness import Section, Target, at_most, duration, scratch
from benchmarks.keys import COLUMNS, generated
from benchmarks.session import session
from shelduck.write import appending
from tests.support.jobs import jobs_of
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from shelduck import Lake

ROWS, QUICK_ROWS = 3_000_000, 100_000
LOADS, QUICK_LOADS = 300, 60
FILES = 16
OLD, NEW = 8, 2
# So many loads are compared, from the first and from the last.
_FEW = 10
_WARM_UPS = 30
_EVERY = "10s"
_MOST_FILES = 60
# From here on a file is not small any more, so upkeep leaves its deletes alone.
_TARGET_SIZE = "16MB"
_ABOUT = (
    "{loads} statements `INSERT INTO t VALUES …` load {part} rows each into a UNIQUE KEY (id)"
    " table of {rows:,} rows in {files} files: {old} keys exist, spread over the table, {new}"
    " are new. `target_file_size` is {size}. `shelduck maintain --every {every}` runs in its"
    " own process on the same SQLite lake. {warm} loads of another table come first. Medians"
    " of {few} loads: time, CPU (Python and Java), Spark jobs, statements on the catalog."
    " `again`: loads computed a second time because the maintenance had committed first."
    " Files, deletes and rows (those in the catalog, all versions) are counted after these"
    " loads. At the end, DuckDB checks rows, keys and sums."
)


@dataclass(frozen=True)
class _Load:
    """What one load took: seconds, Spark jobs, and statements on the catalog."""

    wall: float
    python: float
    java: float
    jobs: int
    statements: int
    again: bool

    @property
    def cpu(self) -> float:
        return self.python + self.java


@dataclass(frozen=True)
class _Held:
    """What the catalog says of the table: live files and the rows that it keeps itself."""

    files: int
    deletes: int
    rows: int


def run(*, quick: bool) -> Section:
    rows, count = (QUICK_ROWS, QUICK_LOADS) if quick else (ROWS, LOADS)
    header = (
        "loads",
        "time",
        "CPU",
        "Python",
        "jobs",
        "statements",
        "again",
        "files",
        "deletes",
        "rows",
    )
    about = _ABOUT.format(
        loads=count,
        part=OLD + NEW,
        rows=rows,
        files=FILES,
        old=OLD,
        new=NEW,
        size=_TARGET_SIZE,
        every=_EVERY,
        warm=_WARM_UPS,
        few=_FEW,
    )
    section = Section("Small loads by key", about, header)
    with scratch("loads") as folder, session(folder) as spark:
        catalog = folder / "lake.db"
        with shelduck.connect(f"sqlite:///{catalog}", f"{folder}/lake/", spark) as lake:
            loads, held, most = _measured(lake, catalog, rows, count)
        _require_right(f"sqlite:///{catalog}", rows, count)
    for first in _marks(count):
        _tell(section, first, loads[first : first + _FEW], held[first])
    section.aside = section.rows[1:-1]
    section.rows = [section.rows[0], section.rows[-1]]
    began, ended = (median(one.wall for one in part) for part in (loads[:_FEW], loads[-_FEW:]))
    spent = [median(one.cpu for one in part) for part in (loads[:_FEW], loads[-_FEW:])]
    section.targets = [
        at_most(
            1.3, {"time": ended / began, "CPU": spent[1] / spent[0]}, "last ten over first ten"
        ),
        Target(
            f"at most {_MOST_FILES} data files and {_MOST_FILES} delete files at any time",
            f"{most.files} and {most.deletes}; {most.rows:,} rows in the catalog",
            max(most.files, most.deletes) <= _MOST_FILES,
        ),
    ]
    return section


def _marks(count: int) -> Sequence[int]:
    """Where the loads begin that are told."""
    step = max(_FEW, count // 5)
    return [*range(0, count - _FEW, step), count - _FEW]


def _measured(
    lake: Lake, catalog: Path, rows: int, count: int
) -> tuple[list[_Load], dict[int, _Held], _Held]:
    spark = lake.spark
    lake.set_option("target_file_size", _TARGET_SIZE)
    for name in ("warm", "t"):
        lake.create_table(name, COLUMNS, keys=shelduck.unique("id"))
    lake.table("warm").append(generated(spark.range(0, 10_000, 1, 2), 0))
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    spark.conf.set("spark.sql.shuffle.partitions", FILES)
    lake.table("t").append(generated(spark.range(rows), 0))
    spark.conf.unset("spark.sql.adaptive.coalescePartitions.enabled")
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    meter = _Meter(lake)
    for number in range(_WARM_UPS):
        meter.load(_statement("warm", 10_000, number))
    loads, held, most = [], {}, _Held(0, 0, 0)
    marks = {first + _FEW - 1: first for first in _marks(count)}
    with _upkeep(catalog):
        for number in range(count):
            loads.append(meter.load(_statement("t", rows, number)))
            now = _held(catalog)
            most = _Held(
                max(most.files, now.files), max(most.deletes, now.deletes), max(most.rows, now.rows)
            )
            if number in marks:
                held[marks[number]] = now
    return loads, held, most


def _statement(table: str, rows: int, number: int) -> str:
    """A load of `OLD` keys spread over a table that had `rows` rows, and of `NEW` new ones."""
    width = rows // OLD
    # A prime: two loads have no key in common, and neighbours are far from each other.
    old = [n * width + number * 7919 % width for n in range(OLD)]
    keys = [*old, *(rows + NEW * number + n for n in range(NEW))]
    values = ", ".join(f"({key}, 'load {number}', {number + 0.5}, -1)" for key in keys)
    return f"INSERT INTO {table} VALUES {values}"


class _Meter:
    """Measures loads."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._java = _java_process(lake.spark)
        self._attempts = 0
        real = appending.load

        def counted(*given: Any, **more: Any) -> Any:
            self._attempts += 1
            return real(*given, **more)

        appending.load = counted

    def load(self, statement: str) -> _Load:
        store, spark = self._lake._state.store, self._lake.spark  # noqa: SLF001 - it counts
        asked, java, python = store.statements, _cpu_of(self._java), time.process_time()
        self._attempts, began = 0, time.perf_counter()
        jobs = jobs_of(spark, lambda: self._lake.sql(statement))
        wall, python = time.perf_counter() - began, time.process_time() - python
        return _Load(
            wall,
            python,
            _cpu_of(self._java) - java,
            jobs,
            store.statements - asked,
            self._attempts > 1,
        )


def _java_process(spark: SparkSession) -> int:
    return int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]  # noqa: SLF001 - Spark has no other door


def _cpu_of(process: int) -> float:
    """The seconds of CPU that a process has used."""
    told = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    user, system = told.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _upkeep(catalog: Path) -> Iterator[None]:
    """Upkeep as the guide recommends it: a process of its own, which ends afterwards."""
    command = [sys.executable, "-m", "shelduck.cli", "maintain", "-c", f"sqlite:///{catalog}"]
    told = catalog.with_name("upkeep.log")
    with told.open("wb") as log:
        running = subprocess.Popen([*command, "--every", _EVERY], stdout=log, stderr=log)
        try:
            yield
            if running.poll() is not None:
                raise AssertionError(f"upkeep ended: {told.read_text(encoding='utf-8')}")
        finally:
            running.terminate()
            running.wait()


def _held(catalog: Path) -> _Held:
    live = (
        "SELECT count(*) FROM {0} JOIN ducklake_table AS t USING (table_id)"
        " WHERE t.table_name = 't' AND {0}.end_snapshot IS NULL"
    )
    kept = (
        "SELECT i.table_name FROM ducklake_inlined_data_tables AS i"
        " JOIN ducklake_table AS t USING (table_id) WHERE t.table_name = 't'"
    )
    with closing(sqlite3.connect(catalog, timeout=60)) as connection:

        def count(query: str) -> int:
            return int(connection.execute(query).fetchone()[0])

        files, deletes = (
            count(live.format(f"ducklake_{kind}_file")) for kind in ("data", "delete")
        )
        names = [name for (name,) in connection.execute(kept)]
        return _Held(files, deletes, sum(count(f'SELECT count(*) FROM "{n}"') for n in names))


def _require_right(url: str, rows: int, loads: int) -> None:
    """Raise AssertionError unless DuckDB finds each key once, with the values of its last load."""
    query = (
        "SELECT count(*), count(DISTINCT id), count(*) FILTER (k = -1),"
        " sum(n) FILTER (k = -1), max(id) FROM t"
    )
    with DuckDBOracle(url, None) as duck:
        found = duck.sql(query)
    part = OLD + NEW
    total = rows + NEW * loads
    expected = [(total, total, part * loads, part * loads * loads / 2, total - 1)]
    if found != expected:
        raise AssertionError(f"DuckDB finds {found}, not {expected}")


def _tell(section: Section, first: int, loads: Sequence[_Load], held: _Held) -> None:
    section.rows.append(
        (
            f"{first + 1:,} to {first + len(loads):,}",
            duration(median(one.wall for one in loads)),
            duration(median(one.cpu for one in loads)),
            duration(median(one.python for one in loads)),
            f"{median(one.jobs for one in loads):g}",
            f"{median(one.statements for one in loads):g}",
            str(sum(one.again for one in loads)),
            str(held.files),
            str(held.deletes),
            f"{held.rows:,}",
        )
    )
