"""The data files of a large table as rows of numbers, and the kinds of files that it has.

There is no object for each file. SQL finds the kinds, and how much of each, without a list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import islice
from operator import add
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import sqlalchemy as sa

from shelduck.catalog.databases.known import dialect_of
from shelduck.catalog.read import queries
from shelduck.catalog.read.holdings import Holdings
from shelduck.catalog.read.queries import COUNT, total
from shelduck.catalog.read.views_and_macros import file_place
from shelduck.catalog.schema import own_tables
from shelduck.ducklake import tables
from shelduck.ducklake.checked import is_broken, is_wrong, unchecked
from shelduck.model.files.data_file import DeletesSeen, seen_id
from shelduck.model.files.resolve import is_own
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
    inlined = dead_in_catalog(connection, table) if known.has_positions else Counter[int]()
    return {
        number: DeletesSeen(stored.get(number), inlined[number])
        for number in stored.keys() | inlined.keys()
    }


def dead_in_catalog(connection: sa.Connection, table: TableVersion) -> Counter[int]:
    """Count the deleted rows that the table of `queries.inlined_deletes` lists, by data file.

    A position may be there twice: two processes may have written it.
    """
    name = queries.inlined_delete_table(table.id)
    rows = connection.execute(queries.inlined_deletes_at(name, table.snapshot.id))
    return Counter(number for number, _ in {(row.file_id, row.row_id) for row in rows})


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


_file, _layout = tables.data_file, own_tables.file_layout
_c = _file.c
# A table with more kinds of files is listed: each needs an example.
_MOST = 1_000
# Of more kinds, the examples are not searched one by one.
_MOST_SEARCHED = 8
_OWN, _HAS_IDS, _DEAD, _ELSEWHERE, _WRONG = (1 << bit for bit in range(5))


class FileSums(NamedTuple):
    """Files in numbers."""

    files: int
    ids: int
    """The sum of their ids."""
    bytes: int
    largest: int
    """The bytes of the largest file."""


class AlikeFiles(NamedTuple):
    """Files of a table that one scan group reads: their kinds, an example of each, and sums.

    A kind also says whether its files have deletes.
    """

    kinds: tuple[tuple[FileKind, bool], ...]
    examples: tuple[int, ...]
    sums: FileSums


def alike_files(
    connection: sa.Connection, table: TableVersion, known: Holdings
) -> list[AlikeFiles] | None:
    """Return the files that a table has at its snapshot, by what they have in common, oldest first.

    None if somebody must look at each file: the catalog lacks the layout of one or contradicts
    itself, a file is in another store than the table, or there are very many kinds. One statement,
    or two and one for each kind if all files are read alike, which takes half of the time.
    """
    each = _each_file(table, known)
    if not (known.has_delete_files or known.has_positions):
        rows = connection.execute(sa.select(*_key(each)).distinct().limit(_MOST_SEARCHED + 1)).all()
        kinds = [_kind(row) for row in rows]
        if any(kind is None for kind in kinds):
            return None
        shared = {(k.layout_id, k.mapping_id, k.partial_max) for k, _ in filter(None, kinds)}
        if len(rows) <= _MOST_SEARCHED and len(shared) == 1:
            found = tuple(_example(connection, each, row) for row in rows)
            alike = tuple(filter(None, kinds))
            return [AlikeFiles(alike, found, file_sums(connection, table))]
    return _by_kind(connection, each)


def _by_kind(connection: sa.Connection, each: sa.Subquery) -> list[AlikeFiles] | None:
    one, key = each.c, _key(each)
    query = sa.select(
        *key, sa.func.min(one.data_file_id), *_sums(one.data_file_id, one.file_size_bytes)
    )
    found: list[AlikeFiles] = []
    rows = connection.execute(query.group_by(*key).limit(_MOST + 1)).all()
    for *parts, example, files, ids, size, largest in rows:
        kind = _kind(parts)
        if kind is None:
            return None
        found.append(AlikeFiles((kind,), (example,), FileSums(files, ids, size, largest)))
    return None if len(found) > _MOST else sorted(found, key=lambda files: files.examples)


def file_sums(connection: sa.Connection, table: TableVersion) -> FileSums:
    """Return the sums of a table's files at its snapshot; one statement.

    New files have greater ids than all others, so that other files have other sums.
    """
    query = sa.select(*_sums(_c.data_file_id, unchecked(_c.file_size_bytes))).where(
        _is_there(table)
    )
    files, ids, size, largest = connection.execute(query).one()
    return FileSums(files, ids, size, largest or 0)


def _sums(
    number: sa.ColumnElement[Any], size: sa.ColumnElement[Any]
) -> list[sa.ColumnElement[Any]]:
    return [COUNT, total(number), total(size), sa.func.max(size)]


def _example(connection: sa.Connection, each: sa.Subquery, key: Sequence[Any]) -> int:
    """Return the id of a file of a kind; one statement, which ends at the first one."""
    same = (part.is_not_distinct_from(value) for part, value in zip(_key(each), key, strict=True))
    found: int = connection.execute(
        sa.select(each.c.data_file_id).where(*same).limit(1)
    ).scalar_one()
    return found


def _kind(key: Sequence[Any]) -> tuple[FileKind, bool] | None:
    layout, mapping, partial, spec, flags = key
    if layout is None or flags & (_ELSEWHERE | _WRONG):
        return None
    kind = FileKind(layout, mapping, partial, spec, bool(flags & _OWN), bool(flags & _HAS_IDS))
    return kind, bool(flags & _DEAD)


def _key(each: sa.Subquery) -> tuple[sa.ColumnElement[Any], ...]:
    one = each.c
    return one.layout, one.mapping_id, one.partial_max, one.partition_id, one.flags


def _each_file(table: TableVersion, known: Holdings) -> sa.Subquery:
    has_layouts = _layout.name in known.present
    layout: Any = unchecked(_layout.c.layout_id) if has_layouts else sa.null()
    is_readable = _c.file_format == "parquet"
    flags = {
        _OWN: _is_own(table),
        _HAS_IDS: _c.row_id_start.is_not(None),
        _DEAD: _has_deletes(table, known),
        _ELSEWHERE: _is_elsewhere(table),
        # Sums would hide it.
        _WRONG: sa.or_(is_broken(_file), is_wrong(_c.file_size_bytes)),
    }
    each = sa.select(
        sa.case((is_readable, layout), else_=sa.null()).label("layout"),
        *map(unchecked, (_c.mapping_id, _c.partial_max, _c.partition_id)),
        # Databases sort by the key: one number for all flags is what they sort fastest.
        reduce(add, (sa.case((is_so, flag), else_=0) for flag, is_so in flags.items())).label(
            "flags"
        ),
        *map(unchecked, (_c.data_file_id, _c.file_size_bytes)),
    ).where(_is_there(table))
    if has_layouts:
        each = each.outerjoin_from(_file, _layout, _c.data_file_id == _layout.c.data_file_id)
    return each.subquery()


def _is_there(table: TableVersion) -> sa.ColumnElement[bool]:
    return sa.and_(_c.table_id == table.id, queries.shown_or_broken(_file, table.snapshot.id))


def _has_deletes(table: TableVersion, known: Holdings) -> sa.ColumnElement[bool]:
    at, owners = table.snapshot.id, []
    if known.has_delete_files:
        stored = tables.delete_file.c
        there = queries.shown_or_broken(tables.delete_file, at)
        each = sa.select(unchecked(stored.data_file_id))
        owners.append(each.where(stored.table_id == table.id, there))
    if known.has_positions:
        each = queries.inlined_deletes_at(queries.inlined_delete_table(table.id), at)
        owners.append(each.order_by(None).with_only_columns(each.selected_columns[0]))
    return sa.or_(*(_c.data_file_id.in_(some) for some in owners)) if owners else sa.literal(1) == 0


def _is_own(table: TableVersion) -> sa.ColumnElement[bool]:
    """Return what `trusted_statistics.is_own` does of names that nobody made up."""
    digits = table.uuid.lower().replace("-", "")[-12:]
    name = f"________-____-7___-____-{digits}%"

    def is_named(below: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
        inside = sa.and_(below.like(f"%/{name}"), sa.not_(below.like(f"%/{name}/%")))
        return sa.or_(below.like(name), inside)

    below = sa.func.substr(_c.path, len(table.path) + 1)
    return sa.case(
        (_c.path_is_relative == sa.true(), is_named(unchecked(_c.path))),
        (_begins(table.path), is_named(below)),
        else_=sa.literal(1) == 0,
    )


def _is_elsewhere(table: TableVersion) -> sa.ColumnElement[bool]:
    """Return the condition that a file is in another store than its table."""
    parts = urlsplit(table.path)
    same = _begins(f"{parts.scheme}://{parts.netloc}/") if parts.scheme else sa.literal(1) == 0
    return sa.not_(sa.or_(_c.path_is_relative == sa.true(), _begins("/"), same))


def _begins(start: str) -> sa.ColumnElement[bool]:
    return sa.func.substr(_c.path, 1, len(start)) == start
