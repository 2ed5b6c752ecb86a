"""How many numbers of a table's identity are taken."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from shelduck.catalog.databases.store import Store, write_with_retries
from shelduck.catalog.read import queries
from shelduck.catalog.schema import own_tables
from shelduck.ducklake import tables
from shelduck.errors import InvalidRequest
from shelduck.model.tables.computed import identity_of
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.tables.twin import counter_of
from shelduck.model.types.data_types import Primitive
from shelduck.model.types.literals import bound

_c = own_tables.identity.c
_stats = tables.table_column_stats.c
_BIGINT = Primitive("int64")


def reserve_numbers(
    store: Store, table: TableVersion, count: int, given: Iterable[int] = ()
) -> int:
    """Take so many numbers of a table's identity, and return the first; in its own transaction.

    They are behind all that were reserved before, whether rows were committed or not, all that the
    table ever had, whoever wrote them, and those that somebody has ``given``. Raises InvalidRequest
    if BIGINT ends before.
    """
    found = identity_of(table)
    assert found is not None
    identity = found[1]

    def take(connection: sa.Connection) -> int:
        _require_counters(store, connection)
        taken = max(_taken(connection, table), *map(identity.taken_with, given), 0)
        first = identity.next(taken, count)
        if first is None:
            raise InvalidRequest(
                f"cannot number {count} row(s) of {table.full_name}: BIGINT has no such numbers"
                f" behind the {taken} of {identity}; copy the rows to a table with another start"
            )
        _take(connection, table, taken + count)
        return first

    return write_with_retries(store, take)


def copy_numbers(store: Store, source: TableVersion, made: TableVersion) -> None:
    """Let the identity of a copy begin behind the numbers of its source; in its own transaction."""
    if identity_of(source) is None:
        return

    def copy(connection: sa.Connection) -> None:
        _require_counters(store, connection)
        _take(connection, made, _taken(connection, source))

    write_with_retries(store, copy)


def last_number(store: Store, table: TableVersion) -> int | None:
    """Return the last number of a table's identity that is taken; None if none is."""
    found = identity_of(table)
    if found is None:
        return None
    with store.read() as connection:
        has_counters = bool(queries.present_tables(connection, [own_tables.identity.name]))
        taken = _taken(connection, table, has_counters=has_counters)
    return found[1].start + found[1].step * (taken - 1) if taken else None


def _require_counters(store: Store, connection: sa.Connection) -> None:
    if not store.has_own_tables:
        own_tables.ensure_own_tables(store, connection)


def _taken(connection: sa.Connection, table: TableVersion, *, has_counters: bool = True) -> int:
    """Return how many numbers are taken: by reservations, and by values that the table had."""
    found = identity_of(table)
    assert found is not None
    column, identity = found
    reserved = sa.select(_c.taken).where(_c.table_uuid == counter_of(table))
    bounds = sa.select(_stats.min_value, _stats.max_value).where(
        _stats.table_id == table.id, _stats.column_id == column.id
    )
    texts = [text for row in connection.execute(bounds) for text in row]
    ends = [end for text in texts if isinstance(end := bound(_BIGINT, text), int)]
    taken = connection.execute(reserved).scalars() if has_counters else ()
    return max([0, *map(int, taken), *map(identity.taken_with, ends)])


def _take(connection: sa.Connection, table: TableVersion, taken: int) -> None:
    """Record how many numbers of a table are taken."""
    counter = counter_of(table)
    row = sa.update(own_tables.identity).where(_c.table_uuid == counter).values(taken=taken)
    if not connection.execute(row).rowcount:
        values = {"table_uuid": counter, "taken": taken}
        connection.execute(sa.insert(own_tables.identity).values(values))
