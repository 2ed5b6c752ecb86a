"""A text that is not a number in the last of many files: named at once, or found by the job."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import shelduck
from benchmarks.copies import Copies
from benchmarks.harness import Section, Timing, at_most, scratch
from benchmarks.session import session
from shelduck.alter import verb as alter_verbs

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

FILES, QUICK_FILES, ROWS = 200, 10, 50_000
# Of the time of the job that finds the text. Of 1,000 files it is a fiftieth: a look begins two or
# three jobs of Spark, whatever they read.
GOAL = 0.05
_ABOUT = (
    "`ALTER COLUMN v TYPE INT` of a table of {files} files of 1.1 MB; one text in the last"
    " file is not a number. Shelduck reads the dictionaries of all files before the job"
    " begins, or the job finds the text. Where all texts differ, there are no dictionaries,"
    " and only footers are read."
)


def run(*, quick: bool) -> Section:
    files = QUICK_FILES if quick else FILES
    header = ("texts of a file", "dictionaries", "job", "dictionaries / job")
    section = Section("A text that is not a number", _ABOUT.format(files=files), header)
    texts = {"1,000 different": "CAST(id % 1000 AS STRING)", "all different": "CAST(id AS STRING)"}
    with scratch("refused") as folder, session(folder) as spark:
        shares: dict[str, float] = {}
        for n, (name, text) in enumerate(texts.items()):
            look, job = _measured(spark, folder / str(n), text, files)
            shares[name] = look.best / job.best
            section.rows.append((name, str(look), str(job), f"{shares[name]:.3f}"))
    section.targets = [
        at_most(GOAL, {name: share}, f"{name} texts, looked at: part of the job")
        for name, share in shares.items()
    ]
    return section


def _measured(spark: SparkSession, folder: Path, text: str, files: int) -> tuple[Timing, Timing]:
    """Return how long a look at the dictionaries of one table takes, and its job."""
    folder.mkdir()
    last = files * ROWS - 1
    copies = Copies(spark, folder)
    with copies.connect("base") as lake:
        lake.sql("CREATE TABLE t (id BIGINT, v STRING, w STRING)")
        value = f"IF(id = {last}, 'no number', {text}) AS v"
        made = spark.range(0, last + 1, 1, files).selectExpr("id", value, "uuid() AS w")
        lake.table("t").append(made)
    looks = [_seconds(copies, finds=True) for _ in range(4)][1:]
    return Timing(tuple(looks)), Timing((_seconds(copies, finds=False),))


def _seconds(copies: Copies, *, finds: bool) -> float:
    """Return how long the plan takes that looks at dictionaries, or the job that does not."""
    change, judged = shelduck.change_type("v", "int"), alter_verbs.of_dictionaries
    with copies.connect(copies.copy("base")) as lake:
        began = time.perf_counter()
        if finds:
            lake.table("t").plan_alter(change)
            return time.perf_counter() - began
        alter_verbs.of_dictionaries = lambda _: ()
        try:
            lake.table("t").alter(change).wait()
        except shelduck.InvalidRequest:
            return time.perf_counter() - began
        finally:
            alter_verbs.of_dictionaries = judged
    raise AssertionError("the job found only numbers")
