"""Every version of the columns of a table, and the snapshots in which they changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import sqlalchemy as sa

from shelduck.catalog.read import queries, read
from shelduck.catalog.read.queries import IDS, chunks
from shelduck.ducklake import tables
from shelduck.ducklake.descriptions import column_of
from shelduck.model.tables.schema import TableId
from shelduck.model.tables.table_version import Snapshot

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
