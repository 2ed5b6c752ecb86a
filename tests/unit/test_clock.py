"""The time that decides: another clock counts in its own context only."""

from __future__ import annotations

import contextvars
import re
from datetime import UTC, datetime
from pathlib import Path

from shelduck import clock

_MOON = datetime(1969, 7, 20, 20, 17, tzinfo=UTC)


class _Stopped:
    def __init__(self):
        self.slept = []

    def now(self):
        return _MOON

    def monotonic(self):
        return 7.0

    def sleep(self, seconds):
        self.slept.append(seconds)


def test_another_clock_counts_inside_its_block():
    other = _Stopped()

    with clock.using(other):
        clock.sleep(3600)
        assert (clock.now(), clock.monotonic()) == (_MOON, 7.0)

    assert other.slept == [3600]
    assert clock.now() > _MOON


def test_another_context_keeps_its_clock():
    beside = contextvars.copy_context()

    with clock.using(_Stopped()):
        assert beside.run(clock.now) > _MOON


def test_the_clock_of_the_machine_waits():
    before = clock.monotonic()

    clock.sleep(0.01)

    assert clock.monotonic() - before >= 0.009


def test_leases_jobs_commits_and_cleanup_ask_no_other_clock():
    source = Path(clock.__file__).parent
    # Two wait for a file of the operating system, one shows how long something took.
    others = {"duckdb.py", "duckdb_lease.py", "progress.py"}
    places = [
        source / name for name in ("catalog", "jobs", "leases", "work", "operations", "verbs")
    ]
    modules = [path for place in places for path in place.rglob("*.py") if path.name not in others]

    asking = [
        p.name
        for p in modules
        if re.search(r"datetime\.now|\btime\.(?:monotonic|sleep|time)\w*\(", p.read_text())
    ]

    assert asking == []
