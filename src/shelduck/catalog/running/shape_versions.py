"""Which version of its columns a table has at a snapshot, as Doris' SchemaVersion tells it."""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

from sqlalchemy import Connection, select

from shelduck.catalog.read import queries
from shelduck.catalog.schema import tables
from shelduck.model.tables.schema import TableId

_c = tables.column.c
_SHAPE = (_c.column_order, _c.column_id, _c.parent_column, _c.column_name, _c.column_type)


class ShapeVersions:
    """The versions of some tables; two statements for each table."""

    def __init__(self, connection: Connection, of: Iterable[TableId]) -> None:
        self._begins: dict[TableId, list[int]] = {}
        self._columns: dict[TableId, list[tuple[int, int | None, tuple[object, ...]]]] = {}
        for table in set(of):
            versions = connection.execute(queries.schema_versions_of(table)).all()
            self._begins[table] = [begin for _, begin in versions]
            wanted = select(_c.begin_snapshot, _c.end_snapshot, *_SHAPE, _c.nulls_allowed)
            rows = connection.execute(wanted.where(_c.table_id == table)).all()
            self._columns[table] = [(row[0], row[1], tuple(row[2:])) for row in rows]

    def text(self, table: TableId, snapshot: int) -> str:
        """Return M:N. M counts the versions of the table's columns, N is a hash of the columns."""
        number = sum(begin <= snapshot for begin in self._begins[table])
        shape = sorted(
            repr(parts)
            for begin, end, parts in self._columns[table]
            if begin <= snapshot and (end is None or snapshot < end)
        )
        return f"{number}:{crc32(chr(10).join(shape).encode())}"
