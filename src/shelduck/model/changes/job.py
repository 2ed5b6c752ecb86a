"""A heavy schema change as a job: what it is to do, and the states that it goes through."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from shelduck.errors import ShelduckError
from shelduck.model.changes.table_change import TableChange
from shelduck.model.tables.options import TableOptions
from shelduck.model.tables.rollup import RollupSpec
from shelduck.model.tables.schema import TableId
from shelduck.model.tables.shadow import Conversion

LEASE = timedelta(seconds=60)
"""How long a writer or a worker that says nothing more counts as alive."""
BEAT = timedelta(seconds=15)
"""How often they say that they are."""
TIMEOUT = TableOptions().alter_table_timeout_second


class JobState(Enum):
    """Doris' states of a schema change job; the catalog keeps the values."""

    PENDING = "PENDING"
    """Submitted, nobody has begun."""
    WAITING_TXN = "WAITING_TXN"
    """Writers that began before the job, and do not know of it, are waited for."""
    RUNNING = "RUNNING"
    """Files are converted."""
    FINISHED = "FINISHED"
    CANCELLED = "CANCELLED"


OPEN_STATES = frozenset({JobState.PENDING, JobState.WAITING_TXN, JobState.RUNNING})


@dataclass(frozen=True, slots=True)
class JobIndex:
    """A table or a rollup that a job changes, as it was when the job began.

    ``name`` is what people call it: that of a rollup stands without its base's.
    """

    name: str
    table_id: TableId


@dataclass(frozen=True, slots=True)
class JobWork:
    """What a job is to do.

    ``clauses`` are the changes of the ALTER TABLE that the job publishes; conversions are made for
    some of them. ``rewrites``: all files that are older than the job are written anew as the table
    is now, and nothing is published. ``rollups`` are made, and published together.
    ``refolds``: a key goes, and the one rollup holds the rows as they are without it.
    ``remakes``: the clauses take no new files of the table itself; rollups that they change are
    made anew and published with them. ``indexes`` are the table and the rollups that the job
    changes, those of an older job are not told: then it is the table alone.
    """

    conversions: tuple[Conversion, ...] = ()
    clauses: tuple[TableChange, ...] = ()
    rewrites: bool = False
    rollups: tuple[RollupSpec, ...] = ()
    refolds: bool = False
    remakes: bool = False
    indexes: tuple[JobIndex, ...] = ()

    @property
    def makes_rollups(self) -> bool:
        """True for a job that is about rollups, and not about columns."""
        return bool(self.rollups) and not self.refolds


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the catalog has it; ``done`` and ``total`` count files while it runs.

    ``base`` is the snapshot that reserved its columns, ``published`` the one that shows them.
    ``timeout`` is in seconds. ``last_file`` is the newest data file when it began to run.
    ``worker`` is who does it, and said so at ``heartbeat``. ``plan`` is what it is to do, or why
    nobody here can tell.
    """

    id: int
    table_id: TableId
    table_name: str
    state: JobState
    created: datetime
    plan: JobWork | ShelduckError
    timeout: int
    base: int
    schema_version: int
    finished: datetime | None = None
    published: int | None = None
    message: str = ""
    done: int = 0
    total: int = 0
    last_file: int | None = None
    worker: str | None = None
    heartbeat: datetime | None = None

    @property
    def work(self) -> JobWork:
        """What it is to do.

        Raises NewerFormat, naming the job, for one that only a newer Shelduck knows.
        """
        if isinstance(self.plan, ShelduckError):
            raise self.plan
        return self.plan

    @property
    def is_understood(self) -> bool:
        """Tell whether it is known what it is to do."""
        return isinstance(self.plan, JobWork)

    @property
    def is_open(self) -> bool:
        """True until it has finished or is cancelled."""
        return self.state in OPEN_STATES

    def is_late(self, now: datetime) -> bool:
        """Tell whether it has had more time than it was given."""
        return now > self.created + timedelta(seconds=self.timeout)

    def is_held(self, now: datetime) -> bool:
        """Tell whether somebody alive works on it."""
        if not self.is_open or self.worker is None or self.heartbeat is None:
            return False
        return now < self.heartbeat + LEASE


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to record in the commit that reserves its columns."""

    table_id: TableId
    table_name: str
    work: JobWork
    timeout: int = TIMEOUT


@dataclass(frozen=True, slots=True)
class JobStep:
    """What a commit does to a job, on the condition that it is still in one of the states.

    None leaves a count or message as it is. With ``worker`` it must be that one's still.
    """

    job_id: int
    expected: frozenset[JobState]
    state: JobState
    message: str | None = None
    done: int | None = None
    total: int | None = None
    last_file: int | None = None
    worker: str | None = None
