"""What others do while a job is open: writers serve it, workers follow each other, it gives up."""

from __future__ import annotations

import datetime as dt
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from shelduck import InvalidRequest, JobState, NotFound, Unsupported, add_column, change_type
from shelduck.catalog.running.writers import register_writer
from shelduck.errors import Conflict
from shelduck.jobs import convert, lots, worker
from shelduck.jobs.lots import Lots
from shelduck.lake.state import Writer
from shelduck.model.changes.job import Job
from shelduck.write import appending
from tests.support.lakes import newest, refusal, rows
from tests.support.meanwhile import convert_first, once_after, once_before
from tests.support.oracle import DuckDBOracle
from tests.support.time_limit import until

STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', 0)",
    "CREATE TABLE t (id INT NOT NULL, v STRING, n INT)",
    *(
        f"INSERT INTO t SELECT CAST(id AS INT), CAST(id * 10 AS STRING), 0 FROM range({n}, {n + 5})"
        for n in (0, 5, 10)
    ),
]
TO_INT = change_type("v", "int")
SOURCE = "SELECT 3 AS id, '9' AS v, 1 AS n UNION ALL SELECT 20, '7', 1"
BOTH = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
OLD = [(n, str(n * 10), 0) for n in range(15)]
NEW = [(n, n * 10, 0) for n in range(15)]


def everything(lake, at=""):
    return rows(lake.sql(f"SELECT * FROM t{at} ORDER BY id"))


@pytest.fixture
def converted(monkeypatch):
    """The files that jobs write anew, in lots."""
    lots, write = [], convert.write_bins

    def noted(spark, rows, lot, **options):
        lots.append([f.id for one in lot for f in one.files])
        return write(spark, rows, lot, **options)

    monkeypatch.setattr(convert, "write_bins", noted)
    convert_first(monkeypatch)
    return lots


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("INSERT INTO t SELECT 20, '7', 1", [*NEW, (20, 7, 1)]),
        ("INSERT INTO t VALUES (20, '7', 1)", [*NEW, (20, 7, 1)]),
        ("UPDATE t SET v = '8' WHERE id = 3", [*NEW[:3], (3, 8, 0), *NEW[4:]]),
        (
            f"MERGE INTO t USING ({SOURCE}) AS s ON t.id = s.id {BOTH}",
            [*NEW[:3], (3, 9, 1), *NEW[4:], (20, 7, 1)],
        ),
        ("INSERT OVERWRITE t SELECT 1, '1', 1", [(1, 1, 1)]),
    ],
    ids=["insert", "small insert", "update", "merge", "overwrite"],
)
def test_what_we_write_meanwhile_needs_no_conversion(copied, converted, statement, expected):
    catalog, lake = copied
    lake.set_option("data_inlining_row_limit", 100)
    first = lake.table("t").files().collect()
    job = lake.table("t").alter(TO_INT)
    old = everything(lake)
    lake.sql(statement)
    before, seen = newest(lake), everything(lake)
    assert seen != old
    job.wait()

    assert {n for lot in converted for n in lot} <= {f.data_file_id for f in first}
    assert everything(lake) == expected
    assert everything(lake, f" VERSION AS OF {before}") == seen
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows("t") == expected
        assert duckdb.rows("t", version=before) == seen
        assert duckdb.sql("SELECT count(DISTINCT rowid) FROM t") == [(len(expected),)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t SELECT 20, 'zz', 1",
        "INSERT INTO t VALUES (20, 'zz', 1)",
        "UPDATE t SET v = 'zz' WHERE id = 3",
    ],
)
def test_a_value_that_the_new_type_cannot_hold_fails_the_load_and_not_the_job(lake, statement):
    lake.set_option("data_inlining_row_limit", 100)
    job = lake.table("t").alter(TO_INT)
    before = newest(lake)
    with pytest.raises(InvalidRequest) as refused:
        lake.sql(statement)

    assert str(refused.value) == (
        "column v: zz cannot be converted to int32; a job is changing types of main.t, and new"
        " rows must fit the new types, too; correct them, or use CANCEL ALTER TABLE COLUMN FROM"
        " main.t"
    )
    assert newest(lake) == before
    assert job.state is JobState.PENDING
    job.wait()
    assert everything(lake) == NEW


def test_what_a_wrong_value_says_does_not_blame_the_job(lake):
    lake.sql("ALTER TABLE t ADD CONSTRAINT few CHECK (id < 100)")
    lake.table("t").alter(TO_INT)
    with pytest.raises(InvalidRequest, match=r"^CHECK constraint few ") as refused:
        lake.sql("INSERT INTO t SELECT 200, concat('x cannot be converted', ' to y'), 1")
    assert "a job is changing types" not in str(refused.value)


def publish_before_appends_land(monkeypatch, job):
    once_after(monkeypatch, appending, "append_rows", job.wait)


@pytest.mark.slow
def test_a_load_under_way_lands_after_the_job_that_it_served(copied, monkeypatch):
    catalog, lake = copied
    job = lake.table("t").alter(TO_INT)
    publish_before_appends_land(monkeypatch, job)
    lake.sql("INSERT INTO t SELECT 20, '7', 1")

    assert job.state is JobState.FINISHED
    assert everything(lake) == [*NEW, (20, 7, 1)]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows("t") == everything(lake)
        assert duckdb.sql("SELECT id FROM t WHERE v = 7") == [(20,)]


@pytest.mark.slow
def test_a_load_under_way_follows_all_that_the_job_publishes(lake, monkeypatch):
    job = lake.table("t").alter(TO_INT, add_column("x", "int"))
    publish_before_appends_land(monkeypatch, job)
    lake.sql("INSERT INTO t SELECT 20, '7', 1")
    assert everything(lake)[-1] == (20, 7, 1, None)
    assert len(everything(lake)) == 16


@pytest.mark.slow
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_job_waits_for_writers_that_began_before_it(lake, spark, converted, end):
    with ThreadPoolExecutor(1) as pool:
        tx = lake.transaction()
        tx.table("t").append(spark.createDataFrame([(20, "7", 1)], "id int, v string, n int"))
        job = lake.table("t").alter(TO_INT)
        waiting = pool.submit(job.wait)
        until(lambda: job.look().message)
        assert job.state is JobState.WAITING_TXN
        assert job.look().message == "waits for 1 writer(s)"
        assert everything(lake) == OLD
        getattr(tx, end)()
        waiting.result(60)

    assert "waits" not in job.look().message
    assert everything(lake) == NEW + ([(20, 7, 1)] if end == "commit" else [])
    # The one file of the transaction was converted with the others: it was waited for.
    assert len(converted) == 1


def test_a_writer_whose_process_is_dead_is_not_waited_for(lake):
    register_writer(lake._state.store, "elsewhere/1/x", lake.table("t")._version().id)
    job = lake.table("t").alter(TO_INT)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(job.wait)
        until(lambda: job.look().message)
        with lake._state.store.write() as connection:
            connection.exec_driver_sql("UPDATE shelduck_writer SET expires = '2024-01-01'")
        waiting.result(60)

    assert everything(lake) == NEW


@pytest.mark.slow
def test_a_second_worker_waits_for_the_first_and_follows_it(lake, monkeypatch):
    job = lake.table("t").alter(TO_INT)
    reached, go_on, worked = threading.Event(), threading.Event(), []
    land = lots.land

    def slow(parts, commit):
        worked.append(threading.current_thread().name)
        if len(worked) == 1:
            reached.set()
            go_on.wait(60)
            raise KeyboardInterrupt
        return land(parts, commit)

    convert_first(monkeypatch)
    monkeypatch.setattr(lots, "land", slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(job.wait)
        reached.wait(60)
        assert lake.run_jobs() == []
        second = pool.submit(lake.job(job.id).wait)
        time.sleep(0.3)
        assert len(worked) == 1
        go_on.set()
        with pytest.raises(KeyboardInterrupt):
            first.result(60)
        second.result(60)

    assert len(worked) == 2
    assert everything(lake) == NEW


def test_a_worker_that_lost_its_job_lands_nothing(lake, monkeypatch):
    """It was away for longer than its lease, and another one has begun meanwhile."""
    job = lake.table("t").alter(TO_INT)

    def lose():
        with lake._state.store.write() as connection:
            connection.exec_driver_sql("UPDATE shelduck_job SET worker = 'other'")

    convert_first(monkeypatch)
    lost = once_before(monkeypatch, Lots, "_land", lose)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(job.wait)
        until(lambda: lost)
        time.sleep(0.3)
        assert job.progress[0] == 0
        with lake._state.store.write() as connection:
            connection.exec_driver_sql("UPDATE shelduck_job SET worker = NULL")
        waiting.result(60)

    assert everything(lake) == NEW


def statements_of(lake, act):
    before = lake._state.store.statements
    act()
    return lake._state.store.statements - before


@pytest.mark.slow
def test_a_lot_costs_the_catalog_the_same_however_many_files_it_has(lake):
    lake.set_option("target_file_size", 1)
    lake.sql("CREATE TABLE few (v STRING); CREATE TABLE many (v STRING)")
    lake.sql("INSERT INTO few SELECT CAST(id AS STRING) FROM range(0, 9, 1, 2)")
    lake.sql("INSERT INTO many SELECT CAST(id AS STRING) FROM range(0, 9, 1, 8)")
    assert [lake.table(t).files().count() for t in ("few", "many")] == [2, 8]

    lake.sql("CREATE TABLE first AS SELECT '1' AS v")
    # The first one makes known what its files look like.
    lake.table("first").alter(TO_INT).wait()
    few, many = (lake.table(t).alter(TO_INT) for t in ("few", "many"))
    assert statements_of(lake, many.wait) == statements_of(lake, few.wait)


def test_who_writes_files_registers_by_two_statements(lake, monkeypatch):
    """Its own row, which tells whether the table has a job; and one more with the commit."""
    lake.sql("INSERT INTO t SELECT 20, '7', 1")
    with_it = statements_of(lake, lambda: lake.sql("INSERT INTO t SELECT 20, '7', 1"))
    monkeypatch.setattr(Writer, "register", lambda _, table: table)
    without = statements_of(lake, lambda: lake.sql("INSERT INTO t SELECT 20, '7', 1"))
    monkeypatch.undo()
    lake.set_option("data_inlining_row_limit", 10)
    lake.sql("INSERT INTO t VALUES (21, '7', 1)")
    small = statements_of(lake, lambda: lake.sql("INSERT INTO t VALUES (21, '7', 1)"))
    lake.table("t").alter(TO_INT).wait()
    lake.sql("INSERT INTO t VALUES (21, 7, 1)")
    after = statements_of(lake, lambda: lake.sql("INSERT INTO t VALUES (21, 7, 1)"))

    assert with_it == without + 2
    # Whether a job is open is asked where one ever was.
    assert after == small + 2


STATES = [JobState.PENDING, JobState.WAITING_TXN, JobState.RUNNING]


def reach(job, state):
    """Let a worker bring a job into a state, and die there."""

    def dies(*_arguments, **_options):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Job, "is_late", lambda *_: False)
        if state is JobState.WAITING_TXN:
            patch.setattr(worker, "writers_before", lambda *_: ["somebody"])
            patch.setattr(worker.clock, "sleep", dies)
        elif state is JobState.RUNNING:
            patch.setattr(Lots, "_written", dies)
        if state is not JobState.PENDING:
            with pytest.raises(KeyboardInterrupt):
                job.wait()
    assert job.state is state


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("end", ["cancel", "timeout"])
def test_a_job_is_given_up_in_every_state(lake, state, end):
    job = lake.table("t").alter(TO_INT, timeout=None if end == "cancel" else 1)
    columns = lake.table("t").columns
    reach(job, state)
    if end == "cancel":
        lake.sql("CANCEL ALTER TABLE COLUMN FROM t")
    else:
        time.sleep(1.1)
    told = "user cancelled" if end == "cancel" else "Timeout"
    with pytest.raises(InvalidRequest, match=f"job {job.id} was cancelled: {told}"):
        job.wait()

    assert job.state is JobState.CANCELLED
    assert job.look().finished is not None
    assert lake.table("t").columns == columns
    assert everything(lake) == OLD
    lake.sql("INSERT INTO t SELECT 20, 'zz', 1")
    lake.sql("DELETE FROM t WHERE id = 20")
    lake.sql("ALTER TABLE t ALTER COLUMN v TYPE INT")
    assert everything(lake) == NEW


def test_a_bad_value_that_comes_meanwhile_is_found_too(copied, monkeypatch):
    catalog, lake = copied

    def act():
        with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
            duckdb.execute("INSERT INTO t VALUES (20, 'zz', 1)")

    once_before(monkeypatch, worker, "publication", act)
    job = lake.table("t").alter(TO_INT)
    with pytest.raises(InvalidRequest, match=r"1 value\(s\) of column 'v' cannot be converted"):
        job.wait()

    assert everything(lake) == [*OLD, (20, "zz", 1)]


@pytest.mark.slow
@pytest.mark.parametrize("bad", [0, 14], ids=["first file", "last file"])
def test_a_bad_value_cancels_wherever_it_is(lake, bad):
    lake.set_option("target_file_size", 1, table="t")
    lake.sql(f"UPDATE t SET v = 'zz' WHERE id = {bad}")
    seen = everything(lake)
    with pytest.raises(InvalidRequest, match=r"1 value\(s\) of column 'v' .* such as 'zz'"):
        lake.sql("ALTER TABLE t ALTER COLUMN v TYPE INT")

    assert everything(lake) == seen


@pytest.mark.slow
def test_light_and_heavy_changes_of_a_statement_are_published_at_once(copied):
    catalog, lake = copied
    before = newest(lake)
    lake.sql(
        "ALTER TABLE t RENAME COLUMN n TO m, MODIFY COLUMN v INT AFTER m,"
        " ADD COLUMN day DATE DEFAULT '2024-02-29' FIRST, ALTER COLUMN v SET DEFAULT 7,"
        " ALTER COLUMN v COMMENT 'a number'"
    )
    lake.sql("INSERT INTO t (id) VALUES (20)")

    day = dt.date(2024, 2, 29)
    expected = [(day, n, 0, n * 10) for n in range(15)] + [(day, 20, None, 7)]
    assert everything(lake) == expected
    assert rows(lake.sql("DESCRIBE t"))[3] == ("v", "int", "a number")
    assert everything(lake, f" VERSION AS OF {before}") == OLD
    columns = {len(lake.sql(f"SELECT * FROM t VERSION AS OF {n}").columns) for n in (before,)}
    assert columns == {3}
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows("t") == sorted(expected)
        assert duckdb.rows("t", version=before) == OLD


def test_a_change_of_others_that_excludes_the_statement_cancels_it(lake):
    job = lake.table("t").alter(TO_INT, add_column("x", "int"))
    lake.sql("ALTER TABLE t ADD COLUMN x STRING")
    with pytest.raises(InvalidRequest, match="was cancelled: column 'x' already exists"):
        job.wait()

    assert lake.table("t").columns.names == ["id", "v", "n", "x"]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("using", "kind", "told"),
    [
        ("nothing + 1", InvalidRequest, r"`nothing` cannot be resolved"),
        (
            "nope(v)",
            Unsupported,
            r"USING nope\(v\): it calls nope\(\), which stored text must not do",
        ),
        ("sum(n)", InvalidRequest, r"is not valid: \[MISSING_GROUP_BY\]"),
        ("n +", InvalidRequest, r"is not valid: \[PARSE_SYNTAX_ERROR\]"),
        ("array(n)", InvalidRequest, r"is not valid: \[DATATYPE_MISMATCH"),
        ("(SELECT max(n) FROM t)", Unsupported, "depends on other rows, but rows are converted"),
        ("row_number() OVER (ORDER BY n)", Unsupported, "depends on other rows"),
    ],
)
def test_an_expression_that_makes_no_values_is_refused_at_once(copied, base, using, kind, told):
    catalog, lake = copied
    statement = f"ALTER TABLE t ALTER COLUMN v TYPE INT USING {using}"
    assert re.search(
        told, refusal(kind, lambda: lake.sql(statement), catalog, base.folder / "data")
    )

    assert lake.jobs() == []
    assert everything(lake) == OLD


@pytest.mark.slow
def test_jobs_are_left_to_a_worker(lake):
    before = newest(lake)
    lake.sql("ALTER TABLE t ALTER COLUMN v TYPE INT PROPERTIES ('wait' = 'false', timeout = 100)")
    [job] = lake.jobs()
    assert (job.state, job.look().timeout) == (JobState.PENDING, 100)
    assert everything(lake) == OLD

    assert [found.id for found in lake.run_jobs()] == [job.id]
    assert everything(lake) == NEW
    assert newest(lake) > before
    assert lake.run_jobs() == []


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ("'timeout' = 'soon'", "must be a number of seconds, not 'soon'"),
        ("'timeout' = '0'", "must be at least 1 second, not 0"),
        ("'wait' = 'maybe'", "property 'wait' of a job must be true or false, not 'maybe'"),
        ("'storage_format' = 'v2'", "a job does not support the property 'storage_format'"),
    ],
)
def test_properties_of_a_job_are_checked(lake, properties, told):
    with pytest.raises(InvalidRequest, match=told):
        lake.sql(f"ALTER TABLE t ALTER COLUMN v TYPE INT PROPERTIES ({properties})")
    assert lake.jobs() == []


def test_a_table_that_is_dropped_meanwhile_ends_its_job(lake):
    job = lake.table("t").alter(TO_INT)
    lake.sql("DROP TABLE t")
    lake.run_jobs()

    assert job.state is JobState.CANCELLED
    with pytest.raises((NotFound, InvalidRequest, Conflict), match="the table was dropped"):
        job.wait()
