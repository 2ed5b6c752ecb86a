"""The column type that refuses what a column of the catalog cannot hold.

Each column of `catalog.schema` has one, so every value that any statement returns is checked here.
"""

# ruff: noqa: D102 - SQLAlchemy's TypeDecorator holds the contract of these methods.

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NoReturn
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Dialect,
    Integer,
    String,
    Table,
    case,
    cast,
    column,
    func,
    or_,
    select,
    text,
    type_coerce,
)
from sqlalchemy import table as sql_table
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import TypeDecorator, TypeEngine

from shelduck.errors import CorruptLake

RESTORE = "correct the row, or restore the catalog from a backup"
_WORDS = {
    int: "an integer",
    str: "a text",
    bool: "true or false",
    datetime: "a time",
    UUID: "a UUID",
}


class BrokenValue(CorruptLake):
    """A value that its column cannot hold; `locate` adds the row."""

    def __init__(self, column: tuple[str, str], value: object, expected: str) -> None:
        self.table, self.column = column
        self.value, self.expected = value, expected
        super().__init__(self._told(""))

    def locate(self, connection: Connection) -> None:
        """Add to the message which row has the value; one statement."""
        test = f"{self.column} IS NULL" if self.value is None else f"{self.column} = :value"
        query = text(f"SELECT * FROM {self.table} WHERE {test}")
        given = {} if self.value is None else {"value": self.value}
        try:
            row = connection.execute(query, given).mappings().first()
        except (DBAPIError, OverflowError):
            return
        if row is not None:
            self.locate_in(dict(row))

    def locate_in(self, row: Mapping[str, Any]) -> None:
        """Add to the message which row has the value."""
        self.args = (self._told(row_text(row, self.column)),)

    def _told(self, where: str) -> str:
        shown = "NULL" if self.value is None else f"{self.value!r:.60}"
        name = f"{self.table}.{self.column}"
        row = f" in the row with {where}" if where else ""
        return f"{name} is {shown}{row}, expected {self.expected}; {RESTORE}"


def row_text(row: Mapping[str, Any], without: str = "") -> str:
    """Return the columns that identify a row, with their values."""
    names = [n for n in row if n.endswith("_id") or n in ("key", "begin_snapshot")]
    return ", ".join(f"{n} {row[n]!r}" for n in names if n != without and row[n] is not None)


class Checked(TypeDecorator[Any]):
    """A stored type with what one column may hold: the Python type, a range, NULL or not.

    Raises `BrokenValue` for any other value that a statement returns.
    """

    impl = String
    cache_ok = True
    # `IS FALSE` has no parameters in PostgreSQL.
    coerce_to_is_types = (type(None), bool)

    def __init__(
        self,
        stored: TypeEngine[Any],
        column: tuple[str, str],
        kind: type,
        limits: tuple[int, int],
        optional: bool,
    ) -> None:
        super().__init__()
        # The class attribute is only what SQLAlchemy begins with.
        self.impl = self.impl_instance = stored  # type: ignore[assignment]
        self.stored, self.column, self.kind = stored, column, kind
        self.limits, self.optional = limits, optional

    @property
    def or_null(self) -> Checked:
        """The same type with NULL."""
        return Checked(self.stored, self.column, self.kind, self.limits, True)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        decode = self.impl_instance.result_processor(dialect, coltype)
        if decode is None and self.kind in (int, str):
            return self._plain()
        fits = self._test()

        def checked(raw: Any) -> Any:
            if raw is None:
                return None if self.optional else self.refuse(raw)
            try:
                value = raw if decode is None else decode(raw)
                if fits(value):
                    return value
            except (ArithmeticError, AttributeError, TypeError, ValueError):
                pass
            return self.refuse(raw)

        return checked

    def _plain(self) -> Callable[[Any], Any]:
        """Return the check of numbers and texts, which are most values, in one function each."""
        (least, most), optional = self.limits, self.optional

        def number(raw: Any) -> Any:
            if raw.__class__ is int and least <= raw <= most:
                return raw
            return None if raw is None and optional else self.refuse(raw)

        def text(raw: Any) -> Any:
            if raw.__class__ is str and (raw or not least):
                return raw
            return None if raw is None and optional else self.refuse(raw)

        return number if self.kind is int else text

    def require(self, value: object) -> None:
        """Raise `BrokenValue` unless the column can hold a number, a flag or a text as stored."""
        if value is None:
            is_sound = self.optional
        else:
            is_sound = value in (0, 1) if self.kind is bool else self._test()(value)
        if not is_sound:
            self.refuse(value)

    def _test(self) -> Callable[[Any], bool]:
        kind, (least, most) = self.kind, self.limits
        if kind is int:
            return lambda value: value.__class__ is int and least <= value <= most
        if kind is str:
            return lambda value: value.__class__ is str and least <= len(value) <= most
        if kind is UUID:
            return lambda value: value.__class__ is str and UUID(value) is not None
        return lambda value: value.__class__ is kind

    def refuse(self, value: object) -> NoReturn:
        """Raise the error for a value."""
        raise BrokenValue(self.column, value, _words(self))


def _words(kind: Checked) -> str:
    found = _WORDS[kind.kind]
    if kind.kind is int:
        found += f" from {kind.limits[0]} to {kind.limits[1]}"
    elif kind.kind is str and kind.limits[0]:
        found += " that is not empty"
    return found + " or NULL" * kind.optional


class _Sum(Checked):
    """The type of `sum_of`: NULL for a column with a wrong value."""

    cache_ok = True

    def refuse(self, value: object) -> NoReturn:  # noqa: ARG002 - the value is in some row
        raise _BrokenSum(self)


class _BrokenSum(BrokenValue):
    """A sum of values, one of which its column cannot hold."""

    def __init__(self, kind: Checked) -> None:
        super().__init__(kind.column, "no number", _words(kind))
        self._kind = kind

    def locate(self, connection: Connection) -> None:
        """Find the value, then as for any other; one or two statements."""
        source = sql_table(self.table, column(self.column))
        query = select(source).where(_is_wrong(source.c[self.column], self._kind)).limit(1)
        row = connection.execute(query).first()
        if row is not None:
            self.value = row[0]
            super().locate(connection)


def sum_of(value: Column[Any]) -> ColumnElement[Any]:
    """Return the sum of a column of numbers, 0 without any.

    Fetching it raises `BrokenValue` if one of them is wrong.
    """
    kind = value.type
    assert isinstance(kind, Checked)
    wrong = func.count(case((_is_wrong(value, kind), 1)))
    total = case((wrong == 0, cast(func.coalesce(func.sum(value), 0), BigInteger)))
    return type_coerce(total, _Sum(BigInteger(), kind.column, int, (0, 2**63 - 1), False))


def _is_wrong(value: ColumnElement[Any], kind: Checked) -> ColumnElement[bool]:
    # SQLite may hold a text, which is greater than all numbers.
    least, most = kind.limits
    beyond = or_(value < least, value > most)
    return beyond if kind.optional else or_(value.is_(None), beyond)


def or_null(value: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return a column, or an aggregate of one, that is NULL if no row exists."""
    assert isinstance(value.type, Checked)
    return type_coerce(value, value.type.or_null)


class StoredFlag(Integer):
    """A flag as the database returns it: a number or a boolean."""


def unchecked(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return a column whose reader checks the values itself, because there are many rows.

    Values come as the database stores them. Use `refuse_row` for a row that has a wrong one.
    """
    assert isinstance(column.type, Checked)
    is_flag = column.type.kind is bool
    return type_coerce(column, StoredFlag() if is_flag else column.type.stored)


def refuse_row(table: Table, row: Mapping[str, Any]) -> None:
    """Raise `BrokenValue` if a stored value is none of its column; ``row`` maps names to values."""
    for name, value in row.items():
        kind = table.c[name].type
        assert isinstance(kind, Checked)
        try:
            kind.require(value)
        except BrokenValue as error:
            error.locate_in(row)
            raise
