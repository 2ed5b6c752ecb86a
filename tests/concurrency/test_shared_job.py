"""Several processes convert one table, and one of them is killed: its share is all that is lost."""

from __future__ import annotations

import signal
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

import shelduck
from shelduck import JobState, change_type
from shelduck.ducklake.format import FORMATS
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.lengths import one_by_one

pytestmark = pytest.mark.slow

FILES, ROWS = 24, 240


def sharer(url, data, most):
    """A process that is ready to work on jobs; it dies when it has committed so many lots."""
    found = subprocess.Popen(
        [sys.executable, "-m", "tests.concurrency.job_sharer", url, data, str(most)],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    while (line := found.stdout.readline()) != "ready\n":
        assert line, "it has ended"
    return found


def begin(process):
    process.stdin.write("\n")
    process.stdin.flush()


def landed(text):
    """The files of all lots that a process committed."""
    return [int(n) for line in text.splitlines() if "landed" in line for n in line.split()[1:]]


@pytest.mark.parametrize("version", one_by_one([*FORMATS]))
def test_a_killed_process_costs_its_share_only(spark, sqlite_url, data_path, version):
    with shelduck.connect(sqlite_url, data_path, spark, ducklake_version=version) as lake:
        lake.sql("CREATE TABLE t (id INT, v STRING)")
        lake.set_option("data_inlining_row_limit", 0)
        made = spark.range(0, ROWS, 1, FILES)
        lake.table("t").append(made.selectExpr("CAST(id AS INT) AS id", "CAST(id AS STRING) AS v"))
        job = lake.table("t").alter(change_type("v", "int"))

        sharers = [sharer(sqlite_url, data_path, most) for most in (0, 0, 1)]
        for each in sharers:
            begin(each)
        told = [each.communicate(timeout=300)[0] for each in sharers]

        assert [each.returncode for each in sharers] == [0, 0, -signal.SIGKILL]
        assert job.state is JobState.FINISHED
        # Each has converted files, and no file was converted twice.
        files = [landed(text) for text in told]
        assert all(files)
        assert len(list(chain(*files))) == len(set(chain(*files))) == FILES

    with oracle_at(sqlite_url) as duckdb:
        assert duckdb.sql("SELECT * FROM lake.t ORDER BY id") == [(n, n) for n in range(ROWS)]


def test_keys_become_equal_while_others_convert_and_load(spark, sqlite_url, data_path):
    """Two processes convert, one of them is killed, and this one loads what is newest."""
    with shelduck.connect(sqlite_url, data_path, spark, progress=False) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        lake.sql("CREATE TABLE t (k STRING, v INT) UNIQUE KEY (k)")
        texts = ("CAST(id AS STRING)", "concat('0', id)")
        for at, text in enumerate(texts):
            made = spark.range(0, ROWS, 1, FILES)
            lake.table("t").append(made.selectExpr(f"{text} AS k", f"CAST({at} AS INT) AS v"))
        job = lake.table("t").alter(change_type("k", "int", on_duplicate_keys="keep newest"))

        sharers = [sharer(sqlite_url, data_path, most) for most in (0, 1)]
        for each in sharers:
            begin(each)
        loads = 0
        while (any(each.poll() is None for each in sharers) and loads < 6) or loads < 2:
            number = loads
            # The type of the key changes in between.
            lake.sql(f"INSERT INTO t SELECT CAST('00{number}' AS STRING), {number + 10}")
            loads += 1
            if job.look().published is not None:
                break
        for each in sharers:
            each.communicate(timeout=300)
        lake.run_jobs()
        assert job.state is JobState.FINISHED
        assert lake.check(rows=True).problems == ()
    expected = dict.fromkeys(range(ROWS), 1) | {n: n + 10 for n in range(loads)}
    with oracle_at(sqlite_url) as oracle:
        assert sorted(oracle.sql("SELECT k, v FROM t")) == sorted(expected.items())
