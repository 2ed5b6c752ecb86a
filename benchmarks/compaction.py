"""Compaction beside Spark reading and writing the same bytes."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import shelduck
from benchmarks.harness import Section, Timing, at_least, scratch, timed
from benchmarks.scan import COLUMNS, generated
from benchmarks.session import session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

ROWS, FILES = 10_000_000, 64
QUICK_ROWS = 100_000
_ABOUT = (
    "{rows:,} rows in {files} files become {into}: by `table.compact()`, which keeps row ids"
    " and snapshots of rows, and by plain Spark, `spark.read.parquet` and"
    " `df.coalesce(2).write.parquet`. In turns, each time from fresh files; speed is plain's"
    " median over Shelduck's: above 1 Shelduck is faster."
)


def run(*, quick: bool) -> Section:
    rows = QUICK_ROWS if quick else ROWS
    about = _ABOUT.format(rows=rows, files=FILES, into="2")
    section = Section("Compaction", about, ("work", "Shelduck", "plain", "speed"))
    taken: dict[str, list[float]] = {"ours": [], "plain": []}
    with scratch("compaction") as folder, session(folder) as spark:
        work = _Work(spark, folder, rows)
        for number in range(2 if quick else 6):
            order = ["ours", "plain"] if number % 2 == 0 else ["plain", "ours"]
            subjects = work.prepared()
            for name in order:
                seconds = timed(subjects[name])
                if number:
                    taken[name].append(seconds)
    ours, plain = (Timing(tuple(taken[name])) for name in ("ours", "plain"))
    speed = plain.median / ours.median
    section.rows.append((f"{FILES} files to 2", str(ours), str(plain), f"{speed:.3f}"))
    section.targets = [at_least(0.9, {"rows": speed}, "speed of compaction against Spark")]
    return section


class _Work:
    """Fresh tables of many files, to be compacted by one or the other."""

    def __init__(self, spark: SparkSession, folder: Path, rows: int) -> None:
        self.spark = spark
        self.folder = folder
        self.rows = rows
        self.numbers = count()
        self.lake = shelduck.connect(
            f"sqlite:///{folder}/lake.db", f"{folder}/data/", spark, progress=False
        )

    def prepared(self) -> dict[str, Callable[[], object]]:
        number = next(self.numbers)
        table = self.lake.create_table(f"t{number}", COLUMNS)
        table.append(generated(self.spark, self.rows).repartition(FILES))
        files = table.read().inputFiles()
        size = sum(Path(f.removeprefix("file:")).stat().st_size for f in files)
        target = str(self.folder / f"plain-{number}")
        return {
            "ours": lambda: table.compact(target_file_size=size * 6 // 10),
            "plain": lambda: self.spark.read.parquet(*files).coalesce(2).write.parquet(target),
        }
