"""Jobs in the catalog: recorded by the commit that reserves their columns, with guarded steps.

They are in Shelduck's own table beside DuckLake's, so that the same transaction does the work of a
step and records it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from shelduck import clock
from shelduck.catalog.databases.known import dialect_of
from shelduck.catalog.databases.store import Store, write_with_retries
from shelduck.catalog.read import queries, read
from shelduck.catalog.read.queries import present_tables
from shelduck.catalog.read.together import Answers, Selects, Together
from shelduck.catalog.schema import own_tables
from shelduck.ducklake import tables
from shelduck.ducklake.checked import BIGINT, or_null
from shelduck.errors import (
    AlreadyExists,
    Conflict,
    CorruptLake,
    NewerFormat,
    NotFound,
    ShelduckError,
)
from shelduck.model.changes.change import Verb
from shelduck.model.changes.job import (
    LEASE,
    OPEN_STATES,
    STORED_WORK,
    Job,
    JobPace,
    JobSpeed,
    JobState,
    JobStep,
    JobWork,
    NewJob,
)
from shelduck.model.changes.modify import ArrangementChange
from shelduck.model.tables.rollup import ROLLUP
from shelduck.model.tables.schema import SnapshotId, TableId
from shelduck.model.tables.table_version import Conversion, Snapshot

_TABLE = own_tables.job
_c = _TABLE.c
_NAMES = {
    "job_id": "id",
    "base_snapshot": "base",
    "published_snapshot": "published",
    "done_files": "done",
    "total_files": "total",
}
# The columns that hold a value of a job as it is, with its name there.
_AS_THEY_ARE = {n: _NAMES.get(n, n) for c in _c if (n := c.name) not in ("state", "work")}
_CLAIMED = tuple(sorted(s.value for s in OPEN_STATES if s is not JobState.PAUSED))
_ENDED = tuple(sorted(state.value for state in JobState if state not in OPEN_STATES))


OPEN_JOB = sa.select(_TABLE).where(
    _c.table_id == sa.bindparam("of_table", type_=BIGINT), _c.state.not_in(_ENDED)
)
"""Asks for the unfinished job of :of_table."""
_w = own_tables.writer.c
ASK_BEFORE: Selects = (
    ("open_job", OPEN_JOB),
    ("newest_job", sa.select(or_null(sa.func.max(_c.job_id)).label("job_id"))),
    (
        "writers",
        sa.select(_w.writer_id)
        .where(_w.table_id == sa.bindparam("of_table", type_=BIGINT))
        .limit(1),
    ),
)
"""Asks what `record_job` must know."""
_BEFORE = Together(dict(ASK_BEFORE))
_SPEED = own_tables.job_speed
_speed = _SPEED.c


def jobs(connection: sa.Connection) -> list[Job]:
    """Return all jobs, the newest first; two statements at most."""
    return _read(connection, sa.select(_TABLE).order_by(_c.job_id.desc()))


def job(connection: sa.Connection, number: int, *, is_there: bool | None = None) -> Job:
    """Return a job by its id; raise NotFound, naming the existing jobs.

    ``is_there`` is as for `open_job`.
    """
    found = _read(connection, sa.select(_TABLE).where(_c.job_id == number), is_there=is_there)
    if not found:
        raise NotFound.named("job", str(number), [str(j.id) for j in jobs(connection)])
    return found[0]


def open_job(connection: sa.Connection, table: TableId) -> Job | None:
    """Return the unfinished job of a table; there is at most one."""
    query = sa.select(_TABLE).where(_c.table_id == table, _c.state.not_in(_ENDED))
    return next(iter(_read(connection, query)), None)


def tables_at_work(connection: sa.Connection) -> set[int]:
    """Return the tables of open jobs that a worker runs now; two statements at most."""
    if not queries.present_tables(connection, [_TABLE.name]):
        return set()
    alive = (_c.worker.is_not(None), _c.heartbeat >= clock.now() - LEASE)
    query = sa.select(_c.table_id).where(_c.state.not_in(_ENDED), *alive)
    return set(connection.execute(query).scalars())


def working_since(connection: sa.Connection, now: datetime) -> list[tuple[str, datetime]]:
    """Return the tables, by uuid, of open jobs that a worker runs, and when these were made.

    The catalog has a table of jobs. One statement.
    """
    t = tables.table.c
    alive = (_c.worker.is_not(None), _c.heartbeat >= now - LEASE)
    query = (
        sa.select(t.table_uuid, _c.created)
        .join_from(_TABLE, tables.table, _c.table_id == t.table_id)
        .where(_c.state.not_in(_ENDED), *alive)
    )
    return [(str(uuid), created) for uuid, created in connection.execute(query)]


def release_dead_workers(connection: sa.Connection, now: datetime) -> None:
    """Release the jobs whose worker's lease has ended, so that it cannot go on; one statement."""
    dead = (_c.worker.is_not(None), _c.heartbeat < now - LEASE)
    released = sa.update(_TABLE).where(_c.state.in_(_CLAIMED), *dead).values(worker=None)
    connection.execute(released)


def first_conversion(
    connection: sa.Connection, table: TableId, first: int, last: int
) -> Job | None:
    """Return the job that first showed converted columns after ``first``, by ``last``."""
    query = sa.select(_TABLE).where(
        _c.table_id == table, _c.published_snapshot.between(first + 1, last)
    )
    found = _read(connection, query.order_by(_c.published_snapshot))
    return next((job for job in found if job.work.conversions), None)


def reservations(connection: sa.Connection) -> set[tuple[int, int]]:
    """Return the snapshots that only took ids for a job's columns, with the table."""
    known = [j for j in jobs(connection) if j.is_understood]
    return {(j.base, j.table_id) for j in known if j.work.conversions}


@dataclass(frozen=True, slots=True)
class LightChange:
    """A change of a table's columns without a job: the snapshot that made it, and the table.

    ``is_rollup``: the table is a rollup of another table, and is named after it.
    """

    snapshot: Snapshot
    table_id: TableId
    table_name: tuple[str, str]
    is_rollup: bool = False


def light_changes(connection: sa.Connection, known: Iterable[Job]) -> list[LightChange]:
    """Return the alterations that snapshots logged and that do not belong to ``known`` jobs.

    The newest first. Two statements, and one for each table that was altered.
    """
    tagged = sa.select(tables.tag.c.object_id).where(tables.tag.c.key == ROLLUP)
    rollups = set(connection.execute(tagged).scalars())
    of_jobs = {number for j in known for number in _snapshots_of(j)}
    names: dict[int, dict[int, tuple[str, str]]] = {}
    found: list[LightChange] = []
    for row in connection.execute(queries.snapshots_altering()):
        snapshot = read.as_snapshot(row)
        for entry in read.entries_of(snapshot):
            if entry.verb is not Verb.ALTERED_TABLE or snapshot.id in of_jobs:
                continue
            table = TableId(entry.id or 0)
            if table not in names:
                names[table] = read.names_of(connection, table)
            called = [name for begin, name in names[table].items() if begin <= snapshot.id]
            if called:
                found.append(LightChange(snapshot, table, called[-1], table in rollups))
    return found[::-1]


def _snapshots_of(job: Job) -> tuple[int | None, ...]:
    """Return the snapshots that a job made itself; others may have made the one where it began."""
    if not job.is_understood:
        return (job.base, job.published)
    made_one = job.work.conversions or any(
        isinstance(c, ArrangementChange) for c in job.work.clauses
    )
    return (job.base, job.published) if made_one else (job.published,)


def record_job(
    connection: sa.Connection, new: NewJob, snapshot: Snapshot, known: Answers | None = None
) -> Job:
    """Record a job in the transaction that reserves its columns, and return it.

    If it has a worker and no writer of the table is registered, for which it would have to wait,
    then it is RUNNING. ``known`` are the answers to `ASK_BEFORE`, which save one of two statements.
    All tables of Shelduck exist. Raises AlreadyExists, naming the job, if the table has an
    unfinished one.
    """
    answers = known or _BEFORE.ask(connection, {"of_table": new.table_id})
    before = next(map(as_job, answers["open_job"]), None)
    if before is not None:
        word = "ROLLUP" if before.work.makes_rollups else "COLUMN"
        state = "ROLLUP" if before.work.makes_rollups else "SCHEMA_CHANGE"
        raise AlreadyExists(
            f"table {new.table_name} is under {state} by job {before.id} ({before.state.value}):"
            f" its state is not NORMAL; wait for the job, or use CANCEL ALTER TABLE {word} FROM"
            f" {new.table_name}",
            about="job",
        )
    runs = new.worker is not None and not answers["writers"]
    undoes = new.work.undoes
    now = clock.now()
    made = Job(
        id=(answers["newest_job"][0].job_id or 0) + 1,
        table_id=new.table_id,
        table_name=new.table_name,
        state=JobState.RUNNING if runs else JobState.PENDING,
        created=now,
        plan=new.work,
        timeout=new.timeout,
        base=snapshot.id,
        schema_version=snapshot.schema_version,
        message="" if undoes is None else undoes.told,
        last_file=snapshot.next_file_id - 1 if runs else None,
        worker=new.worker,
        heartbeat=None if new.worker is None else now,
    )
    connection.execute(sa.insert(_TABLE), _row_of(made))
    return made


def _row_of(job: Job) -> dict[str, Any]:
    """Return the row of a new job."""
    row = {column: getattr(job, name) for column, name in _AS_THEY_ARE.items()}
    return row | {"state": job.state.value, "work": STORED_WORK.write(job.work)}


def move_job(store: Store, step: JobStep) -> None:
    """Move a job to its next state in a separate transaction, with retries as for any commit.

    Raises Conflict if the job is in another state than the step expects.
    """
    write_with_retries(store, lambda connection: step_job(connection, step))


def cancel_job(store: Store, number: int, message: str) -> None:
    """Cancel an unfinished job; Conflict if it has ended."""
    move_job(store, JobStep(number, OPEN_STATES, JobState.CANCELLED, message))


def pause_job(store: Store, number: int) -> None:
    """Pause an open job and take it from its worker; Conflict if it is paused or has ended."""
    open_now = OPEN_STATES - {JobState.PAUSED}
    move_job(store, JobStep(number, open_now, JobState.PAUSED, "paused by a user"))


def resume_job(store: Store, number: int) -> None:
    """Let a paused job go on where it was; the pause does not count as its time.

    Conflict if it is not paused.
    """

    def resume(connection: sa.Connection) -> None:
        now = job(connection, number)
        state = JobState.PENDING if now.last_file is None else JobState.RUNNING
        step_job(connection, JobStep(number, frozenset({JobState.PAUSED}), state, ""))
        paused = timedelta() if now.heartbeat is None else clock.now() - now.heartbeat
        longer = now.timeout + math.ceil(paused.total_seconds())
        resumed = sa.update(_TABLE).where(_c.job_id == number)
        connection.execute(resumed.values(timeout=longer, heartbeat=None))

    write_with_retries(store, resume)


def pace_job(store: Store, number: int, pace: JobPace) -> None:
    """Give an open job another pace; Conflict if it has ended."""

    def change(connection: sa.Connection) -> None:
        now = job(connection, number)
        if not now.is_open:
            raise Conflict(f"job {number} is already {now.state.value}")
        _change_work(connection, replace(now.work, pace=pace), number)

    write_with_retries(store, change)


def _change_work(connection: sa.Connection, work: JobWork, number: int) -> None:
    old = connection.execute(sa.select(_c.work).where(_c.job_id == number)).scalar_one()
    text = STORED_WORK.write(work, old)
    connection.execute(sa.update(_TABLE).where(_c.job_id == number).values(work=text))


def step_job(
    connection: sa.Connection,
    step: JobStep,
    snapshot: SnapshotId | None = None,
    present: Collection[str] | None = None,
) -> None:
    """Move a job to its next state; Conflict if it is in another state than the step expects.

    ``snapshot`` is the one that the same transaction makes; ``present`` are the tables that the
    database has, if the caller already knows.
    """
    told = ("message", "done_files", "total_files", "last_file")
    known = {name: getattr(step, _AS_THEY_ARE[name]) for name in told}
    values: dict[str, Any] = {name: value for name, value in known.items() if value is not None}
    values["state"] = step.state.value
    if step.state not in OPEN_STATES:
        values["finished"] = clock.now()
        values["worker"] = None
    if step.state is JobState.PAUSED:
        values |= {"worker": None, "heartbeat": clock.now()}
    if step.state is JobState.FINISHED:
        values["published_snapshot"] = snapshot
    condition = [_c.job_id == step.job_id, _c.state.in_(sorted(s.value for s in step.expected))]
    if step.worker is not None:
        condition.append(_c.worker == step.worker)
    if connection.execute(sa.update(_TABLE).where(*condition).values(values)).rowcount != 1:
        now = job(connection, step.job_id)
        raise Conflict(f"job {now.id} is already {now.state.value}: {now.message or 'no message'}")
    if step.folded:
        work = job(connection, step.job_id).work
        _change_work(connection, replace(work, folded=step.folded), step.job_id)
    if step.speed is not None:
        add_speed(connection, step.job_id, step.speed, present)


def claim_job(store: Store, number: int, worker: str, gone: str | None = None) -> bool:
    """Assign an open job to a worker; False if another worker has it and its lease still runs.

    ``gone`` is a worker that is known to be dead.
    """
    claimed = (
        sa.update(_TABLE)
        .where(_c.job_id == number, _c.state.in_(_CLAIMED), may_claim(_TABLE, worker, gone))
        .values(worker=worker, heartbeat=clock.now())
    )
    return write_with_retries(store, lambda connection: connection.execute(claimed).rowcount == 1)


def may_claim(source: sa.Table, worker: str, gone: str | None) -> sa.ColumnElement[bool]:
    """Return the condition that a worker may claim a row with a worker and its heartbeat.

    Nobody has it, the worker itself has it, ``gone`` is dead, or the lease has ended.
    """
    c = source.c
    expired = c.heartbeat < clock.now() - LEASE
    return sa.or_(c.worker.is_(None), c.worker.in_([worker, gone]), expired)


def release_job(store: Store, number: int, worker: str) -> None:
    """Release a job, so that another worker need not wait until its lease ends."""
    released = sa.update(_TABLE).where(_c.job_id == number, _c.worker == worker).values(worker=None)
    write_with_retries(store, lambda connection: connection.execute(released))


def renew_workers(connection: sa.Connection, workers: Collection[str]) -> None:
    """Renew the leases of workers; one statement."""
    mine = sa.update(_TABLE).where(_c.worker.in_(workers), _c.state.in_(_CLAIMED))
    connection.execute(mine.values(heartbeat=clock.now()))


def _read(
    connection: sa.Connection, query: sa.Select[Any], *, is_there: bool | None = None
) -> list[Job]:
    if is_there is None:
        is_there = bool(queries.present_tables(connection, [_TABLE.name]))
    if not is_there:
        return []
    return [as_job(row) for row in connection.execute(query)]


def as_job(row: Any) -> Job:
    """Return the job that a row of its table describes."""
    plan: JobWork | ShelduckError
    known = next((state for state in JobState if state.value == row.state), None)
    name = f"job {row.job_id} on {row.table_name}"
    try:
        plan = STORED_WORK.read(row.work, name)
    except (NewerFormat, CorruptLake) as error:
        plan = error
    if known is None:
        plan = NewerFormat(f"state {row.state} of {name} was made by a newer Shelduck; upgrade")
    values = {name: getattr(row, column) for column, name in _AS_THEY_ARE.items()}
    values["message"] = str(plan) if isinstance(plan, ShelduckError) else row.message or ""
    return Job(**values, state=known or JobState.RUNNING, plan=plan)


def published_conversions(known: Iterable[Job], table: int, since: int = 0) -> list[Conversion]:
    """Return what jobs of a table have published after a snapshot, in the order of the jobs."""
    mine = (j for j in known if j.table_id == table and j.is_understood)
    done = sorted((j.published, j.id, j) for j in mine if (j.published or 0) > since)
    return [c for *_, job in done for c in job.work.conversions]


def followed_by(connection: sa.Connection, table: int) -> list[tuple[int, int]]:
    """Return the id of each column that jobs of a table converted, with that of its successor.

    In the order of the jobs: after an undo, a column has two successors, or is one of its own.
    """
    found = published_conversions(jobs(connection), table)
    return [(int(c.column_id), int(c.shadow_id)) for c in found]


def add_speed(
    connection: sa.Connection, number: int, more: JobSpeed, present: Collection[str] | None
) -> None:
    """Add to what a job has rewritten; older catalogs do not record it.

    ``present`` are the tables that the database has, if the caller knows.
    """
    if present is None:
        present = present_tables(connection, [_SPEED.name])
    if _SPEED.name not in present:
        return
    added = dialect_of(connection).insert(_SPEED).values(job_id=number, **asdict(more))
    new = added.excluded
    sums = {c.name: c + new[c.name] for c in (_speed.bytes, _speed.milliseconds)}
    sums["cores"] = new.cores
    connection.execute(added.on_conflict_do_update(index_elements=[_speed.job_id], set_=sums))


def speeds(connection: sa.Connection) -> dict[int, JobSpeed]:
    """Return what the newest twenty jobs that rewrote files did, by job id; two statements."""
    if not present_tables(connection, [_SPEED.name]):
        return {}
    newest = sa.select(_SPEED).order_by(_speed.job_id.desc()).limit(20)
    return {
        row.job_id: JobSpeed(row.bytes, row.milliseconds, row.cores)
        for row in connection.execute(newest)
    }
