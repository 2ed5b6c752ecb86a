"""Reads of rows that many small inserts left in the catalog, beside DuckDB's extension."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import shelduck
from benchmarks.catalogs import durable_postgres, fresh_url
from benchmarks.harness import Section, at_most, interleaved, ratio, scratch
from benchmarks.session import session
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Row, SparkSession

    from benchmarks.harness import Timing
    from shelduck import Lake

INSERTS, QUICK_INSERTS = 1_000, 100
QUERIES = {
    "one row": "SELECT * FROM t WHERE id = 7",
    "all rows": "SELECT * FROM t",
    "count and sum": "SELECT count(*), sum(id) FROM t",
}
_WHY = (
    "the ratio beside Spark shows what a lake adds; Spark's own time for a query is twice DuckDB's"
)
_ABOUT = (
    "{inserts:,} inserts of one row each, which stay in the catalog; then queries by"
    " `lake.sql(…)` with `collect()` and by DuckDB's extension, on the same lake, in turns."
    " Spark: the same queries of a temporary view of these rows, in a session without a lake."
)


def run(*, quick: bool) -> Section:
    inserts = QUICK_INSERTS if quick else INSERTS
    header = ("query", "Shelduck", "DuckDB", "ratio", "Spark", "ratio")
    section = Section("Reads of small inserts", _ABOUT.format(inserts=inserts), header)
    ratios: dict[str, float] = {}
    with scratch("inlined") as folder, session(folder) as spark, durable_postgres() as server:
        for kind in ("SQLite", "PostgreSQL"):
            with fresh_url(kind, folder, server, "small") as url:
                found = _measured(spark, folder / kind, url, inserts)
            for name, timings in found.items():
                what = f"{kind}, {name}"
                ratios[what] = ratio(timings["ours"], timings["theirs"])
                section.rows.append(
                    (
                        what,
                        str(timings["ours"]),
                        str(timings["theirs"]),
                        f"{ratios[what]:.2f}",
                        str(timings["plain"]),
                        f"{ratio(timings['ours'], timings['plain']):.2f}",
                    )
                )
    section.targets = [at_most(3, ratios, "time of a query against DuckDB", _WHY)]
    return section


def _measured(
    spark: SparkSession, folder: Path, url: str, inserts: int
) -> dict[str, dict[str, Timing]]:
    found = {}
    with shelduck.connect(url, f"{folder}/", spark, progress=False) as lake:
        lake.sql("CREATE TABLE t (id INT, name STRING, price DOUBLE, at TIMESTAMP)")
        for n in range(inserts):
            lake.sql(f"INSERT INTO t VALUES ({n}, 'row {n}', {n}.5, NULL)")
        plain = _without_lake(lake)
        with DuckDBOracle(url) as duck:
            for name, query in QUERIES.items():
                if len(lake.sql(query).collect()) != len(duck.sql(query)):
                    raise AssertionError(f"{name}: Shelduck and DuckDB disagree")
                subjects = {
                    "ours": partial(_collected, lake, query),
                    "theirs": partial(duck.sql, query),
                    "plain": partial(_collected, plain, query),
                }
                found[name] = interleaved(subjects, runs=30, warm_ups=10)
    return found


def _without_lake(lake: Lake) -> SparkSession:
    """A session in which `t` is a temporary view of the rows: its plan holds them itself."""
    found = lake.sql("SELECT * FROM t")
    alone = lake.spark.newSession()
    alone.createDataFrame(found.toArrow(), found.schema).createOrReplaceTempView("t")
    return alone


def _collected(engine: Lake | SparkSession, query: str) -> list[Row]:
    return engine.sql(query).collect()
