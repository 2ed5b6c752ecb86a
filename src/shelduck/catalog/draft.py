"""The snapshot that a commit is making: its id, the ids it hands out, and what it did so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import Connection, insert

from shelduck.catalog import tables
from shelduck.model.change import CommitInfo, Entry, format_entries
from shelduck.model.schema import SnapshotId, TableId
from shelduck.model.table import Snapshot

_INSERT_SNAPSHOT = insert(tables.snapshot)
_INSERT_CHANGES = insert(tables.snapshot_changes)
_INSERT_VERSIONS = insert(tables.schema_versions)


@dataclass
class Draft:
    """One snapshot in the making, over one locked connection."""

    connection: Connection
    head: Snapshot
    entries: list[Entry] = field(default_factory=list)
    new_table_versions: list[TableId] = field(default_factory=list)
    """Tables whose columns, name or place in the world changed: ``ducklake_schema_versions``."""
    partition_ids: dict[int, int] = field(default_factory=dict)
    """Ids of new partitionings by the provisional ids that files were written under."""
    has_schema_change: bool = False
    has_stats_change: bool = False

    def __post_init__(self) -> None:
        self.id = SnapshotId(self.head.id + 1)
        self.time = max(datetime.now(UTC), self.head.time)
        self._next_catalog_id = self.head.next_catalog_id
        self._next_file_id = self.head.next_file_id

    @property
    def next_schema_version(self) -> int:
        """The schema version that this snapshot gets when it changes any schema."""
        return self.head.schema_version + 1

    def catalog_id(self) -> int:
        """Hand out the id of a new schema, table, partitioning or sort order."""
        self._next_catalog_id += 1
        return self._next_catalog_id - 1

    def partition_id(self, written_under: int | None) -> int | None:
        """Return the id of the partitioning of a file; None where it is no part of the commit."""
        if written_under is None or written_under >= 0:
            return written_under
        return self.partition_ids.get(written_under)

    def file_ids(self, count: int) -> range:
        """Hand out ids of new files."""
        first = self._next_file_id
        self._next_file_id += count
        return range(first, first + count)

    def finish(self, info: CommitInfo) -> Snapshot:
        """Write the snapshot's own rows and return it."""
        next_file_id = self._next_file_id
        if self.has_stats_change and next_file_id == self.head.next_file_id:
            # DuckDB keeps the statistics of a table until this number grows.
            next_file_id += 1
        made = Snapshot(
            self.id,
            self.time,
            self.next_schema_version if self.has_schema_change else self.head.schema_version,
            self._next_catalog_id,
            next_file_id,
            format_entries(self.entries),
            info.author,
            info.message,
            info.extra_info,
        )
        if self.new_table_versions:
            version = {"begin_snapshot": made.id, "schema_version": made.schema_version}
            self.connection.execute(
                _INSERT_VERSIONS, [version | {"table_id": t} for t in self.new_table_versions]
            )
        self.connection.execute(
            _INSERT_SNAPSHOT,
            {
                "snapshot_id": made.id,
                "snapshot_time": made.time,
                "schema_version": made.schema_version,
                "next_catalog_id": made.next_catalog_id,
                "next_file_id": made.next_file_id,
            },
        )
        self.connection.execute(
            _INSERT_CHANGES,
            {
                "snapshot_id": made.id,
                "changes_made": made.changes_made,
                "author": made.author,
                "commit_message": made.commit_message,
                "commit_extra_info": made.commit_extra_info,
            },
        )
        return made
