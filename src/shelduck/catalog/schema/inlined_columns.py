"""Tables for inlined rows: their columns, in the types of each kind of database."""

from __future__ import annotations

from shelduck.catalog.databases.dialect import Dialect
from shelduck.catalog.databases.known import DIALECTS
from shelduck.ducklake.format import Format
from shelduck.model.tables.schema import Schema
from shelduck.model.text.quoting import double_quoted


def can_inline(database: str, of: Format, columns: Schema) -> bool:
    """Return whether a lake of this format in such a database can have inlined rows.

    DuckDB does not inline values of some types. A name may be one of the table's own names, or too
    long for PostgreSQL, which would truncate it.
    """
    dialect = DIALECTS[database]
    if len(columns.fields) > dialect.most_columns:
        return False
    if any(str(f.shape) in dialect.never_inlined for f in columns.walk()):
        return False
    return not any(
        of.is_reserved(n) or len(n.encode()) > dialect.longest_name for n in columns.names
    )


def inlined_table_text(dialect: Dialect, of: Format, name: str, columns: Schema) -> str:
    """Return the statement that creates a table for inlined rows, for a driver, no parameters."""
    every = [
        *(f"{own} BIGINT" for own in of.system_columns),
        *(f"{double_quoted(f.name)} {dialect.inlined_type(f)}" for f in columns),
    ]
    # Not with SQLAlchemy's columns: there may be a thousand, and it takes longer than the database.
    return f"CREATE TABLE {name} ({', '.join(every)})"
