"""The live files of a table in numbers: by size, by layout, by share of deleted rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from shelduck.catalog.read import queries
from shelduck.catalog.read.overview.partitions import files_at
from shelduck.catalog.read.queries import COUNT, live, total
from shelduck.catalog.schema import own_tables
from shelduck.ducklake import tables
from shelduck.ducklake.checked import sum_of, unchecked
from shelduck.model.files.layout import Layout
from shelduck.model.tables.table_version import TableVersion

_file, _delete = tables.data_file, tables.delete_file


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
    c = _file.c
    place = sa.case(
        *((c.file_size_bytes < edge, at) for at, edge in enumerate(edges)), else_=len(edges)
    )
    sized = (
        sa.select(place.label("place"), c.record_count, c.file_size_bytes)
        .where(c.table_id == table, live(_file))
        .subquery()
    )
    query = sa.select(
        sized.c.place, COUNT, total(sized.c.record_count), total(sized.c.file_size_bytes)
    ).group_by(sized.c.place)
    found = {row[0]: SizeSums(*row[1:]) for row in connection.execute(query)}
    return [found.get(at, SizeSums()) for at in range(len(edges) + 1)]


def deletes(connection: sa.Connection, table: int) -> SizeSums:
    """Return what the live delete files of a table delete; one statement."""
    c = _delete.c
    query = sa.select(COUNT, total(c.delete_count), total(c.file_size_bytes))
    row = connection.execute(query.where(c.table_id == table, live(_delete))).one()
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
    c = _file.c
    sums = (sum_of(c.record_count), sum_of(c.file_size_bytes), total(files.dead))
    query = sa.select(COUNT, *sums, sa.func.count(c.record_count))
    query = query.select_from(files.source).where(files.is_there)
    count, rows, size, dead, known = connection.execute(query).one()
    return SizeSums(count, rows - dead, size), known


def newest_files(connection: sa.Connection, table: int, most: int) -> list[int]:
    """Return the ids of the newest live data files of a table, at most so many; one statement."""
    number = _file.c.data_file_id
    query = sa.select(number).where(_file.c.table_id == table, live(_file))
    return list(connection.execute(query.order_by(number.desc()).limit(most)).scalars())


def by_layout(connection: sa.Connection, table: int) -> list[LayoutCount]:
    """Return the live files by layout and name mapping, the layout of the newest file first.

    Three statements.
    """
    c, known = _file.c, own_tables.file_layout
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
    ).where(sa.and_(c.table_id == table, live(_file)))
    if is_known:
        query = query.outerjoin_from(_file, known, c.data_file_id == known.c.data_file_id)
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
