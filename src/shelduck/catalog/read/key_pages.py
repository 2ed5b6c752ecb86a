"""Large tables of the catalog, read page by page, so that no transaction reads much.

On SQLite a writer cannot commit while somebody reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Column, ColumnElement, Connection, and_, func, select, true

from shelduck.catalog.databases.store import Store
from shelduck.ducklake.checked import or_null

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KeyPage:
    """Some rows of a table in the order of its key: how many, their last key, the condition."""

    rows: int
    last: int
    chosen: ColumnElement[bool]


def pages(
    store: Store, key: Column[int], size: int, ask: Callable[[Connection, KeyPage], T]
) -> Iterator[tuple[KeyPage, T]]:
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


def _next_page(
    connection: Connection, key: Column[int], last: int | None, size: int
) -> KeyPage | None:
    """Return the page behind the key ``last``, None if there are no more rows; one statement."""
    behind = true() if last is None else key > last
    keys = select(key.label("number")).where(behind).order_by(key).limit(size).subquery()
    bounds = select(func.count(), or_null(func.max(keys.c.number)))
    rows, upto = connection.execute(bounds).one()
    return None if upto is None else KeyPage(rows, upto, and_(behind, key <= upto))
