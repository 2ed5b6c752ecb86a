"""Who is at work on a lake: writers, registered before they write, and maintainers with claims.

A new job waits for writers that do not know it, and for dead ones until their lease ends. Whoever
no longer waits for a writer removes it, and then it cannot commit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import sqlalchemy as sa

from shelduck import clock
from shelduck.catalog.databases.store import Store, write_with_retries
from shelduck.catalog.read import queries, read
from shelduck.catalog.read.queries import present_tables
from shelduck.catalog.read.together import Together
from shelduck.catalog.running.job_rows import (
    OPEN_JOB,
    as_job,
    may_claim,
    release_dead_workers,
    step_job,
    working_since,
)
from shelduck.catalog.running.rollup_homes import rollup_homes
from shelduck.catalog.schema import own_tables
from shelduck.ducklake import tables
from shelduck.ducklake.checked import or_null
from shelduck.errors import Conflict
from shelduck.model.changes.job import LEASE, Job, JobStep
from shelduck.model.tables.schema import TableId

_TABLE = own_tables.writer
_c = _TABLE.c


_JOB = Together({"head": queries.newest_snapshot(), "open_job": OPEN_JOB})
_NEWEST = sa.select(or_null(sa.func.max(tables.snapshot.c.snapshot_id))).scalar_subquery()
_ASKING = sa.insert(_TABLE).values(snapshot_id=_NEWEST).returning(OPEN_JOB.exists())
"""Registers a writer of :of_table, and tells whether this has an unfinished job."""
_CLAIMS = own_tables.upkeep
_held = _CLAIMS.c


def register_writer(store: Store, writer: str, table: TableId) -> Job | None:
    """Register a writer of a table, and return the open job of the table that it must serve.

    One short transaction, after which all tables of Shelduck exist. One statement if there is no
    job and the database can return answers from an INSERT, otherwise two. If a writer and a job
    begin at the same time, one always sees the other.
    """

    def register(connection: sa.Connection, *, is_known: bool) -> Job | None:
        if not is_known:
            _require_own_tables(store, connection)
        row = {"writer_id": writer, "table_id": table, "expires": clock.now() + LEASE}
        of_table = {"of_table": table}
        asks = connection.dialect.insert_returning
        if asks and not connection.execute(_ASKING, row | of_table).scalar_one():
            return None
        answers = _JOB.ask(connection, of_table)
        if not asks:
            row["snapshot_id"] = read.newest(answers["head"]).id
            connection.execute(sa.insert(_TABLE), row)
        return next(map(as_job, answers["open_job"]), None)

    def attempt(is_known: bool) -> Job | None:
        return write_with_retries(store, partial(register, is_known=is_known))

    return own_tables.if_known(store, attempt)


def _require_own_tables(store: Store, connection: sa.Connection) -> None:
    needed = own_tables.OWN.tables
    if len(queries.present_tables(connection, needed)) < len(needed):
        own_tables.ensure_own_tables(store, connection)
    store.has_own_tables = True


class LeaseLost(Conflict):
    """A writer was taken for dead, so its files may be gone, or lack the columns of a job."""


def end_writers(
    connection: sa.Connection, writers: Mapping[str, int], *, stay: bool = False
) -> None:
    """Remove writers in the transaction that publishes what they wrote; one statement.

    ``writers`` says for how many tables each of them has registered. With ``stay``, they publish
    more later, and their leases are renewed instead. Raises LeaseLost if others have removed one of
    them.
    """
    mine = _c.writer_id.in_(writers)
    renewal, end = sa.update(_TABLE).values(expires=clock.now() + LEASE), sa.delete(_TABLE)
    ended = connection.execute((renewal if stay else end).where(mine))
    if ended.rowcount < sum(writers.values()):
        raise LeaseLost(
            f"this write gave no sign of life for {LEASE.seconds} seconds, so others took it for"
            " dead, and may have deleted its files; nothing was committed, write again"
        )


def forget_writers(connection: sa.Connection, writers: Collection[str]) -> None:
    """Remove writers that commit nothing; one statement."""
    connection.execute(sa.delete(_TABLE).where(_c.writer_id.in_(writers)))


@dataclass(frozen=True, slots=True)
class Registered:
    """A registered writer of a table, and when its lease ends."""

    writer: str
    table_id: TableId
    expires: datetime


def registered_writers(connection: sa.Connection) -> list[Registered]:
    """Return the registered writers, those whose lease has ended too; two statements."""
    if not queries.present_tables(connection, [_TABLE.name]):
        return []
    query = sa.select(_c.writer_id, _c.table_id, _c.expires).order_by(_c.expires, _c.writer_id)
    return [Registered(*row) for row in connection.execute(query)]


def remove_dead(connection: sa.Connection, now: datetime, gone: Collection[str] = ()) -> None:
    """Remove whoever writes files and whose lease has ended by ``now``, so that he cannot commit.

    These are writers, and workers of jobs. ``gone`` are writers that are known to be dead. Three
    statements.
    """
    present = queries.present_tables(connection, [_TABLE.name, own_tables.job.name])
    if _TABLE.name in present:
        dead = sa.or_(_c.expires <= now, _c.writer_id.in_(gone))
        connection.execute(sa.delete(_TABLE).where(dead))
    if own_tables.job.name in present:
        release_dead_workers(connection, now)


def renew_writers(connection: sa.Connection, writers: Collection[str]) -> None:
    """Renew the leases of writers; one statement."""
    later = clock.now() + LEASE
    connection.execute(sa.update(_TABLE).where(_c.writer_id.in_(writers)).values(expires=later))


def writers_before(connection: sa.Connection, table: TableId, snapshot: int) -> list[str]:
    """Return the writers of a table that began before a snapshot and whose lease still runs.

    For a job: since it is recorded, all tables of Shelduck exist. One statement.
    """
    alive = (_c.table_id == table, _c.snapshot_id < snapshot, _c.expires > clock.now())
    return list(connection.execute(sa.select(_c.writer_id).where(*alive)).scalars())


def at_work_since(connection: sa.Connection, now: datetime) -> dict[str, datetime]:
    """Return the tables, by uuid, that have writers whose lease runs at ``now``, and since when.

    Whoever has removed the dead, and wants to know who may still commit, gives the same moment: a
    lease that ends between two moments would be neither removed nor at work.

    This is the time of the snapshot on which the first of them began, or the minimum time if that
    snapshot has expired. A job that a worker runs writes since it was made. Whoever writes to a
    table also writes to its rollups. One statement, four if writers ever registered.
    """
    if not queries.present_tables(connection, [_TABLE.name]):
        return {}
    found = _writing_since(connection, now)
    for uuid, since in working_since(connection, now):
        found[uuid] = min(since, found.get(uuid, since))
    for home in rollup_homes(connection) if found else ():
        if home.base in found:
            since = found[home.base]
            found[home.uuid] = min(since, found.get(home.uuid, since))
    return found


def _writing_since(connection: sa.Connection, now: datetime) -> dict[str, datetime]:
    snapshot, table = tables.snapshot.c, tables.table.c
    query = (
        sa.select(table.table_uuid, or_null(snapshot.snapshot_time))
        .join_from(_TABLE, tables.table, _c.table_id == table.table_id)
        .outerjoin(tables.snapshot, _c.snapshot_id == snapshot.snapshot_id)
        .where(_c.expires > now)
    )
    found: dict[str, datetime] = {}
    for uuid, since in connection.execute(query):
        began = datetime.min.replace(tzinfo=UTC) if since is None else since
        found[str(uuid)] = min(began, found.get(str(uuid), began))
    return found


def begin_running(store: Store, step: JobStep, job: Job) -> None:
    """Start a job that no longer waits for anybody, from the files that exist now.

    Writers for which it would have waited are dead, and are removed so that they cannot commit.
    """
    waited = sa.delete(_TABLE).where(_c.table_id == job.table_id, _c.snapshot_id < job.base)

    def begin(connection: sa.Connection) -> None:
        connection.execute(waited)
        last = read.snapshot(connection).next_file_id - 1
        step_job(connection, replace(step, last_file=last))

    write_with_retries(store, begin)


def last_finished(connection: sa.Connection, subject: str) -> datetime | None:
    """Return when a subject was last maintained; at most two statements."""
    found = _claim_on(connection, subject)
    return None if found is None else found.finished


def maintainer(store: Store, subject: str) -> str | None:
    """Return who claimed a subject last and has not released it; one or two statements."""
    found = store.ask(_claim_on, subject)
    return None if found is None else found.worker


def _claim_on(connection: sa.Connection, subject: str) -> Any:
    if not present_tables(connection, [_CLAIMS.name]):
        return None
    return connection.execute(sa.select(_CLAIMS).where(_held.subject == subject)).first()


@dataclass(frozen=True, slots=True)
class HeldClaim:
    """A claim of maintenance that nobody has released; ``subject`` is what it is about."""

    subject: str
    worker: str
    heartbeat: datetime

    def is_dead(self, now: datetime) -> bool:
        """Return whether its lease has ended."""
        return self.heartbeat < now - LEASE


def held_claims(connection: sa.Connection) -> list[HeldClaim]:
    """Return the claims that nobody has released; at most two statements."""
    if not present_tables(connection, [_CLAIMS.name]):
        return []
    query = sa.select(_held.subject, _held.worker, _held.heartbeat).where(_held.worker.is_not(None))
    return [HeldClaim(*row) for row in connection.execute(query.order_by(_held.subject))]


def drop_claims(connection: sa.Connection, claims: Collection[HeldClaim]) -> None:
    """Release claims of dead maintainers, unless they were renewed since; a statement each."""
    for claim in claims:
        same = (_held.subject == claim.subject, _held.worker == claim.worker)
        seen = _held.heartbeat == claim.heartbeat
        connection.execute(sa.update(_CLAIMS).where(*same, seen).values(worker=None))


def claim_upkeep(store: Store, subject: str, worker: str, gone: str | None = None) -> bool:
    """Assign a subject to a worker; False if another worker has it and its lease still runs.

    ``gone`` is a worker that is known to be dead.
    """

    def claim(connection: sa.Connection) -> bool:
        if not present_tables(connection, [_CLAIMS.name]):
            own_tables.ensure_own_tables(store, connection)
        now = clock.now()
        mine = sa.update(_CLAIMS).where(_held.subject == subject, may_claim(_CLAIMS, worker, gone))
        if connection.execute(mine.values(worker=worker, heartbeat=now)).rowcount:
            return True
        if connection.execute(sa.select(_held.subject).where(_held.subject == subject)).first():
            return False
        connection.execute(
            sa.insert(_CLAIMS), {"subject": subject, "worker": worker, "heartbeat": now}
        )
        return True

    return write_with_retries(store, claim)


def release_upkeep(store: Store, subject: str, worker: str, *, is_done: bool) -> None:
    """Release a subject, and note the time if it is maintained."""
    values = {"worker": None} | ({"finished": clock.now()} if is_done else {})
    mine = sa.update(_CLAIMS).where(_held.subject == subject, _held.worker == worker)
    write_with_retries(store, lambda connection: connection.execute(mine.values(**values)))


def forget_upkeep(store: Store, subject: str, worker: str) -> None:
    """Release a subject that nobody claims again."""
    mine = sa.delete(_CLAIMS).where(_held.subject == subject, _held.worker == worker)
    write_with_retries(store, lambda connection: connection.execute(mine))


def renew_upkeep(connection: sa.Connection, workers: Collection[str]) -> None:
    """Renew the claims of workers; one statement."""
    mine = sa.update(_CLAIMS).where(_held.worker.in_(workers))
    connection.execute(mine.values(heartbeat=clock.now()))
