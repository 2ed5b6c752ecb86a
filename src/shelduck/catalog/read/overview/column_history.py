"""Every version of the columns of a table, and the snapshots in which they changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, or_, select, union

from shelduck.catalog.read import queries, read
from shelduck.ducklake import tables
from shelduck.ducklake.format import schemas_of
from shelduck.model.tables.schema import NO_DEFAULT
from shelduck.model.tables.table import Snapshot
from shelduck.model.text.quoting import quote_text
from shelduck.model.types.data_types import ducklake_type

_column = tables.column
_NESTED = ("struct", "list", "map")


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


def column_history(connection: Connection, table: int) -> list[ColumnState]:
    """Return the states of all columns that a table ever had, nested ones too, by id and begin.

    Columns that a job only reserved are left out. One statement.
    """
    rows = connection.execute(queries.column_versions(table))
    found = [_state(row) for row in rows if row.begin_snapshot != row.end_snapshot]
    return sorted(found, key=lambda s: (s.id, s.begin))


def tables_with_other_columns(connection: Connection, first: int, second: int) -> set[int]:
    """Return the tables with a column that one of two snapshots sees, and the other does not.

    One statement.
    """
    one, other = queries.visible(_column, first), queries.visible(_column, second)
    query = select(_column.c.table_id).where(or_(one & ~other, other & ~one)).distinct()
    return set(connection.execute(query).scalars())


def snapshots_of_columns(connection: Connection, table: int) -> dict[int, Snapshot]:
    """Return the snapshots that changed the columns or the name of a table, if they remain.

    By id; one statement.
    """
    c, t = _column.c, tables.table.c
    mine = c.table_id == table
    ids = union(
        select(c.begin_snapshot).where(mine),
        select(c.end_snapshot).where(mine),
        select(t.begin_snapshot).where(t.table_id == table),
    ).subquery()
    chosen = tables.snapshot.c.snapshot_id.in_(select(ids.c[0]))
    rows = connection.execute(queries.every_snapshot().where(chosen))
    return {s.id: s for s in map(read.as_snapshot, rows)}


def names_of(connection: Connection, table: int) -> list[tuple[int, str, str]]:
    """Return the names of a table: the first snapshot of each, schema and name, oldest first."""
    rows: Sequence[Any] = connection.execute(
        queries.names_of_table(schemas_of(connection), table)
    ).all()
    return sorted((begin, schema, name) for begin, schema, name in rows)


def _state(row: Any) -> ColumnState:
    return ColumnState(
        id=row.column_id,
        parent=row.parent_column,
        begin=row.begin_snapshot,
        end=row.end_snapshot,
        order=row.column_id if row.column_order is None else row.column_order,
        name=row.column_name,
        type=_type(row.column_type),
        default=_default(row),
        nullable=row.nulls_allowed is not False or row.parent_column is not None,
    )


def _type(text: str) -> str:
    return text.lower() if text.lower() in _NESTED else str(ducklake_type(text))


def _default(row: Any) -> str | None:
    if row.default_value is None or row.default_value == NO_DEFAULT:
        return None
    is_expression = row.default_value_type == "expression"
    return row.default_value if is_expression else quote_text(row.default_value)
