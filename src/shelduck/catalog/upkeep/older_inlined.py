"""Tables for inlined rows that an ALTER has replaced, and that are empty.

Each ALTER leaves one, and nobody needs it: no snapshot sees a row in it, and new rows go into the
newest table. But DuckDB reads the columns of all tables when it opens a file, and a reader asks
each registered table for rows. On PostgreSQL they stay (docs/decisions/0014).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlalchemy import Connection, delete, func, select, text

from shelduck.catalog.databases.known import dialect_of
from shelduck.catalog.databases.store import Store
from shelduck.catalog.read.inlined import require_inlined_tables, tables_with_rows
from shelduck.catalog.read.queries import chunks
from shelduck.catalog.upkeep.few_rows import Pace
from shelduck.ducklake import tables

# How many one transaction drops.
_MOST = 20
_r = tables.inlined_data_tables.c


def remove_empty_tables(store: Store, pace: Pace) -> None:
    """Drop replaced tables that have no rows; one statement if nothing was replaced.

    Raises CorruptLake for a registered table whose name is not one of DuckLake's.
    """
    with store.read() as connection:
        names = _empty(connection) if dialect_of(connection).drops_at_once else []
    for some in chunks(names, _MOST):
        pace.write(store, partial(_drop, some))


def _drop(names: Sequence[str], connection: Connection) -> None:
    # Another expiry may have been faster.
    for name in sorted({*names}.intersection(_empty(connection))):
        connection.execute(text(f"DROP TABLE {name}"))
        connection.execute(delete(tables.inlined_data_tables).where(_r.table_name == name))


def _empty(connection: Connection) -> list[str]:
    newest = select(_r.table_id, func.max(_r.schema_version).label("newest"))
    last = newest.group_by(_r.table_id).subquery()
    query = select(_r.table_id, _r.table_name).join_from(
        tables.inlined_data_tables, last, last.c.table_id == _r.table_id
    )
    names = []
    for table, name in connection.execute(query.where(_r.schema_version < last.c.newest)):
        require_inlined_tables(table, [name])
        names.append(name)
    held = tables_with_rows(connection, names, lambda _: ())
    return [name for name in names if name not in held]
