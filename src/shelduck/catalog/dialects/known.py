"""The dialects, by SQLAlchemy's name for each."""

from __future__ import annotations

from sqlalchemy import Connection

from shelduck.catalog.dialects.dialect import Dialect
from shelduck.catalog.dialects.duckdb import DUCKDB
from shelduck.catalog.dialects.postgresql import POSTGRESQL
from shelduck.catalog.dialects.sqlite import SQLITE

DIALECTS = {dialect.name: dialect for dialect in (SQLITE, POSTGRESQL, DUCKDB)}


def dialect_of(connection: Connection) -> Dialect:
    """Return the dialect of a connection."""
    return DIALECTS[connection.dialect.name]
