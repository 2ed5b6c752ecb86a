"""What a process holds after thousands of queries and commits in one session."""

from __future__ import annotations

import gc
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import shelduck
from benchmarks.harness import Section, at_most, scratch
from benchmarks.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDS, QUICK_ROUNDS = 750, 100
# The first part fills the caches of Spark and of the databases' drivers.
_PARTS = 5
_FILES = 20
_ABOUT = (
    "{rounds:,} rounds in one session on a SQLite lake: three queries (a row, a count, an"
    " older snapshot) and an `INSERT INTO … VALUES`; every tenth also appends a file, every"
    " fiftieth compacts, expires old snapshots and cleans up. After each fifth of them: memory"
    " of the Python process, objects that its collector knows, what Java holds after a"
    " collection, time of a round. Spark keeps its last 100 queries for its page."
)


@dataclass(frozen=True)
class _Held:
    """What is held after some rounds; memory in MB, time in milliseconds for each round."""

    python: float
    objects: int
    java: float
    round: float


def run(*, quick: bool) -> Section:
    rounds = QUICK_ROUNDS if quick else ROUNDS
    header = ("rounds", "Python", "objects", "Java", "a round")
    section = Section("A long session", _ABOUT.format(rounds=rounds), header)
    keep = {
        f"spark.{what}": "100"
        for what in ("sql.ui.retainedExecutions", "ui.retainedJobs", "ui.retainedStages")
    }
    with scratch("long") as folder, session(folder, keep) as spark:
        held = _measured(spark, folder, rounds)
    for part, now in enumerate(held, 1):
        section.rows.append(
            (
                f"{rounds * part // _PARTS:,}",
                f"{now.python:.0f} MB",
                f"{now.objects:,}",
                f"{now.java:.0f} MB",
                f"{now.round:.0f} ms",
            )
        )
    first, last = held[1], held[-1]
    section.targets = [
        at_most(
            1.1, {"Python": last.python / first.python}, "memory of the last part over the second"
        ),
        at_most(1.1, {"Java": last.java / first.java}, "memory of the last part over the second"),
        at_most(
            1.2, {"a round": last.round / first.round}, "time of the last part over the second"
        ),
    ]
    return section


def _measured(spark: SparkSession, folder: Path, rounds: int) -> list[_Held]:
    held = []
    with shelduck.connect(f"sqlite:///{folder}/lake.db", f"{folder}/data/", spark) as lake:
        lake.sql("CREATE TABLE t (id BIGINT, v STRING)")
        table = lake.table("t")
        table.append(spark.range(0, 2000, 1, _FILES).selectExpr("id", "CAST(id AS STRING) AS v"))
        per_part = rounds // _PARTS
        for part in range(_PARTS):
            began = time.perf_counter()
            for number in range(part * per_part, (part + 1) * per_part):
                _round(lake, spark, number)
            spent = time.perf_counter() - began
            held.append(_held(spark, 1000 * spent / per_part))
    return held


def _round(lake: shelduck.Lake, spark: SparkSession, number: int) -> None:
    table = lake.table("t")
    done = lake.sql(f"INSERT INTO t (id, v) VALUES ({10_000 + number}, 'row {number}')").collect()
    [row] = table.read().where(f"id = {number % 2000}").collect()
    assert row.v == str(number % 2000)
    assert table.read().count() >= 2000
    table.read(version=done[0].snapshot - 1).where("id = 5").collect()
    if number % 10 == 0:
        table.append(spark.range(5).selectExpr(f"id + {100_000 + 5 * number} AS id", "'x' AS v"))
    if number % 50 == 0:
        table.compact()
        lake.expire_snapshots(retain_last=20)
        lake.cleanup_old_files(older_than="0 seconds")


def _held(spark: SparkSession, spent: float) -> _Held:
    gc.collect()
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    [python] = re.findall(r"VmRSS:\s+(\d+) kB", status)
    java = spark._jvm.java.lang  # type: ignore[union-attr]  # noqa: SLF001 - Spark has no other door
    java.System.gc()
    time.sleep(1)
    java.System.gc()
    runtime = java.Runtime.getRuntime()
    used = runtime.totalMemory() - runtime.freeMemory()
    return _Held(int(python) / 1000, len(gc.get_objects()), used / 1e6, spent)
