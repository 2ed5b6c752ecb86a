"""Metadata tables: what the catalog knows about a table, as DataFrames.

Columns are named as in Iceberg where it has the same, as in Delta for history, else as in DuckLake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from shelduck.catalog.read import metadata_rows as read_metadata
from shelduck.catalog.read.overview.table_files import PARTITION_COLUMNS, partition_rows
from shelduck.catalog.read.twins import twins_of
from shelduck.engine.session import DataFrame, metadata_frame
from shelduck.lake.lookup import TableHandle, version_at
from shelduck.lake.results import TableName
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork
from shelduck.model.tables.table_version import TableVersion

MetadataTable = Callable[[LakeState, TableVersion], DataFrame]
_SNAPSHOTS = {
    "committed_at": "timestamp",
    "snapshot_id": "bigint",
    "parent_id": "bigint",
    "operation": "string",
    "author": "string",
    "message": "string",
    "extra_info": "string",
    "changes": "string",
    "schema_version": "bigint",
}
_HISTORY = {
    "version": "bigint",
    "timestamp": "timestamp",
    "userName": "string",
    "operation": "string",
    "operationParameters": "map",
    "operationMetrics": "map",
    "userMetadata": "string",
}


class MetadataVerbs(TableHandle):
    """The catalog's facts about the table; a transaction's own rows are not included."""

    def files(
        self, *, version: int | None = None, timestamp: str | datetime | None = None
    ) -> DataFrame:
        """Return the data files of the table, one per row, with their deletes.

        ``partition`` maps the keys, written as in DDL, to texts. Rows that the catalog itself keeps
        are in no file.

        Args:
            version: The snapshot to look at; by default the newest.
            timestamp: Instead of ``version``, a time at which the snapshot was the newest.
        """
        return files(self._state, self._version_at(version, timestamp))

    def partitions(
        self, *, version: int | None = None, timestamp: str | datetime | None = None
    ) -> DataFrame:
        """Return one row for each partition with files: how many, their rows and bytes.

        Args:
            version: The snapshot to look at; by default the newest.
            timestamp: Instead of ``version``, a time at which the snapshot was the newest.
        """
        return partitions(self._state, self._version_at(version, timestamp))

    def column_stats(
        self, *, version: int | None = None, timestamp: str | datetime | None = None
    ) -> DataFrame:
        """Return one row for each leaf column, with its statistics.

        Counts are those of the files; bounds, as texts, hold for every row the table ever had.

        Args:
            version: The snapshot to look at; by default the newest.
            timestamp: Instead of ``version``, a time at which the snapshot was the newest.
        """
        return column_stats(self._state, self._version_at(version, timestamp))

    def snapshots(self) -> DataFrame:
        """Return the snapshots that changed the table, oldest first, as a DataFrame."""
        return snapshots(self._state, self._version())

    def _version_at(self, version: int | None, timestamp: str | datetime | None) -> TableVersion:
        if version is None and timestamp is None:
            return self._version()
        return version_at(self._state, self.name, version, timestamp)


def _table_of(columns: Mapping[str, str], rows_of: Callable[..., Iterable[Any]]) -> MetadataTable:
    """Return the metadata table of rows that a connection reads."""

    def read(state: LakeState, table: TableVersion) -> DataFrame:
        with state.store.read() as connection:
            return metadata_frame(state.spark, columns, rows_of(connection, table))

    return read


files = _table_of(read_metadata.FILE_COLUMNS, read_metadata.file_rows)
partitions = _table_of(PARTITION_COLUMNS, partition_rows)
column_stats = _table_of(read_metadata.STATS_COLUMNS, read_metadata.column_stats_rows)


def snapshots(state: LakeState, table: TableVersion) -> DataFrame:
    """Return ``t.snapshots``."""
    changed = state.store.ask(read_metadata.changed_snapshots, table)
    rows = [
        (
            *(s.time, s.id, found.parent, found.operation, s.author, s.commit_message),
            *(s.commit_extra_info, s.changes_made, s.schema_version),
        )
        for found in reversed(changed)
        for s in (found.snapshot,)
    ]
    return metadata_frame(state.spark, _SNAPSHOTS, rows)


def history(state: LakeState, table: TableVersion, limit: int | None = None) -> DataFrame:
    """Return ``t.history`` and DESCRIBE HISTORY, newest first.

    DuckLake keeps no parameters of operations, so they hold its own list of changes. Metrics of
    rows count those in files and in the catalog; they are left out once a compaction or a flush has
    merged rows of several snapshots. There are no metrics for files that compaction has replaced.
    """
    changed = state.store.ask(read_metadata.changed_snapshots, table, limit)
    rows = []
    for found in changed:
        s = found.snapshot
        parameters = {"changes": s.changes_made, "extraInfo": s.commit_extra_info}
        metrics = {
            "numAddedFiles": found.files_added,
            "numOutputRows": found.rows_added,
            "numDeletedRows": found.rows_deleted,
            "numOutputBytes": found.bytes_added,
            "numRemovedFiles": found.files_removed,
        }
        rows.append(
            (
                *(s.id, s.time, s.author, found.operation),
                [(key, text) for key, text in parameters.items() if text is not None],
                [(key, str(number)) for key, number in metrics.items() if number is not None],
                s.commit_message,
            )
        )
    return metadata_frame(state.spark, _HISTORY, rows)


def refs(state: LakeState, table: TableVersion) -> DataFrame:
    """Return ``t.refs``: the table, which Iceberg calls ``main``, its branches and its tags.

    The snapshot of a tag is that with which it began; the others go on.
    """
    columns, now = {"name": "string", "type": "string", "snapshot_id": "bigint"}, table.snapshot.id
    rows: list[tuple[object, ...]] = [("main", "BRANCH", now)]
    with state.store.read() as connection:
        for name, branch, twin in twins_of(connection, table.id, now):
            rows.append((name, "TAG", twin.base) if branch.is_tag else (name, "BRANCH", now))
    return metadata_frame(state.spark, columns, rows)


TABLES: dict[str, MetadataTable] = {
    "files": files,
    "data_files": files,
    "refs": refs,
    "partitions": partitions,
    "column_stats": column_stats,
    "snapshots": snapshots,
    "history": history,
}


ICEBERGS = frozenset(
    "all_data_files all_delete_files all_entries all_files all_manifests delete_files entries"
    " manifests metadata_log_entries position_deletes".split()
)
"""Metadata tables that only Iceberg has."""


def metadata_table(
    unit: UnitOfWork, name: TableName, kind: str, *, version: int | None, timestamp: str | None
) -> DataFrame:
    """Return a metadata table of a table as the unit sees it, or as of a snapshot.

    Raises NotFound if the table does not exist.
    """
    if version is None and timestamp is None:
        found = unit.workspace.table(name)
    else:
        found = version_at(unit.state, name, version, timestamp)
    return TABLES[kind](unit.state, found)
