"""A heavy schema change as a job: what it does, and its states."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from shelduck.errors import ShelduckError
from shelduck.model.changes.modify import CLAUSES, TableChange
from shelduck.model.tables.options import TableOptions
from shelduck.model.tables.rollup import RollupSpec
from shelduck.model.tables.schema import FieldId, SnapshotId, TableId
from shelduck.model.tables.table_version import Conversion
from shelduck.model.text.stored import LEFT_OUT, Stored, one_of, record, without_classes
from shelduck.model.types.data_types import DataType, Decimal, List, Map, Primitive, Struct, Text

LEASE = timedelta(seconds=60)
"""How long a writer or worker counts as alive after its last sign of life."""
BEAT = timedelta(seconds=15)
"""How often they give a sign of life."""
TIMEOUT = TableOptions().alter_table_timeout_second


class JobState(Enum):
    """Doris' states of a schema change job, and PAUSED; the catalog keeps the values."""

    PENDING = "PENDING"
    """Submitted, and not yet started."""
    WAITING_TXN = "WAITING_TXN"
    """Waits for writers that began before the job and do not know it."""
    RUNNING = "RUNNING"
    """Converts files."""
    PAUSED = "PAUSED"
    """Waits until somebody resumes it. Writers fill its columns all the while."""
    FINISHED = "FINISHED"
    CANCELLED = "CANCELLED"


OPEN_STATES = frozenset({JobState.PENDING, JobState.WAITING_TXN, JobState.RUNNING, JobState.PAUSED})


@dataclass(frozen=True, slots=True)
class JobPace:
    """How much of a machine each worker of a job takes at most; None is what the job would take.

    ``tasks`` are Spark's tasks at the same time, ``bytes_per_second`` are bytes of older files.
    """

    tasks: int | None = None
    bytes_per_second: int | None = None


FULL_PACE = JobPace()


@dataclass(frozen=True, slots=True)
class JobIndex:
    """A table or a rollup that a job changes, as it was when the job began.

    ``name`` is the name that people use: for a rollup, without the name of its base.
    """

    name: str
    table_id: TableId


@dataclass(frozen=True, slots=True)
class Undone:
    """The job that another one undoes, and the snapshot that it ``published``.

    ``told`` says what comes back and what does not, as far as it is known at the beginning.
    """

    job: int
    published: SnapshotId
    told: str


@dataclass(frozen=True, slots=True)
class JobWork:
    """The work of a job.

    ``clauses`` are the changes of the ALTER TABLE that the job publishes; conversions belong to
    some of them. ``rewrites``: the job rewrites all files that are older than the job in the
    current layout of the table, and publishes nothing. ``rollups`` are built, and published
    together. ``refolds``: a key is dropped, and the only rollup holds the rows as they are without
    it. ``remakes``: the clauses need no new files of the table itself; the rollups that they change
    are rebuilt and published with them. ``indexes`` are the table and the rollups that the job
    changes. Older jobs do not record them; then it is the table alone. ``undoes`` is the job whose
    conversions these are in the other direction. ``pace`` may change while the job runs. A job that
    ``renews`` columns rewrites older files by copying the others. ``folded`` are the rows that a
    published job folded, because keys became equal: how many it took away.
    """

    conversions: tuple[Conversion, ...] = ()
    clauses: tuple[TableChange, ...] = ()
    rewrites: bool = False
    rollups: tuple[RollupSpec, ...] = ()
    refolds: bool = False
    remakes: bool = False
    indexes: tuple[JobIndex, ...] = ()
    pace: JobPace = field(default=FULL_PACE, metadata=LEFT_OUT)
    undoes: Undone | None = None
    renews: tuple[FieldId, ...] = ()
    folded: int = field(default=0, metadata=LEFT_OUT)

    @property
    def makes_rollups(self) -> bool:
        """True if the job builds rollups and changes no columns."""
        return bool(self.rollups) and not self.refolds


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the catalog stores it; ``done`` and ``total`` count files while it runs.

    ``base`` is the snapshot that reserved its columns, ``published`` the one that shows them.
    ``timeout`` is in seconds. ``last_file`` is the newest data file at the time when it began to
    run. ``worker`` runs the job and gave its last sign of life at ``heartbeat``. ``plan`` is what
    the job does, or the reason why this Shelduck cannot know it.
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
        """Return what the job does.

        Raises NewerFormat, naming the job, if only a newer Shelduck understands it.
        """
        if isinstance(self.plan, ShelduckError):
            raise self.plan
        return self.plan

    @property
    def first_feed(self) -> int:
        """Return the snapshot with which a change feed of the new columns can begin.

        It has none that moved rows to other files and folded some.
        """
        return (self.published or 0) + bool(self.work.folded)

    @property
    def is_understood(self) -> bool:
        """Return whether this Shelduck understands what the job does."""
        return isinstance(self.plan, JobWork)

    @property
    def is_open(self) -> bool:
        """True until it is finished or cancelled."""
        return self.state in OPEN_STATES

    def is_late(self, now: datetime) -> bool:
        """Return whether it has run for longer than its timeout."""
        return now > self.created + timedelta(seconds=self.timeout)

    def is_held(self, now: datetime) -> bool:
        """Return whether a live worker is running it."""
        if not self.is_open or self.worker is None or self.heartbeat is None:
            return False
        return now < self.heartbeat + LEASE


def successors(conversions: Iterable[Conversion]) -> dict[FieldId, FieldId]:
    """Return the columns that published jobs converted, each with the one that has its place now.

    ``conversions`` are in the order of the jobs. A column that an undo brought back has its own
    place, and is left out.
    """
    found: dict[FieldId, FieldId] = {}
    for c in conversions:
        found |= {old: c.shadow_id for old, last in found.items() if last == c.column_id}
        found[c.column_id] = c.shadow_id
    return {old: last for old, last in found.items() if old != last}


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to record in the commit that reserves its columns; ``worker`` runs it at once."""

    table_id: TableId
    table_name: str
    work: JobWork
    timeout: int = TIMEOUT
    worker: str | None = None


@dataclass(frozen=True, slots=True)
class JobSpeed:
    """The bytes of the files that jobs rewrote, the time that it took, and the cores it took."""

    bytes: int
    milliseconds: int
    cores: int


@dataclass(frozen=True, slots=True)
class JobStep:
    """How a commit changes a job, on condition that the job is still in one of the states.

    A count or message of None does not change. With ``worker``, the job must still belong to it.
    ``speed`` adds to what the job has rewritten. ``folded`` becomes part of its work.
    """

    job_id: int
    expected: frozenset[JobState]
    state: JobState
    message: str | None = None
    done: int | None = None
    total: int | None = None
    last_file: int | None = None
    worker: str | None = None
    speed: JobSpeed | None = None
    folded: int = 0


one_of(DataType, primitive=Primitive, text=Text, decimal=Decimal, struct=Struct, list=List, map=Map)
one_of(TableChange, **{clause.stored: kind for kind, clause in CLAUSES.items()})
_EARLIER = (
    *("primitive", "decimal", "struct", "list", "map", "add_column", "drop_column"),
    *("rename_column", "change_type", "set_default", "set_nullable", "move_column", "set_comment"),
    *("modify_column", "order_columns", "set_partitioning", "reset_partitioning", "set_sorting"),
    *("reset_sorting", "set_properties", "unset_properties"),
)
_CLASSES = {name.title().replace("_", ""): name for name in _EARLIER}

STORED_WORK: Stored[JobWork] = Stored(
    "work", record(JobWork), without_classes(_CLASSES | {"RewriteOlderFiles": "rewrite"})
)
