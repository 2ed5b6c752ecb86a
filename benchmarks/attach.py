"""A lake as a catalog of the session: what it costs to attach one, and to find a table by name."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import shelduck
from benchmarks.harness import Section, at_most, duration, interleaved, scratch
from benchmarks.session import session

if TYPE_CHECKING:
    from collections.abc import Callable

RUNS, QUICK_RUNS = 50, 5
_ABOUT = (
    "Analysis of `SELECT id, v FROM … WHERE id > 5` by the table's name in an attached lake"
    " whose snapshot is known, and on a temporary view over the same rows; {runs} runs in"
    " turns. Then the first `shelduck.attach` of a process, without Spark's own start: with"
    " the bridge's classes to compile, and with them in the user's cache. `import shelduck`"
    " puts the imports off until you use its first name."
)
_WHY = "nearly all of it is the compiler of Scala, once for each version of Spark and Shelduck"
_ATTACH = """
import sys, time
import shelduck
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
spark.range(1).count()
began = time.perf_counter()
attach = shelduck.attach
imported = time.perf_counter()
attach(spark, "lake", sys.argv[1], sys.argv[2])
print(imported - began, time.perf_counter() - imported)
"""


def run(*, quick: bool) -> Section:
    runs = QUICK_RUNS if quick else RUNS
    section = Section("Attach", _ABOUT.format(runs=runs), ("what", "median"))
    with scratch("attach") as folder, session(folder) as spark:
        lake = shelduck.attach(spark, "lake", f"sqlite:///{folder}/lake.db", f"{folder}/lake/")
        spark.sql("CREATE TABLE lake.main.t AS SELECT id, id AS v FROM range(1000)")
        spark.table("lake.main.t").createTempView("plain")
        queries: dict[str, Callable[[], object]] = {
            name: lambda name=name: spark.sql(f"SELECT id, v FROM {name} WHERE id > 5").schema
            for name in ("lake.main.t", "plain")
        }
        timings = interleaved(queries, runs=runs, warm_ups=10)
        shelduck.detach(spark, "lake")
        del lake
        seconds = _first_attach(folder)
    for name, timing in timings.items():
        section.rows.append((f"analysis of a query on {name}", str(timing)))
    for name, taken in seconds.items():
        section.rows.append((f"first attach, {name}", duration(taken)))
    over = timings["lake.main.t"].median - timings["plain"].median
    section.targets = [
        at_most(30, {"lake.main.t": 1000 * over}, "ms of analysis over a temporary view"),
        at_most(3, {"compiled": seconds["classes compiled"]}, "seconds of the first attach", _WHY),
        at_most(0.5, {"cached": seconds["classes cached"]}, "seconds with a cached bridge"),
    ]
    return section


def _first_attach(folder: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as cache:
        for name in ("classes compiled", "classes cached"):
            place = folder / name.replace(" ", "-")
            arguments = [f"sqlite:///{place}.db", f"{place}/"]
            done = subprocess.run(
                [sys.executable, "-c", _ATTACH, *arguments],
                env=os.environ | {"XDG_CACHE_HOME": cache},
                capture_output=True,
                text=True,
                check=True,
            )
            imports, attached = map(float, done.stdout.splitlines()[-1].split())
            found["imports"] = imports
            found[name] = attached
    return found
