"""Eight processes append, update, delete, merge and compact at once: as if one after the other."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest

import shelduck
from shelduck.ducklake.format import FORMATS
from tests.concurrency.storm_log import landed_so_far
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.lengths import long, one_by_one

WRITERS = 8
SECONDS = long(120, 45)
# Each of these must have landed: how often is luck, and that rows were changed in every way is not.
KINDS = ("append", "update", "delete", "merge")
# On a slow machine a process does one thing in a minute.
_START, _LONGEST, _END = 200, 220, 120

pytestmark = pytest.mark.slow


@pytest.fixture(params=one_by_one([*product(["sqlite_url", "postgres_url"], FORMATS)]))
def url(request, data_path):
    kind, version = request.param
    address = request.getfixturevalue(kind)
    with closing(shelduck.connect(address, data_path, ducklake_version=version)) as lake:
        lake.create_table("t", {"id": "bigint", "v": "bigint"})
    return address


def mixed(url, folder):
    """Runs the processes at once until each kind has landed; what each of them says that it did."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.concurrency.mixer", url, folder, str(w)],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for w in range(WRITERS)
    ]
    try:
        wait(processes, _START, lambda: len(list(folder.glob("ready-*"))) == WRITERS)
        (folder / "go").touch()
        wait(processes, SECONDS, lambda: False)
        wait(processes, _LONGEST - SECONDS, lambda: {*KINDS} <= {*landed_so_far(folder)})
        (folder / "stop").touch()
        found = []
        for process in processes:
            output, _ = process.communicate(timeout=_END)
            assert process.returncode == 0, output
            found.append(json.loads(output.splitlines()[-1]))
        return found
    finally:
        for process in processes:
            process.kill()


def wait(processes, seconds, is_so):
    """Wait until something is so, or for so long; no process ends meanwhile."""
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        ended = next((p for p in processes if p.poll() is not None), None)
        assert ended is None, ended.communicate()[0]
        time.sleep(0.2)


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
    counts = Counter(kind for _, kind, _ in landed)
    conflicts = sum((Counter(process["conflicts"]) for process in found), Counter())
    sys.stdout.write(f"\nlanded: {dict(counts)}, conflicts: {dict(conflicts)}\n")
    assert {*counts} >= {*KINDS}
    expected = replayed(landed)
    with closing(shelduck.connect(url, spark=spark)) as lake:
        assert [s.id for s in lake.snapshots()][2:] == sorted(numbers)
        assert sorted(map(tuple, lake.table("t").read().collect())) == expected
    with oracle_at(url) as oracle:
        assert oracle.rows("t") == expected
        assert oracle.sql("SELECT count(*), count(DISTINCT rowid) FROM t") == [
            (len(expected), len(expected))
        ]
