"""Whether a table holds exactly what its key model, or its base, says.

Shelduck's own commits keep this true. Other writers do not know it: if they change the rows of a
table or of its base, the table becomes unsettled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shelduck.model.changes.change import DELETES, INSERTS, Entry
from shelduck.model.tables.schema import SnapshotId, TableId


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
