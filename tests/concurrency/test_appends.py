"""Several Spark processes append to one lake at once, and DuckDB among them: nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import closing
from itertools import product
from pathlib import Path

import duckdb
import pytest
import sqlalchemy
from ducklakepy.exceptions import DuckLakeError

import shelduck
from shelduck.ducklake.format import FORMATS
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.lengths import one_by_one

WRITERS = 4
BATCHES = 25
_SECONDS = 280

pytestmark = pytest.mark.slow


@pytest.fixture(params=one_by_one([*product(["postgres_url", "sqlite_url"], FORMATS)]))
def url(request, data_path):
    """A lake with an empty table main.t, in a catalog that several processes can use."""
    kind, version = request.param
    address = request.getfixturevalue(kind)
    with closing(shelduck.connect(address, data_path, ducklake_version=version)) as lake:
        lake.create_table("t", {"id": "bigint", "who": "string"})
    return address


def start_appenders(url, folder, writers=WRITERS):
    """Start the processes and let them all begin at once when each has its Spark session."""
    go = folder / "go"
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.concurrency.appender", url, go, str(w), str(BATCHES)],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for w in range(writers)
    ]
    deadline = time.monotonic() + _SECONDS
    while len(list(folder.glob("ready-*"))) < writers and time.monotonic() < deadline:
        assert all(p.poll() is None for p in processes)
        time.sleep(0.2)
    go.touch()
    return processes


def snapshots_of(processes):
    found = []
    for process in processes:
        output, _ = process.communicate(timeout=_SECONDS)
        assert process.returncode == 0, output
        found += json.loads(output.splitlines()[-1])
    return found


def expected_rows():
    return sorted(
        (w * 1_000_000 + n, f"writer {w}") for w in range(WRITERS) for n in range(2 * BATCHES)
    )


def test_four_processes_append_twenty_five_times_each(url, tmp_path):
    snapshots = snapshots_of(start_appenders(url, tmp_path))

    # Snapshot 0 is the lake's, 1 made the table.
    assert sorted(snapshots) == list(range(2, 2 + WRITERS * BATCHES))
    with oracle_at(url) as oracle:
        assert oracle.rows("t") == expected_rows()
        assert oracle.sql("SELECT count(*), min(id), max(id) FROM t") == [(200, 0, 3_000_049)]
        assert oracle.sql("SELECT count(DISTINCT rowid) FROM t") == [(200,)]


def test_two_processes_number_their_rows_without_a_conflict(url, tmp_path):
    with closing(shelduck.connect(url)) as lake:
        lake.execute("DROP TABLE t")
        lake.execute(
            "CREATE TABLE t (id BIGINT, who STRING, number BIGINT GENERATED ALWAYS AS IDENTITY)"
        )
    snapshots = snapshots_of(start_appenders(url, tmp_path, writers=2))

    assert sorted(snapshots) == list(range(4, 4 + 2 * BATCHES))
    with oracle_at(url) as oracle:
        [(count, different, least, most)] = oracle.sql(
            "SELECT count(*), count(DISTINCT number), min(number), max(number) FROM t"
        )
    assert (count, different, least) == (4 * BATCHES, 4 * BATCHES, 1)
    # An append that is staged again keeps its rows, so no number is left out.
    assert most == 4 * BATCHES


def test_duckdb_inserts_among_them(url, tmp_path):
    processes = start_appenders(url, tmp_path)
    inserted = []
    with oracle_at(url) as oracle:
        while any(p.poll() is None for p in processes):
            value = -1 - len(inserted)
            try:
                oracle.execute(f"INSERT INTO t VALUES ({value}, 'duckdb')")
            except (duckdb.Error, DuckLakeError, sqlalchemy.exc.OperationalError):
                # On SQLite the extension gives a locked database up at once, and changes nothing.
                time.sleep(0.05)
                continue
            inserted.append((value, "duckdb"))
            time.sleep(0.1)
    snapshots = snapshots_of(processes)

    assert len(set(snapshots)) == WRITERS * BATCHES
    assert inserted
    with oracle_at(url) as oracle:
        assert oracle.rows("t") == sorted(inserted + expected_rows())
        assert oracle.sql("SELECT count(*) FROM t") == [(len(inserted) + 200,)]
        assert oracle.snapshot() == 1 + WRITERS * BATCHES + len(inserted)
