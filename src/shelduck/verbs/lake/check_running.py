"""Who is at work on a lake, and who died at it: writers, maintainers and workers of jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from shelduck import clock
from shelduck.catalog.databases.retry import write_with_retries
from shelduck.catalog.read.read import Connection
from shelduck.catalog.running.jobs import jobs
from shelduck.catalog.running.upkeep import HeldClaim, drop_claims, held_claims
from shelduck.catalog.running.writers import Registered, registered_writers, remove_dead
from shelduck.leases.identity import is_gone
from shelduck.model.changes.job import JobState
from shelduck.model.changes.problem import Problem
from shelduck.work.state import LakeState

_IDLE = "nobody waits for it; remove_orphans() deletes what it wrote"
_REMOVES = "removes its registration"


@dataclass(frozen=True, slots=True)
class Dead:
    """The writers and maintainers that gave no sign of life for a minute, or whose process ended.

    They do no harm: nobody waits for them any more. What the writers wrote is orphans.
    """

    writers: tuple[Registered, ...]
    claims: tuple[HeldClaim, ...]

    def notes(self, names: Mapping[int, str], *, all_tables: bool) -> Iterator[Problem]:
        """Return what is worth knowing of them; ``names`` are those of the tables looked at."""
        for one in self.writers:
            if all_tables or one.table_id in names:
                where = names.get(one.table_id, "")
                told = where or f"table {one.table_id}"
                wrong = f"it died while it wrote to {told}: its lease ends {one.expires}"
                yield Problem(where, "writer", one.writer, wrong, _IDLE, _REMOVES)
        for claim in self.claims if all_tables else ():
            wrong = f"it died during maintenance of {claim.subject}"
            remedy = "nobody waits for it; maintain() goes on with its work"
            yield Problem("", "maintainer", claim.worker, wrong, remedy, "releases its claim")


def dead(connection: Connection, now: datetime) -> Dead:
    """Return who is dead at ``now``; four statements at most."""
    writers = (w for w in registered_writers(connection) if w.expires <= now or is_gone(w.writer))
    claims = (c for c in held_claims(connection) if c.is_dead(now) or is_gone(c.worker))
    return Dead(tuple(writers), tuple(claims))


def forget_dead(state: LakeState) -> None:
    """Remove the registrations of writers and the claims of maintainers that died."""

    def forget(connection: Connection) -> None:
        now = clock.now()
        found = dead(connection, now)
        if found.writers:
            remove_dead(connection, now, [w.writer for w in found.writers])
        drop_claims(connection, found.claims)

    write_with_retries(state.store, forget)


@dataclass(frozen=True, slots=True)
class LeftJobs:
    """Open jobs that nobody runs: whether to go on with them is for you to say.

    ``abandoned``: their worker died a minute ago. ``released``: their worker stopped, or somebody
    has noticed since that it died.
    """

    abandoned: tuple[Problem, ...]
    released: tuple[Problem, ...]


def left_jobs(connection: Connection, names: Mapping[int, str], *, all_tables: bool) -> LeftJobs:
    """Find jobs that began and that nobody runs any more; two statements at most."""
    now = clock.now()
    abandoned, released = [], []
    for job in jobs(connection):
        is_meant = all_tables or job.table_id in names
        if not is_meant or not job.is_open or job.is_held(now):
            continue
        remedy = f"continue it with lake.job({job.id}).wait(), or cancel it"
        where, name = names.get(job.table_id, ""), f"job {job.id}"
        if job.worker is not None:
            wrong = f"its worker {job.worker} has given no sign of life since {job.heartbeat}"
            abandoned.append(Problem(where, "job", name, wrong, remedy))
        elif job.state is JobState.RUNNING:
            released.append(Problem(where, "job", name, "it began, and nobody runs it", remedy))
    return LeftJobs(tuple(abandoned), tuple(released))
