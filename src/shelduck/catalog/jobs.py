"""Jobs in the catalog: recorded in the commit that reserves their columns, moved by guarded steps.

Our own table beside DuckLake's, so that what a job is told to have done is true in the very
transaction that does it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Select, func, insert, select, update

from shelduck.catalog import own_tables, queries
from shelduck.catalog.retry import with_retries
from shelduck.catalog.store import Store
from shelduck.errors import AlreadyExists, Conflict, NotFound
from shelduck.model.job import (
    OPEN_STATES,
    Job,
    JobState,
    JobStep,
    NewJob,
    conversions_text,
    parse_conversions,
)
from shelduck.model.schema import SnapshotId, TableId
from shelduck.model.table import Snapshot

_TABLE = own_tables.job
_c = _TABLE.c
_OPEN = tuple(sorted(state.value for state in OPEN_STATES))


def jobs(connection: Connection) -> list[Job]:
    """Return all jobs, the newest first; two statements at most."""
    return _read(connection, select(_TABLE).order_by(_c.job_id.desc()))


def job(connection: Connection, number: int) -> Job:
    """Return a job by its id; raise NotFound, naming those there are."""
    found = _read(connection, select(_TABLE).where(_c.job_id == number))
    if not found:
        raise NotFound.named("job", str(number), [str(j.id) for j in jobs(connection)])
    return found[0]


def open_job(connection: Connection, table: TableId) -> Job | None:
    """Return the job of a table that has not ended; there is at most one."""
    query = select(_TABLE).where(_c.table_id == table, _c.state.in_(_OPEN))
    return next(iter(_read(connection, query)), None)


def record_job(store: Store, connection: Connection, new: NewJob, snapshot: Snapshot) -> int:
    """Record a job in the transaction that reserves its columns, and return its id.

    Raises AlreadyExists, naming the job, where the table has one that has not ended.
    """
    if not queries.present_tables(connection, [_TABLE.name]):
        own_tables.ensure_own_tables(store, connection)
    before = open_job(connection, new.table_id)
    if before is not None:
        raise AlreadyExists(
            f"job {before.id} changes the types of {new.table_name} already"
            f" ({before.state.value}); wait for it, or CANCEL ALTER TABLE COLUMN FROM"
            f" {new.table_name}"
        )
    number = (connection.execute(select(func.max(_c.job_id))).scalar() or 0) + 1
    row = {
        "job_id": number,
        "table_id": new.table_id,
        "table_name": new.table_name,
        "state": JobState.PENDING.value,
        "created": datetime.now(UTC),
        "conversions": conversions_text(new.conversions),
        "timeout": new.timeout,
        "base_snapshot": snapshot.id,
        "schema_version": snapshot.schema_version,
        "message": "",
        "done_files": 0,
        "total_files": 0,
    }
    connection.execute(insert(_TABLE), row)
    return int(number)


def move_job(store: Store, step: JobStep) -> None:
    """Move a job on in a transaction of its own, which waits for others as every commit does.

    Raises Conflict when the job is in another state than the step expects.
    """

    def attempt() -> None:
        with store.write() as connection:
            step_job(connection, step)

    with_retries(attempt)


def step_job(connection: Connection, step: JobStep, snapshot: SnapshotId | None = None) -> None:
    """Move a job on; Conflict when it is in another state than the step expects.

    ``snapshot`` is the one that the same transaction makes.
    """
    told = {"message": step.message, "done_files": step.done, "total_files": step.total}
    values: dict[str, Any] = {name: value for name, value in told.items() if value is not None}
    values["state"] = step.state.value
    if step.state not in OPEN_STATES:
        values["finished"] = datetime.now(UTC)
    if step.state is JobState.FINISHED:
        values["published_snapshot"] = snapshot
    moved = connection.execute(
        update(_TABLE)
        .where(_c.job_id == step.job_id, _c.state.in_(sorted(s.value for s in step.expected)))
        .values(values)
    )
    if moved.rowcount != 1:
        now = job(connection, step.job_id)
        raise Conflict(f"job {now.id} is {now.state.value} by now: {now.message or 'no message'}")


def _read(connection: Connection, query: Select[Any]) -> list[Job]:
    if not queries.present_tables(connection, [_TABLE.name]):
        return []
    return [
        Job(
            id=row.job_id,
            table_id=TableId(row.table_id),
            table_name=row.table_name,
            state=JobState(row.state),
            created=row.created,
            conversions=parse_conversions(row.conversions),
            timeout=row.timeout,
            base=row.base_snapshot,
            schema_version=row.schema_version,
            finished=row.finished,
            published=row.published_snapshot,
            message=row.message or "",
            done=row.done_files,
            total=row.total_files,
        )
        for row in connection.execute(query)
    ]
