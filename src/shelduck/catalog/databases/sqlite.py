"""SQLite catalogs: how they differ from the other databases, and their SQL.

The journal mode does not change. Python's sqlite3 shares no lock state with the SQLite inside
DuckDB, so in one process, do not use one file through both at the same time.
"""

# ruff: noqa: D102 - `store.Database` holds the contract of these methods.

from __future__ import annotations

import sqlite3
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from shelduck.catalog.databases.database import Database, Failure, file_at, refuse_settings
from shelduck.catalog.databases.dialect import (
    SMALL_INTEGERS,
    WHOLE,
    Dialect,
    encoders,
    number_of_boolean,
)
from shelduck.errors import InvalidRequest
from shelduck.model.tables.schema import Field
from shelduck.model.text.names import LONE_SURROGATE

BUSY_SECONDS = 30.0

_RETRYABLE = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_SCHEMA}
_LOST_RACE = {sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE}
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNAVAILABLE = {
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_NOMEM,
}


class SQLite(Database):
    """A SQLite file as a catalog."""

    kind = "sqlite"
    names: tuple[str, ...] = ("sqlite",)
    form = "sqlite:////file.db"
    extra = ""
    shown = frozenset({"timeout"})
    cannot_hold = LONE_SURROGATE
    duckdb_extension: str | None = "sqlite_scanner"
    begin_read = "BEGIN"
    begin_write = "BEGIN IMMEDIATE"

    def __init__(self, url: sa.URL) -> None:
        if not url.database or url.database == ":memory:":
            raise InvalidRequest(
                "a SQLite catalog needs a file; use sqlite:////absolute/path.db or"
                " sqlite:///relative.db"
            )
        refuse_settings(url, ("timeout",))
        self.path = file_at(url)
        self.url = url.set(drivername="sqlite+pysqlite", database=str(self.path))

    def make_engine(self) -> sa.Engine:
        arguments: dict[str, Any] = {"check_same_thread": False}
        if "timeout" not in self.url.query:
            arguments["timeout"] = BUSY_SECONDS
        engine = sa.create_engine(self.url, connect_args=arguments, pool_use_lifo=True)
        sa.event.listen(engine, "connect", _take_over_transactions)
        return engine

    @staticmethod
    def duckdb_address(url: sa.URL) -> str:
        return f"sqlite:{url.database}"

    def exists(self) -> bool:
        return self.path.exists()

    def way_out(self, told: str) -> str:
        if "unable to open" in told or "readonly" in told:
            return f"check that this user may read and write {self.path} and its folder"
        return "try again when the other process is done" if "locked" in told else ""

    def classify(self, error: BaseException, *, committing: bool) -> Failure:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None:
            return Failure.OTHER
        primary = code & 0xFF
        if primary in _RETRYABLE or code in _LOST_RACE:
            return Failure.RETRYABLE
        if primary == sqlite3.SQLITE_IOERR and committing:
            return Failure.OUTCOME_UNKNOWN
        if primary in _CORRUPT:
            return Failure.CORRUPT
        return Failure.UNAVAILABLE if primary in _UNAVAILABLE else Failure.OTHER


def _take_over_transactions(driver: sqlite3.Connection, _record: object) -> None:
    # Without this, sqlite3 opens its own deferred transaction before the first INSERT.
    driver.isolation_level = None


_KEPT_PLACES = """
CREATE TRIGGER IF NOT EXISTS shelduck_kept_places AFTER INSERT ON ducklake_column
WHEN NEW.column_order = NEW.column_id
BEGIN
  UPDATE ducklake_column SET column_order = coalesce((
      SELECT before.column_order FROM ducklake_column before
      WHERE before.table_id = NEW.table_id AND before.column_id = NEW.column_id
        AND before.begin_snapshot < NEW.begin_snapshot
      ORDER BY before.begin_snapshot DESC LIMIT 1), column_order)
  WHERE rowid = NEW.rowid;
END
"""

# A path is relative to the lake, and in the rows of files to a table: one of its ends.
_KEPT_FILES = """
CREATE TRIGGER IF NOT EXISTS shelduck_kept_files
BEFORE INSERT ON ducklake_files_scheduled_for_deletion
WHEN EXISTS (
  WITH RECURSIVE ends(path) AS (
    SELECT NEW.path UNION ALL
    SELECT substr(path, instr(path, '/') + 1) FROM ends WHERE instr(path, '/') > 0)
  SELECT 1 FROM ends JOIN ducklake_data_file f
    ON f.path = ends.path AND f.data_file_id <> NEW.data_file_id
  UNION ALL SELECT 1 FROM ends JOIN ducklake_delete_file d
    ON d.path = ends.path AND d.delete_file_id <> NEW.data_file_id
  UNION ALL SELECT 1 FROM ducklake_files_scheduled_for_deletion s WHERE s.path = NEW.path)
BEGIN
  SELECT RAISE(IGNORE);
END
"""


def _type(field: Field) -> str:
    if str(field.shape) == "blob":
        return "BLOB"
    return "BIGINT" if str(field.shape) in SMALL_INTEGERS else "VARCHAR"


SQLITE = Dialect(
    name="sqlite",
    tables="SELECT name FROM sqlite_master WHERE type = 'table'",
    indexes="SELECT name FROM sqlite_master WHERE type = 'index'",
    columns=(
        "SELECT m.name AS table_name, p.name AS name, p.type AS kind FROM sqlite_master m"
        " JOIN pragma_table_info(m.name) p WHERE m.type = 'table'"
        " AND substr(m.name, 1, 9) = 'ducklake_' ORDER BY m.name, p.cid"
    ),
    insert=insert,
    # The quickest test by far; a number beyond 64 bits is unknown.
    whole_number=(
        "CASE WHEN CAST(CAST({0} AS INTEGER) AS TEXT) = {0} THEN CAST({0} AS INTEGER) END"
    ),
    indexes_bounds=True,
    kept_places=_KEPT_PLACES,
    kept_files=_KEPT_FILES,
    inlined_type=_type,
    inlined_value=encoders(WHOLE | {"boolean": number_of_boolean}),
    never_inlined=frozenset({"geometry", "variant"}),
    most_columns=1900,
    read_as_text=lambda _: False,
    knows_columns=False,
)
