"""Files of rollups that never landed are orphans, and not while somebody writes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

import shelduck
from shelduck import clock
from shelduck.catalog.running.job_rows import claim_job
from shelduck.catalog.running.writers import (
    at_work_since,
    end_writers,
    registered_writers,
    remove_dead,
)
from shelduck.lake.state import Writer
from shelduck.model.changes.job import LEASE
from shelduck.model.tables.rollup import uuid_of_job, uuid_of_next
from shelduck.model.text.names import write_directory


class After:
    """A clock that is ahead."""

    def now(self):
        return datetime.now(UTC) + LEASE + timedelta(seconds=1)

    def monotonic(self):
        return 0.0

    def sleep(self, seconds):
        pass


@pytest.fixture
def opened(sqlite_url, data_path):
    with shelduck.connect(sqlite_url, data_path=data_path, progress=False) as made:
        made.execute("CREATE TABLE t (k INT, v INT)")
        yield made


def planned(lake):
    """The job of a rollup, and the uuid of the table that it makes."""
    job = lake.table("t").add_rollup("r", ["k"], {"n": "count"})
    base = lake._state.tables
    with lake._state.store.read() as connection:
        found = base.newest_of(connection, job.look().table_id)
    return job, uuid_of_job(found.uuid, job.id, "r"), found


def left(table, unique):
    """A file that an attempt left behind, in the directory of a table that nobody has seen."""
    return write(f"{table.schema.path}{unique}", unique)


def write(directory, unique):
    """A file that somebody has written, or writes now, to the table with a uuid."""
    name = write_directory(unique, int(datetime.now(UTC).timestamp() * 1000) - 1000, 5)
    file = Path(directory, name, "0.parquet")
    file.parent.mkdir(parents=True)
    file.write_bytes(b"rows")
    return file


def orphans(lake):
    return list(lake.remove_orphans(older_than=timedelta(seconds=0)).files)


def test_files_of_a_cancelled_rollup_are_orphans(opened):
    job, unique, table = planned(opened)
    file = left(table, unique)
    following = left(table, uuid_of_next(unique))
    job.cancel()

    # Nothing replaces a table that never was.
    assert orphans(opened) == [str(file)]
    assert following.exists()


def test_files_of_a_rollup_are_none_while_a_worker_of_the_job_lives(opened):
    job, unique, table = planned(opened)
    file = left(table, unique)
    store = opened._state.store
    claim_job(store, job.id, "worker")
    assert orphans(opened) == []

    with clock.using(After()), store.write() as connection:
        remove_dead(connection, clock.now())
    assert job.look().worker is None
    assert orphans(opened) == [str(file)]


def test_a_writer_of_a_table_also_writes_to_its_rollups(opened):
    _, unique, table = planned(opened)
    writer = Writer(opened._state.store, opened._state.leases)
    writer.register(table)
    try:
        with opened._state.store.read() as connection:
            busy = at_work_since(connection, clock.now())
    finally:
        writer.give_up()

    assert set(busy) == {table.uuid, unique}


def test_a_writer_that_stays_is_there_after_a_commit(opened):
    store, state = opened._state.store, opened._state
    _, _, table = planned(opened)
    writer = Writer(store, state.leases)
    writer.register(table)
    with store.write() as connection:
        end_writers(connection, writer.registered, stay=True)
    with store.read() as connection:
        query = text("SELECT count(*) FROM shelduck_writer")
        assert connection.execute(query).scalar_one() == 1
    writer.give_up()


class Stopped(After):
    """A clock of a process that stops for longer than a lease after some looks at it."""

    def __init__(self, looks):
        self.looks = looks

    def now(self):
        self.looks -= 1
        return super().now() if self.looks < 0 else datetime.now(UTC)


@pytest.mark.parametrize("looks", range(5))
def test_who_may_still_commit_is_at_work_wherever_the_search_stops(opened, looks):
    # A second directory would have the dead looked for again.
    with opened._state.store.read() as connection:
        table = opened._state.tables.table(connection, "main", "t")
    writer = Writer(opened._state.store, opened._state.leases)
    writer.register(table)
    file = write(table.path, table.uuid)
    try:
        with clock.using(Stopped(looks)):
            orphans(opened)
        with opened._state.store.read() as connection:
            may_commit = [w.table_id for w in registered_writers(connection)]
    finally:
        writer.give_up()

    assert file.exists() or not may_commit
