"""A stream from table to table beside `follow` and Spark's own stream, batch by batch."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import shelduck
from benchmarks.harness import Section, Timing, at_most, ratio, scratch, timed
from benchmarks.session import session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from shelduck import Lake

SIZES, QUICK_SIZES = (1_000, 500_000), (1_000,)
RUNS, QUICK_RUNS = 9, 3
_WARM_UPS = 3
COLUMNS = {"id": "bigint", "v": "double", "t": "string"}
_ABOUT = (
    "A batch of three columns, from a table without ALTER into another one, each by one commit:"
    " `lake.stream(…).to(…)` beside `follow` with a sink, and beside Spark's stream with"
    " `foreachBatch(sink)`, of which only `triggerExecution` counts, not the start of the query."
)


def run(*, quick: bool) -> Section:
    header = ("rows of a batch", "stream", "follow", "Spark's stream", "/ follow", "/ Spark's")
    section = Section("A stream from table to table", _ABOUT, header)
    found: dict[str, float] = {}
    with scratch("carry") as folder, session(folder) as spark:
        for rows in QUICK_SIZES if quick else SIZES:
            ours, *others = _measured(
                spark, folder / str(rows), rows, QUICK_RUNS if quick else RUNS
            )
            ratios = [ratio(ours, other) for other in others]
            cells = (f"{rows:,}", *map(str, (ours, *others)), *map("{:.3f}".format, ratios))
            section.rows.append(cells)
            found |= {
                f"{n}, {rows:,}": r for n, r in zip(("follow", "Spark's"), ratios, strict=True)
            }
    section.targets = [at_most(1.02, found, "time")]
    return section


def _measured(spark: SparkSession, folder: Path, rows: int, runs: int) -> list[Timing]:
    """Return the times of a batch by each stream, in turns."""
    folder.mkdir()
    url = f"sqlite:///{folder}/catalog.db"
    with shelduck.connect(url, f"{folder}/data/", spark, progress=False) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        for name in ("a", "carried", "followed", "streamed"):
            lake.create_table(name, COLUMNS)
        shelduck.attach(spark, "carrying", url)
        streams = [_carried(lake), _followed(lake, folder), _streamed(lake, spark, folder)]
        seconds: list[list[float]] = [[] for _ in streams]
        for number in range(_WARM_UPS + runs):
            made = spark.range(number * rows, (number + 1) * rows, 1, 2)
            lake.table("a").append(made.selectExpr("id", "id / 7 AS v", "CAST(id AS STRING) AS t"))
            turns = [(n + number) % len(streams) for n in range(len(streams))]
            for at in turns:
                gc.collect()
                taken = streams[at]()
                if number >= _WARM_UPS:
                    seconds[at].append(taken)
        wanted = [((number + 1) * rows,)]
        for name in ("carried", "followed", "streamed"):
            assert lake.sql(f"SELECT count(DISTINCT id) FROM {name}").collect() == wanted
        shelduck.detach(spark, "carrying")
        return [Timing(tuple(taken)) for taken in seconds]


def _carried(lake: Lake) -> Callable[[], float]:
    stream = lake.stream("a", starting_version="all")
    return lambda: timed(lambda: stream.to("carried"))


def _followed(lake: Lake, folder: Path) -> Callable[[], float]:
    table = lake.table("a")
    sink = lake.table("followed").sink("f", write=lambda t, rows: t.append(rows.select(*COLUMNS)))
    return lambda: timed(lambda: table.follow(sink, f"{folder}/follow/"))


def _streamed(lake: Lake, spark: SparkSession, folder: Path) -> Callable[[], float]:
    sink = lake.table("streamed").sink()

    def batch() -> float:
        query = (
            spark.readStream.table("carrying.main.a")
            .writeStream.foreachBatch(sink)
            .option("checkpointLocation", f"{folder}/checkpoint/")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        told: list[Any] = [p["durationMs"] for p in query.recentProgress]
        return max(one["triggerExecution"] for one in told) / 1000

    return batch
