"""Whether a table holds what its key model, or its base, says that it holds.

Shelduck keeps that true in every commit of its own. Other writers do not know of it, so what they
do to the rows of a table, or of its base, makes it unsettled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shelduck.model.changes.change import DELETES, INSERTS, Entry
from shelduck.model.tables.schema import SnapshotId, TableId


@dataclass(frozen=True, slots=True)
class Settling:
    """A table that is settled by a commit, if nobody else touched its ``sources`` meanwhile.

    It was so on the snapshot ``since``, with what the commit does. Tables with a key model are
    their own source, and rows that are taken from them leave the others ``alone``. Ids may be
    provisional. One that is ``required`` lands only where it holds, and is a Conflict elsewhere.
    """

    table: TableId
    sources: frozenset[TableId]
    since: SnapshotId
    alone: bool = False
    required: bool = False

    def holds(self, entries: Iterable[tuple[SnapshotId, Entry]]) -> bool:
        """Tell whether none of the entries after ``since`` touches a source."""
        verbs = INSERTS if self.alone else INSERTS | DELETES
        return not any(
            entry.verb in verbs and entry.id in self.sources
            for snapshot, entry in entries
            if snapshot > self.since
        )
