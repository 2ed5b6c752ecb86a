"""Two stories of the guide on branches: a nightly load, and a type change that is tried first."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest

import shelduck
from shelduck import Conflict
from tests.support.oracle import DuckDBOracle

WRITTEN = 6


@pytest.fixture
def lake(spark, tmp_path):
    with shelduck.connect(f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data", spark) as found:
        found.set_option("data_inlining_row_limit", 0)
        found.sql("CREATE TABLE readings (id BIGINT, weight STRING)")
        found.sql("INSERT INTO readings SELECT id, string(id / 10) FROM range(1000)")
        yield found


def test_a_nightly_load_is_audited_before_anybody_sees_it(lake):
    before = lake.table("readings").files().count()
    for night, weight in enumerate(["'heavy'", "'7.5'"]):
        lake.sql("CREATE BRANCH audit")
        with DuckDBOracle(lake._state.store.where) as loader:
            loader.execute(f"INSERT INTO audit.readings SELECT {night} + 5000, {weight}")
        audit = lake.branch("audit")
        bad = audit.sql("SELECT * FROM readings WHERE try_cast(weight AS DOUBLE) IS NULL").count()
        assert lake.sql("SELECT max(id) FROM readings").collect() == [(999,)]
        if not bad:
            lake.sql("MERGE BRANCH audit")
        lake.sql("DROP BRANCH audit")
        assert bool(bad) == (night == 0)
    assert lake.sql("SELECT max(id) FROM readings").collect() == [(5001,)]
    assert lake.table("readings").files().count() == before + 1


@pytest.mark.slow
def test_a_type_change_is_tried_on_a_branch_while_everybody_goes_on(lake):
    done, seen, failed = threading.Event(), [], []

    def write():
        for number in range(WRITTEN):
            lake.sql(f"INSERT INTO readings VALUES ({10_000 + number}, '1.5')")

    def look():
        while not done.is_set():
            counted = "SELECT count(*), max(double(weight)) FROM readings"
            [(count, heaviest)] = lake.sql(counted).collect()
            assert heaviest == 99.9
            seen.append(count)

    def run(what):
        try:
            what()
        except Exception as error:
            failed.append(error)
            raise

    lake.sql("CREATE BRANCH decimals")
    branch = lake.branch("decimals")
    others = [threading.Thread(target=run, args=(what,)) for what in (write, look)]
    for each in others:
        each.start()
    try:
        branch.sql("ALTER TABLE readings ALTER COLUMN weight TYPE DECIMAL(6, 2)")
        assert branch.sql("SELECT sum(weight) FROM readings").collect()[0][0] == 49950
        while True:
            # New rows come between two looks at the source, until the writer is done.
            with suppress(Conflict):
                lake.sql("MERGE BRANCH decimals")
                break
        others[0].join()
    finally:
        done.set()
        for each in others:
            each.join()
    assert not failed
    assert seen == sorted(seen)
    [(count, total, kind)] = lake.sql(
        "SELECT count(DISTINCT id), sum(weight), any_value(typeof(weight)) FROM readings"
    ).collect()
    assert (count, kind) == (1000 + WRITTEN, "decimal(6,2)")
    assert float(total) == 49950 + 1.5 * WRITTEN
    assert not lake.check(rows=True).problems
