"""Large tables of the catalog, read page by page, so that no transaction reads much.

On SQLite a writer cannot commit while somebody reads.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Column, ColumnElement, Connection, and_, false, func, select, true

from shelduck.catalog.dialects.checked import or_null


@dataclass(frozen=True, slots=True)
class KeyPage:
    """Some rows of a table in the order of its key: how many, their last key, the condition."""

    rows: int
    last: int | None
    chosen: ColumnElement[bool]


def next_page(connection: Connection, key: Column[int], last: int | None, size: int) -> KeyPage:
    """Return the page behind the key ``last``, None for the first one; one statement.

    A page with fewer rows than ``size`` is the last one.
    """
    behind = true() if last is None else key > last
    keys = select(key.label("number")).where(behind).order_by(key).limit(size).subquery()
    bounds = select(func.count(), or_null(func.max(keys.c.number)))
    rows, upto = connection.execute(bounds).one()
    if upto is None:
        return KeyPage(0, last, false())
    return KeyPage(rows, upto, and_(behind, key <= upto))
