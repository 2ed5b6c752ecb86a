"""Rows whose first and last snapshot contradict each other.

No snapshot would show such a row, so it would disappear without an error. Statements that look for
the rows of a snapshot also find broken rows, and select `begin_of`, which refuses them.
"""

from __future__ import annotations

from typing import Any, NoReturn

from sqlalchemy import ColumnElement, Connection, FromClause, Table, case, or_, select, type_coerce
from sqlalchemy.exc import DBAPIError

from shelduck.ducklake import tables
from shelduck.ducklake.checked import RESTORE, BrokenValue, Checked, row_text
from shelduck.ducklake.column_types import BIGINT
from shelduck.ducklake.rules import MOST


class BrokenInterval(BrokenValue):
    """A row that ends before it begins, or that begins nowhere."""

    def __init__(self, source: Table) -> None:
        super().__init__((source.name, "begin_snapshot"), None, "a snapshot before end_snapshot")
        self._source = source

    def locate(self, connection: Connection) -> None:
        """Add to the message which row is broken, and how; one statement."""
        columns = [
            type_coerce(c, BIGINT).label(c.name) for c in self._source.c if _is_shown(c.name)
        ]
        query = select(*columns).where(is_broken(self._source)).limit(1)
        try:
            row = connection.execute(query).mappings().first()
        except DBAPIError:
            return
        if row is not None:
            begin, end = row["begin_snapshot"], row["end_snapshot"]
            where = row_text(dict(row), "begin_snapshot")
            told = f"{self.table} has a row from snapshot {begin!r} to {end!r}, with {where}"
            self.args = (f"{told}, which is not an interval; {RESTORE}",)


class _Begin(Checked):
    """The type of `begin_of`."""

    cache_ok = True

    def refuse(self, value: object) -> NoReturn:  # noqa: ARG002 - it is always NULL
        raise BrokenInterval(tables.DUCKLAKE.tables[self.column[0]])


def is_broken(source: FromClause) -> ColumnElement[bool]:
    """Return the condition that a versioned row has no valid interval."""
    begin, end = source.c.begin_snapshot, source.c.end_snapshot
    # SQLite may hold a text, which is greater than all numbers.
    return or_(begin.is_(None), begin < 0, begin > MOST, end < begin, end > MOST)


def begin_of(source: FromClause) -> ColumnElement[Any]:
    """Return where a versioned row begins; fetching it raises `BrokenInterval` for a broken row."""
    kind = source.c.begin_snapshot.type
    assert isinstance(kind, Checked)
    begin = case((is_broken(source), None), else_=source.c.begin_snapshot)
    typed = _Begin(kind.stored, kind.column, kind.kind, kind.limits, False)
    return type_coerce(begin, typed).label("begin_snapshot")


def _is_shown(name: str) -> bool:
    return name.endswith(("_id", "_snapshot"))
