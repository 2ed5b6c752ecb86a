"""Eight processes append, update, delete, merge and compact at once: as if one after the other."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest

import shelduck
from shelduck.ducklake.format import FORMATS
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.lengths import long, one_by_one

WRITERS = 8
SECONDS = long(120, 45)
_START = 240

pytestmark = pytest.mark.slow


@pytest.fixture(params=one_by_one([*product(["sqlite_url", "postgres_url"], FORMATS)]))
def url(request, data_path):
    kind, version = request.param
    address = request.getfixturevalue(kind)
    with closing(shelduck.connect(address, data_path, ducklake_version=version)) as lake:
        lake.create_table("t", {"id": "bigint", "v": "bigint"})
    return address


def mixed(url, folder):
    """Runs the processes at once and returns what each of them says that it did."""
    go = folder / "go"
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.concurrency.mixer", url, go, str(w), str(SECONDS)],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for w in range(WRITERS)
    ]
    try:
        deadline = time.monotonic() + _START
        while len(list(folder.glob("ready-*"))) < WRITERS and time.monotonic() < deadline:
            ended = next((p for p in processes if p.poll() is not None), None)
            assert ended is None, ended.communicate()[0]
            time.sleep(0.2)
        go.touch()
        found = []
        for process in processes:
            output, _ = process.communicate(timeout=SECONDS + _START)
            assert process.returncode == 0, output
            found.append(json.loads(output.splitlines()[-1]))
        return found
    finally:
        for process in processes:
            process.kill()


def replayed(landed):
    """The rows after one operation after the other, in the order of their snapshots."""
    rows = {}
    for _, kind, arguments in sorted(landed, key=lambda entry: entry[0]):
        if kind == "append":
            rows |= dict.fromkeys(arguments, 0)
        elif kind == "update":
            rows |= {key: v + 1 for key, v in rows.items() if key % 5 == arguments}
        elif kind == "delete":
            del rows[arguments]
        elif kind == "merge":
            rows |= dict.fromkeys(arguments, 100)
    return sorted(rows.items())


def test_what_eight_processes_did_is_a_serial_story(url, spark, tmp_path):
    found = mixed(url, tmp_path)

    landed = [entry for process in found for entry in process["landed"]]
    numbers = [snapshot for snapshot, *_ in landed]
    assert len(set(numbers)) == len(numbers)
    # How often each lands is luck; that rows were changed in every way is not.
    assert {kind for _, kind, _ in landed} >= {"append", "update", "delete", "merge"}
    expected = replayed(landed)
    with closing(shelduck.connect(url, spark=spark)) as lake:
        assert [s.id for s in lake.snapshots()][2:] == sorted(numbers)
        assert sorted(map(tuple, lake.table("t").read().collect())) == expected
    with oracle_at(url) as oracle:
        assert oracle.rows("t") == expected
        assert oracle.sql("SELECT count(*), count(DISTINCT rowid) FROM t") == [
            (len(expected), len(expected))
        ]
