"""Writers in each kind of catalog: registered, waited for, and gone with their commit or lease."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest

from shelduck import clock
from shelduck.catalog.commit.commit import commit
from shelduck.catalog.running import job_rows, writers
from shelduck.catalog.running.job_rows import job as look_up
from shelduck.catalog.schema import own_tables
from shelduck.errors import CatalogUnavailable
from shelduck.lake import state as jobs_leases
from shelduck.lake import state as leases
from shelduck.lake import unit
from shelduck.lake.done import Done
from shelduck.lake.state import LakeState, Leases, Writer
from shelduck.model.changes.change import AlterTable, CommitInfo, DeleteRows
from shelduck.model.changes.job import LEASE, OPEN_STATES, JobState, JobStep, JobWork, NewJob
from shelduck.model.changes.records import EndWriters
from shelduck.model.tables.table_version import Conversion
from tests.support.lake import Lake
from tests.support.time_limit import until


@pytest.fixture
def lake(lake_url, data_path):
    made = Lake(lake_url, data_path)
    made.create(a="int")
    yield made
    made.store.close()


def waited_for(lake, snapshot):
    with lake.store.read() as connection:
        return writers.writers_before(connection, lake.table("t").id, snapshot)


def change(lake, job=None, writers=None):
    """A commit that makes a snapshot."""
    table = lake.table("t")
    comment = {None: f"at {table.snapshot.id}"}
    return commit(
        lake.store,
        lake.info,
        [
            AlterTable(table, table.columns, comments=comment),
            EndWriters(writers or {}),
            *([] if job is None else [job]),
        ],
        base=table.snapshot.id,
        info=CommitInfo(),
    )


def test_a_writer_is_registered_until_its_commit(lake):
    number, before = lake.table("t").id, lake.head().id
    assert writers.register_writer(lake.store, "w", number) is None
    assert waited_for(lake, before + 1) == ["w"]
    assert waited_for(lake, before) == []
    change(lake, writers={"w": 1})

    assert waited_for(lake, before + 1) == []


def test_a_writer_that_was_removed_commits_nothing(lake):
    number, before = lake.table("t").id, lake.head().id
    writers.register_writer(lake.store, "w", number)
    with lake.store.write() as connection:
        writers.remove_dead(connection, clock.now())
    assert waited_for(lake, before + 1) == ["w"]

    with clock.using(_After(LEASE)), lake.store.write() as connection:
        writers.remove_dead(connection, clock.now())

    with pytest.raises(writers.LeaseLost, match="gave no sign of life for 60 seconds"):
        change(lake, writers={"w": 1})
    assert lake.head().id == before


def test_a_rollback_that_is_interrupted_still_ends_the_lease(lake, monkeypatch):
    table = lake.table("t")
    made = unit.UnitOfWork(LakeState(lake.store, lake.info), CommitInfo())
    made.writer.register(table)
    made.own(Done(table, paths=("x/0.parquet",)))
    monkeypatch.setattr(unit, "discard", raising(KeyboardInterrupt))

    with pytest.raises(KeyboardInterrupt):
        made.rollback()

    assert made.writer.registered == {}
    assert waited_for(lake, lake.head().id + 1) == []


def test_a_commit_that_fails_before_its_transaction_is_rolled_back(lake, monkeypatch):
    table = lake.table("t")
    made = unit.UnitOfWork(LakeState(lake.store, lake.info), CommitInfo())
    made.writer.register(table)
    made.stage_unseen(Done(table, (DeleteRows(table, inlined=(0,)),)))
    monkeypatch.setattr(unit, "COMPLETING", [raising(CatalogUnavailable)])

    with pytest.raises(CatalogUnavailable):
        made.commit()

    assert not made.is_open
    assert waited_for(lake, lake.head().id + 1) == []


def raising(error):
    def fail(*_):
        raise error

    return fail


class _After:
    """The clock of another machine, which is ahead."""

    def __init__(self, span):
        self.span = span + timedelta(seconds=1)

    def now(self):
        return datetime.now(UTC) + self.span


def test_a_writer_and_a_job_know_of_each_other_whoever_comes_first(lake):
    table = lake.table("t")
    work = JobWork((Conversion(1, 2, "int32", "STRING"),))
    writer = Writer(lake.store, Leases(lake.store))
    assert writer.register(table).conversions == ()
    [name] = writer.registered
    base = change(lake, NewJob(table.id, "main.t", work, 60)).snapshot.id
    assert waited_for(lake, base) == [name]
    later = Writer(lake.store, Leases(lake.store))

    assert later.register(table).conversions == work.conversions
    assert later.register(table).conversions == work.conversions
    assert waited_for(lake, base) == [name]
    writer.give_up()
    assert waited_for(lake, base) == []
    assert writer.registered == {}
    later.give_up()


def test_a_dead_writer_is_waited_for_until_its_lease_is_over(lake, monkeypatch):
    number = lake.table("t").id
    monkeypatch.setattr(writers, "LEASE", -LEASE)
    writers.register_writer(lake.store, "dead", number)
    monkeypatch.undo()
    assert waited_for(lake, lake.head().id + 1) == []

    job = change(lake, NewJob(number, "main.t", JobWork(), 60)).job.id
    with lake.store.read() as connection:
        found = look_up(connection, job)
    step = JobStep(job, OPEN_STATES, JobState.RUNNING)
    writers.begin_running(lake.store, step, found)

    with lake.store.read() as connection:
        assert connection.exec_driver_sql("SELECT * FROM shelduck_writer").all() == []
        assert look_up(connection, job).last_file == lake.head().next_file_id - 1


def test_who_is_at_work_says_so_from_time_to_time(lake):
    number = lake.table("t").id
    leases = Leases(lake.store, beat=0.02)
    writers.register_writer(lake.store, "w", number)
    first = expiry(lake)
    leases.hold(jobs_leases.renew_writers, "w")
    with leases.holding(job_rows.renew_workers, "nobody"):
        until(lambda: expiry(lake) != first)
    [thread] = [t for t in threading.enumerate() if t.name == "shelduck leases"]
    leases.release(jobs_leases.renew_writers, "w")
    thread.join(20)

    assert not thread.is_alive()


def test_a_beat_that_fails_is_not_the_last(lake, monkeypatch):
    writers.register_writer(lake.store, "w", lake.table("t").id)
    first, failed = expiry(lake), []
    renew = jobs_leases.renew_writers

    def fails(*arguments):
        if not failed:
            failed.append(arguments)
            raise TimeoutError("no connection is free")
        renew(*arguments)

    monkeypatch.setattr(jobs_leases, "renew_writers", fails)
    leases = Leases(lake.store, beat=0.02)
    leases.hold(jobs_leases.renew_writers, "w")
    until(lambda: expiry(lake) != first)
    leases.release(jobs_leases.renew_writers, "w")
    assert failed


def test_a_lease_that_was_not_renewed_is_renewed_sooner(lake, monkeypatch):
    results = [TimeoutError("no connection is free"), None, None]
    monkeypatch.setattr(jobs_leases, "renew_writers", Mock(side_effect=results))
    leases, pauses = Leases(lake.store, beat=15.0), []
    leases._held[jobs_leases.renew_writers] = {"w"}

    class Rest:
        def wait(self, seconds):
            pauses.append(seconds)
            return len(pauses) == 4

    leases._run(Rest())

    assert pauses == [15.0, 3.0, 15.0, 15.0]


def expiry(lake):
    with lake.store.read() as connection:
        return connection.exec_driver_sql(
            "SELECT CAST(expires AS TEXT) FROM shelduck_writer"
        ).scalar()


def test_a_process_of_this_machine_is_known_to_be_dead(monkeypatch):
    mine = leases.new_identity()
    host, process, _ = mine.split("/")
    assert not leases.is_gone(mine)
    assert leases.is_gone(f"{host}/999999999/x")
    assert not leases.is_gone(f"elsewhere/{process}/x")
    assert not leases.is_gone("no identity")


def test_a_writer_makes_the_tables_again_that_another_catalog_lacks(lake):
    number = lake.table("t").id
    writers.register_writer(lake.store, "first", number)
    with lake.store.write() as connection:
        for name in own_tables.OWN.tables:
            connection.exec_driver_sql(f"DROP TABLE {name}")

    writers.register_writer(lake.store, "second", number)
    with lake.store.read() as connection:
        found = connection.exec_driver_sql("SELECT writer_id FROM shelduck_writer").scalars().all()
    assert found == ["second"]


def test_a_job_begins_in_a_catalog_that_lacks_the_tables(lake):
    number = lake.table("t").id
    writers.register_writer(lake.store, "first", number)
    with lake.store.write() as connection:
        for name in own_tables.OWN.tables:
            connection.exec_driver_sql(f"DROP TABLE {name}")

    assert change(lake, NewJob(number, "main.t", JobWork(), 60)).job.id == 1
