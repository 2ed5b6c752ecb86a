"""Many clients work at once and some get killed: every acknowledged row is there once."""

from __future__ import annotations

import os
import sys
from itertools import product

import pytest

import shelduck
from shelduck.ducklake.format import FORMATS
from tests.concurrency.storm_ship import ROLES, STATEMENTS, Ship, check, landed, report
from tests.support.lengths import one_by_one
from tests.support.postgres import running_postgres
from tests.support.storm import storm

# Each of these must have landed as often as the test says.
VERBS = (
    *("append", "update", "delete", "merge", "load", "transfer", "read", "compact", "flush"),
    *("job", "insert", "alter", "submit", "expire", "clean up", "check"),
    *("duckdb insert", "duckdb transfer", "duckdb read"),
)


@pytest.mark.slow
def test_appends_land_however_often_the_table_is_altered(postgres_url, data_path, spark):
    found = storm("shelduck", postgres_url, data_path, spark=spark, writers=3, seconds=8, alters=30)

    assert found.failed == []
    assert found.altered > 10
    assert len(found.landed) == 3


@pytest.mark.parametrize(
    ("seconds", "least"),
    [pytest.param(90, 1, marks=pytest.mark.slow), pytest.param(600, 10, marks=pytest.mark.soak)],
)
@pytest.mark.parametrize(
    ("kind", "version"), one_by_one([*product(["sqlite", "postgres"], FORMATS)])
)
def test_a_storm_of_processes_loses_nothing(kind, version, seconds, least, tmp_path):
    """Processes are killed and stopped, PostgreSQL too. SHELDUCK_TEST_STORM sets another length."""
    length = float(os.environ.get("SHELDUCK_TEST_STORM", seconds)), least
    if kind == "sqlite":
        _rage(f"sqlite:///{tmp_path}/catalog.db", version, tmp_path, (), length)
        return
    with running_postgres() as server:
        crashes = (server.restart, lambda: server.restart("immediate"))
        _rage(server.create_database(), version, tmp_path, crashes, length)


def _rage(url, version, folder, events, length):
    seconds, least = length
    # DuckDB 1.5.5 knows 1.0 alone.
    roles = [role for role in ROLES if version == "1.0" or role != "duckdb"]
    with shelduck.connect(url, f"{folder}/data/", progress=False, ducklake_version=version) as lake:
        for statement in STATEMENTS:
            lake.execute(statement)
    due = [verb for verb in VERBS if version == "1.0" or "duckdb" not in verb]
    with Ship(url, folder / "ship", roles) as ship:
        ship.sail(seconds, 8.0, events, due, least)
    stories = ship.stories()
    sys.stdout.write(f"\n{report(ship, stories)}\n")
    check(url, stories)
    counts = landed(stories)
    assert {verb: counts[verb] for verb in due if counts[verb] < least} == {}
