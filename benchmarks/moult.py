"""A job that converts one column of narrow and wide tables, beside Spark writing all columns."""

from __future__ import annotations

import os
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from benchmarks.chart import chart
from benchmarks.copies import Copies
from benchmarks.harness import Section, Target, at_least, interleaved, ratio, scratch
from benchmarks.session import session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame, SparkSession

# As many values each; the files of a table are as large as each other.
WIDTHS, VALUES, QUICK_VALUES, FILES = (5, 50, 500), 60_000_000, 5_000_000, 4
# How often as fast as bare Spark it is to be.
GOALS = {5: 2.0, 50: 10.0, 500: 30.0}
CHART = Path(__file__).parents[1] / "docs" / "benchmarks-moult.svg"
_WHY = (
    "of the job on 50 columns, half is Spark's job, two fifths are plans and the copy of the other"
    " columns, a tenth is the catalog"
)
_ABOUT = (
    "`ALTER COLUMN v TYPE INT` of a text column in tables of {values:,} values in {files}"
    " files, beside `spark.read.parquet` of the same files, the same cast, and"
    " `df.write.parquet` of all columns, one task for each file. The other columns are numbers"
    " and short texts. In turns in one process, until files are synced to disk."
    " New bytes: the size of the job's files less that of the older files, which is copied;"
    " the column's: those of the converted one in files of its own.\n\n"
    "![The time of the job over that of bare Spark](benchmarks-moult.svg)"
)


def run(*, quick: bool) -> Section:
    header = ("columns", "job", "bare Spark", "speed", "copied", "new bytes over the column's")
    section = Section("A job on narrow and wide tables", "", header)
    values = QUICK_VALUES if quick else VALUES
    section.about = _ABOUT.format(values=values, files=FILES)
    speeds: dict[int, float] = {}
    with scratch("moult") as folder, session(folder) as spark:
        for width in WIDTHS:
            table = _Table(spark, folder, width, values // width)
            speeds[width] = table.measure(section, runs=1 if quick else 3)
    if not quick:
        title = "Time of a job that converts one column, over that of Spark writing all"
        shown = {f"{width} columns": 1 / speed for width, speed in speeds.items()}
        CHART.write_text(chart(shown, title), encoding="utf-8")
    section.targets = [_goal(width, speed) for width, speed in speeds.items()]
    return section


def _goal(width: int, speed: float) -> Target:
    what = f"a job on {width} columns against bare Spark writing all: speed"
    return at_least(GOALS[width], {f"{width} columns": speed}, what, _WHY)


class _Table:
    """A table of so many columns; each run gets a copy of its catalog over the same files."""

    def __init__(self, spark: SparkSession, folder: Path, width: int, rows: int) -> None:
        self.spark, self.width = spark, width
        self.folder = folder / str(width)
        self.folder.mkdir()
        self._numbers = count()
        self._copies = Copies(spark, self.folder)
        with self._copies.connect("base") as lake:
            made = _generated(spark, width, rows)
            lake.create_table("t", dict(made.dtypes)).append(made)
            self.files = lake.table("t").read().inputFiles()
        largest = max(path.stat().st_size for path in self._parquet())
        self._bare = spark.newSession()
        self._bare.conf.set("spark.sql.files.maxPartitionBytes", largest)

    def measure(self, section: Section, *, runs: int) -> float:
        """Add the row of this table; return how often as fast as bare Spark the job is."""
        before = self._parquet()
        self._job()
        made = sum(path.stat().st_size for path in self._parquet() - before)
        copied = sum(path.stat().st_size for path in before)
        subjects: dict[str, Callable[[], object]] = {
            "job": partial(self._synced, self._job),
            "bare": partial(self._synced, self._cast),
        }
        timings = interleaved(subjects, runs=runs)
        speed = ratio(timings["bare"], timings["job"])
        new, column = made - copied, self._column_bytes()
        section.rows.append(
            (
                f"{self.width}",
                str(timings["job"]),
                str(timings["bare"]),
                f"{speed:.2f}",
                f"{copied / 1e6:,.0f} MB",
                f"{new / column:.2f}",
            )
        )
        return speed

    def _job(self) -> None:
        with self._copies.connect(self._copies.copy("base")) as lake:
            lake.sql("ALTER TABLE t ALTER COLUMN v TYPE INT")

    def _cast(self) -> None:
        rows = self._bare.read.parquet(*self.files).withColumn("v", f.col("v").cast("int"))
        rows.write.parquet(f"{self.folder}/bare-{next(self._numbers)}")

    def _column_bytes(self) -> int:
        """What the converted column takes in files of its own."""
        before = self._parquet()
        rows = self._bare.read.parquet(*self.files).select(f.col("v").cast("int"))
        rows.write.parquet(f"{self.folder}/column")
        return sum(path.stat().st_size for path in self._parquet() - before)

    def _synced(self, subject: Callable[[], object]) -> None:
        before = self._parquet()
        subject()
        for path in self._parquet() - before:
            with path.open("rb") as file:
                os.fsync(file.fileno())

    def _parquet(self) -> set[Path]:
        return set(self.folder.rglob("*.parquet"))


def _generated(spark: SparkSession, width: int, rows: int) -> DataFrame:
    others = [_column(number).alias(f"c{number}") for number in range(width - 2)]
    text = f.pmod(f.xxhash64("id"), f.lit(2_000_000_000)).cast("string")
    return spark.range(0, rows, 1, FILES).select("id", text.alias("v"), *others)


def _column(number: int) -> Column:
    some = f.xxhash64("id", f.lit(number))
    if number % 2:
        return f.pmod(some, f.lit(1_000_000))
    return f.concat(f.lit("v"), f.pmod(some, f.lit(5000)).cast("string"))
