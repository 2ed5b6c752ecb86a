"""Doris' published acceptance cases of schema change: deleted rows, defaults, and jobs under load.

A test's name begins with the case's id. Tables have no keys here, and KEY is left out. Where
Shelduck differs deliberately from Doris, a test says so in its docstring.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from shelduck import AlreadyExists, Conflict, InvalidRequest, JobState
from shelduck.jobs import lots
from tests.support.lakes import refusal, rows
from tests.support.meanwhile import convert_first
from tests.support.oracle import DuckDBOracle
from tests.support.time_limit import until

STATEMENTS = [
    "CREATE TABLE t (k INT NOT NULL, v INT)",
    "CREATE TABLE d (k BIGINT NOT NULL, value1 INT, value3 INT)",
    "CREATE TABLE big (k BIGINT, v INT)",
    "INSERT INTO big SELECT id, CAST(id AS INT) FROM range(0, 8000, 1, 8)",
]
DELETED = [
    "INSERT INTO d VALUES (1, 10, 1), (2, 20, 2), (3, 30, 3), (4, 40, 4)",
    "DELETE FROM d WHERE value3 = 2",
]
AGAIN = ["DROP COLUMN value3", "ADD COLUMN value3 CHAR(100) DEFAULT 'A'"]
ADDED = [
    "INSERT INTO t (k) VALUES (1), (2)",
    "ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 10",
    "INSERT INTO t (k, c) VALUES (3, 5), (4, 10), (5, 15)",
]
DELETED_10 = [*ADDED, "DELETE FROM t WHERE c = 10", "INSERT INTO t (k, c) VALUES (6, 10)"]
FRESH = [
    *DELETED_10,
    "ALTER TABLE t DROP COLUMN c",
    "ALTER TABLE t ADD COLUMN c VARCHAR(9) NOT NULL DEFAULT 'fresh'",
    "INSERT INTO t (k, c) VALUES (7, 'fresh'), (8, 'aaa'), (9, 'zzz')",
]


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


@pytest.fixture(params=["files", "compacted", "catalog"])
def play(request, lake):
    """Run statements: on files, with a compaction after each, or on rows kept in the catalog."""
    lake.set_option("data_inlining_row_limit", 100 if request.param == "catalog" else 0)

    def play(*statements):
        for statement in statements:
            lake.sql(statement)
            if request.param == "compacted":
                for name in ("t", "d"):
                    lake.table(name).rewrite_deletes(0)
                    lake.table(name).compact(min_files=1)

    return play


def shown(lake):
    return [(r.JobId or 0, r.State, r.Msg) for r in lake.sql("SHOW ALTER TABLE COLUMN").collect()]


def light(count):
    return [(0, "FINISHED", "")] * count


@pytest.mark.slow
@pytest.mark.parametrize("weight", ["light", "heavy"])
def test_d51_a_row_deleted_by_a_column_that_is_gone_stays_deleted(lake, play, both, weight):
    play(*DELETED)
    if weight == "light":
        play(*(f"ALTER TABLE d {clause}" for clause in AGAIN))
        assert shown(lake) == light(2)
    else:
        play(f"ALTER TABLE d {', '.join(AGAIN)}, MODIFY COLUMN value1 DECIMAL(9, 2)")
        assert shown(lake) == [(1, "FINISHED", "")]
    play("INSERT INTO d VALUES (5, 50, 'B')")

    assert both("SELECT k, value3 FROM d ORDER BY k") == [(1, "A"), (3, "A"), (4, "A"), (5, "B")]
    assert both("SELECT k FROM d WHERE value3 = 'A' ORDER BY k") == [(1,), (3,), (4,)]


@pytest.mark.slow
def test_d52_other_columns_stay_as_they_are_at_each_step(lake, play, both):
    """A key column makes the last step heavy in Doris; here it is a column like any other."""
    steps = [
        *(f"ALTER TABLE d {clause}" for clause in AGAIN),
        "INSERT INTO d VALUES (5, 50, 'B')",
        "ALTER TABLE d DROP COLUMN value3",
        "ALTER TABLE d ADD COLUMN k2 INT AFTER k",
    ]
    play(*DELETED)
    for number, step in enumerate(steps):
        play(step)
        expected = [(10,), (30,), (40,), (50,)][: 3 if number < 2 else 4]
        assert both("SELECT value1 FROM d ORDER BY value1") == expected
    assert shown(lake) == light(4)


def ids(both, condition):
    return [k for (k,) in both(f"SELECT k FROM t WHERE {condition} ORDER BY k")]


@pytest.mark.slow
def test_d53_filters_see_the_default_of_rows_that_lack_the_column(play, both):
    play(*ADDED)

    assert ids(both, "c = 10") == [1, 2, 4]
    assert ids(both, "c < 10") == [3]
    assert ids(both, "c > 10") == [5]
    assert ids(both, "c BETWEEN 10 AND 10") == [1, 2, 4]


@pytest.mark.slow
def test_d54_rows_that_lack_a_column_without_default_hold_null(play, both):
    play("INSERT INTO t (k) VALUES (1), (2)", "ALTER TABLE t ADD COLUMN c INT")
    play("INSERT INTO t (k, c) VALUES (3, 5)", "INSERT INTO t (k) VALUES (4)")

    assert ids(both, "c IS NULL") == [1, 2, 4]
    assert ids(both, "c IS NOT NULL") == [3]


@pytest.mark.slow
def test_d55_a_delete_by_the_default_takes_the_rows_of_its_time(play, both):
    play(*DELETED_10)

    assert both("SELECT k, c FROM t ORDER BY k") == [(3, 5), (5, 15), (6, 10)]


@pytest.mark.slow
def test_d56_a_column_of_the_same_name_has_its_own_default(play, both):
    play(*FRESH)

    assert ids(both, "c = 'fresh'") == [3, 5, 6, 7]
    assert ids(both, "c < 'fresh'") == [8]
    assert ids(both, "c > 'fresh'") == [9]


@pytest.mark.slow
def test_d58_a_table_with_deleted_rows_and_a_dropped_column_is_converted(lake, play, both):
    play("ALTER TABLE d ADD COLUMN text TEXT")
    play("INSERT INTO d VALUES (1, 10, 1, 'a'), (2, 20, 2, 'b'), (3, 30, 3, NULL)")
    play("DELETE FROM d WHERE text = 'b'", "ALTER TABLE d DROP COLUMN text")
    play("ALTER TABLE d MODIFY COLUMN k TEXT NOT NULL")

    assert shown(lake)[0] == (1, "FINISHED", "")
    assert not lake.table("d").columns.get(("k",)).nullable
    assert both("SELECT * FROM d ORDER BY k") == [("1", 10, 1), ("3", 30, 3)]


@pytest.mark.slow
def test_d59_a_job_waits_for_loads_that_are_not_published(copied, base, spark, both):
    """ORDER BY and added columns wait too in Doris; here only values that are converted do."""
    catalog, lake = copied
    lake.sql("INSERT INTO t VALUES (1, 10)")
    loads = [lake.transaction() for _ in range(2)]
    for number, load in enumerate(loads):
        load.table("t").append(spark.createDataFrame([(number + 2, 20)], "k int, v int"))
    lake.sql("ALTER TABLE t MODIFY COLUMN v STRING, ORDER BY (v, k) PROPERTIES ('wait' = 'false')")
    job = lake.job(1)
    with base.connect(catalog) as restarted, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(restarted.job(1).wait)
        try:
            for left, load in ((2, loads[0]), (1, loads[1])):
                until(lambda left=left: job.look().message == f"waits for {left} writer(s)")
                assert job.state is JobState.WAITING_TXN
                load.commit()
        finally:
            for load in loads:
                load.rollback()
        waiting.result(60)

    assert job.state is JobState.FINISHED
    assert both("SELECT * FROM t ORDER BY k") == [("10", 1), ("20", 2), ("20", 3)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("limit", [0, 100], ids=["files", "catalog"])
def test_d60_nothing_is_lost_that_is_loaded_while_a_job_runs(
    copied, base, both, monkeypatch, limit
):
    """A load that began when the job published, and did not know of it, may have to come again."""
    catalog, lake = copied
    lake.set_option("data_inlining_row_limit", limit)
    lake.sql("ALTER TABLE big MODIFY COLUMN v DOUBLE PROPERTIES ('wait' = 'false')")
    stop, loaded, again, land = threading.Event(), [], [], lots.land

    def load():
        with base.connect(catalog) as other:
            while not stop.wait(0.1):
                number = 10_000 + len(loaded)
                try:
                    other.sql(f"INSERT INTO big VALUES ({number}, {number})")
                    loaded.append(lake.job(1).state)
                except Conflict:
                    again.append(number)

    def late(parts, commit):
        until(lambda: loaded.count(JobState.RUNNING) > 2)
        return land(parts, commit)

    convert_first(monkeypatch)
    monkeypatch.setattr(lots, "land", late)
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(load)
        try:
            lake.job(1).wait()
        finally:
            stop.set()
        loading.result(60)

    assert loaded.count(JobState.RUNNING) > 2
    assert len(again) <= 1
    assert [row[:2] for row in shown(lake)] == [(1, "FINISHED")]
    numbers = [*range(8000), *range(10_000, 10_000 + len(loaded))]
    assert both("SELECT k, v FROM big ORDER BY k") == [(n, n) for n in numbers]


def test_d64_a_second_job_is_refused_while_one_is_open(copied, base, both):
    """Doris refuses every ALTER meanwhile; here one of metadata only goes on, and stays."""
    catalog, lake = copied
    lake.sql("ALTER TABLE big MODIFY COLUMN v STRING PROPERTIES ('wait' = 'false')")
    told = refusal(
        AlreadyExists,
        lambda: lake.sql("ALTER TABLE big MODIFY COLUMN k STRING"),
        catalog,
        base.folder / "data",
    )
    assert "main.big is under SCHEMA_CHANGE by job 1 (PENDING): its state is not NORMAL" in told
    lake.sql("ALTER TABLE big ADD COLUMN w INT DEFAULT 7 FIRST")
    lake.job(1).wait()

    assert both("SELECT * FROM big WHERE k = 11") == [(7, 11, "11")]


@pytest.mark.slow
def test_d65_an_open_job_is_cancelled_and_a_finished_one_is_not(copied, base, both):
    catalog, lake = copied
    lake.sql("ALTER TABLE big MODIFY COLUMN v STRING PROPERTIES ('wait' = 'false')")
    lake.sql("CANCEL ALTER TABLE COLUMN FROM big")
    assert shown(lake) == [(1, "CANCELLED", "user cancelled")]
    assert both("SELECT * FROM big WHERE k = 11") == [(11, 11)]
    lake.sql("ALTER TABLE big MODIFY COLUMN v STRING")
    told = refusal(
        InvalidRequest,
        lambda: lake.sql("CANCEL ALTER TABLE COLUMN FROM big"),
        catalog,
        base.folder / "data",
    )

    assert told == "table main.big is not under SCHEMA_CHANGE"
    assert shown(lake)[0] == (2, "FINISHED", "")
    assert both("SELECT * FROM big WHERE k = 11") == [(11, "11")]
