"""A heavy schema change as a job: what it converts, and the states that it goes through."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import Enum

from shelduck.model.schema import FieldId, TableId


class JobState(Enum):
    """Doris' states of a schema change job."""

    PENDING = "PENDING"
    """Submitted, nothing is converted yet."""
    RUNNING = "RUNNING"
    """Files are converted."""
    FINISHED = "FINISHED"
    CANCELLED = "CANCELLED"


OPEN_STATES = frozenset({JobState.PENDING, JobState.RUNNING})


@dataclass(frozen=True, slots=True)
class Conversion:
    """One column that gets another type: ``shadow_id`` is the id of the column that replaces it.

    ``using`` is a Spark SQL expression over the table's columns, None for the conversion by the
    types. ``on_error_null``: values that do not survive become NULL instead of an error.
    """

    column_id: FieldId
    shadow_id: FieldId
    source: str
    target: str
    using: str | None = None
    on_error_null: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the catalog has it; ``done`` and ``total`` count files while it runs.

    ``base`` is the snapshot that reserved its columns, ``published`` the one that shows them.
    """

    id: int
    table_id: TableId
    table_name: str
    state: JobState
    created: datetime
    conversions: tuple[Conversion, ...]
    timeout: int
    base: int
    schema_version: int
    finished: datetime | None = None
    published: int | None = None
    message: str = ""
    done: int = 0
    total: int = 0

    @property
    def is_open(self) -> bool:
        """True until it has finished or is cancelled."""
        return self.state in OPEN_STATES


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to record in the commit that reserves its columns."""

    table_id: TableId
    table_name: str
    conversions: tuple[Conversion, ...]
    timeout: int


@dataclass(frozen=True, slots=True)
class JobStep:
    """What a commit does to a job, on the condition that it is still in one of the states.

    None leaves a count or message as it is.
    """

    job_id: int
    expected: frozenset[JobState]
    state: JobState
    message: str | None = None
    done: int | None = None
    total: int | None = None


def conversions_text(conversions: tuple[Conversion, ...]) -> str:
    """Return conversions as the catalog keeps them."""
    return json.dumps([asdict(c) for c in conversions])


def parse_conversions(text: str) -> tuple[Conversion, ...]:
    """Read back `conversions_text`."""
    return tuple(Conversion(**entry) for entry in json.loads(text))
