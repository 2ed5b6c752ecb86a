"""SQLite catalogs: how they differ from the other databases.

The journal mode does not change. Python's sqlite3 shares no lock state with the SQLite inside
DuckDB, so in one process, do not use one file through both at the same time.
"""

# ruff: noqa: D102 - `store.Database` holds the contract of these methods.

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event

from shelduck.catalog.databases.database import Failure, file_at, refuse_settings
from shelduck.errors import InvalidRequest
from shelduck.model.text.quoting import LONE_SURROGATE

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


class SQLite:
    """A SQLite file as a catalog."""

    kind = "sqlite"
    names: tuple[str, ...] = ("sqlite",)
    form = "sqlite:////file.db"
    extra = ""
    is_server = False
    shown = frozenset({"timeout"})
    cannot_hold = LONE_SURROGATE
    duckdb_extension: str | None = "sqlite_scanner"
    begin_read = "BEGIN"
    begin_write = "BEGIN IMMEDIATE"
    indexed = True
    has_savepoints = True
    default_data_path: str | None = None

    def __init__(self, url: URL) -> None:
        if not url.database or url.database == ":memory:":
            raise InvalidRequest(
                "a SQLite catalog needs a file; use sqlite:////absolute/path.db or"
                " sqlite:///relative.db"
            )
        refuse_settings(url, ("timeout",))
        self.path = file_at(url)
        self.url = url.set(drivername="sqlite+pysqlite", database=str(self.path))

    def make_engine(self) -> Engine:
        arguments: dict[str, Any] = {"check_same_thread": False}
        if "timeout" not in self.url.query:
            arguments["timeout"] = BUSY_SECONDS
        engine = create_engine(self.url, connect_args=arguments, pool_use_lifo=True)
        event.listen(engine, "connect", _take_over_transactions)
        return engine

    @staticmethod
    def duckdb_address(url: URL) -> str:
        return f"sqlite:{url.database}"

    def begin(self, driver: Any, statement: str) -> None:
        driver.execute(statement)

    def pipeline(self, driver: Any) -> AbstractContextManager[Any]:  # noqa: ARG002
        return nullcontext()

    def exists(self) -> bool:
        return self.path.exists()

    def session(self) -> AbstractContextManager[None]:
        return nullcontext()

    def is_transaction_open(self, driver: Any) -> bool:
        return bool(driver.in_transaction)

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
