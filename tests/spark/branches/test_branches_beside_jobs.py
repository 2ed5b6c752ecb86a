"""Merges while a heavy ALTER converts rows of a side, and while others write."""

from __future__ import annotations

import pytest

import shelduck
from shelduck.jobs import lots
from shelduck.write.changes import append
from tests.support.meanwhile import convert_first, once_after
from tests.support.oracle import DuckDBOracle

HEAVY = "ALTER TABLE {} ALTER COLUMN v TYPE INT"
TEXTS = [(n, str(n)) for n in range(4)]
NUMBERS = [(n, n) for n in range(4)]
# What the branch does, and the rows after that.
ON_BRANCH = {
    "INSERT INTO b.t VALUES (7, '7')": [*NUMBERS, (7, 7)],
    "DELETE FROM b.t WHERE id = 1": [NUMBERS[0], *NUMBERS[2:]],
    "UPDATE b.t SET v = '20' WHERE id = 2": [*NUMBERS[:2], (2, 20), NUMBERS[3]],
}


@pytest.fixture
def lake(spark, sqlite_url, data_path):
    with shelduck.connect(sqlite_url, data_path, spark) as found:
        found.set_option("data_inlining_row_limit", 0)
        found.sql("CREATE TABLE t (id INT, v STRING)")
        found.sql("INSERT INTO t SELECT id, string(id) FROM range(4)")
        found.create_branch("b")
        yield found


def rows(lake, name):
    """The rows of a table as Spark reads them, and DuckDB."""
    found = sorted(map(tuple, lake.sql(f"SELECT id, v FROM {name}").collect()), key=str)
    with DuckDBOracle(lake._state.store.where) as duck:
        assert sorted(duck.sql(f"SELECT id, v FROM {name}"), key=str) == found
    return found


@pytest.mark.sampled(1)
@pytest.mark.parametrize("statement", ON_BRANCH)
def test_a_branch_merges_while_a_job_converts_the_source(lake, statement, monkeypatch):
    lake.sql(statement)
    convert_first(monkeypatch)
    merged = once_after(monkeypatch, lots, "land", lambda: lake.merge_branch("b"))
    lake.sql(HEAVY.format("t"))
    assert len(merged) == 1
    assert rows(lake, "t") == ON_BRANCH[statement]
    assert not lake.check(rows=True).problems


@pytest.mark.slow
def test_a_branch_merges_while_a_job_converts_it(lake, monkeypatch):
    lake.sql("INSERT INTO b.t VALUES (7, '7')")
    convert_first(monkeypatch)
    once_after(monkeypatch, lots, "land", lambda: lake.merge_branch("b"))
    lake.sql(HEAVY.format("b.t"))
    # The job publishes nothing to the source, which has the row.
    assert rows(lake, "t") == [*TEXTS, (7, "7")]
    assert rows(lake, "b.t") == [*NUMBERS, (7, 7)]
    lake.merge_branch("b")
    assert rows(lake, "t") == [*NUMBERS, (7, 7)]
    assert not lake.check(rows=True).problems


@pytest.mark.slow
def test_rows_that_are_written_while_a_merge_lands_stay(lake, monkeypatch):
    lake.sql("INSERT INTO b.t VALUES (7, '7')")
    lake.execute("ALTER TABLE b.t ADD COLUMN w INT DEFAULT 3")
    once_after(monkeypatch, append, "write_files", lambda: lake.merge_branch("b"))
    lake.sql("INSERT INTO t VALUES (9, '9')")
    assert rows(lake, "t") == [*TEXTS, (7, "7"), (9, "9")]
    assert lake.sql("SELECT DISTINCT w FROM t").collect() == [(3,)]
    assert not lake.check(rows=True).problems
