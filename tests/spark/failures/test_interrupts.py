"""Ctrl-C ends what runs: Spark's jobs stop, and neither files nor registrations stay behind."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

import shelduck
from shelduck import change_type
from shelduck.catalog.running.job_rows import claim_job
from shelduck.files.compact import write_bins
from shelduck.write.parquet.write import Writing, write_files
from tests.support.time_limit import PATIENCE

STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', '0')",
    "CREATE TABLE t (id BIGINT, k BIGINT)",
    "INSERT INTO t SELECT id, id FROM range(100)",
]
# Many rows to read, and some of them to write, for hours.
ENDLESS = "SELECT id, id AS k FROM range(0, 1000000000000, 1, 2) WHERE id % 1000 = 0"


@contextmanager
def interrupted(spark):
    """Ctrl-C comes while tasks run."""

    def press():
        tracker = spark.sparkContext.statusTracker()
        deadline = time.monotonic() + PATIENCE
        while not tracker.getActiveJobsIds() and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        thread.join()


@pytest.mark.every_spark
def test_an_append_leaves_no_job_and_no_file(lake, spark):
    before = files_of(lake)
    with interrupted(spark):
        lake.table("t").append(spark.sql(ENDLESS))

    assert running(spark) == []
    assert files_of(lake) == before
    assert lake.snapshots()[-1].id == 2
    # A writer that is still registered would make the job wait.
    lake.table("t").alter(change_type("k", "string")).wait()
    assert lake.table("t").read().count() == 100


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        f"INSERT OVERWRITE t {ENDLESS}",
        f"MERGE INTO t USING ({ENDLESS}) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        f"CREATE TABLE other AS {ENDLESS}",
        f"DELETE FROM t WHERE id IN ({ENDLESS.replace(', id AS k', '')})",
    ],
)
def test_a_statement_leaves_no_job_and_no_file(lake, spark, statement):
    before = files_of(lake)
    with interrupted(spark):
        lake.sql(statement)

    assert running(spark) == []
    assert files_of(lake) == before
    assert lake.snapshots()[-1].id == 2


def test_a_compaction_stops_the_jobs_of_its_threads(lake, spark, monkeypatch):
    lake.table("t").append(spark.range(5).selectExpr("id", "id AS k"))
    before = files_of(lake)
    endless = spark.sql(ENDLESS)

    def slow(written, rows, group):
        # In a thread of its own, as the bins are written.
        return [
            write_files(written, endless, rows.table, Writing(arranges=False)).files for _ in group
        ]

    monkeypatch.setattr("shelduck.files.compact._write_arranged", slow)
    monkeypatch.setattr("shelduck.files.verb.write_bins", partial(write_bins, arranges=True))
    with interrupted(spark):
        lake.table("t").compact(min_files=2)

    assert running(spark) == []
    assert files_of(lake) == before
    assert lake.snapshots()[-1].id == 3


@pytest.mark.every_spark
def test_a_job_can_be_continued(lake, spark):
    with lake.transaction() as open_writer:
        open_writer.table("t").append(spark.range(5).selectExpr("id", "id AS k"))
        job = lake.table("t").alter(change_type("k", "string"))
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt) as told:
            job.wait()
    assert str(told.value) == (
        "job 1 is not finished; continue with lake.job(1).wait() or shelduck jobs run"
    )
    assert job.look().worker is None
    assert lake.job(1).wait().snapshot > 3
    assert dict(lake.table("t").read().dtypes)["k"] == "string"


def test_a_job_that_another_process_runs_goes_on(lake, spark):
    job = lake.table("t").alter(change_type("k", "string"))
    claim_job(lake._state.store, job.id, "another 1", None)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt, match=r"^job 1 goes on: another process runs it$"):
        job.wait()


def test_an_error_after_an_interrupt_is_that_error(lake, spark):
    def press():
        raise KeyboardInterrupt

    def handle():
        try:
            press()
        except KeyboardInterrupt:
            lake.table("t").delete("assert_true(id < 0) IS NULL")

    with pytest.raises(Exception, match="is not true"):
        handle()


@pytest.mark.slow
def test_the_command_line_ends_with_130(sqlite_url, data_path, tmp_path):
    with shelduck.connect(sqlite_url, data_path) as lake:
        lake.execute("CREATE TABLE t (id BIGINT, k BIGINT)")
        told, status = pressed(
            ["sql", f"INSERT INTO t {ENDLESS}", "-c", sqlite_url],
            lambda: any(Path(data_path).rglob("*.parquet")),
            tmp_path,
        )
        assert told.replace("^C", "").split() == ["interrupted"]
        assert status == 130
        assert files_of(lake) == []
        assert lake.snapshots()[-1].id == 1

        lake.execute("ALTER TABLE t ADD COLUMN d INT")
        assert [f.name for f in lake.table("t").columns] == ["id", "k", "d"]


def pressed(words, is_time, folder):
    """Run a command on a terminal, press Ctrl-C; return what it shows, and its exit status."""
    ours, its = pty.openpty()
    run = [sys.executable, "-m", "shelduck.cli", *words]
    alone = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    quiet = alone | {"TERM": "dumb"}
    with subprocess.Popen(
        run,
        cwd=folder,
        env=quiet,
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
        preexec_fn=take_terminal,  # noqa: PLW1509 - it makes one call of the kernel
    ) as process:
        os.close(its)
        deadline = time.monotonic() + PATIENCE
        while not is_time() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        os.write(ours, b"\x03")
        told = b""
        while True:
            try:
                told += os.read(ours, 4096)
            except OSError:
                break
        process.wait(60)
    os.close(ours)
    return told.decode(), process.returncode


def take_terminal():
    """Make stdin the terminal of this session, so that Ctrl-C is a signal."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def files_of(lake):
    """All files below the data path, with those of writes that have not ended."""
    return sorted(str(p) for p in Path(lake.data_path).rglob("*") if p.is_file())


def running(spark):
    """The Spark jobs that run; a busy Spark takes a while to tell that one has ended."""
    tracker = spark.sparkContext.statusTracker()
    deadline = time.monotonic() + PATIENCE
    while tracker.getActiveJobsIds() and time.monotonic() < deadline:
        time.sleep(0.1)
    return list(tracker.getActiveJobsIds())
