"""ADD ROLLUP as a job, and keys that go: what others do meanwhile, crashes, and giving up."""

from __future__ import annotations

import re
import threading
import time

import pytest

import shelduck
from shelduck import AlreadyExists, InvalidRequest, JobState, Unsupported
from shelduck.lake import unit
from shelduck.rollups import builder
from tests.support.lakes import newest, refusal, rows
from tests.support.meanwhile import once_before
from tests.support.oracle import DuckDBOracle
from tests.support.rollups import Followed, bag

STATEMENTS = [
    "CREATE TABLE d (k INT, g STRING, v INT) DUPLICATE KEY (k)",
    "INSERT INTO d VALUES (1, 'a', 1), (2, NULL, 2), (3, 'b', NULL)",
    (
        "CREATE TABLE a (k1 INT, k2 INT, s INT SUM, lo INT MIN, hi STRING MAX)"
        " AGGREGATE KEY (k1, k2) ROLLUP (few (k1, s, hi))"
    ),
    (
        "INSERT INTO a VALUES (1, 1, 1, 1, 'a'), (1, 2, 2, NULL, 'b'), (2, 1, NULL, 3, NULL),"
        " (NULL, 1, 4, 4, 'd'), (NULL, NULL, 5, 3, 'c')"
    ),
]
P = "ALTER TABLE d ADD ROLLUP p (v, g), q (g, k) PROPERTIES ('wait' = 'false')"
QUERIES = {"p": "SELECT v, g FROM {t}", "q": "SELECT g, k FROM {t}"}
DROP = "ALTER TABLE a DROP COLUMN k2"
FEW = "SELECT k1, SUM(s), MAX(hi) FROM {t} GROUP BY k1"
ROLLUP_COLUMNS = (
    "JobId TableName CreateTime FinishTime BaseIndexName RollupIndexName RollupId TransactionId"
    " State Msg Progress Timeout"
)


@pytest.fixture
def followed(copied):
    catalog, lake = copied

    def of(table, **queries):
        return Followed(lake, f"sqlite:///{catalog}", table, queries)

    return of


@pytest.fixture
def other(copied, spark):
    """Another connection to the lake, as another process would have it."""
    with shelduck.connect(f"sqlite:///{copied[0]}", spark=spark, progress=False) as lake:
        yield lake


def names(lake):
    return {t.name for t in lake.tables()}


def shown(lake):
    found = lake.sql("SHOW ALTER TABLE ROLLUP")
    assert found.columns == ROLLUP_COLUMNS.split()
    return [(r.RollupIndexName, r.State, r.Msg, r.Progress) for r in found.collect()]


def die():
    raise KeyboardInterrupt


def crash(monkeypatch, job, name="list_rollups"):
    """Let a worker die when all is filled."""
    with monkeypatch.context() as patch:
        once_before(patch, builder, name, die)
        with pytest.raises(KeyboardInterrupt):
            job.wait()


@pytest.mark.slow
def test_jobs_of_rollups_are_shown(followed, monkeypatch):
    lake = followed("d").lake
    lake.sql(P)
    [job] = lake.jobs()
    assert shown(lake) == [("p", "PENDING", "", None), ("q", "PENDING", "", None)]
    assert [r for r in lake.sql("SHOW ALTER TABLE COLUMN").collect() if r.JobId] == []
    crash(monkeypatch, job)
    assert shown(lake) == [("p", "RUNNING", "", "2/2"), ("q", "RUNNING", "", "2/2")]
    job.wait()
    assert shown(lake) == [("p", "FINISHED", "", None), ("q", "FINISHED", "", None)]
    [row] = lake.sql(
        "SHOW ALTER TABLE ROLLUP WHERE RollupIndexName = 'q' AND TableName = 'd'"
    ).collect()

    assert (row.JobId, row.BaseIndexName, row.Timeout) == (1, "d", 86400)
    for when in (row.CreateTime, row.FinishTime):
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}", when)


@pytest.mark.slow
def test_a_job_is_cancelled_before_and_while_it_runs(followed, monkeypatch):
    found = followed("d")
    lake = found.lake
    for runs in (False, True):
        lake.sql(P)
        job = lake.jobs()[0]
        if runs:
            crash(monkeypatch, job)
            assert {"d$p", "d$q"} <= names(lake)
        with pytest.raises(InvalidRequest, match=r"table main.d is not under SCHEMA_CHANGE"):
            lake.sql("CANCEL ALTER TABLE COLUMN FROM d")
        lake.sql(f"CANCEL ALTER TABLE ROLLUP FROM d ({job.id})")
        assert names(lake) == {"d", "a", "a$few"}
        assert shown(lake)[0] == ("p", "CANCELLED", "user cancelled", None)
        with pytest.raises(InvalidRequest, match="was cancelled: user cancelled"):
            job.wait()
    with pytest.raises(InvalidRequest, match=r"table main.d is not under ROLLUP"):
        lake.sql("CANCEL ALTER TABLE ROLLUP FROM d")

    assert found.fresh() == {}
    found.write("INSERT INTO d VALUES (4, 'b', 4)")


def test_a_job_that_is_cancelled_while_a_worker_is_at_it_leaves_nothing(followed, monkeypatch):
    lake = followed("d").lake
    lake.sql(P)
    once_before(
        monkeypatch, builder, "list_rollups", lambda: lake.sql("CANCEL ALTER TABLE ROLLUP FROM d")
    )
    with pytest.raises(InvalidRequest, match="job 1 was cancelled: user cancelled"):
        lake.jobs()[0].wait()

    assert names(lake) == {"d", "a", "a$few"}


@pytest.mark.slow
def test_what_a_cancelled_job_left_goes_even_when_others_get_in_between(followed, monkeypatch):
    found = followed("d")
    lake = found.lake
    lake.sql(P)
    [job] = lake.jobs()
    crash(monkeypatch, job)

    def drop():
        with DuckDBOracle(found.url) as duckdb:
            duckdb.execute('DROP TABLE lake."d$p"')

    once_before(monkeypatch, unit.UnitOfWork, "commit", drop)
    job.cancel()

    assert names(lake) == {"d", "a", "a$few"}


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE d ADD ROLLUP z (v)",
        "ALTER TABLE d ALTER COLUMN v TYPE STRING",
        "CREATE MATERIALIZED VIEW z AS SELECT g, COUNT(*) FROM d GROUP BY g",
    ],
)
def test_there_is_one_job_at_a_time(copied, base, statement):
    catalog, lake = copied
    lake.sql(P)
    told = refusal(AlreadyExists, lambda: lake.sql(statement), catalog, base.folder / "data")

    assert "main.d is under " in told
    assert "by job 1 (PENDING): its state is not NORMAL" in told
    assert "CANCEL ALTER TABLE ROLLUP FROM main.d" in told


def test_what_a_dead_worker_filled_is_caught_up_by_another(followed, monkeypatch, other):
    found = followed("d", **QUERIES)
    found.lake.sql(P)
    [job] = found.lake.jobs()
    crash(monkeypatch, job)
    assert found.fresh() == {}
    filled = {n: found.lake.table(n)._version().id for n in ("d$p", "d$q")}
    found.lake.sql("INSERT INTO d VALUES (4, 'b', 4); DELETE FROM d WHERE k = 2")
    found.duckdb("INSERT INTO d VALUES (5, NULL, 5)")
    with pytest.raises(InvalidRequest, match="it is rollup p of d and follows its changes"):
        found.lake.sql("DELETE FROM `d$p`")
    [again] = other.run_jobs()

    assert (again.id, again.state) == (job.id, JobState.FINISHED)
    found.check()
    assert {n: found.lake.table(n)._version().id for n in filled} == filled


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "column"),
    [("ALTER COLUMN v TYPE BIGINT, ADD COLUMN z INT", "v"), ("RENAME COLUMN v TO x", "x")],
)
def test_a_rollup_whose_columns_changed_meanwhile_is_made_of_them(
    followed, monkeypatch, change, column
):
    found = followed("d", p=f"SELECT {column}, g FROM {{t}}", q=QUERIES["q"])
    found.lake.sql(P)
    [job] = found.lake.jobs()
    crash(monkeypatch, job)
    found.lake.sql(f"ALTER TABLE d {change}")
    job.wait()

    found.check()
    found.write(f"INSERT INTO d (k, g, {column}) VALUES (9, 'a', 30)")


def test_a_rollup_whose_columns_are_gone_cancels_its_job(followed, monkeypatch):
    lake = followed("d").lake
    lake.sql(P)
    [job] = lake.jobs()
    crash(monkeypatch, job)
    lake.sql("ALTER TABLE d DROP COLUMN v")

    with pytest.raises(shelduck.ShelduckError):
        job.wait()
    assert job.state is JobState.CANCELLED
    assert names(lake) == {"d", "a", "a$few"}


@pytest.mark.slow
def test_loads_go_on_while_a_rollup_is_made(followed, other):
    found = followed("d", **QUERIES)
    found.lake.sql(P)
    loads, stop, failed = [], threading.Event(), []

    def load():
        while not stop.is_set():
            try:
                other.sql(f"INSERT INTO d VALUES ({len(loads) + 10}, 'x', {len(loads)})")
            except Exception as error:  # noqa: BLE001 - told to the test
                failed.append(error)
                return
            loads.append(1)

    thread = threading.Thread(target=load)
    thread.start()
    try:
        found.lake.jobs()[0].wait()
    finally:
        stop.set()
        thread.join(120)

    assert not failed
    found.write("INSERT INTO d VALUES (4, 'b', 4)")
    assert found.rows().total() == len(loads) + 4


def test_a_few_rows_that_meet_a_new_rollup_are_not_lost(followed, monkeypatch, other):
    found = followed("d", p="SELECT v, g FROM {t}")
    # What is to be committed are rows in the catalog: the table has no rollup yet.
    once_before(monkeypatch, unit, "commit", lambda: other.sql("ALTER TABLE d ADD ROLLUP p (v, g)"))
    done = found.lake.sql("INSERT INTO d VALUES (4, 'b', 4)").first()

    assert done.inserted == 1
    assert found.check()["d"][4, "b", 4] == 1


@pytest.mark.slow
def test_a_load_that_lands_before_the_rollup_is_listed_is_in_it(followed, monkeypatch, other):
    found = followed("d", **QUERIES)
    found.lake.sql(P)
    load = "INSERT INTO d SELECT 5, 'x', 5"
    once_before(monkeypatch, builder, "list_rollups", lambda: other.sql(load))
    found.lake.jobs()[0].wait()

    found.check()


@pytest.mark.slow
def test_two_writers_keep_the_rollups_right(followed, other):
    found = followed("d", **QUERIES)
    found.lake.sql(P.replace("false", "true"))
    found.lake.sql("CREATE MATERIALIZED VIEW c AS SELECT g, SUM(v) s FROM d GROUP BY g")
    found.queries["c"] = "SELECT g, SUM(v) FROM {t} GROUP BY g"
    failed = []

    def load(lake, number):
        try:
            for n in range(3):
                lake.sql(f"INSERT INTO d VALUES ({number}, 'g{n}', {n}), ({number}, 'a', 1)")
        except Exception as error:  # noqa: BLE001 - told to the test
            failed.append(error)

    threads = [threading.Thread(target=load, args=p) for p in ((found.lake, 10), (other, 20))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)

    assert not failed
    assert found.check()["d"].total() == 15


@pytest.mark.slow
def test_a_job_that_runs_out_of_time_leaves_nothing(followed, monkeypatch):
    lake = followed("d").lake
    job = lake.table("d").add_rollup("p", ["v"], timeout=2)
    crash(monkeypatch, job)
    time.sleep(2)
    with pytest.raises(InvalidRequest, match="job 1 was cancelled: Timeout"):
        job.wait()

    assert names(lake) == {"d", "a", "a$few"}


@pytest.mark.parametrize("statement", ["DROP TABLE d", "ALTER TABLE d RENAME TO e"])
def test_a_base_takes_what_is_filled_with_it(followed, monkeypatch, statement):
    lake = followed("d").lake
    job = lake.table("d").add_rollup("p", ["v"])
    crash(monkeypatch, job)
    lake.sql(statement)

    assert "d$p" not in names(lake)


@pytest.mark.slow
def test_a_key_of_combined_rows_goes_with_the_rows_that_it_told_apart(followed):
    found = followed("a", few=FEW)
    old, wanted, at = found.check()["a"], left(found), newest(found.lake)
    found.lake.sql(f"{DROP} PROPERTIES ('wait' = 'false')")
    assert found.check()["a"] == old
    [job] = found.lake.run_jobs()

    assert job.state is JobState.FINISHED
    assert found.check()["a"] == wanted
    assert names(found.lake) == {"d", "a", "a$few"}
    assert found.held(at)["a"] == old
    found.write("INSERT INTO a VALUES (1, 1, 0, 'z'), (3, 1, 1, 'y')")
    assert found.wanted(at)["a"] == old


def left(found):
    """What is left of the rows when k2 is gone."""
    with DuckDBOracle(found.url) as duckdb:
        return bag(duckdb.sql("SELECT k1, SUM(s), MIN(lo), MAX(hi) FROM a GROUP BY k1"))


def test_a_rollup_loses_a_key_before_its_base_does(followed):
    found = followed("a", few=FEW)
    found.lake.sql("ALTER TABLE a ADD ROLLUP more (k2, k1, s)")
    with pytest.raises(Unsupported, match="columns that rollups contain; write two statements"):
        found.lake.sql(DROP)
    found.lake.sql(f"{DROP} FROM more; {DROP}")
    found.queries["more"] = "SELECT k1, SUM(s) FROM {t} GROUP BY k1"

    found.check()


@pytest.mark.slow
def test_a_load_before_the_key_goes_is_in_what_is_left(followed, monkeypatch, other):
    found = followed("a", few=FEW)
    load = "INSERT INTO a VALUES (1, 1, 10, 0, 'x'), (9, 9, 9, 9, 'y')"
    once_before(monkeypatch, builder, "overwrite_table", lambda: other.sql(load))
    found.lake.sql(DROP)

    assert sorted(found.check()["a"], key=str) == [
        *[(1, 13, 0, "x"), (2, None, 3, None), (9, 9, 9, "y"), (None, 9, 3, "d")]
    ]


@pytest.mark.slow
def test_a_worker_that_dies_before_the_key_goes_is_followed_by_another(
    followed, monkeypatch, other
):
    found = followed("a", few=FEW)
    found.lake.sql(f"{DROP} PROPERTIES ('wait' = 'false')")
    crash(monkeypatch, found.lake.jobs()[0], "overwrite_table")
    found.lake.sql("INSERT INTO a VALUES (1, 1, 10, 0, 'x')")
    other.run_jobs()

    assert found.check()["a"][1, 13, 0, "x"] == 1
    assert names(found.lake) == {"d", "a", "a$few"}


@pytest.mark.slow
def test_a_sum_that_does_not_fit_leaves_everything_as_it_was(followed):
    found = followed("a", few=FEW)
    found.lake.sql("INSERT INTO a (k1, k2, s) VALUES (7, 1, 2000000000), (7, 2, 2000000000)")
    old, columns = found.check(), found.lake.table("a").columns
    with pytest.raises(InvalidRequest, match=r"s of main.a"):
        found.lake.sql(DROP)

    assert found.lake.table("a").columns == columns
    assert found.check() == old
    assert names(found.lake) == {"d", "a", "a$few"}
    [(state, told)] = [(j.look().state, j.look().message) for j in found.lake.jobs()]
    assert state is JobState.CANCELLED
    assert "s of main.a" in told
    assert rows(found.lake.sql("SHOW ALTER TABLE ROLLUP")) == []
    found.lake.sql("DELETE FROM a WHERE k1 = 7")
    found.lake.sql(DROP)
    found.check()
