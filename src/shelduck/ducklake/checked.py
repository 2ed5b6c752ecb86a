"""Column types of the catalog, and one that refuses what a column cannot hold.

There is one Python type each, and the extension's physical type per database. DuckDB writes its
SQLite catalogs with BIGINT for booleans and VARCHAR for UUIDs and timestamps; DuckDB and PostgreSQL
catalogs use the native types. Callers see int, str, bool, str (UUID) and aware datetime everywhere.

Each column of the catalog has a type that refuses what `shelduck.ducklake.rules` says that it
cannot hold, so every value that any statement returns is checked here. A fetch of many rows takes
values as they are (`unchecked`), and checks them together (`guard`).

No snapshot would show a row that ends before it begins, so it would disappear without an error.
Statements that look for the rows of a snapshot also find such rows, and select `begin_of`.
"""

# ruff: noqa: D102 - SQLAlchemy's TypeDecorator holds the contract of these methods.

from __future__ import annotations

import operator
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache, partial
from typing import Any, NoReturn

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import TypeDecorator, TypeEngine

from shelduck.ducklake.rules import MOST, ValueRule, rule_of
from shelduck.errors import CorruptLake

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def timestamp_text(value: datetime) -> str:
    """Return the text that DuckDB stores in SQLite: UTC, trailing zeros cut, offset ``+00``."""
    utc = value.astimezone(UTC)
    text = utc.strftime("%Y-%m-%d %H:%M:%S")
    fraction = f"{utc.microsecond:06d}".rstrip("0")
    return f"{text}.{fraction}+00" if fraction else f"{text}+00"


def timestamp_from_text(text: str) -> datetime:
    """Read a stored timestamp; text without an offset counts as UTC."""
    value = datetime.fromisoformat(text)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def least_text(value: datetime) -> str:
    """Return the least of the texts that writers store for a time."""
    return timestamp_text(value).removesuffix("+00")


def greatest_text(value: datetime) -> str:
    """Return a text above all that writers store for a time, and below those of later ones."""
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f~")


class TimestampAsText(TypeDecorator[datetime]):
    """Stored as the text that DuckDB writes, or bound as another one."""

    impl = sa.String
    cache_ok = True

    def __init__(self, text_of: Callable[[datetime], str] = timestamp_text) -> None:
        super().__init__()
        self.text_of = text_of

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else self.text_of(value)

    def process_result_value(self, value: Any | None, dialect: sa.Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else timestamp_from_text(value)


class TimestampAsMicros(TypeDecorator[datetime]):
    """Fetched as microseconds: DuckDB's driver needs pytz to return a TIMESTAMPTZ."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def column_expression(self, column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.func.epoch_us(column, type_=self)

    def process_result_value(self, value: Any | None, dialect: sa.Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else EPOCH + timedelta(microseconds=int(value))


def _timestamp(text_of: Callable[[datetime], str]) -> TypeEngine[datetime]:
    native = sa.DateTime(timezone=True).with_variant(TimestampAsMicros(), "duckdb")
    return native.with_variant(TimestampAsText(text_of), "sqlite")


class BooleanAsBigint(TypeDecorator[bool]):
    """Stored as 0 and 1."""

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: bool | None, dialect: sa.Dialect) -> int | None:  # noqa: ARG002
        return None if value is None else int(value)

    def process_result_value(self, value: Any | None, dialect: sa.Dialect) -> bool | None:  # noqa: ARG002
        if value not in (None, 0, 1):
            raise ValueError(value)
        return None if value is None else bool(value)


TEXT: TypeEngine[str] = sa.String()
KEY_TEXT: TypeEngine[str] = sa.String()
"""A short text that is part of a primary key."""
BIGINT: TypeEngine[int] = sa.BigInteger()
BOOLEAN: TypeEngine[bool] = sa.Boolean().with_variant(BooleanAsBigint(), "sqlite")
UUID: TypeEngine[str] = sa.Uuid(as_uuid=False).with_variant(sa.String(), "sqlite")
TIMESTAMP = _timestamp(timestamp_text)
_LEAST, _GREATEST = _timestamp(least_text), _timestamp(greatest_text)
_COMPARED = dict.fromkeys((operator.lt, operator.ge), _LEAST)
_COMPARED |= dict.fromkeys((operator.le, operator.gt), _GREATEST)


def compared_timestamp(op: Callable[..., Any]) -> TypeEngine[datetime]:
    """Return the type of a time to the right of an operator, for whatever text is stored.

    SQLite compares texts: of a tenth of a second DuckDB stores ``.1+00``, and ducklakepy ``.100``.
    """
    return _COMPARED.get(op, TIMESTAMP)


RESTORE = "correct the row, or restore the catalog from a backup"
_WORDS = {
    int: "an integer",
    str: "a text",
    bool: "true or false",
    datetime: "a time",
    uuid.UUID: "a UUID",
}
_OF_ROWS = ("row_id", "begin_snapshot", "end_snapshot")
_KINDS: tuple[tuple[TypeEngine[Any], type], ...] = (
    (BIGINT, int),
    (TEXT, str),
    (KEY_TEXT, str),
    (BOOLEAN, bool),
    (UUID, uuid.UUID),
    (TIMESTAMP, datetime),
)


class BrokenValue(CorruptLake):
    """A value that its column cannot hold; `locate` adds the row."""

    def __init__(self, column: tuple[str, str], value: object, expected: str) -> None:
        self.table, self.column = column
        self.value, self.expected = value, expected
        super().__init__(self._told({}))

    def locate(self, connection: sa.Connection) -> None:
        """Add to the message which row has the value; one statement."""
        try:
            row = connection.execute(self._wrong_row()).mappings().first()
        except (DBAPIError, OverflowError):
            return
        if row is not None:
            # Other columns of rows in the catalog are a user's.
            is_all = not self.table.startswith("ducklake_inlined_data_")
            shown = (n for n in row if is_all or n.removeprefix("_ducklake_") in _OF_ROWS)
            self.locate_in({name: row[name] for name in shown})

    def locate_in(self, row: Mapping[str, Any]) -> None:
        """Add to the message which row has the value."""
        self.args = (self._told(row),)

    def _wrong_row(self) -> sa.Select[Any]:
        value: sa.ColumnElement[Any] = sa.column(self.column)
        is_it = value.is_(None) if self.value is None else value == self.value
        return sa.select(sa.literal_column("*")).select_from(sa.table(self.table)).where(is_it)

    def _told(self, row: Mapping[str, Any]) -> str:
        shown = "NULL" if self.value is None else f"{self.value!r:.60}"
        found = row_text(row, self.column)
        where = f" in the row with {found}" if found else ""
        told = f"{self.table}.{self.column} is {shown}{where}, expected {self.expected}"
        return f"{told}; {RESTORE}"


class BrokenInterval(BrokenValue):
    """A row that ends before it begins, or that begins nowhere."""

    def __init__(self, table: str) -> None:
        super().__init__((table, "begin_snapshot"), None, "a snapshot before end_snapshot")

    def _wrong_row(self) -> sa.Select[Any]:
        source = sa.table(self.table, sa.column("begin_snapshot"), sa.column("end_snapshot"))
        return sa.select(sa.literal_column("*")).select_from(source).where(is_broken(source))

    def _told(self, row: Mapping[str, Any]) -> str:
        if not row:
            return super()._told(row)
        begin, end, where = row["begin_snapshot"], row["end_snapshot"], row_text(row, self.column)
        told = f"{self.table} has a row from snapshot {begin!r} to {end!r}, with {where}"
        return f"{told}, which is not an interval; {RESTORE}"


def two_rows(source: sa.Table, what: str, snapshot: int) -> CorruptLake:
    """Return the error for rows of which a snapshot must have one (`rules.ONCE_IN_A_SNAPSHOT`)."""
    return CorruptLake(
        f"{source.name} has two rows of {what} for snapshot {snapshot}; end one of them"
    )


def row_text(row: Mapping[str, Any], without: str = "") -> str:
    """Return the columns that identify a row, with their values."""
    names = [n for n in row if n.endswith(("_id", "begin_snapshot")) or n == "key"]
    return ", ".join(f"{n} {row[n]!r}" for n in names if n != without and row[n] is not None)


class Checked(TypeDecorator[Any]):
    """A stored type with what one column may hold: the Python type, a range, NULL or not.

    Raises `BrokenValue` for any other value that a statement returns.
    """

    impl = sa.String
    cache_ok = True
    # `IS FALSE` has no parameters in PostgreSQL.
    coerce_to_is_types = (type(None), bool)

    def __init__(
        self, stored: TypeEngine[Any], column: tuple[str, str], kind: type, rule: ValueRule
    ) -> None:
        super().__init__()
        # The class attribute is only what SQLAlchemy begins with.
        self.impl = self.impl_instance = stored  # type: ignore[assignment]
        self.stored, self.column, self.kind, self.rule = stored, column, kind, rule

    def coerce_compared_value(self, op: Any, value: Any) -> TypeEngine[Any]:  # noqa: ARG002
        return compared_timestamp(op) if self.kind is datetime else self

    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Callable[[Any], Any]:
        decode = self.impl_instance.result_processor(dialect, coltype)
        if decode is None and self.kind in (int, str):
            return _checking(self.kind, self.rule)(self.refuse)
        kind = str if self.kind is uuid.UUID else self.kind

        def checked(raw: Any) -> Any:
            if raw is None:
                return None if self.rule.optional else self.refuse(raw)
            try:
                value = raw if decode is None else decode(raw)
                if self.kind is uuid.UUID:
                    uuid.UUID(value)
                if value.__class__ is kind:
                    return value
            except (ArithmeticError, AttributeError, TypeError, ValueError):
                pass
            return self.refuse(raw)

        return checked

    def require(self, value: object) -> None:
        """Raise `BrokenValue` unless the column can hold a number, a flag or a text as stored."""
        _checking(self.kind, self.rule)(self.refuse)(value)

    def refuse(self, value: object) -> NoReturn:
        """Raise the error for a value."""
        raise BrokenValue(self.column, value, _words(self))


def _sound(kind: type, rule: ValueRule, name: str) -> str:
    """Return the Python expression that a number, a flag or a text of this name is sound."""
    least, most = rule.limits
    test = f"{name} in (0, 1)" if kind is bool else f"{name}.__class__ is {kind.__name__}"
    if kind is int:
        test += f" and {least} <= {name} <= {most}"
    elif kind is str and (rule.words or least):
        test += f" and {name} in {rule.words!r}" if rule.words else f" and {name}"
    return f"({name} is None or {test})" if rule.optional else f"({test})"


@cache
def _checking(
    kind: type, rule: ValueRule
) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Return what makes the check of a value from what refuses it.

    It is compiled from the rule: one call for each value that a statement returns.
    """
    made = f"lambda refuse: lambda raw: raw if {_sound(kind, rule, 'raw')} else refuse(raw)"
    return eval(made)  # type: ignore[no-any-return]  # noqa: S307 - made of numbers and names


@lru_cache(1024)
def guard(
    columns: tuple[sa.ColumnElement[Any], ...], *, more: bool = False
) -> Callable[[Iterable[Any]], None]:
    """Return what raises `BrokenValue` for the first of many rows with a wrong value or interval.

    Rows have the values of these columns in their order, as the database stores them, and with
    ``more`` others after them. It is compiled to one test of a row, which takes a fraction of the
    time of a call for each value.
    """
    kinds = [_kind_of(each) for each in columns]
    names = {str(each.key): f"v{at}" for at, each in enumerate(columns)}
    tests = [_sound(k.kind, k.rule, name) for k, name in zip(kinds, names.values(), strict=True)]
    begin, end = names.get("begin_snapshot"), names.get("end_snapshot")
    if begin and end:
        tests.append(f"({end} is None or {begin} <= {end})")
    fetched = ", ".join([*names.values(), *(["*_"] if more else [])])
    lines = ("def guard(rows):", " for row in rows:", f"  {fetched} = row")
    known: dict[str, Any] = {"refuse": partial(require_row, columns)}
    made = "\n".join([*lines, f"  if not ({' and '.join(tests)}):", "   refuse(row)"])
    exec(made, known)  # noqa: S102 - made of numbers and names
    return known["guard"]  # type: ignore[no-any-return]


def require_row(columns: Sequence[sa.ColumnElement[Any]], row: Iterable[Any]) -> None:
    """Raise `BrokenValue` for a wrong value or interval in a row of these columns, as stored."""
    kinds = [_kind_of(each) for each in columns]
    values = {str(each.key): value for each, value in zip(columns, row, strict=False)}
    try:
        for kind, value in zip(kinds, values.values(), strict=True):
            kind.require(value)
        end = values.get("end_snapshot")
        if end is not None and end < values["begin_snapshot"]:
            raise BrokenInterval(kinds[0].column[0])
    except BrokenValue as error:
        error.locate_in(values)
        raise


def _words(kind: Checked) -> str:
    found = _WORDS[kind.kind]
    if kind.kind is int:
        found += " from {} to {}".format(*kind.rule.limits)
    elif kind.rule.words:
        found = " or ".join(repr(word) for word in kind.rule.words if word)
    elif kind.kind is str and kind.rule.limits[0]:
        found += " that is not empty"
    return found + " or NULL" * kind.rule.optional


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

    def locate(self, connection: sa.Connection) -> None:
        """Find the value, then as for any other; one or two statements."""
        source = sa.table(self.table, sa.column(self.column, self._kind.stored))
        value = sa.type_coerce(source.c[self.column], self._kind)
        row = connection.execute(sa.select(source).where(is_wrong(value)).limit(1)).first()
        if row is not None:
            self.value = row[0]
            super().locate(connection)


def sum_of(value: sa.Column[Any]) -> sa.ColumnElement[Any]:
    """Return the sum of a column of numbers, 0 without any.

    Fetching it raises `BrokenValue` if one of them is wrong.
    """
    wrong = sa.func.count(sa.case((is_wrong(value), 1)))
    total = sa.case((wrong == 0, sa.cast(sa.func.coalesce(sa.func.sum(value), 0), sa.BigInteger)))
    rule = ValueRule((0, 2**63 - 1), optional=False)
    return sa.type_coerce(total, _Sum(sa.BigInteger(), _kind_of(value).column, int, rule))


def is_wrong(value: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """Return the condition that a column of numbers has a value that it cannot hold."""
    rule = _kind_of(value).rule
    # SQLite may hold a text, which is greater than all numbers.
    least, most = rule.limits
    beyond = sa.or_(value < least, value > most)
    return beyond if rule.optional else sa.or_(value.is_(None), beyond)


def _kind_of(value: sa.ColumnElement[Any]) -> Checked:
    assert isinstance(value.type, Checked)
    return value.type


def is_broken(source: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return the condition that a versioned row has no valid interval."""
    begin, end = source.c.begin_snapshot, source.c.end_snapshot
    return sa.or_(begin.is_(None), begin < 0, begin > MOST, end < begin, end > MOST)


class _Begin(Checked):
    """The type of `begin_of`."""

    cache_ok = True

    def refuse(self, value: object) -> NoReturn:  # noqa: ARG002 - it is always NULL
        raise BrokenInterval(self.column[0])


def begin_of(source: sa.FromClause) -> sa.ColumnElement[Any]:
    """Return where a versioned row begins; fetching it raises `BrokenInterval` for a broken row."""
    kind = _kind_of(source.c.begin_snapshot)
    begin = sa.case((is_broken(source), None), else_=source.c.begin_snapshot)
    typed = _Begin(kind.stored, kind.column, kind.kind, kind.rule)
    return sa.type_coerce(begin, typed).label("begin_snapshot")


def or_null(value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """Return a column, or an aggregate of one, that is NULL if no row exists."""
    kind = _kind_of(value)
    rule = replace(kind.rule, optional=True)
    return sa.type_coerce(value, Checked(kind.stored, kind.column, kind.kind, rule))


class StoredFlag(sa.Integer):
    """A flag as the database returns it: a number or a boolean."""


def unchecked(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """Return a column whose reader checks the values itself (`guard`), because there are many.

    Values come as the database stores them.
    """
    kind = _kind_of(column)
    return sa.type_coerce(column, StoredFlag() if kind.kind is bool else kind.stored)


def check_columns(metadata: sa.MetaData) -> None:
    """Give each column of these tables the type that checks what statements return."""
    for table in metadata.tables.values():
        for each in table.c:
            if not isinstance(each.type, Checked):
                kind = next(kind for stored, kind in _KINDS if stored is each.type)
                each.type = _checked(each.type, (table.name, each.name), kind)


def _checked(stored: TypeEngine[Any], place: tuple[str, str], kind: type) -> Checked:
    return Checked(stored, place, kind, rule_of(*place))


@lru_cache(1024)
def checked_numbers(table: str, *names: tuple[str, str]) -> sa.TableClause:
    """Return a table of numbers outside of a catalog's own: its columns by key, as they are stored.

    Rules go by the keys.
    """
    made = []
    for key, stored in names:
        kind = Checked(BIGINT, (table, stored), int, rule_of(table, key))
        each: sa.ColumnClause[Any] = sa.column(stored, kind)
        each.key = key
        made.append(each)
    return sa.table(table, *made)
