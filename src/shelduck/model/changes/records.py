"""Changes of Shelduck's own tables; a commit of nothing else makes no snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shelduck.model.changes.change import DELETES, INSERTS, Entry
from shelduck.model.changes.job import JobStep, NewJob
from shelduck.model.files.data_file import Layout
from shelduck.model.tables.schema import SnapshotId, TableId

# Ids of tables begin at 1. This stands for "no single table".
ANY_TABLE = TableId(0)
BEFORE_FIRST = -1
"""What the first batch of a series comes after."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One step of a series, such as a streaming query; the numbers of a series grow.

    A series is identified by its name and, if it goes into one table, by that table. With
    ``after``, only the step that comes directly after that one is committed.
    """

    query_id: str
    batch_id: int
    table_id: TableId = ANY_TABLE
    after: int | None = None

    def __str__(self) -> str:
        return f"batch {self.batch_id} of {self.query_id!r}"


@dataclass(frozen=True, slots=True)
class LearnLayouts:
    """Layouts of files that other writers wrote, by the ids of the files."""

    layouts: Mapping[int, Layout]


@dataclass(frozen=True, slots=True)
class EndWriters:
    """Registrations that end with the commit: how many, by writer; with ``stay``, none ends.

    If one is gone, the commit is a LeaseLost.
    """

    registered: Mapping[str, int]
    stay: bool = False


@dataclass(frozen=True, slots=True)
class Settling:
    """A table that is settled by a commit if nobody else touched its ``sources`` in the meantime.

    It was settled on the snapshot ``since``, including what the commit does. A table with a key
    model is its own source, and removing rows from it leaves the other rows ``alone``. Ids may be
    provisional. If it is ``required`` and not settled, the commit is a Conflict.
    """

    table: TableId
    sources: frozenset[TableId]
    since: SnapshotId
    alone: bool = False
    required: bool = False

    def holds(self, entries: Iterable[tuple[SnapshotId, Entry]]) -> bool:
        """Return whether none of the entries after ``since`` touches a source."""
        verbs = INSERTS if self.alone else INSERTS | DELETES
        return not any(
            entry.verb in verbs and entry.id in self.sources
            for snapshot, entry in entries
            if snapshot > self.since
        )


Record = LearnLayouts | Batch | NewJob | JobStep | EndWriters | Settling
RECORDS = (LearnLayouts, Batch, NewJob, JobStep, EndWriters, Settling)
