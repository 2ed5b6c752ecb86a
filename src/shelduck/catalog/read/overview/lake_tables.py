"""The tables of a lake with their files, rows and bytes, and every version of their columns."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import starmap
from typing import Any
from zlib import crc32

import sqlalchemy as sa

from shelduck.catalog.read import queries, read
from shelduck.catalog.read.inlined_rows import rows_of_all
from shelduck.catalog.read.queries import COUNT, IDS, chunks, total, visible
from shelduck.catalog.read.row_counts import dead_positions, tables_of_rows
from shelduck.ducklake import tables
from shelduck.ducklake.checked import BIGINT
from shelduck.ducklake.descriptions import column_of
from shelduck.ducklake.format import schemas_of
from shelduck.model.changes.change import DELETES, INSERTS, MOVES, Verb
from shelduck.model.tables.options import Scope
from shelduck.model.tables.schema import TableId
from shelduck.model.tables.table_version import Snapshot
from shelduck.model.text.names import INSIDE, shown_schema

_file, _delete = tables.data_file, tables.delete_file
_t = tables.table.c


@dataclass(frozen=True, slots=True)
class TableNumbers:
    """A table at one snapshot: its files, their rows and deletes, and the bytes of both.

    ``rows`` includes ``deleted`` ones; both leave out what the catalog itself keeps.
    """

    id: TableId
    schema: str
    name: str
    files: int
    rows: int
    bytes: int
    deleted: int

    @property
    def full_name(self) -> str:
        """Return schema and name as people read them."""
        return f"{self.schema_text}.{self.name}"

    @property
    def schema_text(self) -> str:
        """Return the schema as people read it."""
        return shown_schema(self.schema)


def tables_at(connection: sa.Connection, at: int, search: str = "") -> list[TableNumbers]:
    """Return the tables of a snapshot whose name contains a text, whatever the case, by name.

    Files that also have rows of later snapshots count with all their rows; the newest snapshot has
    no such files. One statement.
    """
    files = _sums(_file, at, _file.c.record_count)
    deletes = _sums(_delete, at, _delete.c.delete_count)
    schemas = schemas_of(connection)
    query = (
        with_schemas(schemas, at)
        .add_columns(*(files.c[n] for n in ("files", "rows", "bytes")))
        .add_columns(deletes.c.bytes, deletes.c.rows)
        .outerjoin(files, files.c.table_id == _t.table_id)
        .outerjoin(deletes, deletes.c.table_id == _t.table_id)
    )
    if search:
        schema = sa.func.replace(schemas.c.schema_name, INSIDE, ".")
        name = sa.func.lower(schema + "." + _t.table_name)
        query = query.where(name.contains(search.lower(), autoescape=True))
    found = []
    for number, schema, name, files_, rows, size, more, deleted in connection.execute(query):
        numbers = (files_ or 0, rows or 0, (size or 0) + (more or 0), deleted or 0)
        found.append(TableNumbers(TableId(number), schema, name, *numbers))
    return found


def named_tables(connection: sa.Connection, at: int | None) -> dict[int, str]:
    """Return the tables of a snapshot by id, with schema and name as people read them.

    By name; one statement.
    """
    return _names(connection, with_schemas(schemas_of(connection), at))


def named_views(connection: sa.Connection, at: int) -> dict[int, str]:
    """Return the views of a snapshot by id, with schema and name as people read them.

    By name; one statement.
    """
    schemas, v = schemas_of(connection), tables.view.c
    asked = (
        sa.select(v.view_id, schemas.c.schema_name, v.view_name)
        .join_from(tables.view, schemas, v.schema_id == schemas.c.schema_id)
        .where(visible(tables.view, at), visible(schemas, at))
        .order_by(schemas.c.schema_name, v.view_name)
    )
    return _names(connection, asked)


def owner_names(connection: sa.Connection) -> dict[tuple[Scope, int | None], str]:
    """Return the names of live schemas and tables, by scope and id; two statements."""
    every = schemas_of(connection)
    named = sa.select(every.c.schema_id, every.c.schema_name).where(queries.live(every))
    schemas = {(Scope.SCHEMA, n): shown_schema(word) for n, word in connection.execute(named)}
    in_schemas = {(Scope.TABLE, n): name for n, name in named_tables(connection, None).items()}
    return {**schemas, **in_schemas}


def _names(connection: sa.Connection, asked: sa.Select[Any]) -> dict[int, str]:
    rows = connection.execute(asked)
    return {number: f"{shown_schema(schema)}.{name}" for number, schema, name in rows}


def with_schemas(schemas: sa.FromClause, at: int | None) -> sa.Select[Any]:
    """Ask for the tables of a snapshot, None for now: id, name of the schema, and name, by name."""
    s = schemas.c
    return (
        sa.select(_t.table_id, s.schema_name, _t.table_name)
        .join_from(tables.table, schemas, _t.schema_id == s.schema_id)
        .where(visible(tables.table, at), visible(schemas, at), queries.has_columns(at))
        .order_by(s.schema_name, _t.table_name)
    )


def _sums(source: sa.Table, at: int, rows: sa.ColumnElement[Any]) -> sa.Subquery:
    return (
        sa.select(
            source.c.table_id,
            COUNT.label("files"),
            total(rows).label("rows"),
            total(source.c.file_size_bytes).label("bytes"),
        )
        .where(visible(source, at))
        .group_by(source.c.table_id)
        .subquery()
    )


@dataclass(frozen=True, slots=True)
class RowsInCatalog:
    """The catalog's own part of a table: rows, and deleted positions of its live files.

    ``versions`` also counts the rows that only older snapshots show.
    """

    rows: int = 0
    deleted: int = 0
    versions: int = 0


def kept_rows(connection: sa.Connection, ids: Collection[int]) -> dict[int, RowsInCatalog]:
    """Return the rows and the deletes that the catalog keeps, by table; NotFound never.

    Three statements, and one more for each two hundred tables of rows.
    """
    if not ids:
        return {}
    of_rows, of_deletes = tables_of_rows(connection, ids)
    asked = [*starmap(_count, of_rows.items()), *starmap(_count_deletes, of_deletes.items())]
    rows, versions, deleted = Counter[int](), Counter[int](), Counter[int]()
    for number, is_rows, count, ended in rows_of_all(connection, asked):
        if is_rows:
            rows[number] += count - ended
            versions[number] += count
        else:
            deleted[number] += count
    return {n: RowsInCatalog(rows[n], deleted[n], versions[n]) for n in ids}


def _count(name: str, number: int) -> sa.Select[Any]:
    end = sa.column("end_snapshot", BIGINT)
    told = (sa.literal(number, BIGINT), sa.literal(1, BIGINT))
    return sa.select(*told, COUNT, sa.func.count(end)).select_from(sa.table(name, end))


def _count_deletes(name: str, number: int) -> sa.Select[Any]:
    """Count the deleted positions of live files: those of ended ones stay for older snapshots."""
    dead = dead_positions(name)
    none = sa.literal(0, BIGINT)
    told = (sa.literal(number, BIGINT), none, COUNT, none)
    return sa.select(*told).select_from(dead).where(dead.c.end_snapshot.is_(None))


def newest_changes(connection: sa.Connection, wanted: Iterable[int]) -> dict[int, int]:
    """Return the newest snapshot that changed each table, according to the log of snapshots.

    Reads the log from its end, until all tables are found; a table whose snapshots have expired is
    left out. The statements of `read.newest_first`, and one for names.
    """
    missing = set(wanted)
    found: dict[int, int] = {}
    log = read.newest_first(connection, queries.every_snapshot())
    while missing and (snapshot := next(log, None)) is not None:
        touched = missing & {e.id for e in read.entries_of(snapshot) if e.verb in _OF_TABLES}
        found.update(dict.fromkeys(touched, snapshot.id))
        missing -= touched
    return _with_names(connection, found, wanted)


_OF_TABLES = INSERTS | DELETES | MOVES | {Verb.ALTERED_TABLE}


def _with_names(
    connection: sa.Connection, found: dict[int, int], wanted: Iterable[int]
) -> dict[int, int]:
    """Return the same with the snapshots that made or renamed a table: the log names no id."""
    known = sa.select(_t.table_id, sa.func.max(_t.begin_snapshot)).group_by(_t.table_id)
    there = sa.select(sa.func.min(tables.snapshot.c.snapshot_id)).scalar_subquery()
    named = connection.execute(known.where(sa.and_(_t.begin_snapshot >= there)))
    chosen = set(wanted)
    for number, begin in named:
        if number in chosen:
            found[number] = max(begin, found.get(number, begin))
    return found


_column = tables.column
_c = tables.column.c
_v = tables.schema_versions.c
_BEGINS = sa.select(_v.table_id, _v.begin_snapshot).where(_v.table_id.in_(IDS))
_COLUMNS = sa.select(
    *(_c.table_id, _c.begin_snapshot, _c.end_snapshot, _c.column_order, _c.column_id),
    *(_c.parent_column, _c.column_name, _c.column_type, _c.nulls_allowed),
).where(_c.table_id.in_(IDS))


@dataclass(frozen=True, slots=True)
class ColumnState:
    """A column from one snapshot to another, which is excluded; ``end`` is None for now.

    ``default`` is a value or an expression as SQL writes it, None if there is none.
    """

    id: int
    parent: int | None
    begin: int
    end: int | None
    order: int
    name: str
    type: str
    default: str | None
    nullable: bool

    def is_at(self, snapshot: int) -> bool:
        """Return whether a snapshot sees it."""
        return self.begin <= snapshot and (self.end is None or snapshot < self.end)


def column_history(connection: sa.Connection, table: int) -> list[ColumnState]:
    """Return the states of all columns that a table ever had, nested ones too, by id and begin.

    Columns that a job only reserved are left out. One statement.
    """
    rows = connection.execute(queries.column_versions(table))
    told = f"table {table}"
    found = [_state(row, told) for row in rows if row.begin_snapshot != row.end_snapshot]
    return sorted(found, key=lambda s: (s.id, s.begin))


def tables_with_other_columns(connection: sa.Connection, first: int, second: int) -> set[int]:
    """Return the tables with a column that one of two snapshots sees, and the other does not.

    One statement.
    """
    one, other = queries.visible(_column, first), queries.visible(_column, second)
    query = sa.select(_column.c.table_id).where(sa.or_(one & ~other, other & ~one)).distinct()
    return set(connection.execute(query).scalars())


def snapshots_of_columns(connection: sa.Connection, table: int) -> dict[int, Snapshot]:
    """Return the snapshots that changed the columns or the name of a table, if they remain.

    By id; one statement.
    """
    c, t = _column.c, tables.table.c
    mine = c.table_id == table
    ids = sa.union(
        sa.select(c.begin_snapshot).where(mine),
        sa.select(c.end_snapshot).where(mine),
        sa.select(t.begin_snapshot).where(t.table_id == table),
    ).subquery()
    chosen = tables.snapshot.c.snapshot_id.in_(sa.select(ids.c[0]))
    rows = connection.execute(queries.every_snapshot().where(chosen))
    return {s.id: s for s in map(read.as_snapshot, rows)}


def names_of(connection: sa.Connection, table: int) -> list[tuple[int, str, str]]:
    """Return the names of a table: the first snapshot of each, schema and name, oldest first."""
    return [(begin, *name) for begin, name in read.names_of(connection, table).items()]


def _state(row: Any, table: str) -> ColumnState:
    f, parent = column_of(row, table)
    default = None if f.default is None else str(f.default)
    begin, end = row.begin_snapshot, row.end_snapshot
    shown = (f.order, f.name, str(f.shape), default, f.nullable)
    return ColumnState(f.id, parent, begin, end, *shown)


class ShapeVersions:
    """The versions of some tables; two statements for many tables."""

    def __init__(self, connection: sa.Connection, of: Iterable[TableId]) -> None:
        self._begins: dict[int, list[int]] = defaultdict(list)
        self._columns: dict[int, list[tuple[int, int | None, tuple[object, ...]]]]
        self._columns = defaultdict(list)
        for some in chunks(sorted(set(of))):
            for table, begin in connection.execute(_BEGINS, {"ids": some}):
                self._begins[table].append(begin)
            for table, begin, end, *shape in connection.execute(_COLUMNS, {"ids": some}):
                self._columns[table].append((begin, end, tuple(shape)))

    def text(self, table: TableId, snapshot: int) -> str:
        """Return M:N. M counts the versions of the table's columns, N is a hash of the columns."""
        number = sum(begin <= snapshot for begin in self._begins[table])
        shape = sorted(
            repr(parts)
            for begin, end, parts in self._columns[table]
            if begin <= snapshot and (end is None or snapshot < end)
        )
        return f"{number}:{crc32(chr(10).join(shape).encode())}"
