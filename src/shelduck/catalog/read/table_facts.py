"""Facts about a table that maintenance needs, beyond its files at a snapshot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa

from shelduck.catalog.read import queries
from shelduck.catalog.read.metadata_rows import partition_keys
from shelduck.catalog.read.overview.table_files import FilesAt, files_at
from shelduck.catalog.read.queries import (
    IDS,
    OF_TABLE,
    chunks,
    inlined_delete_table,
    live,
    present_tables,
    total,
    visible,
)
from shelduck.catalog.schema import own_tables
from shelduck.ducklake import tables
from shelduck.ducklake.format import Format, format_of
from shelduck.model.files.compaction import MIN_FILES, NO_PARTITION, ColumnVersion, Partition
from shelduck.model.files.data_file import ColumnStats, DataFile, NewDataFile, NewDeleteFile
from shelduck.model.tables.schema import FieldId, TableId
from shelduck.model.tables.table_version import TableVersion

_file, _delete = tables.data_file.c, tables.delete_file.c
_value, _snapshot = tables.file_partition_value.c, tables.snapshot.c
_Footer = tuple[Any, ...]
_FOOTERS = ("footer_size", "row_group_count")


class FileCounts(NamedTuple):
    """Files that may be rewritten: how many, their bytes, and how many ``new`` ones suffice.

    ``looked_at`` counts those, too, that are alone in their partition.
    """

    looked_at: int
    files: int
    bytes: int
    new: int


def small_files(
    connection: sa.Connection,
    table: TableVersion,
    sizes: tuple[int, int],
    *,
    after: int = -1,
    most: int | None = None,
) -> list[int]:
    """Return the files of a table with at least the first and less than the second size, by id.

    Only ids above ``after``, and at most ``most`` of them. Files with delete files are left out.
    One statement.
    """
    at = table.snapshot.id
    has_deletes = sa.exists().where(queries.deletes_of_file(at))
    query = sa.select(_file.data_file_id).where(
        _file.table_id == table.id,
        _file.data_file_id > after,
        visible(tables.data_file, at),
        _is_within(sizes),
        sa.not_(has_deletes),
    )
    rows = connection.execute(query.order_by(_file.data_file_id).limit(most))
    return list(rows.scalars())


def small_sums(
    connection: sa.Connection, table: TableVersion, sizes: tuple[int, int], target: int
) -> FileCounts:
    """Return how many small files without deleted rows are in partitions with several of them.

    Together they need ``new`` files of ``target`` bytes at least. Three statements.
    """
    specs = partition_keys(connection, table)
    files = files_at(connection, table, specs)
    counted, size = total(sa.literal(1)).label("files"), total(_file.file_size_bytes).label("bytes")
    query = sa.select(counted, size).select_from(files.source)
    query = query.where(files.is_there, _is_within(sizes), files.dead == 0)
    if specs:
        values = (value.c.partition_value for value in files.values)
        query = query.group_by(_file.partition_id, *values)
    each = query.subquery()
    c = each.c
    is_several = c.files >= MIN_FILES
    # Rounded up to whole files here, and divided in Python: databases divide integers differently.
    filled = c.bytes + (target - c.bytes % target) % target
    sums = (total(sa.case((is_several, what), else_=0)) for what in (c.files, c.bytes, filled))
    row = connection.execute(sa.select(total(c.files), *sums)).one()
    return FileCounts(row[0], row[1], row[2], row[3] // target)


def worn_files(connection: sa.Connection, table: TableVersion, threshold: float) -> list[int]:
    """Return files with at least the part ``threshold`` of their rows deleted, by id.

    Two statements.
    """
    files = files_at(connection, table)
    query = sa.select(_file.data_file_id).select_from(files.source)
    query = query.where(files.is_there, _is_worn(files, threshold))
    return list(connection.execute(query.order_by(_file.data_file_id)).scalars())


def worn_sums(connection: sa.Connection, table: TableVersion, threshold: float) -> FileCounts:
    """Return the sums of `worn_files`, each of which becomes a file; two statements."""
    files = files_at(connection, table)
    query = sa.select(total(sa.literal(1)), total(_file.file_size_bytes)).select_from(files.source)
    row = connection.execute(query.where(files.is_there, _is_worn(files, threshold))).one()
    return FileCounts(row[0], row[0], row[1], row[0])


def know_layouts(connection: sa.Connection, ids: Collection[int]) -> bool:
    """Return whether the catalog has the layouts of files; one statement and one for each chunk."""
    known = own_tables.file_layout
    if not present_tables(connection, [known.name]):
        return not ids
    counted: sa.ColumnElement[Any] = sa.func.count(known.c.data_file_id.distinct())
    return all(
        connection.execute(sa.select(counted).where(known.c.data_file_id.in_(some))).scalar()
        == len(some)
        for some in chunks(ids)
    )


def _is_within(sizes: tuple[int, int]) -> sa.ColumnElement[bool]:
    return sa.and_(_file.file_size_bytes >= sizes[0], _file.file_size_bytes < sizes[1])


def _is_worn(files: FilesAt, threshold: float) -> sa.ColumnElement[bool]:
    records = sa.func.coalesce(_file.record_count, files.dead)
    return sa.and_(files.dead > 0, files.dead >= sa.literal(threshold, sa.Float()) * records)


def partitions(
    connection: sa.Connection, table: TableVersion, ids: Collection[int] | None = None
) -> dict[int, Partition]:
    """Return the partitions of live files that have one, by data file id; two statements.

    ``ids`` are the files that matter, few enough for one statement; None for all of them.
    """
    specs = sa.select(_file.data_file_id, _file.partition_id).where(
        _file.table_id == table.id, live(tables.data_file), _file.partition_id.is_not(None)
    )
    rows = (
        sa.select(_value.data_file_id, _value.partition_value)
        .where(_value.table_id == table.id)
        .order_by(_value.data_file_id, _value.partition_key_index)
    )
    if ids is not None:
        specs = specs.where(_file.data_file_id.in_(ids))
        rows = rows.where(_value.data_file_id.in_(ids))
    found = {row.data_file_id: row.partition_id for row in connection.execute(specs)}
    if not found:
        return {}
    values: dict[int, list[str | None]] = defaultdict(list)
    for number, value in connection.execute(rows):
        values[number].append(value)
    return {n: Partition(spec, tuple(values.get(n, ()))) for n, spec in found.items()}


def column_versions(connection: sa.Connection, table: TableId) -> list[ColumnVersion]:
    """Return every version of every column of a table; one statement."""
    return [
        ColumnVersion(
            FieldId(row.column_id),
            row.column_type,
            None if row.parent_column is None else FieldId(row.parent_column),
            row.initial_default,
            row.begin_snapshot,
            row.end_snapshot,
        )
        for row in connection.execute(queries.column_versions(table))
    ]


def snapshot_ids(connection: sa.Connection) -> list[int]:
    """Return the ids of all snapshots, in order; one statement."""
    query = sa.select(_snapshot.snapshot_id).order_by(_snapshot.snapshot_id)
    return list(connection.execute(query).scalars())


def ended_in(connection: sa.Connection, table: TableId, snapshots: Iterable[int]) -> int:
    """Return how many data files of a table ended in some snapshots; one statement."""
    ended = sa.select(sa.func.count()).where(_file.table_id == table)
    return sum(
        connection.execute(ended.where(_file.end_snapshot.in_(some))).scalar() or 0
        for some in chunks(sorted(snapshots))
    )


def next_row_id(connection: sa.Connection, table: TableId) -> int:
    """Return the row id that the next row of a table gets; one statement."""
    query = sa.select(tables.table_stats.c.next_row_id).where(
        tables.table_stats.c.table_id == table
    )
    return connection.execute(query).scalar() or 0


def deleted_from(connection: sa.Connection, table: TableId) -> set[int]:
    """Return the data files some of whose rows a snapshot does not show; three statements."""
    query = sa.select(_delete.data_file_id).where(_delete.table_id == table).distinct()
    found = set(connection.execute(query).scalars())
    name = inlined_delete_table(table)
    if present_tables(connection, [name]):
        found.update(row.file_id for row in connection.execute(queries.inlined_delete_counts(name)))
    return found


def _of_ids(of: Format, known: sa.Table, *names: str) -> sa.Select[Any]:
    """Ask for columns of the rows with the ids :ids, the first column; NULL for unknown columns."""
    columns = [of.or_null(known, name) for name in names]
    return sa.select(*columns).where(columns[0].in_(IDS))


@cache
def _questions(of: Format) -> tuple[sa.Select[Any], sa.Select[Any], sa.Select[Any]]:
    return (
        _of_ids(of, tables.data_file, "data_file_id", *_FOOTERS),
        _of_ids(of, tables.file_column_stats, "data_file_id", *ColumnStats._fields).where(
            of.or_null(tables.file_column_stats, "table_id") == OF_TABLE
        ),
        _of_ids(of, tables.delete_file, "delete_file_id", "file_size_bytes", *_FOOTERS),
    )


def described(
    connection: sa.Connection,
    table: TableId,
    files: Sequence[DataFile],
    partitions: Mapping[int, Partition],
) -> list[NewDataFile]:
    """Return data files of a table and their delete files in the form of new ones for a commit.

    Their paths are still absolute. The files have layouts and a row count. Three statements.
    """
    of_files, of_columns, of_deletes = _questions(format_of(connection))
    footers: dict[int, _Footer] = {}
    stats: dict[int, list[ColumnStats]] = defaultdict(list)
    deletes: dict[int, tuple[int, _Footer]] = {}
    for ids in chunks([f.id for f in files]):
        for number, *footer in connection.execute(of_files, {"ids": ids}):
            footers[number] = tuple(footer)
        for number, *values in connection.execute(of_columns, {"ids": ids, "of_table": table}):
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
