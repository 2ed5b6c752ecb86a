"""Changing 1 % of a large table, and reading it afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

import shelduck
from benchmarks.harness import Section, at_most, beside, duration, scratch, timed
from benchmarks.scan import COLUMNS, FILES, QUICK_ROWS, ROWS, generated, totals
from benchmarks.session import run_to_the_end, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from shelduck import Lake, Table

_ABOUT = (
    "{rows:,} rows in {files} files. DELETE: every hundredth row; then a scan of all columns,"
    " beside `spark.read.parquet` of the same files without deletes. MERGE: another 1 % of the"
    " keys updated and as many rows inserted, joined on the key. UPDATE: a third 1 %, by a"
    " condition."
)


def run(*, quick: bool) -> Section:
    rows = QUICK_ROWS if quick else ROWS
    about = _ABOUT.format(rows=rows, files=FILES)
    section = Section("Rows", about, ("work", "Shelduck", "plain scan", "ratio"))
    with (
        scratch("rows") as folder,
        session(folder) as spark,
        shelduck.connect(
            f"sqlite:///{folder}/lake.db", f"{folder}/data/", spark, progress=False
        ) as lake,
    ):
        table = _filled(lake, spark, rows, "t")
        files = table.read().inputFiles()
        seconds = timed(lambda: table.delete("id % 100 = 7"))
        section.rows.append((f"delete {rows // 100:,}", duration(seconds), "", ""))
        _after_deletes(section, spark, table, files, quick=quick)
        changed = spark.range(0, rows + rows // 100, 1, FILES).where(
            f"id % 100 = 9 OR id >= {rows}"
        )
        source = changed.select("id", f.lit(1.5).alias("price"))
        seconds = timed(lambda: _merge(table, source))
        section.rows.append((f"merge {2 * rows // 100:,}", duration(seconds), "", ""))
        seconds = timed(lambda: table.update({"price": "price + 1"}, where="id % 100 = 11"))
        section.rows.append((f"update {rows // 100:,}", duration(seconds), "", ""))
        expected = rows - rows // 100 + rows // 100
        if table.read().count() != expected:
            raise AssertionError(f"{table.read().count()} rows are left, not {expected}")
    return section


def _filled(lake: Lake, spark: SparkSession, rows: int, name: str) -> Table:
    table = lake.create_table(name, COLUMNS)
    table.append(generated(spark, rows))
    return table


def _merge(table: Table, source: DataFrame) -> None:
    table.merge(
        source,
        ["id"],
        shelduck.when_matched_update({"price": "s.price"}),
        shelduck.when_not_matched_insert({"id": "s.id", "price": "s.price"}),
    )


def _after_deletes(
    section: Section, spark: SparkSession, table: Table, files: list[str], *, quick: bool
) -> None:
    subjects = {
        "ours": lambda: run_to_the_end(totals(table.read(), "city")),
        "plain": lambda: run_to_the_end(totals(spark.read.parquet(*files), "city")),
    }
    found = beside(section, "read with 1 % deleted everywhere", subjects, quick=quick)
    section.targets = [at_most(1.4, {"1 %": found}, "a scan with deletes against the plain scan")]
