"""Files that the catalog knows, described as when they were written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select

from shelduck.catalog.read.queries import chunks
from shelduck.ducklake import tables
from shelduck.model.files.data_files import ColumnStats, DataFile, NewDataFile, NewDeleteFile
from shelduck.model.tables.schema import FieldId
from shelduck.planning.upkeep.compaction import NO_PARTITION, Partition

_f, _d, _s = tables.data_file.c, tables.delete_file.c, tables.file_column_stats.c
_IDS: Any = bindparam("ids", expanding=True)
_FOOTERS = select(_f.data_file_id, _f.footer_size).where(_f.data_file_id.in_(_IDS))
_DELETES = select(_d.delete_file_id, _d.file_size_bytes, _d.footer_size).where(
    _d.delete_file_id.in_(_IDS)
)
_STATS = select(
    *(_s.data_file_id, _s.column_id, _s.column_size_bytes, _s.value_count, _s.null_count),
    *(_s.min_value, _s.max_value, _s.contains_nan),
).where(_s.data_file_id.in_(_IDS))


def described(
    connection: Connection, files: Sequence[DataFile], partitions: Mapping[int, Partition]
) -> list[NewDataFile]:
    """Return data files and their delete files in the form of new ones for a commit.

    Their paths are still absolute. The files have layouts and a row count. Three statements.
    """
    footers: dict[int, int | None] = {}
    stats: dict[int, list[ColumnStats]] = defaultdict(list)
    deletes: dict[int, tuple[int, int | None]] = {}
    for ids in chunks([f.id for f in files]):
        footers.update((n, size) for n, size in connection.execute(_FOOTERS, {"ids": ids}))
        for number, column, *values in connection.execute(_STATS, {"ids": ids}):
            stats[number].append(ColumnStats(FieldId(column), *values))
    for some in chunks([f.delete_file.id for f in files if f.delete_file is not None]):
        found = connection.execute(_DELETES, {"ids": some})
        deletes.update((number, (size, footer)) for number, size, footer in found)
    return [_told(f, footers, stats, deletes, partitions) for f in files]


def _told(
    file: DataFile,
    footers: Mapping[int, int | None],
    stats: Mapping[int, Sequence[ColumnStats]],
    deletes: Mapping[int, tuple[int, int | None]],
    partitions: Mapping[int, Partition],
) -> NewDataFile:
    assert file.layout is not None
    assert file.record_count is not None
    dead = None
    if file.delete_file is not None:
        assert file.delete_file.id is not None
        size, footer = deletes[file.delete_file.id]
        dead = NewDeleteFile(file.delete_file.path, file.delete_file.delete_count, size, footer)
    partition = partitions.get(file.id, NO_PARTITION)
    return NewDataFile(
        path=file.path,
        record_count=file.record_count,
        file_size_bytes=file.file_size_bytes,
        footer_size=footers[file.id],
        stats=tuple(stats.get(file.id, ())),
        layout=file.layout,
        partition_id=partition.id,
        partition_values=partition.values,
        deletes=dead,
        row_id_start=file.row_id_start,
    )
