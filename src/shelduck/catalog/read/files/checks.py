"""Checks of the rows of data files and delete files: each value, and how they fit together.

All other statements check value by value (`shelduck.ducklake.checked`), which would take
much longer for hundreds of thousands of files.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NoReturn

from sqlalchemy import Connection, select

from shelduck.catalog.read.broken_intervals import BrokenInterval
from shelduck.catalog.read.queries import chunks
from shelduck.catalog.schema import own_tables
from shelduck.ducklake import tables
from shelduck.ducklake.checked import RESTORE, refuse_row
from shelduck.ducklake.rules import MOST, MOST_BYTES
from shelduck.errors import CorruptLake
from shelduck.model.files.data_file import DataFile, DeleteFile
from shelduck.model.tables.table_version import TableVersion


def require_deletable(
    table: TableVersion,
    number: int,
    records: int,
    deleted: DeleteFile | None,
    gone: Sequence[int],
) -> None:
    """Raise CorruptLake if deletes name more rows than a data file has."""
    count = deleted.delete_count if deleted is not None else 0
    if count > records or (gone and max(gone) >= records):
        raise CorruptLake(
            f"data file {number} of {table.full_name} has {records} rows in ducklake_data_file, but"
            f" deletes of more rows; {RESTORE}"
        )


def require_sound(rows: Sequence[Any]) -> tuple[set[int], set[int]]:
    """Return the ids of the mappings and layouts of data files, or refuse a row.

    Checking value by value, as other statements do, would take much longer for many files.
    """
    mappings: set[Any] = set()
    layouts: set[Any] = set()
    others: set[Any] = set()
    for row in rows:
        number, path, _, size, records, first, begin, mapping, partial, kind, _, kept, spec, end = (
            row
        )
        if (
            number.__class__ is not int
            or path.__class__ is not str
            or not path
            or size.__class__ is not int
            or not 0 < size <= MOST_BYTES
            or begin.__class__ is not int
            or not 0 <= begin <= MOST
            or (end is not None and (end.__class__ is not int or not begin <= end <= MOST))
            or (records is not None and (records.__class__ is not int or not 0 <= records <= MOST))
            or (first is not None and (first.__class__ is not int or not 0 <= first <= MOST))
            or kind.__class__ is not str
        ):
            _refuse(row)
        mappings.add(mapping)
        layouts.add(kept)
        others.add(partial)
        others.add(spec)
    if any(v is not None and (type(v) is not int or v < 0) for v in mappings | layouts | others):
        for row in rows:
            _refuse(row)
    return mappings - {None}, layouts - {None}


_COLUMNS = (
    *("data_file_id", "path", "path_is_relative", "file_size_bytes", "record_count"),
    *("row_id_start", "begin_snapshot", "mapping_id", "partial_max", "file_format"),
    *("encryption_key", "layout_id", "partition_id", "end_snapshot"),
)


def _refuse(row: Sequence[Any]) -> None:
    """Raise CorruptLake if a row of data files has a value that is none of its column."""
    values = dict(zip(_COLUMNS, row, strict=True))
    layout = values.pop("layout_id")
    refuse_row(tables.data_file, values)
    if values["end_snapshot"] is not None and values["end_snapshot"] < values["begin_snapshot"]:
        raise BrokenInterval(tables.data_file)
    if layout is not None:
        known = {"data_file_id": values["data_file_id"], "layout_id": layout}
        refuse_row(own_tables.file_layout, known)


def require_known(connection: Connection, table: TableVersion, owners: Collection[int]) -> None:
    """Raise CorruptLake if deletes are for data files that the table never had."""
    f = tables.data_file.c
    for some in chunks(sorted(owners)):
        query = select(f.data_file_id).where(f.table_id == table.id, f.data_file_id.in_(some))
        lost = set(some) - set(connection.execute(query).scalars())
        if lost:
            raise CorruptLake(
                f"{table.full_name} has deletes of data file {min(lost)}, but no such file;"
                f" {RESTORE}"
            )


def require_distinct(table: TableVersion, files: Sequence[DataFile]) -> None:
    """Raise CorruptLake if two rows of the catalog name one file: its rows would count twice."""
    if len({f.path for f in files}) < len(files):
        _require_apart(table, "data", [(f.id, f.path) for f in files])
    deletes = [(f.id, f.delete_file.path) for f in files if f.delete_file is not None]
    _require_apart(table, "delete", deletes)


def _require_apart(table: TableVersion, kind: str, named: Sequence[tuple[int, str]]) -> None:
    if len({path for _, path in named}) == len(named):
        return
    seen: dict[str, int] = {}
    for number, path in named:
        other = seen.setdefault(path, number)
        if other != number:
            raise CorruptLake(
                f"data files {other} and {number} of {table.full_name} have the same {kind} file"
                f" {path} at snapshot {table.snapshot.id}; correct the wrong path in"
                f" ducklake_{kind}_file, or set an end_snapshot there"
            )


def refuse_bounds(row: Sequence[Any]) -> None:
    """Raise CorruptLake for a wrong value in a row of `queries.bounds_of` that has counts."""
    refuse_row(tables.file_column_stats, dict(zip(_BOUNDS, row, strict=True)))


def refuse_id(table: TableVersion, number: object) -> NoReturn:
    """Raise CorruptLake for the id of a data file in statistics that is not an integer."""
    raise CorruptLake(
        f"ducklake_file_column_stats.data_file_id is not an integer in some row of"
        f" {table.full_name}, but {number!r}; {RESTORE}"
    )


_BOUNDS = (
    *("column_id", "data_file_id", "column_size_bytes", "value_count", "null_count"),
    *("min_value", "max_value", "contains_nan"),
)
