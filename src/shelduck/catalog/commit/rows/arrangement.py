"""The rows that say how a table's new files are partitioned and sorted, and each file's values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, insert, update

from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.commit.work import TableWork
from shelduck.catalog.read.queries import live
from shelduck.ducklake import tables
from shelduck.model.files.data_files import NewDataFile
from shelduck.model.tables.schema import TableId
from shelduck.model.tables.sorting import parse_sort_key

_INSERT_PARTITION = insert(tables.partition_info)
_INSERT_PARTITION_COLUMNS = insert(tables.partition_column)
_INSERT_VALUES = insert(tables.file_partition_value)
_INSERT_SORT = insert(tables.sort_info)
_INSERT_SORT_KEYS = insert(tables.sort_expression)
_END_PARTITION, _END_SORT = (
    update(source)
    .where(source.c.table_id == bindparam("of_table"), live(source))
    .values(end_snapshot=bindparam("ended"))
    for source in (tables.partition_info, tables.sort_info)
)


def set_partitioning(draft: Draft, table: TableId, work: TableWork) -> None:
    """Write the new partitioning of a table, if it has one; three statements at most.

    If a table is no longer partitioned, it gets a partitioning without keys, as in the extension.
    """
    if work.partition is None or (work.created is not None and not work.partition):
        return
    if work.created is None:
        draft.connection.execute(_END_PARTITION, {"of_table": table, "ended": draft.id})
    number = draft.catalog_id()
    if work.partition_id is not None:
        draft.partition_ids[work.partition_id] = number
    info = {"partition_id": number, "table_id": table}
    draft.connection.execute(
        _INSERT_PARTITION, info | {"begin_snapshot": draft.id, "end_snapshot": None}
    )
    rows = [
        info | {"partition_key_index": n, "column_id": key.column_id, "transform": key.transform}
        for n, key in enumerate(work.partition)
    ]
    if rows:
        draft.connection.execute(_INSERT_PARTITION_COLUMNS, rows)
    draft.note_version(table)


def set_sorting(draft: Draft, table: TableId, work: TableWork) -> None:
    """Write the new sort order of a table, if it has one; three statements at most."""
    if work.sort is None or (work.created is not None and not work.sort):
        return
    if work.created is None:
        draft.connection.execute(_END_SORT, {"of_table": table, "ended": draft.id})
    if not work.sort:
        return
    number = draft.catalog_id()
    info = {"sort_id": number, "table_id": table}
    draft.connection.execute(
        _INSERT_SORT, info | {"begin_snapshot": draft.id, "end_snapshot": None}
    )
    keys = [parse_sort_key(text) for text in work.sort]
    draft.connection.execute(
        _INSERT_SORT_KEYS,
        [
            info
            | {
                "sort_key_index": n,
                "expression": key.expression,
                "dialect": "duckdb",
                "sort_direction": key.direction,
                "null_order": key.null_order,
            }
            for n, key in enumerate(keys)
        ],
    )


def insert_partition_values(
    draft: Draft, files: Sequence[tuple[TableId, int, NewDataFile]]
) -> None:
    """Write the partition values of new files, which come by table and id; one statement."""
    rows: list[dict[str, Any]] = [
        {
            "data_file_id": number,
            "table_id": table,
            "partition_key_index": n,
            "partition_value": value,
        }
        for table, number, file in files
        if draft.partition_id(file.partition_id) is not None
        for n, value in enumerate(file.partition_values)
    ]
    if rows:
        draft.connection.execute(_INSERT_VALUES, rows)
