"""PostgreSQL catalogs: how they differ from the other databases, and their SQL."""

# ruff: noqa: D102 - `store.Database` holds the contract of these methods.

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from shelduck.catalog.databases.database import Database, Failure, refuse_settings
from shelduck.catalog.databases.dialect import WHOLE, Dialect, Encoder, encoders, number_of_boolean
from shelduck.model.tables.schema import Field
from shelduck.model.text.names import NUL_OR_SURROGATE, double_quoted
from shelduck.model.types.data_types import FLOATS, Decimal

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


class PostgreSQL(Database):
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

    def __init__(self, url: sa.URL) -> None:
        # The driver is installed with a separate extra.
        pq = import_module("psycopg.pq")
        known = [option.keyword.decode() for option in pq.Conninfo.get_defaults()]
        refuse_settings(url, known)
        # Not with libpq before 14.
        self._has_pipeline = import_module("psycopg").Pipeline.is_supported()
        self.url = url.set(drivername="postgresql+psycopg")

    def make_engine(self) -> sa.Engine:
        arguments: dict[str, Any] = {}
        if "connect_timeout" not in self.url.query:
            arguments["connect_timeout"] = CONNECT_SECONDS
        engine = sa.create_engine(self.url, connect_args=arguments, pool_use_lifo=True)
        # First, so that SQLAlchemy's own check of a new connection leaves no transaction open.
        sa.event.listen(engine, "connect", _prepare, insert=True)
        return engine

    @staticmethod
    def duckdb_address(url: sa.URL) -> str:
        parts = {
            "dbname": url.database,
            "host": url.query.get("host", url.host),
            "port": url.port,
            "user": url.username,
            "password": url.password,
        }
        return "postgres:" + " ".join(f"{key}={value}" for key, value in parts.items() if value)

    def pipeline(self, driver: Any) -> AbstractContextManager[Any]:
        found: AbstractContextManager[Any] = nullcontext()
        if self._has_pipeline:
            found = driver.pipeline()
        return found

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
    # Tables of DuckLake 0.3 have JSON: whoever reads them wants its text.
    for kind in ("json", "jsonb"):
        driver.adapters.register_loader(kind, import_module("psycopg.types.string").TextLoader)
    driver.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'; SET TIME ZONE 'UTC'")


# DuckDB qualifies the tables with their schema and has another search path, so the trigger uses the
# schema of its own table.
_KEPT_PLACES = """
DO $install$ BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_trigger
             WHERE tgrelid = 'ducklake_column'::regclass AND tgname = 'shelduck_kept_places') THEN
    RETURN;
  END IF;
  CREATE OR REPLACE FUNCTION shelduck_kept_places() RETURNS trigger LANGUAGE plpgsql AS $keep$
    DECLARE kept bigint;
    BEGIN
      EXECUTE 'SELECT column_order FROM ' || TG_RELID::regclass ||
        ' WHERE table_id = $1 AND column_id = $2 AND begin_snapshot < $3'
        ' ORDER BY begin_snapshot DESC LIMIT 1'
        INTO kept USING NEW.table_id, NEW.column_id, NEW.begin_snapshot;
      NEW.column_order = coalesce(kept, NEW.column_order);
      RETURN NEW;
    END $keep$;
  CREATE TRIGGER shelduck_kept_places BEFORE INSERT ON ducklake_column
    FOR EACH ROW WHEN (NEW.column_order = NEW.column_id) EXECUTE FUNCTION shelduck_kept_places();
END $install$
"""

# A path is relative to the lake, and in the rows of files to a table: one of its ends.
_KEPT_FILES = """
DO $install$ BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_trigger
             WHERE tgrelid = 'ducklake_files_scheduled_for_deletion'::regclass
               AND tgname = 'shelduck_kept_files') THEN
    RETURN;
  END IF;
  CREATE OR REPLACE FUNCTION shelduck_kept_files() RETURNS trigger LANGUAGE plpgsql AS $keep$
    DECLARE
      path_end text := NEW.path;
      is_kept boolean;
    BEGIN
      EXECUTE format(
        'SELECT EXISTS (SELECT FROM %I.ducklake_files_scheduled_for_deletion WHERE path = $1)',
        TG_TABLE_SCHEMA) INTO is_kept USING NEW.path;
      IF is_kept THEN RETURN NULL; END IF;
      LOOP
        EXECUTE format(
          'SELECT EXISTS (SELECT FROM %I.ducklake_data_file WHERE path = $1 AND data_file_id <> $2)'
          ' OR EXISTS (SELECT FROM %I.ducklake_delete_file WHERE path = $1'
          ' AND delete_file_id <> $2)', TG_TABLE_SCHEMA, TG_TABLE_SCHEMA)
          INTO is_kept USING path_end, NEW.data_file_id;
        IF is_kept THEN RETURN NULL; END IF;
        EXIT WHEN position('/' IN path_end) = 0;
        path_end := substr(path_end, position('/' IN path_end) + 1);
      END LOOP;
      RETURN NEW;
    END $keep$;
  CREATE TRIGGER shelduck_kept_files BEFORE INSERT ON ducklake_files_scheduled_for_deletion
    FOR EACH ROW EXECUTE FUNCTION shelduck_kept_files();
END $install$
"""

_HERE = "relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = current_schema())"
_RELATIONS = f"SELECT relname AS name FROM pg_catalog.pg_class WHERE {_HERE}"
_TYPES = {
    "boolean": "BOOLEAN",
    "int8": "SMALLINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "INTEGER",
    "uint16": "INTEGER",
    "uint32": "BIGINT",
    "float32": "REAL",
    "float64": "DOUBLE PRECISION",
    "time": "TIME",
    "timetz": "TIME WITH TIME ZONE",
    "interval": "INTERVAL",
    "uuid": "UUID",
    "varchar": "BYTEA",
    "json": "BYTEA",
    "blob": "BYTEA",
    "null": "INTEGER",
}
_TEXTS = frozenset({"varchar", "text", "json", "jsonb"})
# What DuckLake 0.3 used, where later versions use another type.
_OLDER_TYPES = {
    "varchar": _TEXTS,
    "json": _TEXTS,
    "date": frozenset({"date"}),
    "timestamp": frozenset({"timestamp"}),
    "timestamptz": frozenset({"timestamptz"}),
}
# Values that the driver would change: an interval loses its months, a time its form. DuckLake 0.3
# kept dates and timestamps as such, of which the driver refuses those outside of Python's years.
_READ_AS_TEXT = frozenset(
    {"time", "timetz", "interval", "uuid", "date", "timestamp", "timestamptz"}
)


def _type(field: Field) -> str:
    if isinstance(field.shape, Decimal):
        return f"NUMERIC({field.shape.precision},{field.shape.scale})"
    return _TYPES.get(str(field.shape), "VARCHAR")


_VALUES: Mapping[str, Encoder] = {
    **WHOLE,
    "boolean": lambda value: bool(number_of_boolean(value)),
    **dict.fromkeys(FLOATS, lambda value: float(str(value))),
    **dict.fromkeys(("varchar", "json"), lambda value: str(value).encode()),
}


def _older_value(field: Field, kind: str) -> str | None:
    """Return text as bytes, and times as the text of DuckDB; the session is in UTC and ISO."""
    if kind not in _OLDER_TYPES.get(str(field.shape), ()):
        return None
    value = f"CAST({double_quoted(field.name)} AS text)"
    if str(field.shape) in ("varchar", "json"):
        return f"convert_to({value}, 'UTF8')"
    return f"regexp_replace({value}, '^([0-9]+-[0-9]+-[0-9]+)(.*) BC$', '\\1 (BC)\\2')"


POSTGRESQL = Dialect(
    name="postgresql",
    tables=f"{_RELATIONS} AND relkind IN ('r', 'p')",
    indexes=f"{_RELATIONS} AND relkind IN ('i', 'I')",
    columns=(
        "SELECT c.relname AS table_name, a.attname AS name, t.typname AS kind"
        " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid"
        " AND a.attnum > 0 AND NOT a.attisdropped JOIN pg_catalog.pg_type t ON t.oid = a.atttypid"
        f" WHERE {_HERE} AND c.relkind IN ('r', 'p') AND starts_with(c.relname, 'ducklake_')"
        " ORDER BY c.relname, a.attnum"
    ),
    insert=insert,
    whole_number="CASE WHEN {0} ~ '^-?[0-9]+$' THEN CAST({0} AS NUMERIC) END",
    # With LIMIT beside WHERE, the planner expects to be done soon, and reads in one process.
    first_rows="WITH found AS MATERIALIZED ({0}) SELECT * FROM found LIMIT {1}",
    parameter_mark="%s",
    # psycopg takes a per cent sign in the text of a statement for the start of a parameter.
    in_driver_text=lambda name: double_quoted(name).replace("%", "%%"),
    kept_places=_KEPT_PLACES,
    kept_files=_KEPT_FILES,
    inlined_type=_type,
    inlined_value=encoders(_VALUES),
    older_value=_older_value,
    never_inlined=frozenset({"geometry", "variant"}),
    longest_name=63,
    most_columns=1500,
    read_as_text=lambda field: str(field.shape) in _READ_AS_TEXT,
    in_use=(
        "SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_locks l"
        " ON l.relation = c.oid WHERE l.pid <> pg_backend_pid()"
    ),
    row_address="ctid",
)
