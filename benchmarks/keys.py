"""Loads into a UNIQUE KEY table beside a plain Spark join that writes everything anew; rollups."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

import shelduck
from benchmarks.harness import Section, Timing, at_least, interleaved, ratio, scratch, timed
from benchmarks.session import run_to_the_end, session
from shelduck.engine.bridge.classic import ClassicEngine

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

    from shelduck import Lake, Table
    from shelduck.engine.bridge import FileEntry, FileRelation

ROWS, QUICK_ROWS, FILES = 10_000_000, 200_000, 64
# A row of the rollup for so many rows.
GROUP = 1000
# More than are loaded into: what Spark needs for any query would hide what a rollup spares.
VISITED, QUICK_VISITED = 60_000_000, 200_000
_ABOUT = (
    "A UNIQUE KEY (id) table of {rows:,} rows in {files} files, sorted by the key. A load"
    " brings {part:,} rows of old keys and {part:,} of new ones. Clustered: the old keys are"
    " one range, the new ones lie behind all. Scattered: the old keys are every hundredth, so"
    " no file can be left out. Bare Spark reads all rows, leaves out the loaded keys (anti"
    " join), and writes the rest and the load, synced to disk like the load. Rows rewritten"
    " were there before and are in new files. Then {visited:,} visits (city, day, spent as"
    " double, dwell) in no order: `SELECT city, day, sum(spent), max(dwell), count(*) … GROUP"
    " BY city, day`, a row for {group} visits, from the table and from its rollup."
    " Speed is the second's median over the first's."
)
COLUMNS = {"id": "bigint", "v": "string", "n": "double", "k": "bigint"}
VISITS = {"city": "string", "day": "date", "spent": "double", "dwell": "int"}
_DAYS = 100
_QUERY = (
    "SELECT {}city, day, sum(spent) AS spent, max(dwell) AS dwell, count(*) AS visits FROM d"
    " GROUP BY city, day"
)


def run(*, quick: bool) -> Section:
    rows = QUICK_ROWS if quick else ROWS
    part = rows // 100
    header = ("first, beside second", "first", "second", "speed")
    visited = QUICK_VISITED if quick else VISITED
    about = _ABOUT.format(rows=rows, files=FILES, group=GROUP, part=part, visited=visited)
    section = Section("Key models and rollups", about, header)
    with scratch("keys") as folder, session(folder) as spark:
        lake = shelduck.connect(
            f"sqlite:///{folder}/lake.db", f"{folder}/lake/", spark, progress=False
        )
        with lake:
            _loads(section, lake, rows, folder, runs=2 if quick else 3)
            speed = _rollup(section, lake, visited, runs=3 if quick else 5)
    section.targets = [at_least(20, {"GROUP BY": speed}, "speed of a GROUP BY from the rollup")]
    return section


def generated(ids: DataFrame, round_number: int) -> DataFrame:
    """Rows of `COLUMNS` for some ids."""
    some = f.xxhash64("id", f.lit(round_number))
    return ids.select(
        "id",
        f.concat(f.lit("value-"), f.pmod(some, f.lit(1_000_000)).cast("string")).alias("v"),
        (f.pmod(some, f.lit(10_000)) / 100).alias("n"),
        f.floor(f.col("id") / GROUP).alias("k"),
    )


def visits(ids: DataFrame, rows: int) -> DataFrame:
    """Rows of `VISITS`, a row in `GROUP` for each city and day."""
    cities = max(1, rows // GROUP // _DAYS)
    some, other = f.xxhash64("id"), f.xxhash64("id", f.lit(1))
    return ids.select(
        f.concat(f.lit("city-"), f.pmod(some, f.lit(cities)).cast("string")).alias("city"),
        f.date_add(f.lit("2026-01-01").cast("date"), f.pmod(other, f.lit(_DAYS)).cast("int")).alias(
            "day"
        ),
        (f.pmod(some, f.lit(10_007)) / 100).alias("spent"),
        f.pmod(other, f.lit(3_600)).cast("int").alias("dwell"),
    )


def _loads(section: Section, lake: Lake, rows: int, folder: Path, *, runs: int) -> None:
    spark, part = lake.spark, rows // 100
    lake.set_option("target_file_size", "16MB")
    table = lake.create_table("t", COLUMNS, keys=shelduck.unique("id"))
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    spark.conf.set("spark.sql.shuffle.partitions", FILES)
    first = timed(lambda: table.append(generated(spark.range(rows), 0)))
    spark.conf.unset("spark.sql.adaptive.coalescePartitions.enabled")
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    section.rows.append((f"first load of {rows:,} rows", _seconds(first), "", ""))
    files = len(table.read().inputFiles())
    rounds, known = count(1), [rows]
    old = {
        "clustered": spark.range(rows // 2, rows // 2 + part),
        "scattered": spark.range(0, rows, 100),
    }
    for name, ids in old.items():

        def fresh(ids: DataFrame = ids) -> DataFrame:
            new = spark.range(known[0], known[0] + part)
            return generated(ids.unionAll(new), next(rounds))

        seen: list[int] = []
        again: list[int] = []
        loads, bare = [], []
        for number in range(1 + runs):
            rows_now = fresh()
            theirs = timed(partial(_join, table.read(), rows_now, folder))
            with _counting_files() as opened:
                ours = timed(partial(table.append, rows_now))
            known[0] += part
            if number:
                loads.append(ours)
                bare.append(theirs)
                seen.append(opened[0])
                again.append(_written_last(table) - 2 * part)
        _compare(
            section,
            f"load, {name}: {2 * part:,} rows, {max(seen)} of about {files} files read,"
            f" {max(again):,} rows rewritten",
            Timing(tuple(loads)),
            Timing(tuple(bare)),
        )


def _written_last(table: Table) -> int:
    """How many rows there are in the files of the newest snapshot."""
    files = table.files()
    newest = files.agg(f.max("begin_snapshot")).first()[0]
    return int(files.where(f.col("begin_snapshot") == newest).agg(f.sum("record_count")).first()[0])


def _join(table: DataFrame, new: DataFrame, folder: Path) -> None:
    """What somebody without a lake would run: everything is written anew."""
    place = folder / "bare"
    left = table.join(new, "id", "left_anti").unionByName(new)
    left.write.mode("overwrite").parquet(str(place), compression="snappy")
    for path in place.rglob("*.parquet"):
        with path.open("rb") as file:
            os.fsync(file.fileno())


class _counting_files:  # noqa: N801 - used like a function
    """Counts the files that scans hand to Spark after their filters were looked at."""

    def __enter__(self) -> list[int]:
        self._seen, self._relation = [0], ClassicEngine.relation

        def counted(engine: ClassicEngine, relation: FileRelation) -> DataFrame:
            def counting(filters: list[str]) -> list[FileEntry]:
                found = list(relation.lister(filters))
                self._seen[0] = max(self._seen[0], len(found))
                return found

            return self._relation(engine, replace(relation, lister=counting))

        ClassicEngine.relation = counted
        return self._seen

    def __exit__(self, *_: object) -> None:
        ClassicEngine.relation = self._relation


def _rollup(section: Section, lake: Lake, rows: int, *, runs: int) -> float:
    table = lake.create_table("d", VISITS)
    table.append(visits(lake.spark.range(rows), rows))
    measures = {"all_spent": ("sum", "spent"), "longest": ("max", "dwell"), "visits": "count"}
    made = timed(table.add_rollup("by_city", ["city", "day"], measures).wait)
    section.rows.append((f"making a rollup of {rows:,} rows", _seconds(made), "", ""))
    queries = {"rollup": _QUERY.format(""), "base": _QUERY.format("/*+ NO_ROLLUP */ ")}
    found = [run_to_the_end(_sums(lake.sql(query))) for query in queries.values()]
    if found[0] != found[1]:
        raise AssertionError("the rollup says something else than its base")
    timings = interleaved(
        {name: partial(_run, lake, query) for name, query in queries.items()}, runs=runs
    )
    _compare(section, "GROUP BY: rollup, beside base", timings["rollup"], timings["base"])
    return ratio(timings["base"], timings["rollup"])


def _run(lake: Lake, query: str) -> None:
    lake.sql(query).write.format("noop").mode("overwrite").save()


def _sums(rows: DataFrame) -> DataFrame:
    return rows.agg(f.count("*"), f.round(f.sum("spent"), 2), f.sum("dwell"), f.sum("visits"))


def _compare(section: Section, what: str, first: Timing, second: Timing) -> None:
    section.rows.append((what, str(first), str(second), f"{ratio(second, first):.2f}"))


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s"
