"""The rows that new data files write, and the table statistics that follow from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, select, update

from shelduck.catalog import tables
from shelduck.catalog.deletes import insert_delete_files
from shelduck.catalog.draft import Draft
from shelduck.catalog.queries import live
from shelduck.catalog.stats import (
    TableColumnStats,
    grown,
    stats_of_added,
    stats_of_files,
)
from shelduck.catalog.work import TableWork
from shelduck.errors import CorruptLake
from shelduck.model.change import Entry, Verb
from shelduck.model.files import NewDataFile, NewDeleteFile
from shelduck.model.layout import Layout
from shelduck.model.schema import FieldId, Kind, TableId
from shelduck.model.types import Leaf, ducklake_type

_file, _total, _column = tables.data_file.c, tables.table_stats.c, tables.table_column_stats.c

_INSERT_FILES = insert(tables.data_file)
_INSERT_FILE_STATS = insert(tables.file_column_stats)
_INSERT_TOTALS = insert(tables.table_stats)
_INSERT_COLUMN_STATS = insert(tables.table_column_stats)
_UPDATE_TOTALS = (
    update(tables.table_stats)
    .where(_total.table_id == bindparam("of_table"))
    .values(
        record_count=bindparam("records"),
        next_row_id=bindparam("next_row"),
        file_size_bytes=bindparam("size"),
    )
)
_UPDATE_COLUMN_STATS = (
    update(tables.table_column_stats)
    .where(_column.table_id == bindparam("of_table"), _column.column_id == bindparam("of_column"))
    .values(
        contains_null=bindparam("null"),
        contains_nan=bindparam("nan"),
        min_value=bindparam("low"),
        max_value=bindparam("high"),
    )
)
_DELETE_COLUMN_STATS = delete(tables.table_column_stats).where(
    _column.table_id == bindparam("of_table"), _column.column_id == bindparam("of_column")
)
_TOTALS = select(tables.table_stats).where(_total.table_id.in_(bindparam("ids", expanding=True)))
_COLUMN_STATS = select(tables.table_column_stats).where(
    _column.table_id.in_(bindparam("ids", expanding=True))
)
_LEAF_TYPES = select(
    tables.column.c.table_id, tables.column.c.column_id, tables.column.c.column_type
).where(
    tables.column.c.table_id.in_(bindparam("ids", expanding=True)),
    live(tables.column),
    func.lower(tables.column.c.column_type).not_in([kind.value for kind in Kind]),
)
_TOTALS_OF_FILES = select(
    func.coalesce(func.sum(_file.record_count), 0),
    func.coalesce(func.max(_file.row_id_start + _file.record_count), 0),
    func.coalesce(func.sum(_file.file_size_bytes), 0),
    func.count(),
).where(_file.table_id == bindparam("of_table"))


@dataclass(frozen=True, slots=True)
class _Totals:
    """One row of ``ducklake_table_stats``; ``is_new`` when it has to be inserted."""

    record_count: int
    next_row_id: int
    file_size_bytes: int
    is_new: bool = False
    is_first_insert: bool = False


def append_files(
    draft: Draft, appended: Mapping[TableId, Sequence[NewDataFile]]
) -> dict[int, Layout]:
    """Write new files of several tables and return their layouts by file id.

    Eight statements, however many tables, files and columns.
    """
    if not appended:
        return {}
    ids = list(appended)
    totals = _read_totals(draft, ids)
    types = _leaf_types(draft, ids)
    layouts: dict[int, Layout] = {}
    dead: dict[TableId, list[tuple[int, NewDeleteFile]]] = defaultdict(list)
    file_rows: list[dict[str, Any]] = []
    stats_rows: list[dict[str, Any]] = []
    for table, files in appended.items():
        next_row = totals[table].next_row_id
        for number, file in zip(draft.file_ids(len(files)), files, strict=True):
            layouts[number] = file.layout
            file_rows.append(_file_row(draft, table, number, file, next_row))
            stats_rows.extend(_stats_rows(table, number, file))
            if file.deletes is not None:
                dead[table].append((number, file.deletes))
            next_row += file.record_count
        draft.entries.append(Entry(Verb.INSERTED_INTO_TABLE, table))
    draft.has_stats_change = True
    draft.connection.execute(_INSERT_FILES, file_rows)
    if stats_rows:
        draft.connection.execute(_INSERT_FILE_STATS, stats_rows)
    for table, delete_files in dead.items():
        insert_delete_files(draft, table, delete_files)
    _write_totals(draft, totals, appended)
    _write_column_stats(draft, totals, types, appended)
    return layouts


def add_column_stats(draft: Draft, works: Sequence[TableWork]) -> None:
    """Write table statistics of columns that were added to tables with data; two statements.

    DuckDB leaves them out, and then neither SET NOT NULL nor MIN and MAX find what they need.
    """
    added: dict[TableId, list[tuple[FieldId, TableColumnStats]]] = {}
    for work in works:
        assert work.old is not None
        assert work.columns is not None
        tops = {f.id for f in work.columns}
        found = [
            (f.id, stats_of_added(f, is_nested=f.id not in tops))
            for f in work.columns.leaves()
            if work.old.columns.by_id(f.id) is None
        ]
        leaves = [(number, stats) for number, stats in found if stats is not None]
        if leaves:
            added[work.id] = leaves
    if not added:
        return
    counted = {row.table_id for row in draft.connection.execute(_TOTALS, {"ids": list(added)})}
    rows = [
        _column_stats_row(table, column, stats)
        for table in counted
        for column, stats in added[table]
    ]
    if rows:
        draft.connection.execute(_INSERT_COLUMN_STATS, rows)
        draft.has_stats_change = True


def _read_totals(draft: Draft, ids: list[TableId]) -> dict[TableId, _Totals]:
    found = {
        TableId(row.table_id): _Totals(row.record_count, row.next_row_id, row.file_size_bytes)
        for row in draft.connection.execute(_TOTALS, {"ids": ids})
    }
    for table in ids:
        if table not in found:
            # Another writer may have left them out: row ids must not begin at 0 again.
            row = draft.connection.execute(_TOTALS_OF_FILES, {"of_table": table}).one()
            records, next_row, size, files = row
            found[table] = _Totals(
                int(records), int(next_row), int(size), is_new=True, is_first_insert=files == 0
            )
    return found


def _leaf_types(draft: Draft, ids: list[TableId]) -> dict[TableId, dict[FieldId, Leaf]]:
    types: dict[TableId, dict[FieldId, Leaf]] = defaultdict(dict)
    for table, column, type_text in draft.connection.execute(_LEAF_TYPES, {"ids": ids}):
        types[table][column] = ducklake_type(type_text)
    return types


def _write_totals(
    draft: Draft,
    totals: Mapping[TableId, _Totals],
    appended: Mapping[TableId, Sequence[NewDataFile]],
) -> None:
    inserted, updated = [], []
    for table, files in appended.items():
        old = totals[table]
        rows = sum(f.record_count for f in files)
        size = old.file_size_bytes + sum(f.file_size_bytes for f in files)
        values = (old.record_count + rows, old.next_row_id + rows, size)
        if old.is_new:
            names = ("record_count", "next_row_id", "file_size_bytes")
            inserted.append({"table_id": table, **dict(zip(names, values, strict=True))})
        else:
            names = ("records", "next_row", "size")
            updated.append({"of_table": table, **dict(zip(names, values, strict=True))})
    if inserted:
        draft.connection.execute(_INSERT_TOTALS, inserted)
    if updated:
        draft.connection.execute(_UPDATE_TOTALS, updated)


def _write_column_stats(
    draft: Draft,
    totals: Mapping[TableId, _Totals],
    types: Mapping[TableId, Mapping[FieldId, Leaf]],
    appended: Mapping[TableId, Sequence[NewDataFile]],
) -> None:
    known = {
        (row.table_id, row.column_id): TableColumnStats(
            row.contains_null is not False, row.contains_nan, row.min_value, row.max_value
        )
        for row in draft.connection.execute(_COLUMN_STATS, {"ids": list(appended)})
    }
    inserted, updated, deleted = [], [], []
    for table, files in appended.items():
        by_file = [{s.column_id: s for s in f.stats} for f in files if f.record_count > 0]
        for column, leaf in types[table].items():
            old = known.get((table, column))
            added = stats_of_files(leaf, [parts.get(column) for parts in by_file])
            new = grown(leaf, old, added) if old else added
            if old is None and new is not None and totals[table].is_first_insert:
                inserted.append(_column_stats_row(table, column, new))
            elif old is not None and new is None:
                deleted.append({"of_table": table, "of_column": column})
            elif old is not None and new is not None and new != old:
                updated.append(_column_stats_update(table, column, new))
    for statement, rows in (
        (_INSERT_COLUMN_STATS, inserted),
        (_UPDATE_COLUMN_STATS, updated),
        (_DELETE_COLUMN_STATS, deleted),
    ):
        if rows:
            draft.connection.execute(statement, rows)


def _file_row(
    draft: Draft, table: TableId, number: int, file: NewDataFile, first_row: int
) -> dict[str, Any]:
    if file.record_count < 0 or file.file_size_bytes <= 0:
        raise CorruptLake(f"file {file.path!r} for table {table} has no size or row count")
    return {
        "data_file_id": number,
        "table_id": table,
        "begin_snapshot": draft.id if file.begin_snapshot is None else file.begin_snapshot,
        "end_snapshot": None,
        "file_order": None,
        "path": file.path,
        "path_is_relative": True,
        "file_format": "parquet",
        "record_count": file.record_count,
        "file_size_bytes": file.file_size_bytes,
        "footer_size": file.footer_size,
        "row_id_start": first_row if file.row_id_start is None else file.row_id_start,
        "partition_id": file.partition_id,
        "encryption_key": None,
        "mapping_id": None,
        "partial_max": file.partial_max,
    }


def _stats_rows(table: TableId, number: int, file: NewDataFile) -> list[dict[str, Any]]:
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


def _column_stats_row(table: TableId, column: FieldId, stats: TableColumnStats) -> dict[str, Any]:
    return {
        "table_id": table,
        "column_id": column,
        "contains_null": stats.contains_null,
        "contains_nan": stats.contains_nan,
        "min_value": stats.min_value,
        "max_value": stats.max_value,
        "extra_stats": None,
    }


def _column_stats_update(
    table: TableId, column: FieldId, stats: TableColumnStats
) -> dict[str, Any]:
    return {
        "of_table": table,
        "of_column": column,
        "null": stats.contains_null,
        "nan": stats.contains_nan,
        "low": stats.min_value,
        "high": stats.max_value,
    }
