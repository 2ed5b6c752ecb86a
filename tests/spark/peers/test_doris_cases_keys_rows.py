"""Doris' published acceptance cases on key models: deleted rows, defaults, and jobs under load.

A test's name begins with the case's id; test_doris_cases_rows.py has them on tables without keys.
Where Shelduck differs deliberately from Doris, a test says so in its docstring.
"""

from __future__ import annotations

import pytest

from shelduck import JobState
from shelduck.jobs import lots
from tests.support.lakes import newest, rows
from tests.support.meanwhile import convert_first, once_before
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CREATE TABLE d (k BIGINT NOT NULL, value1 INT, value3 INT) DUPLICATE KEY (k)",
    "INSERT INTO d VALUES (1, 10, 1), (2, 20, 2), (3, 30, 3), (4, 40, 4)",
    "DELETE FROM d WHERE value3 = 2",
    "CREATE TABLE u (k BIGINT NOT NULL, value1 INT, value3 INT) UNIQUE KEY (k)",
    "INSERT INTO u VALUES (1, 10, 1), (2, 20, 2), (3, 30, 3), (4, 40, 4)",
    "DELETE FROM u WHERE value3 = 2",
    "CREATE TABLE n (k INT, v INT) UNIQUE KEY (k)",
    "INSERT INTO n (k) VALUES (1), (2)",
    "CREATE TABLE t (k INT, v INT) UNIQUE KEY (k)",
    "INSERT INTO t (k) VALUES (1), (2)",
    "ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 10",
    "INSERT INTO t (k, c) VALUES (3, 5), (4, 10), (5, 15)",
    "CREATE TABLE big (k BIGINT, v INT) UNIQUE KEY (k)",
    "INSERT INTO big SELECT id, CAST(id AS INT) FROM range(0, 8000, 1, 8)",
    "CREATE TABLE sums (k BIGINT, v INT SUM) AGGREGATE KEY (k)",
    "INSERT INTO sums SELECT id, CAST(id AS INT) FROM range(0, 8000, 1, 8)",
]
AGAIN = ["DROP COLUMN value3", "ADD COLUMN value3 CHAR(100) DEFAULT 'A'"]


@pytest.fixture
def both(copied):
    """The rows of a query, which Shelduck and DuckDB both find."""

    def both(query):
        catalog, lake = copied
        found = rows(lake.sql(query))
        with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
            assert duckdb.sql(query) == found
        return found

    return both


@pytest.fixture(params=["files", "compacted"])
def play(request, lake):
    """Run statements: on files as they are, or with a compaction of the table after each."""

    def play(table, *statements):
        for statement in statements:
            lake.sql(statement)
            if request.param == "compacted":
                lake.table(table).rewrite_deletes(0)
                lake.table(table).compact(min_files=1)

    return play


def shown(lake):
    return [(r.JobId or 0, r.State, r.Msg) for r in lake.sql("SHOW ALTER TABLE COLUMN").collect()]


@pytest.mark.slow
@pytest.mark.parametrize("table", ["d", "u"])
def test_d51_a_row_deleted_by_a_column_that_is_gone_stays_deleted(play, both, table):
    play(table, *(f"ALTER TABLE {table} {clause}" for clause in AGAIN))
    play(table, f"INSERT INTO {table} VALUES (5, 50, 'B')")

    query = f"SELECT k, value3 FROM {table} ORDER BY k"
    assert both(query) == [(1, "A"), (3, "A"), (4, "A"), (5, "B")]
    assert both(f"SELECT k FROM {table} WHERE value3 = 'A' ORDER BY k") == [(1,), (3,), (4,)]


def test_d51_heavy(lake, both):
    lake.sql(f"ALTER TABLE u {', '.join(AGAIN)}, MODIFY COLUMN value1 DECIMAL(9, 2)")
    assert shown(lake)[0] == (1, "FINISHED", "")
    lake.sql("INSERT INTO u VALUES (5, 50, 'B'), (4, 41, 'C')")

    assert both("SELECT * FROM u ORDER BY k") == [
        *[(1, 10, "A"), (3, 30, "A"), (4, 41, "C"), (5, 50, "B")]
    ]


@pytest.mark.slow
@pytest.mark.parametrize("table", ["d", "u"])
def test_d52_other_columns_stay_as_they_are_at_each_step(lake, both, table):
    """A key column makes the last step heavy in Doris; it is metadata only here."""
    steps = [
        *(f"ALTER TABLE {table} {clause}" for clause in AGAIN),
        f"INSERT INTO {table} VALUES (5, 50, 'B')",
        f"ALTER TABLE {table} DROP COLUMN value3",
        f"ALTER TABLE {table} ADD COLUMN k2 INT KEY",
    ]
    for number, step in enumerate(steps):
        lake.sql(step)
        expected = [(10,), (30,), (40,), (50,)][: 3 if number < 2 else 4]
        assert both(f"SELECT value1 FROM {table} ORDER BY value1") == expected
    assert shown(lake)[:4] == [(0, "FINISHED", "")] * 4
    lake.sql(f"INSERT INTO {table} VALUES (5, NULL, 51), (5, 1, 52)")

    old = [(5, None, 50)] if table == "d" else []
    assert lake.table(table).columns.names == ["k", "k2", "value1"]
    assert both(f"SELECT * FROM {table} WHERE k = 5 ORDER BY value1") == [
        *old,
        *[(5, None, 51), (5, 1, 52)],
    ]


def ids(both, condition, table="t"):
    return [k for (k,) in both(f"SELECT k FROM {table} WHERE {condition} ORDER BY k")]


@pytest.mark.slow
def test_d53_filters_see_the_default_of_rows_that_lack_the_column(both):
    assert ids(both, "c = 10") == [1, 2, 4]
    assert ids(both, "c < 10") == [3]
    assert ids(both, "c > 10") == [5]
    assert ids(both, "c BETWEEN 10 AND 10") == [1, 2, 4]


@pytest.mark.slow
def test_d54_rows_that_lack_a_column_without_default_hold_null(lake, both):
    lake.sql("ALTER TABLE n ADD COLUMN c INT; INSERT INTO n (k, c) VALUES (3, 5), (4, NULL)")

    assert ids(both, "c IS NULL", "n") == [1, 2, 4]
    assert ids(both, "c IS NOT NULL", "n") == [3]


@pytest.mark.slow
def test_d55_a_delete_by_the_default_takes_the_rows_of_its_time(play, both):
    play("t", "DELETE FROM t WHERE c = 10", "INSERT INTO t (k, c) VALUES (6, 10), (1, 10), (5, 16)")

    assert both("SELECT k, c FROM t ORDER BY k") == [(1, 10), (3, 5), (5, 16), (6, 10)]


@pytest.mark.slow
def test_d56_a_column_of_the_same_name_has_its_own_default(play, both):
    play(
        *("t", "DELETE FROM t WHERE c = 10", "INSERT INTO t (k, c) VALUES (6, 10)"),
        "ALTER TABLE t DROP COLUMN c",
        "ALTER TABLE t ADD COLUMN c VARCHAR(9) NOT NULL DEFAULT 'fresh'",
        "INSERT INTO t (k, c) VALUES (7, 'fresh'), (8, 'aaa'), (9, 'zzz')",
    )

    assert ids(both, "c = 'fresh'") == [3, 5, 6, 7]
    assert ids(both, "c < 'fresh'") == [8]
    assert ids(both, "c > 'fresh'") == [9]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["", " SUM"], ids=["unique", "aggregate"])
def test_d60_nothing_is_lost_that_is_loaded_while_a_job_runs(copied, base, both, monkeypatch, how):
    """Each load takes the place of rows, or is added to them, in what the job has converted."""
    (catalog, lake), table = copied, "sums" if how else "big"
    job = f"ALTER TABLE {table} MODIFY COLUMN v DECIMAL(20, 0){how} PROPERTIES ('wait' = 'false')"
    lake.sql(job)

    def act():
        with base.connect(catalog) as other:
            other.sql(f"INSERT INTO {table} VALUES (7999, 100), (7, 1), (8000, 100), (7, 1)")
        return lake.job(1).state

    convert_first(monkeypatch)
    states = once_before(monkeypatch, lots, "land", act)
    lake.job(1).wait()

    assert states == [JobState.RUNNING]
    assert shown(lake)[0][:2] == (1, "FINISHED")
    changed = {7: 9 if how else 1, 7999: 8099 if how else 100, 8000: 100}
    expected = [(n, changed.get(n, n)) for n in range(8001)]
    assert both(f"SELECT k, v FROM {table} ORDER BY k") == expected
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        before = duckdb.rows(table, version=newest(lake) - 1)
    assert before == expected
