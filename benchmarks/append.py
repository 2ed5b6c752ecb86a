"""An append beside a plain Parquet write of the same rows."""

from __future__ import annotations

import shutil
from itertools import count
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

import shelduck
from benchmarks.harness import Section, at_least, interleaved, scratch
from benchmarks.scan import generated
from benchmarks.session import session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

FLAT_ROWS, NESTED_ROWS, FILES = 10_000_000, 2_000_000, 8
QUICK_ROWS = 100_000
_ABOUT = (
    "`table.append(df)` (files, field ids, statistics of every leaf, commit to SQLite) beside"
    " `df.write.parquet` with Spark's default settings; both compute the rows, {files} files."
    " Flat: six columns. Nested: an array of strings, a map, and an array of structs."
    " Speed is plain's median over Shelduck's: above 1 Shelduck is faster."
)


def run(*, quick: bool) -> Section:
    header = ("rows", "Shelduck", "plain Parquet", "speed", "bytes")
    section = Section("Append", _ABOUT.format(files=FILES), header)
    speeds: dict[str, float] = {}
    with scratch("append") as folder, session(folder) as spark:
        cases = {
            "flat": generated(spark, QUICK_ROWS if quick else FLAT_ROWS),
            "nested": nested(spark, QUICK_ROWS if quick else NESTED_ROWS),
        }
        url, data_path = f"sqlite:///{folder}/lake.db", f"{folder}/data/"
        with shelduck.connect(url, data_path, spark, progress=False) as lake:
            for name, rows in cases.items():
                table = lake.create_table(name, rows.schema)
                subjects = {
                    "ours": lambda table=table, rows=rows: table.append(rows),
                    "plain": _plain(rows, folder / f"plain-{name}"),
                }
                timings = interleaved(subjects, runs=3 if quick else 7)
                speeds[name] = timings["plain"].median / timings["ours"].median
                times = (str(timings["ours"]), str(timings["plain"]), f"{speeds[name]:.3f}")
                section.rows.append((name, *times, _bytes(folder, name)))
    section.targets = [at_least(0.8, speeds, "speed of an append against a plain write")]
    return section


def nested(spark: SparkSession, rows: int) -> DataFrame:
    """Rows of arrays, maps and structs in each other."""
    small = (f.xxhash64("id") % 100).cast("int")
    return spark.range(0, rows, 1, FILES).select(
        "id",
        f.struct(
            f.concat(f.lit("n-"), small.cast("string")).alias("name"),
            f.struct(small.alias("x"), (small * 0.5).alias("y")).alias("at"),
        ).alias("place"),
        f.array(f.lit("a"), small.cast("string"), f.lit("c")).alias("tags"),
        f.create_map(f.lit("one"), small, f.lit("two"), small + 1).alias("scores"),
        f.array(
            f.struct(f.col("id").alias("item"), small.alias("count")),
            f.struct((f.col("id") + 1).alias("item"), small.alias("count")),
        ).alias("lines"),
    )


def _plain(rows: DataFrame, folder: Path) -> Callable[[], None]:
    numbers = count()
    return lambda: rows.write.parquet(str(folder / f"run-{next(numbers)}"))


def _bytes(folder: Path, name: str) -> str:
    """Bytes of one append of ours against plain's: equal work makes equal files."""
    plain = sum(p.stat().st_size for p in (folder / f"plain-{name}/run-0").glob("*.parquet"))
    ours = sum(p.stat().st_size for p in (folder / "data/main" / name).rglob("*.parquet"))
    runs = len(list((folder / f"plain-{name}").iterdir()))
    shutil.rmtree(folder / f"plain-{name}")
    return f"{ours / runs / plain:.3f}"
