"""Deletions that end after a number of rows, so that nobody waits long for the catalog's lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Table, delete, literal_column, select

from shelduck import clock
from shelduck.catalog.databases.known import dialect_of
from shelduck.catalog.databases.retry import write_with_retries
from shelduck.catalog.databases.store import Store

T = TypeVar("T")
# What a transaction changes at most, and at least even if that takes long: part of the time is for
# the end of the transaction, however small it is.
ROWS, LEAST = 1_000, 125
# A transaction that holds the lock for longer is too large; for less, the next may be larger.
_LONG, _SHORT = 0.05, 0.02


class Pace:
    """How many rows the next transaction changes, so that nobody waits long for the lock.

    It learns from how long the transactions before it held the lock: on a slow or busy machine they
    become smaller.
    """

    def __init__(self) -> None:
        """Begin with `ROWS`."""
        self.rows = ROWS

    def write(self, store: Store, act: Callable[[Connection], T]) -> T:
        """Run ``act`` in a transaction that holds the lock, and learn from its time."""
        began = 0.0

        def timed(connection: Connection) -> T:
            nonlocal began
            began = clock.monotonic()
            return act(connection)

        found = write_with_retries(store, timed)
        held = clock.monotonic() - began
        if held > _LONG:
            self.rows = max(min(LEAST, ROWS), self.rows // 2)
        elif held < _SHORT:
            self.rows = min(ROWS, 2 * self.rows)
        return found


class Budget:
    """How many rows a transaction may still delete."""

    def __init__(self, rows: int) -> None:
        """Begin with that many rows."""
        self._left = rows

    @property
    def is_spent(self) -> bool:
        """Whether none is left, so that another transaction must continue."""
        return self._left <= 0

    def remove(self, connection: Connection, source: Table, *wanted: ColumnElement[Any]) -> None:
        """Delete rows that meet all conditions, as many as may be; one statement."""
        if self.is_spent:
            return
        name = f"{source.name}.{dialect_of(connection).row_address}"
        address: ColumnElement[Any] = literal_column(name)
        some = select(address).select_from(source).where(*wanted).limit(self._left)
        statement = delete(source).where(address.in_(some.correlate(None)))
        self._left -= connection.execute(statement).rowcount
