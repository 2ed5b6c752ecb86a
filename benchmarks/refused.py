"""A text that is no number in the last of many files: named at once, or found by the job."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import shelduck
from benchmarks.harness import Section, Timing, at_most, scratch
from benchmarks.session import session
from shelduck.verbs import alter_verbs

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

FILES, QUICK_FILES, ROWS = 200, 10, 50_000
# Of the time of the job that finds the text. Of 1,000 files it is a fiftieth: a look begins two or
# three jobs of Spark, whatever they read.
GOAL = 0.05
_ABOUT = (
    "`ALTER COLUMN v TYPE INT` of a table of {files} files of 1.1 MB, where one text of the last"
    " file is no number. Either dictionaries of all files are read before a job begins, or the job"
    " finds it. Where all texts differ there are no dictionaries: then footers are read in vain."
)


def run(*, quick: bool) -> Section:
    files = QUICK_FILES if quick else FILES
    header = ("texts of a file", "dictionaries", "job", "dictionaries / job")
    section = Section("A text that is no number", _ABOUT.format(files=files), header)
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
    with _connect(spark, folder, "base") as lake:
        lake.sql("CREATE TABLE t (id BIGINT, v STRING, w STRING)")
        value = f"IF(id = {last}, 'no number', {text}) AS v"
        made = spark.range(0, last + 1, 1, files).selectExpr("id", value, "uuid() AS w")
        lake.table("t").append(made)
    looks = [_seconds(spark, folder, n, finds=True) for n in range(4)][1:]
    return Timing(tuple(looks)), Timing((_seconds(spark, folder, 9, finds=False),))


def _seconds(spark: SparkSession, folder: Path, number: int, *, finds: bool) -> float:
    """Return how long the plan takes that looks at dictionaries, or the job that does not."""
    shutil.copy(folder / "base.db", folder / f"{number}.db")
    change, judged = shelduck.change_type("v", "int"), alter_verbs.of_dictionaries
    with _connect(spark, folder, str(number)) as lake:
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
    raise AssertionError("the job has found no text that is no number")


def _connect(spark: SparkSession, folder: Path, name: str) -> shelduck.Lake:
    return shelduck.connect(
        f"sqlite:///{folder}/{name}.db", f"{folder}/data/", spark, progress=False
    )
