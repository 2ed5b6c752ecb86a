"""Column types of the catalog: one Python type each, the extension's physical type per database.

DuckDB writes its SQLite catalogs with BIGINT for booleans and VARCHAR for UUIDs and timestamps;
DuckDB and PostgreSQL catalogs use the native types. Callers see int, str, bool, str (UUID) and
aware datetime everywhere.
"""

# ruff: noqa: D102 - SQLAlchemy's TypeDecorator holds the contract of these methods.

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import TypeDecorator, TypeEngine

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
