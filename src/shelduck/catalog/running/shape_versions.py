"""Which version of its columns a table has at a snapshot, in the form of Doris' SchemaVersion."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from zlib import crc32

from sqlalchemy import Connection, bindparam, select

from shelduck.catalog.read.queries import chunks
from shelduck.ducklake import tables
from shelduck.model.tables.schema import TableId

_c = tables.column.c
_v = tables.schema_versions.c
_BEGINS = select(_v.table_id, _v.begin_snapshot).where(
    _v.table_id.in_(bindparam("ids", expanding=True))
)
_COLUMNS = select(
    *(_c.table_id, _c.begin_snapshot, _c.end_snapshot, _c.column_order, _c.column_id),
    *(_c.parent_column, _c.column_name, _c.column_type, _c.nulls_allowed),
).where(_c.table_id.in_(bindparam("ids", expanding=True)))


class ShapeVersions:
    """The versions of some tables; two statements for many tables."""

    def __init__(self, connection: Connection, of: Iterable[TableId]) -> None:
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
