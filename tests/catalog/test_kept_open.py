"""A DuckDB file that stays open between statements, and who gets it when."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import shelduck
from shelduck import InvalidRequest
from tests.support.oracle import DuckDBOracle
from tests.support.time_limit import PATIENCE

LONG, SHORT = "?keep_open=600", "?keep_open=0.3"
OPEN_IN_DUCKDB = "import duckdb, sys; duckdb.connect(sys.argv[1]).close()"
ALTER = """
import sys, shelduck
with shelduck.connect(sys.argv[1]) as lake:
    lake.table("t").alter(shelduck.add_column(sys.argv[2], "int"))
"""
ALTER_WHEN_TOLD = """
import sys, shelduck
print("ready", flush=True)
sys.stdin.readline()
with shelduck.connect(sys.argv[1]) as lake:
    lake.table("t").alter(shelduck.add_column(sys.argv[2], "int"))
"""
ALTER_AND_WAIT = """
import sys, time, shelduck
lake = shelduck.connect(sys.argv[1])
lake.table("t").alter(shelduck.add_column(sys.argv[2], "int"))
print("held", flush=True)
time.sleep(60)
"""


def run(code, *words):
    return subprocess.run([sys.executable, "-c", code, *words], check=False, capture_output=True)


def path_of(url):
    return url.removeprefix("duckdb:///")


def is_free(url):
    """Whether DuckDB in another process can open the file now."""
    return run(OPEN_IN_DUCKDB, path_of(url)).returncode == 0


def columns(url):
    with DuckDBOracle(url) as oracle:
        return [name for name, _ in oracle.columns("t")]


def names_of(lake):
    return [field.name for field in lake.table("t").columns]


@pytest.fixture
def url(duckdb_url, data_path):
    with shelduck.connect(duckdb_url, data_path) as lake:
        lake.create_table("t", {"id": "bigint"})
    return duckdb_url


@pytest.fixture
def held(url):
    """Start another process that alters the table and then rests with the file."""
    started = []

    def start(setting):
        command = [sys.executable, "-c", ALTER_AND_WAIT, url + setting, "held"]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE))
        assert started[-1].stdout.readline() == b"held\n"
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_the_file_stays_open_until_the_lake_is_closed(url):
    with shelduck.connect(url + LONG) as lake:
        for name in "abc":
            lake.table("t").alter(shelduck.add_column(name, "int"))
            assert not is_free(url)
    assert is_free(url)
    assert columns(url) == ["id", "a", "b", "c"]


def test_without_the_setting_the_file_is_free_after_each_statement(url):
    with shelduck.connect(url) as lake:
        lake.table("t").alter(shelduck.add_column("a", "int"))
        assert is_free(url)


def test_another_process_that_waits_gets_the_file(url):
    with shelduck.connect(url + LONG) as lake:
        for number in range(3):
            lake.table("t").alter(shelduck.add_column(f"ours_{number}", "int"))
            done = run(ALTER, url, f"theirs_{number}")
            assert done.returncode == 0, done.stderr
        names = [name for n in range(3) for name in (f"ours_{n}", f"theirs_{n}")]
        assert names_of(lake) == ["id", *names]
    assert not Path(f"{path_of(url)}.wanted").exists()


def test_a_process_that_works_without_a_rest_lets_another_one_in(url):
    with shelduck.connect(url + LONG) as lake:
        command = [sys.executable, "-c", ALTER_WHEN_TOLD, url + LONG, "theirs"]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:
            # While it starts, all work would be for nothing.
            assert other.stdout.readline() == "ready\n"
            assert lake.table("t").columns
            other.stdin.write("\n")
            other.stdin.flush()
            deadline = time.monotonic() + PATIENCE
            while other.poll() is None and time.monotonic() < deadline:
                assert lake.table("t").columns
            assert other.wait(30) == 0
        assert names_of(lake) == ["id", "theirs"]


def test_a_file_that_rests_becomes_free_for_duckdb(url, held):
    held(SHORT)
    deadline = time.monotonic() + PATIENCE
    while not is_free(url) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert columns(url) == ["id", "held"]


def test_the_wish_of_a_dead_process_frees_nothing(url):
    Path(f"{path_of(url)}.wanted").touch()
    with shelduck.connect(url + LONG) as lake:
        lake.table("t").alter(shelduck.add_column("a", "int"))
        assert not is_free(url)


def test_a_wish_that_cannot_be_written_is_no_error(url, held):
    Path(f"{path_of(url)}.wanted").symlink_to("/nowhere/at/all")
    held(SHORT)
    with shelduck.connect(url) as lake:
        assert names_of(lake) == ["id", "held"]


def test_a_killed_holder_loses_no_commit(url, held):
    process = held(LONG)
    assert not is_free(url)
    assert Path(f"{path_of(url)}.wal").exists()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert columns(url) == ["id", "held"]


def test_a_fork_lets_the_file_go(url):
    with shelduck.connect(url + LONG) as lake:
        lake.table("t").alter(shelduck.add_column("a", "int"))
        child = os.fork()
        if not child:
            os._exit(0 if not Path(f"{path_of(url)}.wal").exists() else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert is_free(url)
        lake.table("t").alter(shelduck.add_column("b", "int"))
    assert columns(url) == ["id", "a", "b"]


def test_a_file_that_was_replaced_is_opened_again(url, tmp_path):
    path, backup = Path(path_of(url)), tmp_path / "backup"
    backup.write_bytes(path.read_bytes())
    with shelduck.connect(url + LONG) as lake:
        assert names_of(lake) == ["id"]
        backup.replace(path)
        lake.table("t").alter(shelduck.add_column("a", "int"))
    assert columns(url) == ["id", "a"]


@pytest.mark.parametrize("value", ["true", "0", "-1", "nan", "inf", "3601", "1&keep_open=2"])
def test_a_bad_number_of_seconds_is_refused(duckdb_url, data_path, value):
    with pytest.raises(InvalidRequest, match=r"keep_open .* is not a number of seconds; use a"):
        shelduck.connect(f"{duckdb_url}?keep_open={value}", data_path)
