"""Facts about a table that maintenance needs, beyond its files at a snapshot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    and_,
    case,
    exists,
    func,
    literal,
    not_,
    select,
)

from shelduck.catalog.read import queries
from shelduck.catalog.read.metadata import partition_keys
from shelduck.catalog.read.overview.partitions import FilesAt, files_at
from shelduck.catalog.read.queries import (
    chunks,
    inlined_delete_table,
    live,
    present_tables,
    total,
    visible,
)
from shelduck.catalog.schema import own_tables
from shelduck.ducklake import tables
from shelduck.model.tables.schema import FieldId, TableId
from shelduck.model.tables.table import TableVersion
from shelduck.planning.compaction import MIN_FILES, ColumnVersion, Partition

_file, _delete = tables.data_file.c, tables.delete_file.c
_value, _snapshot = tables.file_partition_value.c, tables.snapshot.c


class FileSums(NamedTuple):
    """Files that may be rewritten: how many, their bytes, and how many ``new`` ones suffice.

    ``looked_at`` counts those, too, that are alone in their partition.
    """

    looked_at: int
    files: int
    bytes: int
    new: int


def small_files(
    connection: Connection,
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
    has_deletes = exists().where(queries.deletes_of_file(at))
    query = select(_file.data_file_id).where(
        _file.table_id == table.id,
        _file.data_file_id > after,
        visible(tables.data_file, at),
        _is_within(sizes),
        not_(has_deletes),
    )
    rows = connection.execute(query.order_by(_file.data_file_id).limit(most))
    return list(rows.scalars())


def small_sums(
    connection: Connection, table: TableVersion, sizes: tuple[int, int], target: int
) -> FileSums:
    """Return how many small files without deleted rows are in partitions with several of them.

    Together they need ``new`` files of ``target`` bytes at least. Three statements.
    """
    specs = partition_keys(connection, table)
    files = files_at(connection, table, specs)
    counted, size = total(literal(1)).label("files"), total(_file.file_size_bytes).label("bytes")
    query = select(counted, size).select_from(files.source)
    query = query.where(files.is_there, _is_within(sizes), files.dead == 0)
    if specs:
        values = (value.c.partition_value for value in files.values)
        query = query.group_by(_file.partition_id, *values)
    each = query.subquery()
    c = each.c
    is_several = c.files >= MIN_FILES
    # Rounded up to whole files here, and divided in Python: databases divide integers differently.
    filled = c.bytes + (target - c.bytes % target) % target
    sums = (total(case((is_several, what), else_=0)) for what in (c.files, c.bytes, filled))
    row = connection.execute(select(total(c.files), *sums)).one()
    return FileSums(row[0], row[1], row[2], row[3] // target)


def worn_files(connection: Connection, table: TableVersion, threshold: float) -> list[int]:
    """Return files with at least the part ``threshold`` of their rows deleted, by id.

    Two statements.
    """
    files = files_at(connection, table)
    query = select(_file.data_file_id).select_from(files.source)
    query = query.where(files.is_there, _is_worn(files, threshold))
    return list(connection.execute(query.order_by(_file.data_file_id)).scalars())


def worn_sums(connection: Connection, table: TableVersion, threshold: float) -> FileSums:
    """Return the sums of `worn_files`, each of which becomes a file; two statements."""
    files = files_at(connection, table)
    query = select(total(literal(1)), total(_file.file_size_bytes)).select_from(files.source)
    row = connection.execute(query.where(files.is_there, _is_worn(files, threshold))).one()
    return FileSums(row[0], row[0], row[1], row[0])


def know_layouts(connection: Connection, ids: Collection[int]) -> bool:
    """Return whether the catalog has the layouts of files; one statement and one for each chunk."""
    known = own_tables.file_layout
    if not present_tables(connection, [known.name]):
        return not ids
    counted: ColumnElement[Any] = func.count(known.c.data_file_id.distinct())
    return all(
        connection.execute(select(counted).where(known.c.data_file_id.in_(some))).scalar()
        == len(some)
        for some in chunks(ids)
    )


def _is_within(sizes: tuple[int, int]) -> ColumnElement[bool]:
    return and_(_file.file_size_bytes >= sizes[0], _file.file_size_bytes < sizes[1])


def _is_worn(files: FilesAt, threshold: float) -> ColumnElement[bool]:
    records = func.coalesce(_file.record_count, files.dead)
    return and_(files.dead > 0, files.dead >= literal(threshold, Float()) * records)


def partitions(
    connection: Connection, table: TableVersion, ids: Collection[int] | None = None
) -> dict[int, Partition]:
    """Return the partitions of live files that have one, by data file id; two statements.

    ``ids`` are the files that matter, few enough for one statement; None for all of them.
    """
    specs = select(_file.data_file_id, _file.partition_id).where(
        _file.table_id == table.id, live(tables.data_file), _file.partition_id.is_not(None)
    )
    rows = (
        select(_value.data_file_id, _value.partition_value)
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


def column_versions(connection: Connection, table: TableId) -> list[ColumnVersion]:
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


def snapshot_ids(connection: Connection) -> list[int]:
    """Return the ids of all snapshots, in order; one statement."""
    query = select(_snapshot.snapshot_id).order_by(_snapshot.snapshot_id)
    return list(connection.execute(query).scalars())


def ended_in(connection: Connection, table: TableId, snapshots: Iterable[int]) -> int:
    """Return how many data files of a table ended in some snapshots; one statement."""
    ended = select(func.count()).where(_file.table_id == table)
    return sum(
        connection.execute(ended.where(_file.end_snapshot.in_(some))).scalar() or 0
        for some in chunks(sorted(snapshots))
    )


def next_row_id(connection: Connection, table: TableId) -> int:
    """Return the row id that the next row of a table gets; one statement."""
    query = select(tables.table_stats.c.next_row_id).where(tables.table_stats.c.table_id == table)
    return connection.execute(query).scalar() or 0


def deleted_from(connection: Connection, table: TableId) -> set[int]:
    """Return the data files some of whose rows a snapshot does not show; three statements."""
    query = select(_delete.data_file_id).where(_delete.table_id == table).distinct()
    found = set(connection.execute(query).scalars())
    return found | set(_inlined(connection, table))


def _inlined(connection: Connection, table: TableId) -> dict[int, int]:
    name = inlined_delete_table(table)
    if not present_tables(connection, [name]):
        return {}
    return {row[0]: row[1] for row in connection.execute(queries.inlined_delete_counts(name))}
