"""Catalogs with as many data files as a measurement needs, made by set-based SQL in one second."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg
from sqlalchemy import Connection, Engine, event, text

from shelduck.catalog.databases.store import open_store
from shelduck.catalog.schema import own_tables
from tests.support.postgres import PostgresServer, running_postgres

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KINDS = ("SQLite", "PostgreSQL", "DuckDB file")

# Ids that the copies of a file may take: `i` runs from 1 to :copies.
NUMBERS = {
    "sqlite": "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :copies)"
    " SELECT i FROM n)",
    "postgresql": "(SELECT i FROM generate_series(1, CAST(:copies AS BIGINT)) AS g(i))",
    "duckdb": "(SELECT i FROM range(1, :copies + 1) AS g(i))",
}

_COPY = """
INSERT INTO ducklake_data_file
  (data_file_id, table_id, begin_snapshot, path, path_is_relative, file_format, record_count,
   file_size_bytes, footer_size, row_id_start)
SELECT f.data_file_id + n.i, f.table_id, f.begin_snapshot, 'copy-' || n.i || '.parquet',
  f.path_is_relative, f.file_format, f.record_count, f.file_size_bytes, f.footer_size,
  f.row_id_start + n.i * f.record_count
FROM ducklake_data_file AS f CROSS JOIN {numbers} AS n WHERE f.data_file_id = :original;

INSERT INTO ducklake_file_column_stats
  (data_file_id, table_id, column_id, column_size_bytes, value_count, null_count, min_value,
   max_value, contains_nan)
SELECT s.data_file_id + n.i, s.table_id, s.column_id, s.column_size_bytes, s.value_count,
  s.null_count,
  CASE WHEN s.column_id = 1 THEN CAST(n.i * 10000 AS VARCHAR) ELSE s.min_value END,
  CASE WHEN s.column_id = 1 THEN CAST(n.i * 10000 + 9999 AS VARCHAR) ELSE s.max_value END,
  s.contains_nan
FROM ducklake_file_column_stats AS s CROSS JOIN {numbers} AS n WHERE s.data_file_id = :original;

UPDATE ducklake_table_stats SET record_count = record_count * (:copies + 1),
  next_row_id = next_row_id * (:copies + 1), file_size_bytes = file_size_bytes * (:copies + 1);

UPDATE ducklake_table_column_stats
SET max_value = CAST((CAST(:copies AS BIGINT) + 1) * 10000 AS VARCHAR)
WHERE column_id = 1;

UPDATE ducklake_snapshot SET next_file_id = next_file_id + :copies
WHERE snapshot_id = (SELECT max(snapshot_id) FROM ducklake_snapshot)
"""

# Only a lake that Shelduck knows has this table.
_COPY_LAYOUTS = """
INSERT INTO shelduck_file_layout (data_file_id, layout_id)
SELECT l.data_file_id + n.i, l.layout_id
FROM shelduck_file_layout AS l CROSS JOIN {numbers} AS n WHERE l.data_file_id = :original
"""


def multiply_only_file(url: str, files: int) -> None:
    """Give the only data file of the only table of a lake enough copies to make `files`.

    Copy n is called `copy-n.parquet`, and its first column is said to range over its own ten
    thousand values, n * 10000 and up; no file is made. The original keeps its name and its bounds.
    """
    store = open_store(url)
    with store.write() as connection:
        original = _only_file(connection)
        statements = _COPY.split(";")
        if own_tables.file_layout.name in store.table_names(connection):
            statements.append(_COPY_LAYOUTS)
        for statement in statements:
            asked = statement.format(numbers=NUMBERS[connection.dialect.name])
            values = {"copies": files - 1, "original": original}
            known = {name: value for name, value in values.items() if f":{name}" in asked}
            connection.execute(text(asked), known)
    with store.write() as connection:
        _refresh_planner(connection)
    store.close()


@contextmanager
def counting_statements() -> Iterator[Counter[str]]:
    """Count what SQLAlchemy executes meanwhile, by its first word; BEGIN and COMMIT are not."""
    seen: Counter[str] = Counter()

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        seen[statement.split(maxsplit=1)[0].upper()] += 1

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", note)


@contextmanager
def fresh_url(kind: str, folder: Path, server: PostgresServer, name: str) -> Iterator[str]:
    """The address of an empty catalog of a kind."""
    if kind == "PostgreSQL":
        with server.fresh_database() as url:
            yield url
    elif kind == "SQLite":
        yield f"sqlite:///{folder}/{name}.db"
    else:
        yield f"duckdb:///{folder}/{name}.ducklake"


@contextmanager
def durable_postgres() -> Iterator[PostgresServer]:
    """A server with the settings that people run: tests trade durability for speed."""
    with running_postgres() as server:
        with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM RESET ALL")
            connection.execute("SELECT pg_reload_conf()")
        yield server


def _only_file(connection: Connection) -> int:
    found = connection.execute(text("SELECT data_file_id FROM ducklake_data_file")).scalars().all()
    if len(found) != 1:
        raise ValueError(f"one data file was expected, {len(found)} are there")
    return int(found[0])


def _refresh_planner(connection: Connection) -> None:
    # Autovacuum would do it within a minute; a measurement cannot wait for it.
    if connection.dialect.name == "postgresql":
        connection.execute(text("ANALYZE"))
