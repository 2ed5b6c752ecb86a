"""Heavy schema changes as jobs, beside Spark casting the same bytes and beside no job at all."""

from __future__ import annotations

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

import shelduck
from benchmarks.catalogs import counting_statements
from benchmarks.harness import Section, Target, Timing, at_least, interleaved, ratio, scratch, timed
from benchmarks.session import run_to_the_end, session
from shelduck.catalog.databases.store import open_store
from shelduck.catalog.running.job_rows import move_job
from shelduck.model.changes.job import OPEN_STATES, JobState, JobStep

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from shelduck import Lake, SchemaChangeJob

ROWS, QUICK_ROWS, FILES = 10_000_000, 200_000, 32
APPENDED, QUICK_APPENDED, APPENDED_FILES = 1_000_000, 20_000, 2
# Both are one lot on a machine of two cores or more.
FEW, MANY = 2, 8
_ABOUT = (
    "{rows:,} rows in {files} files ({size:,.0f} MB); one job changes v from text to INT, d"
    " from double to DECIMAL(18,2) and day from text to DATE. Bare Spark reads the same files,"
    " casts, and writes as many files, with the old columns and a row id as the job does, unless"
    " it says new columns only. Both end synced to disk. MB/s are those that are read. Then an"
    " append of {appended:,} rows in {two} files and a scan (all columns, aggregated), while a"
    " job is RUNNING and rests, or converts on the same cores. Speed is the second's median over"
    " the first's: above 1 the first is faster."
)
COLUMNS = {"id": "bigint", "v": "string", "d": "double", "day": "string", "note": "string"}
CASTS = {"v": "int", "d": "decimal(18,2)", "day": "date"}


def run(*, quick: bool) -> Section:
    header = ("first, beside second", "first", "second", "speed")
    section = Section("Schema change jobs", "", header)
    appended = QUICK_APPENDED if quick else APPENDED
    with scratch("jobs") as folder, session(folder) as spark:
        base = _Base(spark, folder, QUICK_ROWS if quick else ROWS)
        section.about = _ABOUT.format(
            rows=base.rows,
            files=FILES,
            size=base.bytes / 1e6,
            appended=appended,
            two=APPENDED_FILES,
        )
        # What the JVM has learned of one kind of job slows the next: the usual one comes first.
        speeds = {
            name: _conversion(section, base, name, target, runs=2 if quick else 3)
            for name, target in {"by default": None, "file for file": 1}.items()
        }
        _beside_a_job(section, base, appended, runs=3 if quick else 5)
        few, many = (_statements(base, files) for files in (FEW, MANY))
    name = f"catalog statements of a job on {MANY} files, beside {FEW}"
    section.rows.append((name, str(many.total()), str(few.total()), ""))
    wanted = f"as many catalog statements of a job on {MANY} files as on {FEW}"
    kinds = ", ".join(f"{kind} {many[kind]}:{few[kind]}" for kind in sorted(many | few))
    section.targets = [
        at_least(
            0.9,
            {"by default": speeds["by default"]},
            "speed of a job against bare Spark writing the same bytes",
        ),
        Target(wanted, f"{many.total()}:{few.total()} ({kinds})", many.total() == few.total()),
    ]
    return section


def generated(spark: SparkSession, rows: int, files: int) -> DataFrame:
    """Rows of `COLUMNS`, whose values all survive."""
    some = f.xxhash64("id")
    day = f.date_add(f.lit("2000-01-01").cast("date"), f.pmod("id", f.lit(9000)).cast("int"))
    return spark.range(0, rows, 1, files).select(
        "id",
        f.pmod(some, f.lit(2_000_000_000)).cast("string").alias("v"),
        (f.pmod(some, f.lit(10_000_000)) / 100).alias("d"),
        day.cast("string").alias("day"),
        f.concat(f.lit("note-"), f.pmod(some, f.lit(20_000_000)).cast("string")).alias("note"),
    )


class _Base:
    """A table that measurements begin with: each gets a copy of its catalog over the same files.

    A job deletes none of them, and those that it writes lie in directories of their own.
    """

    def __init__(self, spark: SparkSession, folder: Path, rows: int) -> None:
        self.spark = spark
        self.folder = folder
        self.rows = rows
        self.numbers = count()
        self._catalog = self.made("base", rows, FILES)
        with self.connect(self._catalog) as lake:
            self.files = lake.table("t").read().inputFiles()
        sizes = [path.stat().st_size for path in self.parquet()]
        self.bytes = sum(sizes)
        # Of this session bare Spark reads each file in a task of its own.
        self.bare = spark.newSession()
        self.bare.conf.set("spark.sql.files.maxPartitionBytes", max(sizes))

    def made(self, name: str, rows: int, files: int) -> Path:
        """The catalog of a lake with a new table."""
        catalog = self.folder / f"{name}.db"
        url, data = f"sqlite:///{catalog}", f"{self.folder}/{name}/"
        with shelduck.connect(url, data, self.spark, progress=False) as lake:
            lake.create_table("t", COLUMNS).append(generated(self.spark, rows, files))
        return catalog

    def copy(self, target_file_size: int | None) -> Path:
        catalog = self.folder / f"copy-{next(self.numbers)}.db"
        shutil.copy(self._catalog, catalog)
        if target_file_size is not None:
            with self.connect(catalog) as lake:
                lake.set_option("target_file_size", target_file_size, table="t")
        return catalog

    def connect(self, catalog: Path) -> Lake:
        return shelduck.connect(f"sqlite:///{catalog}", spark=self.spark, progress=False)

    def parquet(self) -> set[Path]:
        """All files there are, of the lake and of bare Spark."""
        return set(self.folder.rglob("*.parquet"))


def _submitted(lake: Lake) -> SchemaChangeJob:
    job = lake.table("t").alter(*(shelduck.change_type(name, to) for name, to in CASTS.items()))
    assert isinstance(job, shelduck.SchemaChangeJob)
    return job


def _convert(lake: Lake) -> None:
    _submitted(lake).wait()


def _conversion(
    section: Section, base: _Base, name: str, target_file_size: int | None, *, runs: int
) -> float:
    """Measure the job beside bare Spark; return its speed against what writes the same columns."""
    files = _files_after_job(base, target_file_size)
    taken: dict[str, list[float]] = {"job": [], "bare": [], "new only": []}
    written: dict[str, float] = {}
    for number in range(1 + runs):
        with base.connect(base.copy(target_file_size)) as lake:
            subjects: dict[str, Callable[[], object]] = {
                "job": partial(_convert, lake),
                "bare": partial(_cast, base, files, keeps=True),
                "new only": partial(_cast, base, files, keeps=False),
            }
            for who in list(taken) if number % 2 == 0 else reversed(taken):
                seconds, written[who] = _synced(base, subjects[who])
                if number:
                    taken[who].append(seconds)
    timings = {who: Timing(tuple(seconds)) for who, seconds in taken.items()}
    cells = {who: _cell(base, timings[who], written[who]) for who in taken}
    for who, told in (("bare", "bare Spark"), ("new only", "bare Spark, new columns only")):
        what = f"{FILES} files to {files}, {name}: job, beside {told}"
        speed = f"{ratio(timings[who], timings['job']):.3f}"
        rows = section.rows if target_file_size is None else section.aside
        rows.append((what, cells["job"], cells[who], speed))
    return ratio(timings["bare"], timings["job"])


def _cell(base: _Base, timing: Timing, written: float) -> str:
    return f"{timing}, {base.bytes / 1e6 / timing.median:,.1f} MB/s, {written:,.0f} MB written"


def _files_after_job(base: _Base, target_file_size: int | None) -> int:
    """The files that a job leaves; raises where its values are not those of bare Spark."""
    with base.connect(base.copy(target_file_size)) as lake:
        _convert(lake)
        ours = lake.table("t").read()
        theirs = base.bare.read.parquet(*base.files)
        cast = theirs.withColumns({name: f.col(name).cast(to) for name, to in CASTS.items()})
        if run_to_the_end(_values(ours)) != run_to_the_end(_values(cast)):
            raise AssertionError("a job and bare Spark make different values")
        return len(ours.inputFiles())


def _cast(base: _Base, files: int, *, keeps: bool) -> None:
    """What somebody without a lake would run, with as many files as the job makes."""
    prefix = "new_" if keeps else ""
    casts = {f"{prefix}{name}": f.col(name).cast(to) for name, to in CASTS.items()}
    if keeps:
        casts["row_id"] = f.monotonically_increasing_id()
    rows = base.bare.read.parquet(*base.files).withColumns(casts).coalesce(files)
    rows.write.option("compression", "snappy").parquet(f"{base.folder}/bare-{next(base.numbers)}")


def _synced(base: _Base, subject: Callable[[], object]) -> tuple[float, float]:
    """The seconds until all that a subject writes is on disk, and its MB; the files are removed."""
    before = base.parquet()

    def until_synced() -> None:
        subject()
        for path in base.parquet() - before:
            with path.open("rb") as file:
                os.fsync(file.fileno())

    seconds = timed(until_synced)
    new = base.parquet() - before
    size = sum(path.stat().st_size for path in new) / 1e6
    for path in new:
        path.unlink()
    return seconds, size


def _beside_a_job(section: Section, base: _Base, appended: int, *, runs: int) -> None:
    """Append and scan beside a job that rests, and beside one that converts."""
    rows = generated(base.spark, appended, APPENDED_FILES)
    acts: dict[str, Callable[[Lake], object]] = {
        f"append of {appended:,} rows": lambda lake: lake.table("t").append(rows),
        "scan": lambda lake: run_to_the_end(_totals(lake.table("t").read())),
    }
    without: dict[str, Timing] = {}
    with base.connect(catalog := base.copy(None)) as busy, base.connect(base.copy(None)) as idle:
        job, store = _submitted(busy), open_store(f"sqlite:///{catalog}")
        move_job(store, JobStep(job.id, OPEN_STATES, JobState.RUNNING))
        store.close()
        for what, act in acts.items():
            subjects = {"open": partial(act, busy), "none": partial(act, idle)}
            timings = interleaved(subjects, runs=runs)
            without[what] = timings["none"]
            told = f"{what}, a job rests, beside no job"
            _compare(section, told, timings["open"], without[what])
        if job.state is not JobState.RUNNING or job.progress[0]:
            raise AssertionError(f"somebody went on with {job}")
    for what, seconds in _while_converting(base, acts, runs).items():
        told = f"{what}, a job converts on the same cores, beside no job"
        _compare(section, told, Timing(tuple(seconds)) if seconds else None, without[what])


def _while_converting(
    base: _Base, acts: dict[str, Callable[[Lake], object]], runs: int
) -> dict[str, list[float]]:
    """The seconds of what ended before the job did; file for file, so that cores come free."""
    taken: dict[str, list[float]] = {what: [] for what in acts}
    catalog = base.copy(1)
    with base.connect(catalog) as lake, base.connect(catalog) as by, ThreadPoolExecutor(1) as pool:
        job = _submitted(by)
        done = pool.submit(job.wait)
        while job.state is not JobState.RUNNING and not done.done():
            time.sleep(0.05)
        for what in list(acts) * runs:
            try:
                seconds = timed(partial(acts[what], lake))
            except shelduck.ShelduckError:
                # Rows of the old types, when the new ones are there.
                if job.state is not JobState.FINISHED:
                    raise
            if job.state is not JobState.RUNNING:
                break
            taken[what].append(seconds)
        done.result()
    return taken


def _compare(section: Section, what: str, first: Timing | None, second: Timing) -> None:
    seen, speed = (str(first), f"{ratio(second, first):.3f}") if first else ("it ended first", "")
    section.rows.append((what, seen, str(second), speed))


def _statements(base: _Base, files: int) -> Counter[str]:
    """What a job asks the catalog when all files are converted in one lot, by kind of statement."""
    with base.connect(base.made(f"small-{files}", files * 20, files)) as lake:
        lake.set_option("target_file_size", 1, table="t")
        job = _submitted(lake)
        with counting_statements() as seen:
            job.wait()
        converted = len(lake.table("t").read().inputFiles())
    if converted != files:
        raise AssertionError(f"{files} files became {converted}")
    return seen


def _values(rows: DataFrame) -> DataFrame:
    sums = (f.sum(name) for name in ("id", "v", "d"))
    return rows.agg(f.count("*"), *sums, f.sum(f.unix_date("day")), f.max("day"))


def _totals(rows: DataFrame) -> DataFrame:
    lengths = (f.sum(f.length(name)) for name in ("v", "day", "note"))
    return rows.agg(f.count("*"), f.sum("id"), f.sum("d"), *lengths)
