"""Large tables of the catalog, read and deleted from few rows at a time, so that nobody waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa

from shelduck import clock
from shelduck.catalog.databases.known import dialect_of
from shelduck.catalog.databases.store import Store, write_with_retries
from shelduck.ducklake.checked import or_null

T = TypeVar("T")
# What a transaction changes at most, and at least even if that takes long: part of the time is for
# the end of the transaction, however small it is.
ROWS, LEAST = 1_000, 125
# A transaction that holds the lock for longer is too large; for less, the next may be larger.
_LONG, _SHORT = 0.05, 0.02
R = TypeVar("R")


class LotPace:
    """How many rows the next transaction changes, so that nobody waits long for the lock.

    It learns from how long the transactions before it held the lock: on a slow or busy machine they
    become smaller.
    """

    def __init__(self) -> None:
        """Begin with `ROWS`."""
        self.rows = ROWS

    def write(self, store: Store, act: Callable[[sa.Connection], T]) -> T:
        """Run ``act`` in a transaction that holds the lock, and learn from its time."""
        began = 0.0

        def timed(connection: sa.Connection) -> T:
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


class RowBudget:
    """How many rows a transaction may still delete."""

    def __init__(self, rows: int) -> None:
        """Begin with that many rows."""
        self._left = rows

    @property
    def is_spent(self) -> bool:
        """Whether none is left, so that another transaction must continue."""
        return self._left <= 0

    def remove(
        self, connection: sa.Connection, source: sa.Table, *wanted: sa.ColumnElement[Any]
    ) -> None:
        """Delete rows that meet all conditions, as many as may be; one statement."""
        if self.is_spent:
            return
        name = f"{source.name}.{dialect_of(connection).row_address}"
        address: sa.ColumnElement[Any] = sa.literal_column(name)
        some = sa.select(address).select_from(source).where(*wanted).limit(self._left)
        statement = sa.delete(source).where(address.in_(some.correlate(None)))
        self._left -= connection.execute(statement).rowcount


@dataclass(frozen=True, slots=True)
class KeyPage:
    """Some rows of a table in the order of its key: how many, their last key, the condition."""

    rows: int
    last: int
    chosen: sa.ColumnElement[bool]


def pages(
    store: Store, key: sa.Column[int], size: int, ask: Callable[[sa.Connection, KeyPage], R]
) -> Iterator[tuple[KeyPage, R]]:
    """Yield each page of a table, of at most ``size`` rows, with what ``ask`` returns about it.

    Each page is read in a transaction of its own, which has ended when the page is yielded. One
    statement for each page, and those of ``ask``.
    """
    last: int | None = None
    while True:
        with store.read() as connection:
            page = _next_page(connection, key, last, size)
            if page is None:
                return
            found = ask(connection, page)
        yield page, found
        if page.rows < size:
            return
        last = page.last


def row_pages(
    store: Store, key: sa.Column[int], size: int, query: sa.Select[Any]
) -> Iterator[Sequence[Any]]:
    """Yield what a query of a table finds on each of its `pages`."""

    def rows(connection: sa.Connection, page: KeyPage) -> Sequence[Any]:
        return connection.execute(query.where(page.chosen)).all()

    return (found for _, found in pages(store, key, size, rows))


def _next_page(
    connection: sa.Connection, key: sa.Column[int], last: int | None, size: int
) -> KeyPage | None:
    """Return the page behind the key ``last``, None if there are no more rows; one statement."""
    behind = sa.true() if last is None else key > last
    keys = sa.select(key.label("number")).where(behind).order_by(key).limit(size).subquery()
    bounds = sa.select(sa.func.count(), or_null(sa.func.max(keys.c.number)))
    rows, upto = connection.execute(bounds).one()
    return None if upto is None else KeyPage(rows, upto, sa.and_(behind, key <= upto))
