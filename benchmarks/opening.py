"""Opening a table of very many files, and finding the one file that a query needs."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pyspark.sql import functions as f

import shelduck
from benchmarks.catalogs import durable_postgres, fresh_url, multiply_only_file
from benchmarks.harness import Section, Timing, at_most, duration, interleaved, scratch, timed
from benchmarks.session import run_to_the_end, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SIZES = (1_000, 10_000, 100_000)
QUICK_SIZES = (100, 1_000)
PLAIN_UP_TO = 10_000
KINDS = ("SQLite", "PostgreSQL")
# A file may have about 65,000 names on ext4.
_NAMES_OF_A_FILE = 20_000
_ABOUT = (
    "All files are hard links of a few equal small files with the ids 0 to 999; the catalog"
    " says that each but the first holds other ids. Open: `table.read()`. Point query: count"
    " of `id = 500` on an open table; what it counts is the number of files that it read."
    " Plain: `spark.read.parquet(*paths)`, once, and the same query, which opens all files."
)


@dataclass(frozen=True)
class _Seen:
    opened: Timing
    queried: Timing
    files_read: int
    plain_opened: float | None = None
    plain_queried: float | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        plain = [_or_dash(self.plain_opened), _or_dash(self.plain_queried)]
        return (str(self.opened), str(self.queried), str(self.files_read), *plain)


def run(*, quick: bool) -> Section:
    header = ("catalog, files", "open", "point query", "files read", "plain open", "plain query")
    section = Section("Opening and pruning", _ABOUT, header)
    opened: dict[str, float] = {}
    queried: dict[str, float] = {}
    with scratch("open") as folder, session(folder) as spark, durable_postgres() as server:
        for kind in KINDS:
            sizes = QUICK_SIZES if quick else SIZES
            for files in sizes:
                name = f"{kind}, {files:,}"
                with_plain = kind == "SQLite" and files <= PLAIN_UP_TO
                place = folder / f"{kind}-{files}"
                place.mkdir()
                with fresh_url(kind, place, server, "lake") as url:
                    row = _measure(spark, url, files, place, with_plain=with_plain)
                rows = section.rows if with_plain or files == sizes[-1] else section.aside
                rows.append((name, *row.cells))
                opened[name], queried[name] = row.opened.median, row.queried.median
    section.targets = [
        at_most(1.0, opened, "seconds to open"),
        at_most(0.5, queried, "seconds of a point query on an open table"),
    ]
    return section


def _measure(spark: SparkSession, url: str, files: int, folder: Path, *, with_plain: bool) -> _Seen:
    make_table(spark, url, files, folder)
    with shelduck.connect(url, spark=spark) as lake:
        table = lake.table("t")
        opened = interleaved({"ours": table.read}, runs=5)["ours"]
        # A DataFrame that was executed keeps its plan, so each run gets one of its own.
        frames = [table.read() for _ in range(6)]
        answers: list[int] = []
        point = interleaved({"ours": lambda: answers.append(_count(frames.pop()))}, runs=5)["ours"]
        if not with_plain:
            return _Seen(opened, point, answers[-1])
        paths = [str(path) for path in sorted((folder / "data").rglob("*.parquet"))]
        plain: list[DataFrame] = []
        plain_opened = timed(lambda: plain.append(spark.read.parquet(*paths)))
        plain_queried = timed(lambda: _count(plain[0]))
        return _Seen(opened, point, answers[-1], plain_opened, plain_queried)


def make_table(spark: SparkSession, url: str, files: int, folder: Path) -> None:
    """Make a lake whose table `t` has that many files, all there by name."""
    with shelduck.connect(url, f"{folder}/data/", spark, progress=False) as lake:
        table = lake.create_table("t", {"id": "bigint", "name": "string", "price": "double"})
        table.append(
            spark.range(0, 1000, 1, 1).selectExpr(
                "id", "concat('n-', id) AS name", "id / 4 AS price"
            )
        )
        [original] = table.read().inputFiles()
    multiply_only_file(url, files)
    source = Path(unquote(urlsplit(original).path))
    place = folder / "data/main/t"
    for number in range(1, files):
        if number % _NAMES_OF_A_FILE == 0:
            source = Path(shutil.copy(source, place / f"source-{number}"))
        os.link(source, place / f"copy-{number}.parquet")


def _count(rows: DataFrame) -> int:
    [(found,)] = run_to_the_end(rows.where("id = 500").agg(f.count("*")))
    return int(found)


def _or_dash(seconds: float | None) -> str:
    return "-" if seconds is None else duration(seconds)
