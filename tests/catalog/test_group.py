"""Commits of threads that wait for the lock at once: one transaction, an outcome for each."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from shelduck.catalog.databases.database import Contention
from shelduck.catalog.databases.store import Store, write_with_retries
from shelduck.catalog.read import read
from shelduck.errors import AlreadyExists, Conflict, OutcomeUnknown
from shelduck.model.changes.change import AppendFiles, CommitInfo
from shelduck.model.changes.schema_change import DropColumn
from tests.support.files import write_file
from tests.support.lake import Lake, altered, created
from tests.support.time_limit import PATIENCE

WRITERS = 6


# DuckDB's own files have no savepoints, so there each thread has a transaction of its own.
sharing = pytest.mark.databases("sqlite", "postgres")


@pytest.fixture
def lake(lake_url, data_path):
    made = Lake(lake_url, data_path)
    for n in range(WRITERS):
        made.create(f"t{n}", a="int", b="int")
    yield made
    made.store.close()


@pytest.fixture
def transactions(monkeypatch):
    """One entry for each transaction that takes the lock."""
    real, found = Store.write, []

    def write(store):
        found.append(store)
        return real(store)

    monkeypatch.setattr(Store, "write", write)
    return found


def at_once(lake, acts):
    """Let threads act while the lock is held, one after the other, and return their futures."""
    group = lake.store._group
    with ThreadPoolExecutor(len(acts)) as pool, lake.store._writer:
        found = []
        for n, act in enumerate(acts):
            found.append(pool.submit(act))
            # The first one leads, and waits for the lock; the others wait for it.
            until(lambda n=n: group._leader and len(group._waiting) == n, lake)
    return found


def until(is_true, lake):
    end = time.monotonic() + PATIENCE
    while lake.store.database.has_savepoints and not is_true():
        assert time.monotonic() < end
        time.sleep(0.001)


def appending(lake, name, n):
    """A commit of one row into a table, with a message of its own."""
    table = lake.table(name)
    change = AppendFiles(table.id, (write_file(table, [{"a": n, "b": n}]),), table)
    return lambda: lake.commit(change, base=table.snapshot.id, info=CommitInfo(f"w{n}", f"m{n}"))


def log(lake, since):
    with lake.store.read() as connection:
        found = read.snapshots(connection)
    return [(s.id, s.author, s.commit_message) for s in found if s.id > since]


@pytest.mark.every_database
@pytest.mark.parametrize("one_table", [False, True])
def test_threads_that_wait_commit_together_each_with_its_snapshot(lake, transactions, one_table):
    before = lake.head().id
    acts = [appending(lake, "t0" if one_table else f"t{n}", n) for n in range(WRITERS)]
    transactions.clear()
    found = at_once(lake, acts)

    landed = {f.result().snapshot.id: n for n, f in enumerate(found)}
    assert sorted(landed) == [before + n for n in range(1, WRITERS + 1)]
    assert log(lake, before) == [(at, f"w{landed[at]}", f"m{landed[at]}") for at in sorted(landed)]
    # The first one alone, then all that wait. DuckDB's own files have no savepoints.
    assert len(transactions) == (WRITERS if lake.store.kind == "duckdb" else 2)
    names = ["t0"] if one_table else [f"t{n}" for n in range(WRITERS)]
    rows = [row for name in names for row in lake.ask(f"SELECT a FROM {name}")]
    assert sorted(rows) == [(n,) for n in range(WRITERS)]


@pytest.mark.every_database
def test_who_fails_leaves_the_others_alone(lake):
    before = lake.head().id
    drop = altered(lake.table("t2"), DropColumn(("b",)))
    taken = created(lake.schema(), "t1", a="int")
    odd = {"no": "statement"}

    def broken():
        def act(connection):
            connection.exec_driver_sql("UPDATE ducklake_snapshot SET schema_version = 77")
            return odd["is"]

        return write_with_retries(lake.store, act)

    acts = [
        appending(lake, "t0", 0),
        appending(lake, "t1", 1),
        lambda: lake.commit(taken, base=before),
        broken,
        lambda: lake.commit(drop, base=before, info=CommitInfo("w2", "m2")),
        lambda: lake.commit(drop, base=before),
        appending(lake, "t3", 3),
    ]
    found = at_once(lake, acts)

    kinds = [type(f.exception()) for f in found]
    assert kinds[:4] == [type(None), type(None), AlreadyExists, KeyError]
    assert set(kinds[4:6]) == {type(None), Conflict}
    assert kinds[6] is type(None)
    assert [number for number, *_ in log(lake, before)] == [before + n for n in range(1, 5)]
    assert lake.head().schema_version != 77
    assert lake.ask("SELECT a FROM t3") == [(3,)]


@sharing
def test_nobody_knows_of_any_after_a_lost_commit(lake, monkeypatch):
    real, lost = Store._commit, []

    def loses(store, connection):
        real(store, connection)
        lost.append(connection)
        if len(lost) == 2:
            raise store._unknown("the answer was lost")

    before = lake.head().id
    acts = [appending(lake, f"t{n}", n) for n in range(4)]
    monkeypatch.setattr(Store, "_commit", loses)
    found = at_once(lake, acts)

    kinds = [type(f.exception()) for f in found]
    assert kinds == [type(None), OutcomeUnknown, OutcomeUnknown, OutcomeUnknown]
    assert len({id(f.exception()) for f in found[1:]}) == 3
    assert len(log(lake, before)) == 4


def test_an_interrupted_commit_takes_no_other_with_it(lake):
    before = lake.head().id
    tried = []

    def interrupted():
        def act(connection):
            connection.exec_driver_sql("UPDATE ducklake_snapshot SET schema_version = 77")
            raise KeyboardInterrupt

        try:
            write_with_retries(lake.store, act)
        except (KeyboardInterrupt, Contention) as error:
            tried.append(error)

    found = at_once(lake, [appending(lake, "t0", 0), interrupted, appending(lake, "t1", 1)])
    assert [f.exception() for f in found] == [None, None, None]
    assert [type(error) for error in tried] == [KeyboardInterrupt]
    assert len(log(lake, before)) == 2
    assert lake.head().schema_version != 77


@sharing
def test_who_stops_waiting_commits_nothing_and_the_next_one_leads(lake, monkeypatch):
    before, stopped = lake.head().id, threading.Event()
    acts = [appending(lake, f"t{n}", n) for n in range(4)]
    real = threading.Event.wait
    main = threading.current_thread()

    def wait(event, timeout=None):
        done = real(event, timeout)
        # The second one wakes up to lead, and is interrupted at that moment.
        if threading.current_thread() is not main and not stopped.is_set():
            stopped.set()
            raise KeyboardInterrupt
        return done

    @contextmanager
    def interrupting():
        with monkeypatch.context() as patch:
            patch.setattr(threading.Event, "wait", wait)
            yield

    def caught(act):
        def tries():
            try:
                return act()
            except KeyboardInterrupt as error:
                return error

        return tries

    with interrupting():
        found = at_once(lake, [caught(act) for act in acts])
    results = [f.result() for f in found]
    assert [isinstance(r, KeyboardInterrupt) for r in results] == [False, True, False, False]
    assert len(log(lake, before)) == 3


def test_work_inside_of_work_is_an_error(sqlite_url, data_path):
    store = Lake(f"{sqlite_url}?timeout=0.1", data_path).store
    with pytest.raises(Contention):
        store.write_together(lambda _: store.write_together(lambda _: None))
