"""Several processes convert one large table: each claims some of its files."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from shelduck import InvalidRequest, JobState, change_type, rewrite_files
from shelduck.jobs import lots
from tests.support.lakes import rows
from tests.support.meanwhile import convert_first
from tests.support.oracle import DuckDBOracle
from tests.support.time_limit import until

STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', 0)",
    "CREATE TABLE t (id INT NOT NULL, v STRING)",
    "INSERT INTO t SELECT CAST(id AS INT), CAST(id * 10 AS STRING) FROM range(0, 40, 1, 8)",
]
TO_INT = change_type("v", "int")
NEW = [(n, n * 10) for n in range(40)]


@pytest.fixture(autouse=True)
def eight_shares(monkeypatch):
    """A table of a few kilobytes counts as large; nobody waits long."""
    convert_first(monkeypatch)
    monkeypatch.setattr(lots, "share_count", lambda _: 8)
    monkeypatch.setattr(lots, "_PAUSE", 0.05)


@pytest.fixture
def landed(monkeypatch):
    """The files that each thread has converted and committed; the first one waits for `go_on`."""
    real, found = lots.land, {}

    def land(parts, commit):
        done = real(parts, commit)
        files = [f.id for _, some in done for part in some for f in part.bin.files]
        found.setdefault(threading.current_thread().name, []).extend(files)
        return done

    monkeypatch.setattr(lots, "land", land)
    return found


def everything(lake):
    return rows(lake.sql("SELECT * FROM t ORDER BY id"))


def claims(lake):
    with lake._state.store.read() as connection:
        return connection.exec_driver_sql("SELECT subject, worker FROM shelduck_upkeep").fetchall()


def claim_three(lake, job, heartbeat):
    """Let somebody else have claimed three of the shares."""
    with lake._state.store.write() as connection:
        for number in range(3):
            connection.exec_driver_sql(
                "INSERT INTO shelduck_upkeep (subject, worker, heartbeat) VALUES"
                f" ('job {job.id}, share {number} of 8', 'somebody', '{heartbeat}')"
            )


def together(job, monkeypatch, *others):
    """Wait for a job, and let others help as soon as its worker has landed its first share."""
    real, reached, go_on = lots.Lots.goes_on, threading.Event(), threading.Event()

    def goes_on(self, job):
        if not self._record.helps and not reached.is_set():
            reached.set()
            assert go_on.wait(60)
        return real(self, job)

    monkeypatch.setattr(lots.Lots, "goes_on", goes_on)
    with ThreadPoolExecutor(1 + len(others), "worker") as pool:
        first = pool.submit(job.wait)
        while not reached.wait(0.05):
            assert not first.done(), first.result()
        helping = [pool.submit(other) for other in others]
        time.sleep(0.5)
        go_on.set()
        first.result(120)
        return [each.result(120) for each in helping]


def test_who_helps_with_a_large_job_converts_a_part_of_it(copied, landed, monkeypatch):
    catalog, lake = copied
    job = lake.table("t").alter(TO_INT)
    [ran] = together(job, monkeypatch, lake.run_jobs)

    assert [each.id for each in ran] == [job.id]
    assert job.state is JobState.FINISHED
    assert len(landed) == 2
    files = sorted(file for some in landed.values() for file in some)
    assert len(files) == len(set(files)) == 8
    assert everything(lake) == NEW
    assert claims(lake) == []
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.sql("SELECT * FROM lake.t ORDER BY id") == NEW


def test_a_share_whose_process_died_is_converted_by_another(lake, landed):
    job = lake.table("t").alter(TO_INT)
    claim_three(lake, job, "2020-01-01 00:00:00")
    job.wait()

    assert sum(map(len, landed.values())) == 8
    assert everything(lake) == NEW
    assert claims(lake) == []


def test_a_claimed_share_is_left_to_its_process(lake, landed):
    job = lake.table("t").alter(TO_INT)
    claim_three(lake, job, "2999-01-01 00:00:00")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(job.wait)
        until(lambda: sum(map(len, landed.values())) >= 5)
        time.sleep(0.3)
        assert sum(map(len, landed.values())) == 5
        with lake._state.store.write() as connection:
            connection.exec_driver_sql("DELETE FROM shelduck_upkeep")
        waiting.result(60)

    assert everything(lake) == NEW


def test_a_helper_that_fails_gives_its_share_back(lake, landed, monkeypatch):
    real = lots.Lots._written

    def written(self, found, lot, *more):
        if self._record.helps:
            raise InvalidRequest("value 'x' cannot be converted")
        return real(self, found, lot, *more)

    monkeypatch.setattr(lots.Lots, "_written", written)
    job = lake.table("t").alter(TO_INT)
    [ran] = together(job, monkeypatch, lake.run_jobs)

    # The helper gives up, and its share is free: it is the worker who decides.
    assert ran == []
    assert job.state is JobState.FINISHED
    assert everything(lake) == NEW


def test_a_helper_that_was_taken_for_dead_commits_nothing(lake, landed, monkeypatch):
    real, lost = lots.Lots._written, []

    def written(self, found, lot, *more):
        done = real(self, found, lot, *more)
        if self._record.helps:
            with lake._state.store.write() as connection:
                gone = connection.exec_driver_sql("DELETE FROM shelduck_writer")
                lost.append(gone.rowcount)
        return done

    monkeypatch.setattr(lots.Lots, "_written", written)
    job = lake.table("t").alter(TO_INT)
    together(job, monkeypatch, lake.run_jobs)

    assert set(lost) == {1}
    # All files were committed by the worker.
    assert sorted(map(len, landed.values())) == [0, 8]
    assert everything(lake) == NEW


def test_a_rewrite_is_shared_too(lake, landed, monkeypatch):
    lake.sql("ALTER TABLE t SET PARTITIONED BY (bucket(2, id))")
    job = lake.table("t").alter(rewrite_files())
    together(job, monkeypatch, lake.run_jobs)

    assert job.state is JobState.FINISHED
    assert len(landed) == 2
    assert [row[0] for row in everything(lake)] == list(range(40))
