"""Bloom filters and encodings of columns: what a lookup reads, and what files weigh."""

from __future__ import annotations

from typing import TYPE_CHECKING

import shelduck
from benchmarks.harness import Section, Timing, at_most, duration, scratch, timed
from benchmarks.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS, QUICK_ROWS = 10_000_000, 200_000
LOOKUPS = 8
_ABOUT = (
    "{rows:,} rows in no order, row groups of 122,880 rows, and {lookups} lookups of one value of a"
    " column. `ALTER TABLE t ADD INDEX … USING BLOOMFILTER` with REWRITE gives the files a filter."
    " The encoding of the texts is that of the column."
)


def run(*, quick: bool) -> Section:
    rows = QUICK_ROWS if quick else ROWS
    about = _ABOUT.format(rows=rows, lookups=LOOKUPS)
    section = Section(
        "Storage of columns", about, ("files", "bytes", "job", "a lookup", "rows read")
    )
    with (
        scratch("storage") as folder,
        session(folder) as spark,
        shelduck.connect(f"sqlite:///{folder}/lake.db", f"{folder}/data/", spark) as lake,
    ):
        lake.sql("CALL set_option('parquet_row_group_size', 122880)")
        table = lake.create_table("t", {"id": "bigint", "k": "bigint", "name": "string"})
        table.append(
            spark.range(rows).selectExpr(
                "id", "xxhash64(id) AS k", "concat('n', abs(xxhash64(id)) % 1000) AS name"
            )
        )
        values = [r.k for r in table.read().limit(LOOKUPS).select("k").collect()]
        shares: dict[str, float] = {}

        def measure(what: str, job: float | None) -> float:
            looked = [_looked_up(table.read().where(f"k = {value}")) for value in values]
            read = sum(n for _, n in looked) / LOOKUPS
            timing = Timing(tuple(seconds for seconds, _ in looked))
            size = sum(f.file_size_in_bytes for f in table.files().collect() if not f.end_snapshot)
            taken = "" if job is None else duration(job)
            section.rows.append((what, f"{size:,}", taken, str(timing), f"{read:,.0f}"))
            return read

        measure("as written", None)
        add = shelduck.add_index("by_k", "k")
        job = timed(lambda: table.alter(add, shelduck.rewrite_files()).wait())
        shares["k = …"] = measure("a Bloom filter of k", job) / rows
        plain = shelduck.set_encoding("name", "PLAIN")
        job = timed(lambda: table.alter(plain, shelduck.rewrite_files()).wait())
        measure("and name PLAIN", job)
    section.targets = [at_most(0.1, shares, "share of the rows that a lookup reads")]
    return section


def _looked_up(found: DataFrame) -> tuple[float, int]:
    """The seconds of a query of one row, and the rows that Spark read for it."""
    seconds = timed(lambda: len(found.collect()))
    leaves = found._jdf.queryExecution().executedPlan().collectLeaves()  # noqa: SLF001 - only the plan counts them
    metrics = [leaves.apply(n).metrics().get("numOutputRows") for n in range(leaves.size())]
    return seconds, sum(m.get().value() for m in metrics)
