"""Column types of the catalog: one Python type each, the extension's physical type per database.

DuckDB writes its SQLite catalogs with BIGINT for booleans and VARCHAR for UUIDs and timestamps;
DuckDB and PostgreSQL catalogs use the native types. Callers see int, str, bool, str (UUID) and
aware datetime everywhere.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Boolean, DateTime, String, Uuid
from sqlalchemy.types import TypeEngine

from shelduck.ducklake.stored_types import BooleanAsBigint, TimestampAsMicros, TimestampAsText

TEXT: TypeEngine[str] = String()
KEY_TEXT: TypeEngine[str] = String()
"""A short text that is part of a primary key."""
BIGINT: TypeEngine[int] = BigInteger()
BOOLEAN: TypeEngine[bool] = Boolean().with_variant(BooleanAsBigint(), "sqlite")
UUID: TypeEngine[str] = Uuid(as_uuid=False).with_variant(String(), "sqlite")
TIMESTAMP: TypeEngine[datetime] = (
    DateTime(timezone=True)
    .with_variant(TimestampAsText(), "sqlite")
    .with_variant(TimestampAsMicros(), "duckdb")
)
