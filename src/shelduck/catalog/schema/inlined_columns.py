"""The columns of a table for inlined rows, in the types of each kind of database."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column
from sqlalchemy.sql.elements import quoted_name
from sqlalchemy.types import UserDefinedType

from shelduck.catalog.dialects.dialect import Dialect
from shelduck.catalog.dialects.known import DIALECTS
from shelduck.model.tables.schema import Schema

SYSTEM_COLUMNS = ("row_id", "begin_snapshot", "end_snapshot")
_RESERVED = "_ducklake_internal_"


def can_inline(database: str, columns: Schema) -> bool:
    """Return whether a kind of database can have inlined rows with these columns."""
    return inlined_columns(DIALECTS[database], columns) is not None


def is_reserved(name: str) -> bool:
    """Return whether DuckLake uses a name of a column for itself."""
    return name.lower() in SYSTEM_COLUMNS or name.lower().startswith(_RESERVED)


class _Native(UserDefinedType[Any]):
    """A column type by its text."""

    cache_ok = True

    def __init__(self, text: str) -> None:
        self.text = text

    def get_col_spec(self, **_options: Any) -> str:
        return self.text


def inlined_columns(dialect: Dialect, columns: Schema) -> list[Column[Any]] | None:
    """Return the columns of a table for inlined rows, None if there cannot be such a table.

    DuckDB does not inline values of some types. A name may be one of the table's own names, or too
    long for PostgreSQL, which would truncate it.
    """
    if any(str(f.shape) in dialect.never_inlined for f in columns.walk()):
        return None
    if any(is_reserved(n) or len(n.encode()) > dialect.longest_name for n in columns.names):
        return None
    if len(columns.fields) > dialect.most_columns:
        return None
    return [
        *(Column(name, _Native("BIGINT")) for name in SYSTEM_COLUMNS),
        # Always quoted: SQLAlchemy does not know every word that a database reserves.
        *(
            Column(quoted_name(f.name, quote=True), _Native(dialect.inlined_type(f)))
            for f in columns
        ),
    ]
