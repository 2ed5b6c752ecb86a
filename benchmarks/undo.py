"""Taking a published job back, after writes of Shelduck's and DuckDB's, beside the job itself."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from benchmarks.copies import Copies
from benchmarks.harness import Section, at_most, interleaved, scratch
from benchmarks.session import session
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS, QUICK_ROWS, FILES, WRITES, ROWS_OF_WRITE = 3_000_000, 100_000, 4, 10, 1000
_CHANGE = "ALTER TABLE t ALTER COLUMN v TYPE INT"
_ABOUT = (
    "`{change}` of a text column of {rows:,} rows in {files} files, and `UNDO JOB` after"
    " {writes} appends of {each:,} rows and an INSERT and a DELETE of DuckDB. The second undo"
    " has an UPDATE of 1,000 rows among them, whose older values are in the snapshot before"
    " the job. Each run has its own copy of the catalog."
)


def run(*, quick: bool) -> Section:
    rows = QUICK_ROWS if quick else ROWS
    about = _ABOUT.format(change=_CHANGE, rows=rows, files=FILES, writes=WRITES, each=ROWS_OF_WRITE)
    section = Section("Taking a job back", about, ("", "seconds"))
    with scratch("undo") as folder, session(folder) as spark:
        lakes = _Lakes(spark, folder, rows)
        subjects: dict[str, Callable[[], object]] = {
            "the job": partial(lakes.runs, "before", _CHANGE),
            "its undo": partial(lakes.runs, "after", "ALTER TABLE t UNDO JOB 1"),
            "its undo after an UPDATE": partial(lakes.runs, "updated", "ALTER TABLE t UNDO JOB 1"),
        }
        timings = interleaved(subjects, runs=1 if quick else 5)
    section.rows = [(name, str(timing)) for name, timing in timings.items()]
    seconds = {"appends and DuckDB's commits": timings["its undo"].median}
    section.targets = [at_most(1.0, seconds, "undo after 10 writes and 2 of DuckDB, in seconds:")]
    return section


class _Lakes:
    """A lake before the job, after it and the writes since, and with an UPDATE among them."""

    def __init__(self, spark: SparkSession, folder: Path, rows: int) -> None:
        self._copies = copies = Copies(spark, folder)
        text = f.pmod(f.xxhash64("id"), f.lit(2_000_000_000)).cast("string")
        made = spark.range(0, rows, 1, FILES).select("id", text.alias("v"), f.xxhash64("id"))
        made = made.toDF("id", "v", "c")
        with copies.connect("before") as lake:
            lake.create_table("t", dict(made.dtypes)).append(made)
        copies.copy("before", "after")
        with copies.connect("after") as lake:
            lake.sql(_CHANGE)
            for number in range(WRITES):
                first = rows + number * ROWS_OF_WRITE
                more = spark.range(first, first + ROWS_OF_WRITE)
                columns = ("id", f.lit(7).alias("v"), f.lit(1).cast("bigint").alias("c"))
                lake.table("t").append(more.select(*columns))
        with DuckDBOracle(copies.url("after")) as duckdb:
            duckdb.execute("INSERT INTO lake.t SELECT i, 3, 4 FROM range(5000) r(i)")
            duckdb.execute("DELETE FROM lake.t WHERE id = 17")
        copies.copy("after", "updated")
        with copies.connect("updated") as lake:
            lake.sql(f"UPDATE t SET c = 0 WHERE id < {ROWS_OF_WRITE}")

    def runs(self, base: str, statement: str) -> None:
        with self._copies.connect(self._copies.copy(base)) as lake:
            lake.sql(statement)
