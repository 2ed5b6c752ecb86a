"""The rows of the catalog that describe one data file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import insert

from shelduck.catalog import tables
from shelduck.catalog.draft import Draft
from shelduck.catalog.table_layouts import insert_partition_values
from shelduck.errors import CorruptLake
from shelduck.model.files import NewDataFile
from shelduck.model.schema import TableId

_INSERT_FILES = insert(tables.data_file)
_INSERT_FILE_STATS = insert(tables.file_column_stats)


def insert_files(
    draft: Draft, files: Sequence[dict[str, Any]], stats: Sequence[dict[str, Any]]
) -> None:
    """Write the rows of data files and their statistics; two statements."""
    if files:
        draft.connection.execute(_INSERT_FILES, files)
    if stats:
        draft.connection.execute(_INSERT_FILE_STATS, stats)


def insert_moved_files(
    draft: Draft, table: TableId, files: Sequence[NewDataFile]
) -> list[tuple[int, NewDataFile]]:
    """Write all that describes files of older rows, and return them with their ids.

    Such rows have row ids already, and no others may be counted out for them. Three statements.
    """
    numbered = list(zip(draft.file_ids(len(files)), files, strict=True))
    rows = [file_row(draft, table, number, file, None) for number, file in numbered]
    stats = [row for number, file in numbered for row in stats_rows(table, number, file)]
    insert_files(draft, rows, stats)
    insert_partition_values(draft, [(table, number, file) for number, file in numbered])
    return numbered


def file_row(
    draft: Draft, table: TableId, number: int, file: NewDataFile, first_row: int | None
) -> dict[str, Any]:
    """Return the row of a data file; its rows are numbered from ``first_row`` on."""
    if file.record_count < 0 or file.file_size_bytes <= 0:
        raise CorruptLake(f"file {file.path!r} for table {table} has no size or row count")
    return {
        "data_file_id": number,
        "table_id": table,
        "begin_snapshot": draft.id if file.begin_snapshot is None else file.begin_snapshot,
        "end_snapshot": None,
        "file_order": None,
        "path": file.path,
        "path_is_relative": file.names is None,
        "file_format": "parquet",
        "record_count": file.record_count,
        "file_size_bytes": file.file_size_bytes,
        "footer_size": file.footer_size,
        "row_id_start": first_row if file.row_id_start is None else file.row_id_start,
        "partition_id": draft.partition_id(file.partition_id),
        "encryption_key": None,
        "mapping_id": None,
        "partial_max": file.partial_max,
    }


def stats_rows(table: TableId, number: int, file: NewDataFile) -> list[dict[str, Any]]:
    """Return the rows of a data file's statistics, one for each column that has some."""
    return [
        {
            "data_file_id": number,
            "table_id": table,
            "column_id": s.column_id,
            "column_size_bytes": s.column_size_bytes,
            "value_count": s.value_count,
            "null_count": s.null_count,
            "min_value": s.min_value,
            "max_value": s.max_value,
            "contains_nan": s.contains_nan,
            "extra_stats": None,
        }
        for s in file.stats
    ]
