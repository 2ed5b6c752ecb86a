"""Files that the catalog knows, described as when they were written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, Table, bindparam, select

from shelduck.catalog.read.queries import chunks
from shelduck.ducklake import tables
from shelduck.ducklake.format import Format, format_of
from shelduck.model.files.data_files import ColumnStats, DataFile, NewDataFile, NewDeleteFile
from shelduck.planning.compaction import NO_PARTITION, Partition

_IDS: Any = bindparam("ids", expanding=True)
_Footer = tuple[Any, ...]
_FOOTERS = ("footer_size", "row_group_count")


def _of_ids(of: Format, known: Table, *names: str) -> Select[Any]:
    """Ask for columns of the rows with the ids :ids, the first column; NULL for unknown columns."""
    columns = [of.or_null(known, name) for name in names]
    return select(*columns).where(columns[0].in_(_IDS))


@cache
def _questions(of: Format) -> tuple[Select[Any], Select[Any], Select[Any]]:
    return (
        _of_ids(of, tables.data_file, "data_file_id", *_FOOTERS),
        _of_ids(of, tables.file_column_stats, "data_file_id", *ColumnStats._fields),
        _of_ids(of, tables.delete_file, "delete_file_id", "file_size_bytes", *_FOOTERS),
    )


def described(
    connection: Connection, files: Sequence[DataFile], partitions: Mapping[int, Partition]
) -> list[NewDataFile]:
    """Return data files and their delete files in the form of new ones for a commit.

    Their paths are still absolute. The files have layouts and a row count. Three statements.
    """
    of_files, of_columns, of_deletes = _questions(format_of(connection))
    footers: dict[int, _Footer] = {}
    stats: dict[int, list[ColumnStats]] = defaultdict(list)
    deletes: dict[int, tuple[int, _Footer]] = {}
    for ids in chunks([f.id for f in files]):
        for number, *footer in connection.execute(of_files, {"ids": ids}):
            footers[number] = tuple(footer)
        for number, *values in connection.execute(of_columns, {"ids": ids}):
            stats[number].append(ColumnStats(*values))
    for some in chunks([f.delete_file.id for f in files if f.delete_file is not None]):
        for number, size, *footer in connection.execute(of_deletes, {"ids": some}):
            deletes[number] = size, tuple(footer)
    return [_told(f, footers, stats, deletes, partitions) for f in files]


def _told(
    file: DataFile,
    footers: Mapping[int, _Footer],
    stats: Mapping[int, Sequence[ColumnStats]],
    deletes: Mapping[int, tuple[int, _Footer]],
    partitions: Mapping[int, Partition],
) -> NewDataFile:
    assert file.layout is not None
    assert file.record_count is not None
    dead = None
    if file.delete_file is not None:
        assert file.delete_file.id is not None
        size, (footer, groups) = deletes[file.delete_file.id]
        old = file.delete_file
        dead = NewDeleteFile(old.path, old.delete_count, size, footer, row_group_count=groups)
    partition = partitions.get(file.id, NO_PARTITION)
    footer, groups = footers[file.id]
    return NewDataFile(
        path=file.path,
        record_count=file.record_count,
        file_size_bytes=file.file_size_bytes,
        footer_size=footer,
        row_group_count=groups,
        stats=tuple(stats.get(file.id, ())),
        layout=file.layout,
        partition_id=partition.id,
        partition_values=partition.values,
        deletes=dead,
        row_id_start=file.row_id_start,
    )
