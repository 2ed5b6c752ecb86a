"""PostgreSQL catalogs: how they differ from the other databases."""

# ruff: noqa: D102 - `store.Database` holds the contract of these methods.

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event

from shelduck.catalog.databases.database import Failure, refuse_settings
from shelduck.model.text.quoting import NUL_OR_SURROGATE

LOCK_TIMEOUT = "30s"
CONNECT_SECONDS = 10

# Serialisation, deadlock, unique violation, duplicate table, lock timeout.
_RETRYABLE = {"40001", "40P01", "23505", "42P07", "55P03"}
# Connection, authorization, no such database, resources, shutdown, cancelled, system, read only.
_UNAVAILABLE = ("08", "28", "3D", "53", "57P", "57014", "58", "25006")
_DENIED = "42501"
_COMMIT_ANSWER_LOST = ("08", "57P", "58", "40003")

# What the server or libpq says, and what to do about it; the first that matches counts.
_WAYS_OUT = {
    r"password authentication failed|no password supplied": (
        "check the user, and the password in the address, PGPASSWORD, ~/.pgpass or the service"
    ),
    r'database "[^"]*" does not exist': "create the database, or correct its name in the address",
    r'role "[^"]*" does not exist': "create the role, or correct the user in the address",
    r"permission denied for database|no pg_hba.conf entry": (
        "ask who runs the server to let this role in (GRANT CONNECT ON DATABASE, pg_hba.conf)"
    ),
    r"permission denied for schema": (
        "ask its owner to GRANT USAGE ON SCHEMA to this role, and CREATE to one that writes"
    ),
    r"permission denied for": (
        "ask its owner to GRANT SELECT to a role that reads, and also INSERT, UPDATE, DELETE and"
        " TRIGGER to one that writes"
    ),
    r"must be owner": "let the role do this that owns it",
    r"read-only transaction": "connect to a server that accepts writes",
    r"resolve|Name or service|translate host name": "check the host in the address",
    r"refused|timeout|timed out|No such file|unreachable": (
        "check host and port in the address, and that the server runs"
    ),
}

# Settings of libpq whose values help to find the database and are not secret.
_SHOWN = frozenset(
    "application_name client_encoding connect_timeout dbname gssencmode host hostaddr port service"
    " sslcert sslkey sslmode sslrootcert target_session_attrs user".split()
)

_IN_TRANSACTION = 2  # libpq PQTRANS_INTRANS


class PostgreSQL:
    """One schema of a PostgreSQL database as a catalog: the first of the search path."""

    kind = "postgresql"
    names: tuple[str, ...] = ("postgresql", "postgres")
    form = "postgresql://user@host/database"
    extra = "postgres"
    is_server = True
    shown = _SHOWN
    cannot_hold = NUL_OR_SURROGATE
    duckdb_extension: str | None = "postgres_scanner"
    begin_read = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    # One round trip. READ COMMITTED, so that later statements see what the last lock holder
    # committed. DuckDB takes no lock, but begins each commit by inserting its snapshot. If the
    # table is locked, it waits there and tries again. Otherwise there would be a deadlock, in which
    # DuckDB gives up.
    begin_write = (
        "BEGIN ISOLATION LEVEL READ COMMITTED; "
        "SELECT pg_advisory_xact_lock(hashtextextended('shelduck:' || current_schema(), 0)); "
        "DO $$ BEGIN IF to_regclass('ducklake_snapshot') IS NOT NULL THEN "
        "LOCK TABLE ducklake_snapshot IN SHARE ROW EXCLUSIVE MODE; END IF; END $$"
    )
    indexed = True
    has_savepoints = True
    default_data_path: str | None = None

    def __init__(self, url: URL) -> None:
        # The driver is installed with a separate extra.
        pq = import_module("psycopg.pq")
        known = [option.keyword.decode() for option in pq.Conninfo.get_defaults()]
        refuse_settings(url, known)
        # Not with libpq before 14.
        self._has_pipeline = import_module("psycopg").Pipeline.is_supported()
        self.url = url.set(drivername="postgresql+psycopg")

    def make_engine(self) -> Engine:
        arguments: dict[str, Any] = {}
        if "connect_timeout" not in self.url.query:
            arguments["connect_timeout"] = CONNECT_SECONDS
        engine = create_engine(self.url, connect_args=arguments, pool_use_lifo=True)
        # First, so that SQLAlchemy's own check of a new connection leaves no transaction open.
        event.listen(engine, "connect", _prepare, insert=True)
        return engine

    @staticmethod
    def duckdb_address(url: URL) -> str:
        parts = {
            "dbname": url.database,
            "host": url.query.get("host", url.host),
            "port": url.port,
            "user": url.username,
            "password": url.password,
        }
        return "postgres:" + " ".join(f"{key}={value}" for key, value in parts.items() if value)

    def begin(self, driver: Any, statement: str) -> None:
        driver.execute(statement)

    def pipeline(self, driver: Any) -> AbstractContextManager[Any]:
        found: AbstractContextManager[Any] = nullcontext()
        if self._has_pipeline:
            found = driver.pipeline()
        return found

    def exists(self) -> bool:
        return True

    def session(self) -> AbstractContextManager[None]:
        return nullcontext()

    def is_transaction_open(self, driver: Any) -> bool:
        return int(driver.info.transaction_status) == _IN_TRANSACTION

    def classify(self, error: BaseException, *, committing: bool) -> Failure:
        state = getattr(error, "sqlstate", None)
        if state is None:
            # psycopg gives no SQLSTATE if the server could not answer.
            return _without_state(error, committing=committing)
        if committing and state.startswith(_COMMIT_ANSWER_LOST):
            return Failure.OUTCOME_UNKNOWN
        if state in _RETRYABLE:
            return Failure.RETRYABLE
        if state == _DENIED:
            return Failure.DENIED
        return Failure.UNAVAILABLE if state.startswith(_UNAVAILABLE) else Failure.OTHER

    def way_out(self, told: str) -> str:
        return next((what for text, what in _WAYS_OUT.items() if re.search(text, told)), "")


def _without_state(error: BaseException, *, committing: bool) -> Failure:
    names = {cls.__name__ for cls in type(error).__mro__}
    if not names & {"OperationalError", "InterfaceError"}:
        return Failure.OTHER
    return Failure.OUTCOME_UNKNOWN if committing else Failure.UNAVAILABLE


def _prepare(driver: Any, _record: object) -> None:
    # The store begins transactions; psycopg must not begin its own.
    driver.autocommit = True
    driver.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'; SET TIME ZONE 'UTC'")
