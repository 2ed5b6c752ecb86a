"""Several writers on one catalog: nothing is lost, and no id is given twice."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import pytest

import shelduck
from shelduck.catalog.commit.commit import commit
from shelduck.catalog.databases.database import Contention
from shelduck.catalog.databases.store import open_store, with_retries
from shelduck.catalog.read import read
from shelduck.catalog.schema.lake_schema import create_lake, open_lake
from shelduck.errors import Conflict
from shelduck.model.changes.change import CommitInfo, alteration
from shelduck.read import file_lists
from tests.support.oracle import DuckDBOracle
from tests.support.time_limit import PATIENCE
from tests.support.writers import append_rows

WRITERS = 3
FILES = 12
VALUES = sorted(w * 1000 + n for w in range(WRITERS) for n in range(FILES))


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def url(request, data_path):
    """A lake with an empty table main.t, in a catalog that several processes can use."""
    address = request.getfixturevalue(request.param)
    with closing(open_store(address)) as store:
        create_lake(store, data_path)
    with DuckDBOracle(address, data_path) as oracle:
        oracle.execute("CREATE TABLE t (a INTEGER)")
    return address


def assert_nothing_was_lost(url, snapshots):
    assert len(set(snapshots)) == len(snapshots)
    with DuckDBOracle(url) as oracle:
        assert [a for (a,) in oracle.rows("t")] == VALUES
        assert oracle.sql("SELECT count(*), min(a), max(a) FROM t") == [
            (len(VALUES), VALUES[0], VALUES[-1])
        ]
        assert oracle.sql("SELECT rowid FROM t ORDER BY rowid") == [
            (n,) for n in range(len(VALUES))
        ]
        dump = oracle.dump_metadata()
    for table, key in (
        ("ducklake_snapshot", "snapshot_id"),
        ("ducklake_data_file", "data_file_id"),
        ("ducklake_table", "table_id"),
    ):
        ids = [row[key] for row in dump[table]]
        assert len(set(ids)) == len(ids)
    times = [row["snapshot_time"] for row in dump["ducklake_snapshot"]]
    assert times == sorted(times)


@pytest.mark.slow
def test_writers_in_threads_lose_nothing(url):
    with ThreadPoolExecutor(WRITERS) as pool:
        runs = [pool.submit(append_rows, url, w, FILES) for w in range(WRITERS)]
        snapshots = [s for run in runs for s in run.result()]

    assert_nothing_was_lost(url, snapshots)


@pytest.mark.slow
def test_writers_in_processes_lose_nothing(url):
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(WRITERS, mp_context=spawn) as pool:
        runs = [pool.submit(append_rows, url, w, FILES) for w in range(WRITERS)]
        snapshots = [s for run in runs for s in run.result()]

    assert_nothing_was_lost(url, snapshots)


@pytest.mark.slow
def test_duckdb_may_insert_while_we_append(postgres_url, data_path):
    with closing(open_store(postgres_url)) as store:
        create_lake(store, data_path)
    with DuckDBOracle(postgres_url, data_path, {"DATA_INLINING_ROW_LIMIT": 0}) as oracle:
        oracle.execute("CREATE TABLE t (a INTEGER)")
        with ThreadPoolExecutor(1) as pool:
            ours = pool.submit(append_rows, postgres_url, 0, FILES)
            for n in range(FILES):
                oracle.execute("INSERT INTO t VALUES (?)", [-1 - n])
            landed = ours.result()

        assert len(landed) == FILES + 1
        assert [a for (a,) in oracle.rows("t")] == list(range(-FILES, FILES))
        assert oracle.sql("SELECT count(DISTINCT rowid) FROM t") == [(2 * FILES,)]


def test_of_two_alters_of_one_version_one_wins(url):
    def rename(name):
        with closing(open_store(url)) as store:
            lake = open_lake(store)
            with store.read() as connection:
                table = read.table(connection, read.snapshot(connection, 1), "main", "t", lake)
            [column] = table.columns.fields
            columns = table.columns.replace(("a",), type(column)(column.id, name, column.shape))
            change = alteration(table, replace(table, columns=columns))
            try:
                commit(store, lake, [change], base=table.snapshot.id, info=CommitInfo())
            except Conflict:
                return None
            return name

    with ThreadPoolExecutor(2) as pool:
        winners = [name for name in pool.map(rename, ["b", "c"]) if name]

    assert len(winners) == 1
    with DuckDBOracle(url) as oracle:
        assert [name for name, _ in oracle.columns("t")] == winners


def test_a_lost_race_is_run_again_with_growing_waits():
    outcomes = iter([Contention("busy"), Contention("busy"), "done"])
    waits = []

    def attempt():
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    assert with_retries(attempt, waits.append) == "done"
    assert len(waits) == 2
    assert 0.01 <= waits[0] <= 0.02
    assert 0.016 <= waits[1] <= 0.032


def test_a_catalog_that_stays_busy_is_given_up_after_ten_attempts():
    waits = []

    def attempt():
        raise Contention("busy")

    with pytest.raises(Contention):
        with_retries(attempt, waits.append)
    assert len(waits) == 9


def test_a_conflict_is_not_run_again():
    attempts = []

    def attempt():
        attempts.append(1)
        raise Conflict("no")

    with pytest.raises(Conflict):
        with_retries(attempt, lambda _: None)
    assert attempts == [1]


def test_use_is_for_the_thread_that_runs_it(sqlite_url, data_path):
    with shelduck.connect(sqlite_url, data_path) as lake, ThreadPoolExecutor(1) as other:

        def tables(thread):
            return thread.submit(lambda: lake.execute("SHOW TABLES").rows).result()

        lake.execute("CREATE SCHEMA s; CREATE TABLE s.there (a INT); CREATE TABLE here (a INT)")
        lake.execute("USE s")
        assert tables(other) == [("main", "here", False)]
        with lake.transaction() as tx:
            other.submit(lake.execute, "USE s").result()
            lake.execute("USE main")
            tx.rollback()
        assert lake.execute("SHOW TABLES").rows == tables(other) == [("s", "there", False)]
        other.submit(lake.execute, "BEGIN; USE main; ROLLBACK").result()
        other.submit(lake.execute, "BEGIN; USE main").result()
        lake.execute("ROLLBACK")
        assert str(lake.table("there").name) == "s.there"
        assert tables(other) == [("s", "there", False)]


def test_the_files_of_a_table_wait_for_no_other_table(sqlite_url, data_path, monkeypatch):
    begun, may_end, real = threading.Event(), threading.Event(), file_lists.file_numbers

    def slow(connection, table, *after):
        if table.name == "large":
            begun.set()
            assert may_end.wait(PATIENCE)
        return real(connection, table, *after)

    monkeypatch.setattr(file_lists, "file_numbers", slow)
    with shelduck.connect(sqlite_url, data_path) as lake, ThreadPoolExecutor(2) as others:
        lake.execute("CREATE TABLE large (a INT); CREATE TABLE small (a INT)")
        lists = lake._state.lists

        def listed(name):
            with lake._state.store.read() as connection:
                return lists.of(connection, lake.table(name)._version())

        large = others.submit(listed, "large")
        assert begun.wait(PATIENCE)
        try:
            assert len(others.submit(listed, "small").result(PATIENCE).ids) == 0
            assert not large.done()
        finally:
            may_end.set()
        assert len(large.result(PATIENCE).ids) == 0
