"""Who maintains what now: claims with a lease, so that several maintainers share the work."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select, update

from shelduck import clock
from shelduck.catalog.databases.retry import write_with_retries
from shelduck.catalog.databases.store import Store
from shelduck.catalog.read.queries import present_tables
from shelduck.catalog.running.jobs import may_claim
from shelduck.catalog.schema import own_tables
from shelduck.model.changes.job import LEASE

_TABLE = own_tables.upkeep
_c = _TABLE.c


def last_finished(connection: Connection, subject: str) -> datetime | None:
    """Return when a subject was last maintained; at most two statements."""
    if not present_tables(connection, [_TABLE.name]):
        return None
    found = connection.execute(select(_c.finished).where(_c.subject == subject)).first()
    return None if found is None else found.finished


def maintainer(store: Store, subject: str) -> str | None:
    """Return who claimed a subject last and has not released it; one or two statements."""
    with store.read() as connection:
        if not present_tables(connection, [_TABLE.name]):
            return None
        found = connection.execute(select(_c.worker).where(_c.subject == subject)).first()
    return None if found is None else found.worker


@dataclass(frozen=True, slots=True)
class HeldClaim:
    """A claim of maintenance that nobody has released; ``subject`` is what it is about."""

    subject: str
    worker: str
    heartbeat: datetime

    def is_dead(self, now: datetime) -> bool:
        """Return whether its lease has ended."""
        return self.heartbeat < now - LEASE


def held_claims(connection: Connection) -> list[HeldClaim]:
    """Return the claims that nobody has released; at most two statements."""
    if not present_tables(connection, [_TABLE.name]):
        return []
    query = select(_c.subject, _c.worker, _c.heartbeat).where(_c.worker.is_not(None))
    return [HeldClaim(*row) for row in connection.execute(query.order_by(_c.subject))]


def drop_claims(connection: Connection, claims: Collection[HeldClaim]) -> None:
    """Release claims of dead maintainers, unless they were renewed since; a statement each."""
    for claim in claims:
        same = (_c.subject == claim.subject, _c.worker == claim.worker)
        seen = _c.heartbeat == claim.heartbeat
        connection.execute(update(_TABLE).where(*same, seen).values(worker=None))


def claim_upkeep(store: Store, subject: str, worker: str, gone: str | None = None) -> bool:
    """Assign a subject to a worker; False if another worker has it and its lease still runs.

    ``gone`` is a worker that is known to be dead.
    """

    def claim(connection: Connection) -> bool:
        if not present_tables(connection, [_TABLE.name]):
            own_tables.ensure_own_tables(store, connection)
        now = clock.now()
        mine = update(_TABLE).where(_c.subject == subject, may_claim(_TABLE, worker, gone))
        if connection.execute(mine.values(worker=worker, heartbeat=now)).rowcount:
            return True
        if connection.execute(select(_c.subject).where(_c.subject == subject)).first():
            return False
        connection.execute(insert(_TABLE), {"subject": subject, "worker": worker, "heartbeat": now})
        return True

    return write_with_retries(store, claim)


def release_upkeep(store: Store, subject: str, worker: str, *, is_done: bool) -> None:
    """Release a subject, and note the time if it is maintained."""
    values = {"worker": None} | ({"finished": clock.now()} if is_done else {})
    mine = update(_TABLE).where(_c.subject == subject, _c.worker == worker).values(**values)
    write_with_retries(store, lambda connection: connection.execute(mine))


def forget_upkeep(store: Store, subject: str, worker: str) -> None:
    """Release a subject that nobody claims again."""
    mine = delete(_TABLE).where(_c.subject == subject, _c.worker == worker)
    write_with_retries(store, lambda connection: connection.execute(mine))


def renew_upkeep(connection: Connection, workers: Collection[str]) -> None:
    """Renew the claims of workers; one statement."""
    mine = update(_TABLE).where(_c.worker.in_(workers))
    connection.execute(mine.values(heartbeat=clock.now()))
