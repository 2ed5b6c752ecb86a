"""The data files of a large table as rows of numbers, without an object for each file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import sqlalchemy as sa

from shelduck.catalog.databases.known import dialect_of
from shelduck.catalog.read import queries
from shelduck.catalog.read.holdings import Holdings
from shelduck.catalog.read.views_and_macros import file_place
from shelduck.catalog.schema import own_tables
from shelduck.ducklake import tables
from shelduck.model.files.data_file import DeletesSeen, seen_id
from shelduck.model.files.trusted_statistics import is_own
from shelduck.model.tables.schema import FieldId
from shelduck.model.tables.table_version import TableVersion, is_later

_PART = 50_000
_INT64 = (-(2**63), 2**63 - 1)
_STATS_OF: Any = tables.file_column_stats.c.data_file_id


class FileKind(NamedTuple):
    """What files have in common that are read alike, but for their deletes.

    ``is_own`` says whether the path shows that Shelduck wrote the file, ``has_row_ids`` whether the
    catalog has the id of its first row.
    """

    layout_id: int | None
    mapping_id: int | None
    partial_max: int | None
    partition_id: int | None
    is_own: bool
    has_row_ids: bool


class FileNumbers(NamedTuple):
    """The numbers of one data file; ``end`` is None while the file belongs to the table.

    ``name`` is the hash of the path, ``root`` the beginning of a path that has a scheme.
    """

    id: int
    begin: int
    end: int | None
    size: int
    kind: FileKind
    name: int
    root: str


def file_numbers(
    connection: sa.Connection, table: TableVersion, after: int = -1
) -> Iterator[FileNumbers]:
    """Yield all data files with an id above ``after`` that a table ever had, by id; two statements.

    Rows are fetched in parts. Raises CorruptLake for rows that contradict themselves. A file that
    is not Parquet has no layout.
    """
    present = queries.present_tables(connection, [own_tables.file_layout.name])
    query = queries.every_data_file(table.id, with_layouts=bool(present))
    found = connection.execution_options(yield_per=_PART).execute(
        query.where(queries.t_file.c.data_file_id > after)
    )
    while rows := list(islice(found, _PART)):
        queries.require_file_rows(rows)
        yield from (_numbers(table, row) for row in rows)


def _numbers(table: TableVersion, row: Any) -> FileNumbers:
    number, path, relative, size, _, first, begin, mapping, partial, *others = row
    kind, key, layout, spec, end = others
    place = table.path + path if relative == 1 and ".." not in path else None
    place = file_place(table, path, relative) if place is None else place
    readable = layout if kind == "parquet" and key is None else None
    made = FileKind(readable, mapping, partial, spec, is_own(table, place), first is not None)
    root = "" if place.startswith("/") else "//".join(urlsplit(place)[:2])
    return FileNumbers(number, begin, end, size, made, hash(place), root)


def moved_files(
    connection: sa.Connection, table: TableVersion, since: int
) -> Iterator[tuple[int, int, int | None]]:
    """Yield files that begin or end after a snapshot, with both; one statement."""
    c = tables.data_file.c
    query = sa.select(c.data_file_id, c.begin_snapshot, c.end_snapshot)
    query = query.where(
        c.table_id == table.id, sa.or_(c.begin_snapshot > since, c.end_snapshot > since)
    )
    yield from ((row[0], row[1], row[2]) for row in connection.execute(query))


def deletes_of_files(
    connection: sa.Connection, table: TableVersion, known: Holdings
) -> dict[int, DeletesSeen]:
    """Return which deletes files have at the snapshot, by id; at most two statements.

    Files without deleted rows are left out.
    """
    at = table.snapshot.id
    stored: dict[int, int | None] = {}
    if known.has_delete_files:
        rows = connection.execute(queries.delete_files_at(table.id, at))
        ids = ((row.data_file_id, row.delete_file_id) for row in rows)
        stored = {n: seen_id(d, is_later=is_later(d, table.snapshot)) for n, d in ids}
    inlined: Counter[int] = Counter()
    if known.has_positions:
        name = queries.inlined_delete_table(table.id)
        positions = connection.execute(queries.inlined_deletes_at(name, at))
        inlined.update(number for number, _ in {(row[0], row[1]) for row in positions})
    return {
        number: DeletesSeen(stored.get(number), inlined[number])
        for number in stored.keys() | inlined.keys()
    }


def whole_number_bounds(
    connection: sa.Connection, table: TableVersion, column: FieldId, after: int = -1
) -> Iterator[tuple[int, int, int]]:
    """Yield the lowest and highest integer of a column by file id, for ids above ``after``.

    Bounds that are not integers of 64 bits are the lowest or highest such integer.
    One statement. Raises CorruptLake if an id is not an integer.
    """
    dialect = dialect_of(connection)
    query = (
        f"SELECT data_file_id, {dialect.low_bound}, {dialect.high_bound}"
        " FROM ducklake_file_column_stats"
        f" WHERE table_id = {int(table.id)} AND column_id = {int(column)}"
        f" AND data_file_id > {int(after)}"
    )
    rows = connection.execution_options(yield_per=_PART).execute(sa.text(query))
    least, most = _INT64
    for file_id, lowest, highest in rows:
        if file_id.__class__ is not int:
            _STATS_OF.type.refuse(file_id)
        yield (file_id, max(least, min(most, int(lowest))), max(least, min(most, int(highest))))
