"""The databases by the words with which addresses begin, and their dialects by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from shelduck.catalog.databases.dialect import Dialect
from shelduck.catalog.databases.duckdb import DUCKDB, DuckDB
from shelduck.catalog.databases.postgres import POSTGRESQL, PostgreSQL
from shelduck.catalog.databases.sqlite import SQLITE, SQLite
from shelduck.ducklake.format import format_of

_ALL = (SQLite, PostgreSQL, DuckDB)
DATABASES: dict[str, type[SQLite | PostgreSQL | DuckDB]] = {n: d for d in _ALL for n in d.names}
EXPECTED = f"use {', '.join(d.form for d in _ALL[:-1])} or {_ALL[-1].form}"
INLINED_TABLE = re.compile(r"ducklake_inlined_data_\d+_\d+")
DIALECTS = {dialect.name: dialect for dialect in (SQLITE, POSTGRESQL, DUCKDB)}


def dialect_of(connection: sa.Connection) -> Dialect:
    """Return the dialect of a connection."""
    return DIALECTS[connection.dialect.name]


def stored_columns(connection: sa.Connection) -> dict[str, dict[str, str]]:
    """Return the columns of each of DuckLake's tables, in their order, with their stored types.

    One statement.
    """
    found: dict[str, dict[str, str]] = {}
    for table, name, kind in connection.execute(sa.text(dialect_of(connection).columns)):
        found.setdefault(table, {})[name] = kind
    return found


@dataclass(frozen=True, slots=True)
class Misnamed:
    """A table for inlined rows with column names of another version of DuckLake than the lake."""

    table: str
    names: Mapping[str, str]
    """The names that its columns have, and those that they need."""
    taken: str | None
    """The first of the latter that a column of the lake's table has already."""


def misnamed_tables(connection: sa.Connection) -> list[Misnamed]:
    """Return the tables that somebody made who had not heard of a migration; one statement."""
    known, found = format_of(connection), []
    for table, columns in stored_columns(connection).items():
        is_inlined = INLINED_TABLE.fullmatch(table)
        names = known.renames(list(columns)) if is_inlined else None
        if names:
            there = {name.lower() for name in columns}
            taken = next((new for new in names.values() if new in there), None)
            found.append(Misnamed(table, names, taken))
    return found


def renaming(table: str, names: Mapping[str, str]) -> list[sa.TextClause]:
    """Return the statements that give columns of a table for inlined rows other names."""
    return [
        sa.text(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}") for old, new in names.items()
    ]
