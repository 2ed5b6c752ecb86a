"""A scan of an encrypted lake, beside one of a plain lake with the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

import shelduck
from benchmarks.harness import Section, at_most, beside, scratch
from benchmarks.scan import COLUMNS, FILES, QUICK_ROWS, ROWS, generated, totals
from benchmarks.session import run_to_the_end, session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

_ABOUT = "{rows:,} rows in {files} files of each lake; the answers are compared."
_WHY = "no page of an encrypted file is skipped, so a filtered query reads more"


def run(*, quick: bool) -> Section:
    rows = QUICK_ROWS if quick else ROWS
    about = _ABOUT.format(rows=rows, files=FILES)
    section = Section("Encrypted scan", about, ("query", "encrypted", "plain", "ratio"))
    ratios: dict[str, float] = {}
    low = rows // 2
    queries: dict[str, Callable[[DataFrame], DataFrame]] = {
        "all columns, aggregated": lambda t: totals(t, "city"),
        "two columns, grouped": lambda t: t.groupBy("city").agg(f.sum("amount")).orderBy("city"),
        "one row in fifty, filtered": lambda t: t.where(
            f.col("id").between(low, low + rows // 50)
        ).agg(f.count("*"), f.sum("price")),
    }
    with scratch("sealed") as folder, session(folder) as spark:
        tables = {}
        for name in ("encrypted", "plain"):
            lake = shelduck.connect(
                f"sqlite:///{folder}/{name}.db",
                f"{folder}/{name}",
                spark,
                encrypted=name == "encrypted",
            )
            tables[name] = lake.create_table("t", COLUMNS)
            tables[name].append(generated(spark, rows))
        for name, query in queries.items():
            subjects = {
                which: lambda query=query, table=table: run_to_the_end(query(table.read()))
                for which, table in tables.items()
            }
            if subjects["encrypted"]() != subjects["plain"]():
                raise AssertionError(f"{name}: the lakes differ")
            ratios[name] = beside(section, name, subjects, quick=quick)
    section.targets = [at_most(1.4, ratios, "an encrypted lake against a plain one", _WHY)]
    return section
