"""How many numbers of a table's identity are taken."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select, update

from shelduck.catalog.databases.retry import write_with_retries
from shelduck.catalog.databases.store import Store
from shelduck.catalog.schema import own_tables

_c = own_tables.identity.c


def reserve_numbers(store: Store, table_uuid: str, count: int) -> int:
    """Take so many numbers, and return how many were taken before; a transaction of its own.

    Nobody gets them again, whether the rows are committed or not.
    """

    def take(connection: Connection) -> int:
        if not store.has_own_tables:
            own_tables.ensure_own_tables(store, connection)
        of_table = _c.table_uuid == table_uuid
        taken = connection.execute(select(_c.taken).where(of_table)).scalar_one_or_none()
        if taken is None:
            row = {"table_uuid": table_uuid, "taken": count}
            connection.execute(insert(own_tables.identity).values(row))
            return 0
        more = update(own_tables.identity).where(of_table).values(taken=taken + count)
        connection.execute(more)
        return int(taken)

    return write_with_retries(store, take)
