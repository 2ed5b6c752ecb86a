"""Deletions that end after a number of rows, so that nobody waits long for the catalog's lock."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, delete, literal_column, select

from shelduck.catalog.dialects.known import dialect_of


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
