"""A streaming query killed again and again brings every row into the table once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

import shelduck
from shelduck.ducklake.format import FORMATS
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.lengths import one_by_one

FILES = 80
ROWS = 25
KILLS = 5
_SECONDS = 120

pytestmark = pytest.mark.slow


def start(url, folder, mode):
    with (folder / "log").open("a") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.concurrency.streamer", url, folder, mode],
            cwd=Path(__file__).parents[2],
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def kill(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def newest(url):
    with closing(shelduck.connect(url)) as lake:
        return lake.snapshots()[-1].id


def wait_for(condition, process):
    deadline = time.monotonic() + _SECONDS
    while not condition():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("version", one_by_one([*FORMATS]))
def test_a_query_killed_five_times_loses_and_doubles_nothing(
    sqlite_url, data_path, tmp_path, version
):
    made = shelduck.connect(sqlite_url, data_path, ducklake_version=version)
    with closing(made) as lake:
        lake.create_table("t", {"id": "bigint", "file": "int"})
    (tmp_path / "source").mkdir()
    for number in range(FILES):
        rows = [json.dumps({"id": number * ROWS + n, "file": number}) for n in range(ROWS)]
        (tmp_path / "source" / f"{number}.json").write_text("\n".join(rows))
    dice = random.Random(7)

    landed = []
    for _ in range(KILLS):
        process = start(sqlite_url, tmp_path, "endless")
        try:
            before = newest(sqlite_url)
            # At least two batches of its own, then at any moment of a third.
            wait_for(lambda now=before: newest(sqlite_url) >= now + 2, process)
            time.sleep(dice.random())
        finally:
            kill(process)
        landed.append(newest(sqlite_url))
    process = start(sqlite_url, tmp_path, "last")
    try:
        assert process.wait(_SECONDS * 4) == 0, (tmp_path / "log").read_text()[-4000:]
    finally:
        if process.poll() is None:
            kill(process)

    assert landed == sorted(set(landed))
    with oracle_at(sqlite_url) as oracle:
        assert oracle.sql("SELECT count(*), count(DISTINCT id), min(id), max(id) FROM t") == [
            (FILES * ROWS, FILES * ROWS, 0, FILES * ROWS - 1)
        ]
        # A kill between Spark's notes of files and of batches puts two files into one batch.
        assert FILES - KILLS < oracle.snapshot() <= 1 + FILES
