"""Three processes load rows of the same keys while their table changes: each load is there once."""

from __future__ import annotations

import os
import sys
import time
from itertools import product

import pytest

import shelduck
from shelduck import JobState
from shelduck.ducklake.format import FORMATS
from tests.concurrency.storm_log import LANDED, UNKNOWN
from tests.concurrency.storm_ship import Ship, check_loads, landed, report
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.lengths import one_by_one

LOADERS = ("loader-0", "loader-1", "loader-2")
STATEMENTS = [
    f"CREATE TABLE {name} (k BIGINT, g BIGINT, n BIGINT{how}) {model} KEY (k, g) ROLLUP (r ({r}))"
    for name, how, model, r in (
        ("keyed", " SUM", "AGGREGATE", "g, n"),
        ("last", "", "UNIQUE", "g, k, n"),
    )
]
LATER = " PROPERTIES ('wait' = 'false')"
_LONGEST_WAIT = 30.0
# For each of both tables, one after the other; {how} is its aggregation.
CHANGES = [
    "ADD COLUMN j{n} INT KEY DEFAULT {n}",
    "ADD COLUMN x{n} INT {replace} DEFAULT 0",
    f"MODIFY COLUMN n DECIMAL(20, 0) {{how}}{LATER}",
    "RENAME COLUMN x{n} TO y{n}",
    f"MODIFY COLUMN n BIGINT {{how}}{LATER}",
    "DROP COLUMN y{n}",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "version"), one_by_one([*product(["postgres_url", "sqlite_url"], FORMATS)])
)
def test_loads_of_the_same_keys_are_there_once(kind, version, request, tmp_path, spark):
    """SHELDUCK_TEST_STORM sets how long they load, in seconds."""
    url, seconds = request.getfixturevalue(kind), float(os.environ.get("SHELDUCK_TEST_STORM", "60"))
    with shelduck.connect(
        url, f"{tmp_path}/data/", spark, progress=False, ducklake_version=version
    ) as lake:
        for statement in STATEMENTS:
            lake.sql(statement)
        with Ship(url, tmp_path / "ship", LOADERS) as ship:
            ship.cast_off()
            changes = altered_until(lake, time.monotonic() + seconds, ship)
            ship.await_landed(("load", "replace"), 2)
            ship.come_in()
        lake.run_jobs()
        states = {job.state for job in lake.jobs()}
        assert lake.check().is_sound
    stories = ship.stories()
    sys.stdout.write(f"\n{report(ship, stories)}\n{changes} changes\n")

    assert states == {JobState.FINISHED}
    assert changes >= len(CHANGES)
    assert min(landed(stories)[verb] for verb in ("load", "replace")) >= 2
    assert [told for story in stories for told in story.failures] == []
    # Ten attempts may all lose to other loads, but none to a change of the columns.
    assert [t for s in stories for t in s.conflicts if "another" not in t] == []
    with oracle_at(url) as duckdb:
        check_loads(duckdb, stories)
        check_last(duckdb, stories)


def altered_until(lake, end, ship):
    """Change both tables, light and heavy, and kill one loader; how many changes there were."""
    count = 0
    while time.monotonic() < end or count < len(CHANGES):
        turn = CHANGES[count % len(CHANGES)]
        number = count // len(CHANGES)
        for table, how, replace in (("keyed", "SUM", "REPLACE"), ("last", "", "")):
            change = turn.format(n=number, how=how, replace=replace)
            lake.sql(f"ALTER TABLE {table} {change}")
        lake.run_jobs()
        count += 1
        if count == 2:
            ship.kill(LOADERS[0])
        wait_for_loads(ship)
    return count


def wait_for_loads(ship):
    """Two more loads land between two changes, or the machine is too slow for that."""
    wanted, end = sum(landed(ship.stories()).values()) + 2, time.monotonic() + _LONGEST_WAIT
    while sum(landed(ship.stories()).values()) < wanted and time.monotonic() < end:
        time.sleep(0.2)


def check_last(duckdb, stories):
    """Each key has one row, of a load that has landed, and the rollup has the same rows."""
    [(rows, keys)] = duckdb.sql("SELECT count(*), count(DISTINCT k) FROM last")
    assert rows == keys
    held = dict(duckdb.sql("SELECT k, CAST(n AS BIGINT) FROM last"))
    brought = {}
    for story in stories:
        for marker, among, what in story.replaced:
            is_there = held.pop(marker, None)
            assert is_there in {LANDED: (marker,), UNKNOWN: (marker, None)}.get(what, (None,))
            if is_there:
                brought[marker] = {*among}
    assert all(key in brought[marker] for key, marker in held.items())
    assert {*held} == {key for among in brought.values() for key in among}
    one = "SELECT g, k, CAST(n AS BIGINT) FROM {} ORDER BY ALL"
    assert duckdb.sql(one.format("last")) == duckdb.sql(one.format('"last$r"'))
