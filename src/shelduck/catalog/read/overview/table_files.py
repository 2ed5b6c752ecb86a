"""The live files of a table in numbers: by size, by layout, by share of deleted rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.sql.expression import Alias, Join

from shelduck.catalog.read import queries
from shelduck.catalog.read.inlined_rows import inlined_rows
from shelduck.catalog.read.metadata_rows import Partition, key_text, partition_keys
from shelduck.catalog.read.queries import COUNT, live, total, visible
from shelduck.catalog.schema import own_tables
from shelduck.ducklake import tables
from shelduck.ducklake.checked import or_null, sum_of, unchecked
from shelduck.model.files.data_file import Layout
from shelduck.model.files.fitted import Values, partition_values
from shelduck.model.tables.table_version import TableVersion

_file = tables.data_file.c
# The columns of `t.partitions`, in order, with their types.
PARTITION_COLUMNS = {
    "partition": "map",
    "spec_id": "bigint",
    "record_count": "bigint",
    "file_count": "bigint",
    "total_data_file_size_in_bytes": "bigint",
    "position_delete_record_count": "bigint",
    "last_updated_snapshot_id": "bigint",
    "inlined_record_count": "bigint",
}
_files, _deletes, _value = tables.data_file, tables.delete_file, tables.file_partition_value


class PartitionSums(NamedTuple):
    """A partition, its files and its rows, in the order of `PARTITION_COLUMNS`.

    ``partition`` is pairs of a key, as DDL writes it, and the value's text. ``rows`` includes the
    ``deleted`` ones and those that the catalog keeps (``inlined``). ``newest`` is the last snapshot
    that added a file or a row.
    """

    partition: Partition
    spec: int | None
    rows: int
    files: int
    bytes: int
    deleted: int
    newest: int
    inlined: int = 0


def partition_rows(connection: sa.Connection, table: TableVersion) -> list[PartitionSums]:
    """Return the partitions of a table at its snapshot, in order.

    Three statements, and those of `inlined_rows`.
    """
    every = [*(one for one, _ in _sums(connection, table)), *inlined_partitions(connection, table)]
    grouped = groupby(sorted(every, key=_order), key=lambda one: (one.spec, one.partition))
    return [_together(alike) for _, alike in grouped]


def _together(alike: Iterable[PartitionSums]) -> PartitionSums:
    """Return the files of a partition and its rows in the catalog as one."""
    first, *others = alike
    for one in others:
        first = first._replace(
            rows=first.rows + one.rows,
            files=first.files + one.files,
            bytes=first.bytes + one.bytes,
            deleted=first.deleted + one.deleted,
            newest=max(first.newest, one.newest),
            inlined=first.inlined + one.inlined,
        )
    return first


def inlined_partitions(connection: sa.Connection, table: TableVersion) -> list[PartitionSums]:
    """Return the partitions of the rows that the catalog itself keeps, in order.

    Rows are in the partitions to which a flush would bring them: the newest partitioning counts.
    """
    names = [key_text(table, key.column_id, key.transform) for key in table.partition]
    found: dict[Values, list[int]] = {}
    for part in inlined_rows(connection, table):
        places = partition_values(table, part)
        for values, begin in zip(places, part.begin_snapshots, strict=True):
            found.setdefault(values, []).append(begin)
    spec = table.partition_id if names else None
    made = (
        PartitionSums(
            tuple(zip(names, values, strict=True)),
            *(spec, len(begins), 0, 0, 0),
            newest=max(begins),
            inlined=len(begins),
        )
        for values, begins in found.items()
    )
    return sorted(made, key=_order)


def largest_partitions(
    connection: sa.Connection, table: TableVersion, most: int
) -> tuple[list[PartitionSums], int]:
    """Return the partitions with the largest files, at most so many, and how many have files.

    Rows are those of files; three statements.
    """
    found = _sums(connection, table, most)
    every = found[0][1] if found else 0
    return sorted((one for one, _ in found), key=lambda one: (-one.bytes, _order(one))), every


def _sums(
    connection: sa.Connection, table: TableVersion, most: int | None = None
) -> list[tuple[PartitionSums, int]]:
    """Return partitions, each with the number of all of them."""
    specs = partition_keys(connection, table)
    files = files_at(connection, table, specs)
    keys = [c for v in files.values for c in (v.c.partition_key_index, v.c.partition_value)]
    groups = [_file.partition_id, *keys]
    query = (
        sa.select(
            *(_file.partition_id, sum_of(_file.record_count), COUNT),
            *(sum_of(_file.file_size_bytes), total(files.dead), sa.func.max(_file.begin_snapshot)),
            sa.func.count().over(),
            *map(or_null, keys),
        )
        .select_from(files.source)
        .where(files.is_there)
        .group_by(*groups)
    )
    if most is not None:
        query = query.order_by(sa.func.sum(_file.file_size_bytes).desc(), *groups).limit(most)
    rows = connection.execute(query).all()
    return [_partition(row, specs) for row in rows]


def _partition(
    row: sa.Row[Any], specs: Mapping[int, Mapping[int, str]]
) -> tuple[PartitionSums, int]:
    spec, rows, files, size, deleted, newest, every, *values = tuple(row)
    names = specs.get(spec, {})
    pairs = tuple(
        (names[place], value)
        for place, value in zip(values[::2], values[1::2], strict=True)
        if place in names
    )
    return PartitionSums(pairs, spec, rows, files, size, deleted, newest), every


def _order(one: PartitionSums) -> tuple[int, list[tuple[bool, str]]]:
    values = [(value is None, value or "") for _, value in one.partition]
    return -1 if one.spec is None else one.spec, values


@dataclass(frozen=True, slots=True)
class FilesAt:
    """A source of files to select from; ``dead`` is how many rows of a file are deleted.

    ``values`` are the tables with the partition values of a file, one for each key.
    """

    source: sa.FromClause
    is_there: sa.ColumnElement[bool]
    dead: sa.ColumnElement[int]
    values: tuple[Alias, ...] = ()


def files_at(
    connection: sa.Connection,
    table: TableVersion,
    specs: Mapping[int, Mapping[int, str]] | None = None,
) -> FilesAt:
    """Return the files of a table version, with the values of the partition keys of ``specs``.

    One statement.
    """
    at = table.snapshot.id
    source = _files.outerjoin(_deletes, queries.deletes_of_file(at))
    dead: sa.ColumnElement[int] = sa.func.coalesce(_deletes.c.delete_count, 0)
    name = queries.inlined_delete_table(table.id)
    if queries.present_tables(connection, [name]):
        # A position may be there twice: two processes may have written it.
        each = queries.inlined_deletes_at(name, at).order_by(None).subquery()
        counted = sa.func.count(each.c.row_id.distinct()).label("dead")
        kept = sa.select(each.c.file_id, counted).group_by(each.c.file_id).subquery()
        source = source.outerjoin(kept, kept.c.file_id == _files.c.data_file_id)
        dead = dead + sa.func.coalesce(kept.c.dead, 0)
    places = {place for keys in (specs or {}).values() for place in keys}
    source, values = with_values(source, sorted(places))
    return FilesAt(
        source, sa.and_(_files.c.table_id == table.id, visible(_files, at)), dead, values
    )


def with_values(source: Join, places: Iterable[int]) -> tuple[Join, tuple[Alias, ...]]:
    """Return data files joined with their partition values, and a table for each place of a key."""
    values: list[Any] = []
    for place in places:
        value = _value.alias()
        same_file = value.c.data_file_id == _files.c.data_file_id
        same_table = value.c.table_id == _files.c.table_id
        source = source.outerjoin(
            value, sa.and_(same_table, same_file, value.c.partition_key_index == place)
        )
        values.append(value)
    return source, tuple(values)


@dataclass(frozen=True, slots=True)
class SizeSums:
    """A group of data files or delete files: how many, their rows or deleted ones, and bytes."""

    files: int = 0
    rows: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class LayoutCount:
    """The files of one layout and one name mapping, with the snapshots in which they began.

    ``layout`` is None for files whose layout the catalog does not know.
    """

    layout_id: int | None
    mapping_id: int | None
    layout: Layout | None
    sums: SizeSums
    first: int
    last: int


def sizes(connection: sa.Connection, table: int, edges: Sequence[int]) -> list[SizeSums]:
    """Return the live files below the first edge, between edges, and from the last; one statement.

    Edges are bytes, in order; a file of exactly an edge belongs above it.
    """
    c = _files.c
    place = sa.case(
        *((c.file_size_bytes < edge, at) for at, edge in enumerate(edges)), else_=len(edges)
    )
    sized = (
        sa.select(place.label("place"), c.record_count, c.file_size_bytes)
        .where(c.table_id == table, live(_files))
        .subquery()
    )
    query = sa.select(
        sized.c.place, COUNT, total(sized.c.record_count), total(sized.c.file_size_bytes)
    ).group_by(sized.c.place)
    found = {row[0]: SizeSums(*row[1:]) for row in connection.execute(query)}
    return [found.get(at, SizeSums()) for at in range(len(edges) + 1)]


def deletes(connection: sa.Connection, table: int) -> SizeSums:
    """Return what the live delete files of a table delete; one statement."""
    c = _deletes.c
    query = sa.select(COUNT, total(c.delete_count), total(c.file_size_bytes))
    row = connection.execute(query.where(c.table_id == table, live(_deletes))).one()
    return SizeSums(*row)


def stored_rows(connection: sa.Connection, table: TableVersion) -> SizeSums:
    """Return the files of a table at its snapshot, with the rows that are left; two statements."""
    return _stored(connection, table)[0]


def live_rows(connection: sa.Connection, table: TableVersion) -> int | None:
    """Return how many rows of files are left at a table's snapshot; two statements.

    None if the catalog does not know how many rows some file has.
    """
    found, counted = _stored(connection, table)
    return found.rows if counted == found.files else None


def _stored(connection: sa.Connection, table: TableVersion) -> tuple[SizeSums, int]:
    """Return sums of files, and of how many the catalog has the number of rows."""
    files = files_at(connection, table)
    c = _files.c
    sums = (sum_of(c.record_count), sum_of(c.file_size_bytes), total(files.dead))
    query = sa.select(COUNT, *sums, sa.func.count(c.record_count))
    query = query.select_from(files.source).where(files.is_there)
    count, rows, size, dead, known = connection.execute(query).one()
    return SizeSums(count, rows - dead, size), known


def newest_files(connection: sa.Connection, table: int, most: int) -> list[int]:
    """Return the ids of the newest live data files of a table, at most so many; one statement."""
    number = _files.c.data_file_id
    query = sa.select(number).where(_files.c.table_id == table, live(_files))
    return list(connection.execute(query.order_by(number.desc()).limit(most)).scalars())


def by_layout(connection: sa.Connection, table: int) -> list[LayoutCount]:
    """Return the live files by layout and name mapping, the layout of the newest file first.

    Three statements.
    """
    c, known = _files.c, own_tables.file_layout
    is_known = bool(queries.present_tables(connection, [known.name]))
    layout_id: Any = unchecked(known.c.layout_id) if is_known else sa.null()
    query = sa.select(
        *(layout_id.label("layout"), c.mapping_id, COUNT),
        *(total(c.record_count), total(c.file_size_bytes)),
        *(
            sa.func.min(c.begin_snapshot),
            sa.func.max(c.begin_snapshot),
            sa.func.max(c.data_file_id),
        ),
    ).where(sa.and_(c.table_id == table, live(_files)))
    if is_known:
        query = query.outerjoin_from(_files, known, c.data_file_id == known.c.data_file_id)
        query = query.group_by(known.c.layout_id, c.mapping_id)
    else:
        query = query.group_by(c.mapping_id)
    rows = sorted(connection.execute(query).all(), key=lambda row: row[7], reverse=True)
    ids = {row[0] for row in rows} - {None}
    texts: dict[int, str] = {}
    if ids:
        texts.update((row[0], row[1]) for row in connection.execute(queries.layouts(ids)))
    return [
        LayoutCount(
            *(number, mapping, Layout.from_json(texts[number]) if number in texts else None),
            *(SizeSums(files, records, size), first, last),
        )
        for number, mapping, files, records, size, first, last, _ in rows
    ]
