"""Jobs in each kind of catalog: reserved ids, guarded steps, and the proof that nothing is left."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shelduck import clock
from shelduck.catalog.commit.commit import commit
from shelduck.catalog.databases.database import Contention
from shelduck.catalog.running import job_rows
from shelduck.catalog.running.writers import register_writer
from shelduck.catalog.upkeep.lake_counts import table_facts
from shelduck.errors import AlreadyExists, Conflict, CorruptLake, NewerFormat, NotFound
from shelduck.lake.state import Leases, Writer
from shelduck.model.changes.change import AlterTable, CommitInfo, alteration
from shelduck.model.changes.definition import Position
from shelduck.model.changes.job import (
    LEASE,
    OPEN_STATES,
    JobPace,
    JobState,
    JobStep,
    JobWork,
    NewJob,
)
from shelduck.model.changes.schema_change import AddColumn, ChangeType
from shelduck.model.tables.schema import Default, Schema
from shelduck.model.tables.table_version import Conversion
from shelduck.model.types.data_types import Primitive, parse_type
from tests.support.lake import Lake


@pytest.fixture
def lake(lake_url, data_path):
    made = Lake(lake_url, data_path)
    made.create(a="int", b="string")
    made.append("t", [{"a": 1, "b": "1"}], {1: ("1", "1", 0)})
    yield made
    made.store.close()


WORK = JobWork(
    (Conversion(2, 3, "varchar", "INT", using="b::int", clause=1),),
    (
        AddColumn(("s", "x"), parse_type("struct<a: array<decimal(9,2)>>"), position=Position("a")),
        ChangeType(("b",), parse_type("int")),
        AddColumn(("n",), parse_type("timestamp_ntz"), default=Default("2024-01-01 00:00:00")),
    ),
)


def shadow(table):
    [_, old] = table.columns
    return replace(old, id=3, shape=Primitive("int32"))


def begun(lake):
    """A job that takes id 3 for a column in the place of b."""
    table = lake.table("t")
    reserve = AlterTable(table, table.columns, reserved=(shadow(table),))
    return carried_out(lake, [reserve], NewJob(table.id, "main.t", WORK, 60)).job.id


def carried_out(lake, changes, job):
    head = lake.head()
    return commit(lake.store, lake.info, [*changes, job], base=head.id, info=CommitInfo())


def look(lake, number):
    with lake.store.read() as connection:
        return job_rows.job(connection, number)


@pytest.mark.parametrize(("writes", "state"), [(False, JobState.RUNNING), (True, JobState.PENDING)])
def test_a_job_with_a_worker_runs_at_once_unless_somebody_writes(lake, writes, state):
    table = lake.table("t")
    if writes:
        register_writer(lake.store, "writer", table.id)
    made = carried_out(lake, [], NewJob(table.id, "main.t", WORK, 60, "me")).job

    found = look(lake, 1)
    assert (found.state, found.worker, found.is_held(datetime.now(UTC))) == (state, "me", True)
    assert found.last_file == (None if writes else 0)
    assert found == made


def test_a_job_is_recorded_with_the_ids_that_it_takes(lake):
    started = datetime.now(UTC)
    assert begun(lake) == 1

    found = look(lake, 1)
    assert (found.state, found.base, found.message) == (JobState.PENDING, lake.head().id, "")
    assert found.work == WORK
    assert abs((found.created - started).total_seconds()) < 60
    table = lake.table("t")
    assert table.columns.names == ["a", "b"]
    assert table.max_column_id == 3
    lake.tell("ALTER TABLE t ADD COLUMN c INTEGER")
    assert lake.table("t").columns.get(("c",)).id == 4
    assert lake.ask("SELECT * FROM t") == [(1, "1", None)]


def test_a_step_is_repeated_where_the_catalog_was_busy(lake, monkeypatch):
    begun(lake)
    take = job_rows.step_job
    busy = iter([True, True, False])

    def raced(*arguments):
        if next(busy):
            raise Contention("busy")
        take(*arguments)

    monkeypatch.setattr(job_rows, "step_job", raced)
    job_rows.move_job(lake.store, JobStep(1, OPEN_STATES, JobState.RUNNING, None, 1, 2))

    found = look(lake, 1)
    assert (found.state, found.done, found.total) == (JobState.RUNNING, 1, 2)
    assert list(busy) == []


def test_a_table_has_one_open_job(lake):
    begun(lake)
    before = lake.head()
    with pytest.raises(AlreadyExists, match=r"under SCHEMA_CHANGE by job 1 \(PEND"):
        begun(lake)
    assert lake.head() == before

    step = JobStep(1, OPEN_STATES, JobState.CANCELLED, "user cancelled")
    carried_out(lake, [], step)
    assert lake.head() == before
    assert look(lake, 1).finished is not None
    assert begun(lake) == 2
    with lake.store.read() as connection:
        assert [j.id for j in job_rows.jobs(connection)] == [2, 1]
        assert job_rows.open_job(connection, lake.table("t").id).id == 2
        with pytest.raises(NotFound, match="job '9' does not exist; existing jobs: '2', '1'"):
            job_rows.job(connection, 9)


def test_a_step_that_comes_too_late_takes_its_commit_with_it(lake):
    begun(lake)
    carried_out(lake, [], JobStep(1, OPEN_STATES, JobState.CANCELLED, "user cancelled"))
    table, before = lake.table("t"), lake.head()
    change = AlterTable(table, table.columns, comments={None: "x"})

    with pytest.raises(Conflict, match="job 1 is already CANCELLED: user cancelled"):
        carried_out(lake, [change], JobStep(1, OPEN_STATES, JobState.FINISHED))
    assert lake.head() == before
    assert lake.table("t").comments == {}


def test_columns_are_published_only_where_no_other_rows_are(lake):
    begun(lake)
    table = lake.table("t")
    [first, _] = table.columns
    columns = Schema((first, shadow(table)))
    step = JobStep(1, OPEN_STATES, JobState.FINISHED)
    known = frozenset(f.id for f in lake.files("t"))

    def publish(table, files):
        return replace(alteration(table, replace(table, columns=columns)), only_files=files)

    with pytest.raises(Conflict, match=r"another commit wrote 1 data file\(s\) of main\.t"):
        carried_out(lake, [publish(table, frozenset())], step)
    lake.tell("INSERT INTO t VALUES (2, '2')", inline=10)
    table = lake.table("t")
    with pytest.raises(Conflict, match=r"wrote inlined rows to main\.t"):
        carried_out(lake, [publish(table, known)], step)
    assert look(lake, 1).state is JobState.PENDING
    lake.tell("DELETE FROM t WHERE a = 2", inline=10)
    table = lake.table("t")
    done = carried_out(lake, [publish(table, known)], step)

    assert look(lake, 1).published == done.snapshot.id == lake.head().id
    assert [(f.name, f.id) for f in lake.table("t").columns] == [("a", 1), ("b", 3)]


def test_one_worker_has_a_job_until_its_lease_is_over(lake, monkeypatch):
    begun(lake)
    assert job_rows.claim_job(lake.store, 1, "one")
    assert job_rows.claim_job(lake.store, 1, "one")
    assert not job_rows.claim_job(lake.store, 1, "two")
    now = datetime.now(UTC)
    assert look(lake, 1).is_held(now)
    assert not look(lake, 1).is_held(now + LEASE)

    # What the second does where it knows that the first is dead, or that its time is over.
    assert job_rows.claim_job(lake.store, 1, "two", gone="one")
    monkeypatch.setattr(job_rows, "LEASE", -LEASE)
    assert job_rows.claim_job(lake.store, 1, "three")
    monkeypatch.undo()
    with pytest.raises(Conflict, match="job 1 is already PENDING"):
        carried_out(lake, [], JobStep(1, OPEN_STATES, JobState.RUNNING, worker="two"))
    carried_out(lake, [], JobStep(1, OPEN_STATES, JobState.RUNNING, worker="three"))
    job_rows.release_job(lake.store, 1, "two")
    assert look(lake, 1).worker == "three"
    job_rows.release_job(lake.store, 1, "three")
    assert job_rows.claim_job(lake.store, 1, "two")
    carried_out(lake, [], JobStep(1, OPEN_STATES, JobState.FINISHED))
    assert not job_rows.claim_job(lake.store, 1, "two")


def test_a_table_is_at_work_while_a_worker_runs_its_job(lake, monkeypatch):
    def changing():
        with lake.store.read() as connection:
            return [table.is_changing for table in table_facts(connection)]

    begun(lake)
    assert changing() == [False]
    job_rows.claim_job(lake.store, 1, "one")
    assert changing() == [True]
    monkeypatch.setattr(job_rows, "LEASE", -LEASE)
    assert changing() == [False]
    monkeypatch.undo()
    carried_out(lake, [], JobStep(1, OPEN_STATES, JobState.FINISHED))
    assert changing() == [False]


def test_signs_of_life_keep_a_job(lake):
    begun(lake)
    job_rows.claim_job(lake.store, 1, "one")
    before = look(lake, 1).heartbeat
    with lake.store.write() as connection:
        job_rows.renew_workers(connection, ["one", "two"])

    assert look(lake, 1).heartbeat > before


def test_a_paused_job_is_open_and_nobody_has_it(lake, monkeypatch):
    begun(lake)
    job_rows.claim_job(lake.store, 1, "one")
    job_rows.pause_job(lake.store, 1)

    paused = look(lake, 1)
    assert (paused.state, paused.worker, paused.is_open) == (JobState.PAUSED, None, True)
    assert paused.message == "paused by a user"
    assert not job_rows.claim_job(lake.store, 1, "two")
    with pytest.raises(Conflict, match="job 1 is already PAUSED: paused by a user"):
        job_rows.pause_job(lake.store, 1)
    with pytest.raises(Conflict, match="job 1 is already PAUSED"):
        carried_out(lake, [], JobStep(1, frozenset({JobState.PENDING}), JobState.RUNNING))
    # Writers go on to fill its columns, and the pause is not its time.
    with lake.store.read() as connection:
        assert job_rows.open_job(connection, lake.table("t").id) == paused
    monkeypatch.setattr(clock, "now", lambda: paused.heartbeat + timedelta(hours=1))
    job_rows.resume_job(lake.store, 1)
    resumed = look(lake, 1)
    assert (resumed.state, resumed.message) == (JobState.PENDING, "")
    assert resumed.timeout == 60 + 3600
    assert not resumed.is_late(clock.now())
    with pytest.raises(Conflict, match="job 1 is already PENDING"):
        job_rows.resume_job(lake.store, 1)


def test_a_job_that_ran_goes_on_as_it_was(lake):
    carried_out(lake, [], NewJob(lake.table("t").id, "main.t", WORK, 60, "me"))
    job_rows.pause_job(lake.store, 1)
    job_rows.resume_job(lake.store, 1)

    assert look(lake, 1).state is JobState.RUNNING
    assert job_rows.claim_job(lake.store, 1, "two")


def test_a_job_gets_another_pace_until_it_ends(lake):
    begun(lake)
    job_rows.pace_job(lake.store, 1, JobPace(tasks=2))
    assert look(lake, 1).work == replace(WORK, pace=JobPace(tasks=2))

    job_rows.cancel_job(lake.store, 1, "enough")
    with pytest.raises(Conflict, match="job 1 is already CANCELLED"):
        job_rows.pace_job(lake.store, 1, JobPace())
    with pytest.raises(Conflict, match="job 1 is already CANCELLED: enough"):
        job_rows.pause_job(lake.store, 1)


NEWER = "was made by a newer Shelduck; upgrade"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            "work = '{\"version\":2}'",
            f"the work of job 1 on main.t {NEWER} (format version 2, supp",
        ),
        ("state = 'ASLEEP'", f"state ASLEEP of job 1 on main.t {NEWER}"),
    ],
)
def test_a_job_that_only_a_newer_shelduck_knows_is_open_and_does_no_harm(lake, change, told):
    began = begun(lake)
    lake.create("other", a="int")
    with lake.store.write() as connection:
        connection.exec_driver_sql(f"UPDATE shelduck_job SET {change} WHERE job_id = 1")

    found = look(lake, 1)
    assert found.is_open
    assert not found.is_understood
    assert found.message.startswith(told)
    with pytest.raises(NewerFormat) as caught:
        _ = found.work
    assert str(caught.value) == found.message
    with pytest.raises(NewerFormat) as caught:
        begun(lake)
    assert str(caught.value) == found.message
    with lake.store.read() as connection:
        assert [j.id for j in job_rows.jobs(connection)] == [began]
        assert job_rows.open_job(connection, lake.table("t").id).id == 1
        assert job_rows.reservations(connection) == set()
        assert job_rows.light_changes(connection, job_rows.jobs(connection)) == []
    writer = Writer(lake.store, Leases(lake.store))
    assert writer.register(lake.table("t")).conversions == ()
    writer.give_up()
    other = lake.table("other")
    assert carried_out(lake, [], NewJob(other.id, "main.other", JobWork(), 60)).job.id == 2


def test_work_that_is_broken_is_told_of_its_job(lake):
    begun(lake)
    with lake.store.write() as connection:
        connection.exec_driver_sql("UPDATE shelduck_job SET work = '[]'")

    assert look(lake, 1).message == "cannot decode the work of job 1 on main.t: '[]'"
    with pytest.raises(CorruptLake, match=r"^cannot decode the work of job 1 on main\.t"):
        _ = look(lake, 1).work


def test_the_change_feed_ends_at_a_job_that_is_not_understood(lake):
    begun(lake)
    carried_out(lake, [], JobStep(1, OPEN_STATES, JobState.FINISHED))
    with lake.store.write() as connection:
        connection.exec_driver_sql("UPDATE shelduck_job SET work = '{\"version\":2}'")
    table, last = lake.table("t"), look(lake, 1).published

    with lake.store.read() as connection:
        assert job_rows.first_conversion(connection, table.id, last, last) is None
        with pytest.raises(NewerFormat, match=r"^the work of job 1 on main\.t"):
            job_rows.first_conversion(connection, table.id, last - 1, last)
