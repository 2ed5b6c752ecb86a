"""Branches: made and dropped, published, merged beside MERGE INTO, and what ten of them cost."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import shelduck
from benchmarks.alter import COLUMNS, fill
from benchmarks.catalogs import durable_postgres, fresh_url
from benchmarks.copies import Copies
from benchmarks.harness import Section, Timing, at_most, interleaved, scratch, timed
from benchmarks.session import session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from shelduck import Lake
    from tests.support.postgres import PostgresServer

FILES, QUICK_FILES = 100_000, 1_000
PUBLISHED, QUICK_PUBLISHED, PUBLISHED_FILES = 5_000_000, 100_000, 1_000
ROWS, QUICK_ROWS, ROWS_IN = 10_000_000, 200_000, 8
BRANCHES = 10
_KINDS = ("SQLite", "PostgreSQL")
_ABOUT = (
    "CREATE and DROP BRANCH of a table of {files:,} files. Publish: `merge_branch` of {published:,}"
    " rows in {of_published:,} files that a load put into a branch; no file is written. Merge: both"
    " sides changed another 1 % of {rows:,} rows in {rows_in} files, beside a MERGE INTO of the"
    " rows that the branch changed. SHALLOW CLONE: of {rows:,} rows. Then ADD and RENAME COLUMN, an"
    " append of 1,000 rows and a count on a table of which ten branches exist, beside none."
)


def run(*, quick: bool) -> Section:
    files = QUICK_FILES if quick else FILES
    published = QUICK_PUBLISHED if quick else PUBLISHED
    rows = QUICK_ROWS if quick else ROWS
    about = _ABOUT.format(
        files=files, published=published, of_published=PUBLISHED_FILES, rows=rows, rows_in=ROWS_IN
    )
    section = Section("Branches", about, ("work", "branch", "beside", "ratio"))
    with scratch("branches") as folder:
        made = _create_and_drop(section, folder, files, quick=quick)
        with session(folder) as spark:
            seconds = {"publish": _publish(section, spark, folder / "publish", published)}
            merge, clone = _merge_and_clone(section, spark, folder / "merge", rows, quick=quick)
            costs = _beside_ten(section, spark, folder / "ten", quick=quick)
    section.targets = [
        at_most(1.0, made, f"CREATE and DROP BRANCH of {files:,} files, in seconds:"),
        at_most(0.1, seconds, f"publish of {published:,} rows, in seconds:"),
        at_most(1.2, {"1 % of both sides": merge}, "a merge against MERGE INTO"),
        at_most(0.2, {"clone": clone}, f"SHALLOW CLONE of {rows:,} rows, in seconds:"),
        at_most(1.03, costs, "work on a table of which ten branches exist, against none"),
    ]
    return section


def _create_and_drop(
    section: Section, folder: Path, files: int, *, quick: bool
) -> dict[str, float]:
    """Time both, and return the median seconds of each in each database."""
    found = {}
    with durable_postgres() as server:
        for kind in _KINDS:
            timings = _of_kind(kind, folder, server, files, 3 if quick else 5)
            for what, timing in timings.items():
                found[f"{what}, {kind}"] = timing.median
                section.rows.append((f"{what}, {kind}", str(timing), "", ""))
    return found


def _of_kind(
    kind: str, folder: Path, server: PostgresServer, files: int, runs: int
) -> dict[str, Timing]:
    seconds: dict[str, list[float]] = {"CREATE BRANCH": [], "DROP BRANCH": []}
    with ExitStack() as stack:
        url = stack.enter_context(fresh_url(kind, folder, server, "branched"))
        with shelduck.connect(url, f"{folder}/branched/") as lake:
            lake.create_table("t", COLUMNS)
        fill(url, files)
        lake = stack.enter_context(shelduck.connect(url))
        for number in range(runs + 1):
            taken = timed(partial(lake.create_branch, f"b{number}"))
            dropped = timed(partial(lake.drop_branch, f"b{number}"))
            # The first one makes the trigger and the indexes.
            if number:
                seconds["CREATE BRANCH"].append(taken)
                seconds["DROP BRANCH"].append(dropped)
    return {what: Timing(tuple(taken)) for what, taken in seconds.items()}


def _publish(section: Section, spark: SparkSession, folder: Path, rows: int) -> float:
    """Load rows into a branch, time its merge, and return the median in seconds."""
    copies = _copies(spark, folder)
    with copies.connect("loaded") as lake:
        _filled(lake, _values(spark, 0, 1000, 1))
        lake.create_branch("b")
        lake.table("b.t").append(_values(spark, 1000, 1000 + rows, PUBLISHED_FILES))
    seconds = []
    for _ in range(6):
        with copies.connect(copies.copy("loaded")) as lake:
            # A process that publishes has looked at the branch before.
            lake.branch_diff("b")
            known = _files(folder)
            seconds.append(timed(partial(lake.merge_branch, "b")))
            if _files(folder) != known or lake.table("t").read().count() != rows + 1000:
                raise AssertionError("the publish wrote files, or did not bring all rows")
    timing = Timing(tuple(seconds[1:]))
    section.rows.append((f"publish {rows:,} rows", str(timing), "", ""))
    return timing.median


def _merge_and_clone(
    section: Section, spark: SparkSession, folder: Path, rows: int, *, quick: bool
) -> tuple[float, float]:
    """Time a merge beside MERGE INTO; return their ratio, and the seconds of a SHALLOW CLONE."""
    copies = _copies(spark, folder)
    with copies.connect("before") as lake:
        _filled(lake, _values(spark, 0, rows, ROWS_IN))
        lake.create_branch("b")
    copies.copy("before", "changed")
    with copies.connect("changed") as lake:
        lake.sql("UPDATE t SET v = v + 1 WHERE id % 100 = 7")
        lake.sql("UPDATE b.t SET v = v + 2 WHERE id % 100 = 9")
        changed = lake.sql("SELECT * FROM b.t WHERE id % 100 = 9")
        changed.write.parquet(f"{folder}/source")
    copies.copy("changed", "source")
    source = spark.read.parquet(f"{folder}/source")

    def merge() -> None:
        with copies.connect(copies.copy("changed")) as lake:
            lake.merge_branch("b")

    def merge_into() -> None:
        with copies.connect(copies.copy("changed")) as lake:
            source.createOrReplaceTempView("changes")
            lake.sql(
                "MERGE INTO t USING changes AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
            )

    subjects: dict[str, Callable[[], object]] = {"merge": merge, "merge into": merge_into}
    timings = interleaved(subjects, runs=1 if quick else 5)
    found = timings["merge"].median / timings["merge into"].median
    cells = (str(timings["merge"]), str(timings["merge into"]), f"{found:.3f}")
    section.rows.append((f"merge 1 % of {rows:,} rows", *cells))
    with copies.connect(copies.copy("before")) as lake:
        seconds = [
            timed(partial(lake.execute, f"CREATE TABLE clone{n} SHALLOW CLONE t")) for n in range(6)
        ]
    timing = Timing(tuple(seconds[1:]))
    section.rows.append((f"SHALLOW CLONE of {rows:,} rows", str(timing), "", ""))
    return found, timing.median


def _beside_ten(
    section: Section, spark: SparkSession, folder: Path, *, quick: bool
) -> dict[str, float]:
    """Time work on a table with ten branches beside one without; return the ratios."""
    copies, found = _copies(spark, folder), {}
    with copies.connect("none") as lake:
        _filled(lake, _values(spark, 0, 100_000, ROWS_IN))
    copies.copy("none", "ten")
    with copies.connect("ten") as lake:
        for number in range(BRANCHES):
            lake.create_branch(f"b{number}")
    runs = 5 if quick else 31
    with copies.connect("ten") as ten, copies.connect("none") as none:
        for what, act in (("ALTER", _alters), ("append", _appends), ("read", _reads)):
            timings = interleaved({"ten": act(ten), "none": act(none)}, runs=runs, warm_ups=3)
            found[what] = timings["ten"].median / timings["none"].median
            cells = (str(timings["ten"]), str(timings["none"]), f"{found[what]:.3f}")
            section.rows.append((f"{what} with {BRANCHES} branches", *cells))
    return found


def _alters(lake: Lake) -> Callable[[], object]:
    numbers = count()

    def act() -> None:
        number = next(numbers)
        lake.execute(f"ALTER TABLE t ADD COLUMN c{number} INT")
        lake.execute(f"ALTER TABLE t RENAME COLUMN c{number} TO d{number}")

    return act


def _appends(lake: Lake) -> Callable[[], object]:
    return partial(lake.sql, "INSERT INTO t (id, v) SELECT id, id FROM range(1000)")


def _reads(lake: Lake) -> Callable[[], object]:
    return lambda: lake.sql("SELECT count(*), max(v) FROM t WHERE id % 7 = 3").collect()


def _copies(spark: SparkSession, folder: Path) -> Copies:
    folder.mkdir()
    return Copies(spark, folder)


def _values(spark: SparkSession, first: int, end: int, files: int) -> DataFrame:
    return spark.range(first, end, 1, files).selectExpr("id", "id % 1000 AS v", "string(id) AS s")


def _filled(lake: Lake, rows: DataFrame) -> None:
    lake.set_option("data_inlining_row_limit", 0)
    lake.create_table("t", dict(rows.dtypes)).append(rows)


def _files(folder: Path) -> set[Path]:
    return {*folder.rglob("*.parquet")}
