"""Checks of rows on which a change of metadata depends."""

from __future__ import annotations

from collections.abc import Callable, Collection

from shelduck.catalog.databases.store import Store
from shelduck.catalog.read import read
from shelduck.errors import InvalidRequest
from shelduck.model.changes.staged import StagedRows
from shelduck.model.tables.schema import Field, FieldId
from shelduck.model.tables.table import TableVersion
from shelduck.model.text.quoting import backticked
from shelduck.operations.read.known_layouts import LayoutMemory
from shelduck.operations.read.rows import table_rows
from shelduck.spark.session import SparkSession


def require_no_null(
    spark: Callable[[], SparkSession],
    store: Store,
    table: TableVersion,
    layouts: LayoutMemory,
    column_ids: Collection[FieldId],
    *,
    staged: StagedRows | None = None,
) -> None:
    """Raise InvalidRequest if a row holds NULL in one of these top-level columns.

    If every file has statistics that count no NULL, they answer; otherwise a Spark query does.
    """
    suspects = _suspects(store, table, column_ids, staged)
    if not suspects:
        return
    names = [field.name for field in suspects]
    rows = table_rows(store, table, layouts, staged).frame(spark(), names)
    for field in suspects:
        if rows.where(f"{backticked(field.name)} IS NULL").limit(1).count():
            raise InvalidRequest(
                f"column {field.name!r} of {table.full_name} contains NULL and cannot become NOT"
                " NULL; fill or delete these rows first"
            )


def _suspects(
    store: Store,
    table: TableVersion,
    column_ids: Collection[FieldId],
    staged: StagedRows | None,
) -> list[Field]:
    """Return the columns that statistics do not prove to be free of NULL."""
    columns = [f for f in table.columns if f.id in column_ids]
    if staged is not None and staged.has_changes:
        return columns
    with store.read() as connection:
        if any(rows.rows for rows in read.inlined_rows(connection, table)):
            return columns
        files = read.data_files(connection, table)
        stats = read.file_bounds(connection, table, [f.id for f in columns])
    return [
        column
        for column in columns
        if not all(
            f.id in stats[column.id] and stats[column.id][f.id].null_count == 0 for f in files
        )
    ]
