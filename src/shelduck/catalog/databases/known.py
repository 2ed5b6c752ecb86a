"""The databases, by the words with which addresses begin."""

from __future__ import annotations

from shelduck.catalog.databases.duckdb import DuckDB
from shelduck.catalog.databases.postgres import PostgreSQL
from shelduck.catalog.databases.sqlite import SQLite

_ALL = (SQLite, PostgreSQL, DuckDB)
DATABASES: dict[str, type[SQLite | PostgreSQL | DuckDB]] = {n: d for d in _ALL for n in d.names}
EXPECTED = f"use {', '.join(d.form for d in _ALL[:-1])} or {_ALL[-1].form}"
