"""Metadata tables: what the catalog knows of a table, as DataFrames.

Names of columns are Iceberg's where it has the thing, Delta's in the history, DuckLake's otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from shelduck.api.handle import TableHandle
from shelduck.api.lookup import version_at
from shelduck.api.results import TableName
from shelduck.api.state import LakeState
from shelduck.api.unit import UnitOfWork
from shelduck.catalog import read_metadata
from shelduck.model.table import TableVersion
from shelduck.spark.metadata_frames import metadata_frame
from shelduck.spark.session import DataFrame

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
    """What the catalog knows of the table; a transaction's own rows are not in it."""

    def files(
        self, *, version: int | None = None, timestamp: str | datetime | None = None
    ) -> DataFrame:
        """Return the data files of the table, one a row, with what is deleted from each.

        ``partition`` maps the keys, as DDL writes them, to texts. Rows that the catalog itself
        holds are in no file.
        """
        return files(self._state, self._version_at(version, timestamp))

    def partitions(
        self, *, version: int | None = None, timestamp: str | datetime | None = None
    ) -> DataFrame:
        """Return one row for each partition with files: how many, their rows and bytes."""
        return partitions(self._state, self._version_at(version, timestamp))

    def column_stats(
        self, *, version: int | None = None, timestamp: str | datetime | None = None
    ) -> DataFrame:
        """Return one row for each leaf column: what statistics know of it.

        Counts are those of the files; bounds hold for every row that the table ever had, as texts.
        """
        return column_stats(self._state, self._version_at(version, timestamp))

    def snapshots(self) -> DataFrame:
        """Return the snapshots that changed the table, oldest first, as DataFrame."""
        return snapshots(self._state, self._version())

    def _version_at(self, version: int | None, timestamp: str | datetime | None) -> TableVersion:
        if version is None and timestamp is None:
            return self._version()
        return version_at(self._state, self.name, version, timestamp)


def files(state: LakeState, table: TableVersion) -> DataFrame:
    """Return ``t.files``."""
    with state.store.read() as connection:
        rows = read_metadata.file_rows(connection, table)
    return metadata_frame(state.spark, read_metadata.FILE_COLUMNS, rows)


def partitions(state: LakeState, table: TableVersion) -> DataFrame:
    """Return ``t.partitions``."""
    with state.store.read() as connection:
        found = read_metadata.file_rows(connection, table)
    rows = read_metadata.partition_rows(found)
    return metadata_frame(state.spark, read_metadata.PARTITION_COLUMNS, rows)


def column_stats(state: LakeState, table: TableVersion) -> DataFrame:
    """Return ``t.column_stats``."""
    with state.store.read() as connection:
        rows = read_metadata.column_stats_rows(connection, table)
    return metadata_frame(state.spark, read_metadata.STATS_COLUMNS, rows)


def snapshots(state: LakeState, table: TableVersion) -> DataFrame:
    """Return ``t.snapshots``."""
    with state.store.read() as connection:
        changed = read_metadata.changed_snapshots(connection, table)
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

    DuckLake keeps no parameters of operations; what it changed stands there in its own words. Of
    files that compaction has replaced no metrics are left.
    """
    with state.store.read() as connection:
        changed = read_metadata.changed_snapshots(connection, table)
    rows = []
    for found in changed[:limit]:
        s = found.snapshot
        parameters = {"changes": s.changes_made, "extraInfo": s.commit_extra_info}
        metrics = {
            "numAddedFiles": found.files_added,
            "numOutputRows": found.rows_added,
            "numOutputBytes": found.bytes_added,
            "numRemovedFiles": found.files_removed,
        }
        rows.append(
            (
                *(s.id, s.time, s.author, found.operation),
                [(key, text) for key, text in parameters.items() if text is not None],
                [(key, str(number)) for key, number in metrics.items()],
                s.commit_message,
            )
        )
    return metadata_frame(state.spark, _HISTORY, rows)


TABLES: dict[str, Callable[[LakeState, TableVersion], DataFrame]] = {
    "files": files,
    "partitions": partitions,
    "column_stats": column_stats,
    "snapshots": snapshots,
    "history": history,
}


def metadata_table(
    state: LakeState,
    unit: UnitOfWork,
    name: TableName,
    kind: str,
    *,
    version: int | None,
    timestamp: str | None,
) -> DataFrame:
    """Return a metadata table of a table as the unit sees it, or as of a snapshot.

    Raises NotFound when there is no such table.
    """
    if version is None and timestamp is None:
        found = unit.workspace.table(name)
    else:
        found = version_at(state, name, version, timestamp)
    return TABLES[kind](state, found)
