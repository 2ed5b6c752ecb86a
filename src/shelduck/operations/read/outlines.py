"""The outline of a large table from sums by SQL: enough to plan a scan without a list."""

from __future__ import annotations

from dataclasses import dataclass, field

from shelduck.catalog.read.files.kinds import AlikeFiles
from shelduck.catalog.read.files.outside import files_without_statistics
from shelduck.catalog.read.read import Connection
from shelduck.model.tables.schema import FieldId, SnapshotId
from shelduck.model.tables.table import Mark, TableVersion


@dataclass(frozen=True, slots=True)
class Outline:
    """The files of a table at a snapshot by their kinds, found when ``newest`` was the newest."""

    newest: Mark
    snapshot: SnapshotId
    alike: tuple[AlikeFiles, ...]
    _without: dict[FieldId, list[int] | None] = field(default_factory=dict)

    @property
    def is_of_newest(self) -> bool:
        """Return whether the snapshot is the newest one, which cannot expire."""
        return self.snapshot == self.newest[0]

    @property
    def files(self) -> int:
        """Return how many files there are."""
        return sum(some.sums.files for some in self.alike)

    @property
    def files_and_ids(self) -> tuple[int, int]:
        """Return how many files there are, and the sum of their ids."""
        return self.files, sum(some.sums.ids for some in self.alike)

    @property
    def bytes(self) -> int:
        """Return how large they are together."""
        return sum(some.sums.bytes for some in self.alike)

    def without_statistics(
        self, connection: Connection, table: TableVersion, column: FieldId, at_most: int
    ) -> list[int] | None:
        """Return what `files_without_statistics` does; no statement for a column that is known.

        ``newest`` must still be the newest snapshot: a commit may clear statistics.
        """
        if column not in self._without:
            found = files_without_statistics(connection, table, column, at_most)
            self._without[column] = found
        return self._without[column]
