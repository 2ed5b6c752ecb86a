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
