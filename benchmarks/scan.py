"""A scan of a table whose shape has changed, beside plain Parquet of the same bytes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

import shelduck
from benchmarks.harness import Section, at_most, beside, scratch
from benchmarks.session import run_to_the_end, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS, FILES = 20_000_000, 8
QUICK_ROWS = 200_000
_ABOUT = (
    "{rows:,} rows in {files} files of the first schema; then one column was renamed, two"
    " were widened (int to bigint, float to double) and one was added with a default. Plain is"
    " `spark.read.parquet` of the same files, cast and renamed by the query; the answers are"
    " compared."
)
COLUMNS = {
    "id": "bigint",
    "day": "date",
    "city": "string",
    "amount": "int",
    "weight": "float",
    "price": "double",
}
CHANGES = (
    shelduck.rename_column("city", "town"),
    shelduck.change_type("amount", "bigint"),
    shelduck.change_type("weight", "double"),
    shelduck.add_column("country", "string", default="??"),
)


def run(*, quick: bool) -> Section:
    rows = QUICK_ROWS if quick else ROWS
    about = _ABOUT.format(rows=rows, files=FILES)
    section = Section("Evolved scan", about, ("query", "Shelduck", "plain Parquet", "ratio"))
    ratios: dict[str, float] = {}
    queries = {
        "all columns, aggregated": lambda t: totals(t, "town", "country"),
        "three columns, grouped": _by_town,
        "one row in fifty, filtered": partial(_filtered, rows_in_all=rows),
    }
    with (
        scratch("scan") as folder,
        session(folder) as spark,
        shelduck.connect(f"sqlite:///{folder}/lake.db", f"{folder}/data/", spark) as lake,
    ):
        table = lake.create_table("t", COLUMNS)
        table.append(generated(spark, rows))
        files = table.read().inputFiles()
        table.alter(*CHANGES)
        for name, query in queries.items():
            subjects = {
                "ours": lambda query=query: run_to_the_end(query(table.read())),
                "plain": lambda query=query: run_to_the_end(query(plain(spark, files))),
            }
            if subjects["ours"]() != subjects["plain"]():
                raise AssertionError(f"{name}: Shelduck and plain Parquet differ")
            ratios[name] = beside(section, name, subjects, quick=quick)
    section.targets = [at_most(1.05, ratios, "Shelduck against plain Parquet")]
    return section


def generated(spark: SparkSession, rows: int) -> DataFrame:
    """Rows in the first shape, as many partitions as files are wanted."""
    return spark.range(0, rows, 1, FILES).select(
        "id",
        f.expr("date_add(DATE '2020-01-01', CAST(id % 2000 AS INT))").alias("day"),
        f.concat(f.lit("city-"), (f.xxhash64("id") % 500).cast("string")).alias("city"),
        (f.xxhash64("id") % 100_000).cast("int").alias("amount"),
        (f.xxhash64("id") % 1000).cast("float").alias("weight"),
        (f.col("id") * 0.25).alias("price"),
    )


def plain(spark: SparkSession, files: list[str]) -> DataFrame:
    """What somebody without a lake would write to read the old files in the new shape."""
    return spark.read.parquet(*files).select(
        "id",
        "day",
        f.col("city").alias("town"),
        f.col("amount").cast("bigint").alias("amount"),
        f.col("weight").cast("double").alias("weight"),
        "price",
        f.lit("??").alias("country"),
    )


def totals(rows: DataFrame, *texts: str) -> DataFrame:
    """All columns of such rows, of which some are texts."""
    # No maximum of a text: Spark would sort for it, and the sort would hide the scan.
    return rows.agg(
        f.count("*"),
        f.sum("id"),
        f.max("day"),
        f.sum("amount"),
        f.max("weight"),
        f.max("price"),
        *(f.sum(f.length(text)) for text in texts),
    )


def _by_town(rows: DataFrame) -> DataFrame:
    found = rows.groupBy("town").agg(f.sum("amount"), f.sum(f.length("country")))
    return found.orderBy("town").limit(20)


def _filtered(rows: DataFrame, *, rows_in_all: int) -> DataFrame:
    low = rows_in_all // 2
    wanted = rows.where(f.col("id").between(low, low + rows_in_all // 50))
    return wanted.where("country = '??' AND amount > 0").agg(f.count("*"), f.sum("price"))
