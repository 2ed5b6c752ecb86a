"""Column types of the catalog: one Python type each, the extension's physical type per database.

DuckDB writes its SQLite catalogs with BIGINT for booleans and VARCHAR for UUIDs and timestamps;
DuckDB and PostgreSQL catalogs use the native types. Callers see int, str, bool, str (UUID) and
aware datetime everywhere. The dialects contain the differences.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Boolean, DateTime, String, Uuid
from sqlalchemy.types import TypeEngine

from shelduck.catalog.dialects.known import DIALECTS


def _stored(name: str, usual: TypeEngine[Any]) -> TypeEngine[Any]:
    """Return the usual type, with the type of each database that has another one."""
    for dialect in DIALECTS.values():
        if name in dialect.column_types:
            usual = usual.with_variant(dialect.column_types[name], dialect.name)
    return usual


TEXT: TypeEngine[str] = _stored("text", String())
KEY_TEXT: TypeEngine[str] = _stored("key_text", String())
"""A short text that is part of a primary key."""
BIGINT: TypeEngine[int] = BigInteger()
BOOLEAN: TypeEngine[bool] = _stored("boolean", Boolean())
UUID: TypeEngine[str] = _stored("uuid", Uuid(as_uuid=False))
TIMESTAMP: TypeEngine[datetime] = _stored("timestamp", DateTime(timezone=True))
