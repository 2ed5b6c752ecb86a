"""DuckDB-file catalogs: how they differ from the other databases, and their SQL.

A DuckDB file belongs to one process, and in it to one DuckDB instance, while it is open. So a unit
of work opens the file, works and closes it; `session` keeps it open for several units of work,
and the setting `keep_open` until somebody asks for it (`duckdb_lease`).
"""
# ruff: noqa: D102 - `store.Database` holds the contract of these methods.

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import Dialect as EngineDialect
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from shelduck.catalog.databases.database import Database, Failure, file_at, refuse_settings
from shelduck.catalog.databases.dialect import Dialect, encoders
from shelduck.catalog.databases.duckdb_dialect import SCHEME
from shelduck.catalog.databases.duckdb_lease import SETTING, Lease, Wish, opening, seconds_to_keep
from shelduck.errors import CatalogUnavailable, InvalidRequest, Unsupported
from shelduck.model.tables.schema import Field, Kind
from shelduck.model.text.names import LONE_SURROGATE, double_quoted
from shelduck.model.types.data_types import DUCKDB_NUMBERS

BUSY_SECONDS = 10.0
_MAGIC_AT, _MAGIC = 8, b"DUCK"
# The oldest that DuckDB 1.5 writes: its number in the file is 64. By default, a newer DuckDB makes
# files that no older one opens.
_STORAGE_VERSION = "v1.0.0"
_UNREAD_VERSION = re.compile(r"file with version number (\d+), but we can only read (.+?)\.")
_HERE = "database_name = current_database() AND schema_name = current_schema()"
_TYPES = DUCKDB_NUMBERS | {
    "timetz": "TIME WITH TIME ZONE",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    "null": "INTEGER",
}


class DuckDB(Database):
    """A DuckDB file as a catalog."""

    kind = "duckdb"
    names: tuple[str, ...] = ("duckdb",)
    form = "duckdb:////file.ducklake"
    extra = "duckdb"
    shown = frozenset({SETTING})
    cannot_hold = LONE_SURROGATE
    duckdb_extension: str | None = None
    begin_read = "BEGIN TRANSACTION READ ONLY"
    begin_write = "BEGIN TRANSACTION"
    # DuckDB skips row groups by their own statistics, and an index would block later ALTERs.
    indexed = False
    has_savepoints = False

    def __init__(self, url: sa.URL) -> None:
        if not url.database or url.database == ":memory:":
            raise InvalidRequest(
                "a DuckDB catalog needs a file; use duckdb:////absolute/path.ducklake"
            )
        refuse_settings(url, (SETTING,))
        seconds = seconds_to_keep(url)
        self.path = file_at(url)
        self._lease = None if seconds is None else Lease(self.path, seconds)
        self.url = sa.URL.create("duckdb", database=str(self.path))
        self.default_data_path: str | None = f"{self.path}.files/"

    def make_engine(self) -> sa.Engine:
        engine = sa.create_engine(
            sa.URL.create(SCHEME, database=str(self.path)), poolclass=NullPool
        )
        self._driver = engine.dialect.loaded_dbapi
        sa.event.listen(engine, "do_connect", self._wait_for_file)
        if self._lease is not None:
            sa.event.listen(engine, "close", self._lease.rest)
            sa.event.listen(engine, "engine_disposed", self._lease.give_up)
        return engine

    @staticmethod
    def duckdb_address(url: sa.URL) -> str:
        return str(url.database)

    def exists(self) -> bool:
        return self.path.exists()

    @contextmanager
    def session(self) -> Iterator[None]:
        """Keep DuckDB's instance of the file alive: connections to it then cost next to nothing.

        If another process has the file, nothing is kept: a unit of work waits for it. A file that
        the address keeps open needs no more.
        """
        if self._lease is not None:
            yield
            return
        try:
            self._create_whole()
            anchor = self._driver.connect(str(self.path))
        except self._driver.Error:
            anchor = None
        try:
            yield
        finally:
            if anchor is not None:
                anchor.close()

    def way_out(self, told: str) -> str:
        if "Permission denied" in told:
            return f"check that this user may read and write {self.path} and its folder"
        return "close the lake in the other process" if "lock" in told else ""

    def classify(self, error: BaseException, *, committing: bool) -> Failure:
        driver = self._driver
        if isinstance(error, driver.TransactionException | driver.ConstraintException):
            return Failure.RETRYABLE
        broken = driver.IOException | driver.FatalException | driver.InternalException
        if committing and isinstance(error, broken):
            return Failure.OUTCOME_UNKNOWN
        if isinstance(error, driver.IOException) and self._is_foreign_file():
            return Failure.CORRUPT
        if isinstance(error, driver.IOException | driver.ConnectionException):
            return Failure.UNAVAILABLE
        return Failure.OTHER

    def _wait_for_file(
        self,
        dialect: EngineDialect,
        _record: ConnectionPoolEntry,
        cargs: tuple[Any, ...],
        cparams: dict[str, Any],
    ) -> Any:
        """Open the file; wait while another process holds it."""
        deadline = time.monotonic() + BUSY_SECONDS
        wish, has_asked = Wish(self.path), False
        try:
            while True:
                try:
                    return self._open(dialect, cargs, cparams)
                except self._driver.IOException as error:
                    self._refuse_unread(error)
                    if time.monotonic() > deadline or not self._may_become_free():
                        raise
                    has_asked = True
                    wish.say()
                    time.sleep(random.uniform(0.01, 0.05))  # noqa: S311 - jitter, not a secret
        except self._taken as error:
            raise CatalogUnavailable(
                f"another DuckDB instance in this process has {self.path} open; DETACH or"
                f" close it there first ({error})"
            ) from error
        finally:
            if has_asked:
                wish.end()

    @property
    def _taken(self) -> tuple[type[Exception], ...]:
        """The errors of a file that another instance of this process has."""
        names = ("BinderException", "ConnectionException", "ResourceInUseException")
        # DuckDB 1.5 lacks the last one.
        return tuple(getattr(self._driver, name) for name in names if hasattr(self._driver, name))

    def _open(self, dialect: EngineDialect, cargs: tuple[Any, ...], cparams: dict[str, Any]) -> Any:
        self._create_whole()
        lease = self._lease
        if lease is None:
            return dialect.connect(*cargs, **cparams)
        lease.before_open()
        with opening:
            connection = dialect.connect(*cargs, **cparams)
            lease.keep(self._driver.connect)
            return connection

    def _create_whole(self) -> None:
        """Put an empty database where no file is, whole, unless another process was first.

        DuckDB creates a file, then locks it, then writes its header. Two processes that create at
        once can leave a file without a header, or the second one overwrites the first one's lake.
        """
        if self.path.exists():
            return
        new = self.path.with_name(f"{self.path.name}.{uuid4()}.new")
        try:
            self._create(new)
            # Unlike a rename, a link never replaces a file.
            self.path.hardlink_to(new)
        except (OSError, self._driver.IOException):
            # The file exists now, or none can be linked here: opening it says what is wrong.
            if not self.path.exists():
                with suppress(self._driver.Error):
                    self._create(self.path)
        finally:
            new.unlink(missing_ok=True)

    def _create(self, path: Path) -> None:
        """Put an empty database that every DuckDB since 1.0 opens into a new file."""
        place = str(path).replace("'", "''")
        with self._driver.connect() as other:
            other.execute(f"ATTACH '{place}' AS made (STORAGE_VERSION '{_STORAGE_VERSION}')")

    def _refuse_unread(self, error: Exception) -> None:
        """Raise Unsupported if the DuckDB that is installed cannot read the file's version."""
        found = _UNREAD_VERSION.search(str(error))
        if found is None:
            return
        raise Unsupported(
            f"DuckDB {self._driver.__version__} cannot open {self.path}: the file has the storage"
            f" version {found[1]}, and this DuckDB reads {found[2]}; install the DuckDB that made"
            " it, or use that one to copy it: ATTACH the file and a new one with (STORAGE_VERSION"
            f" '{_STORAGE_VERSION}'), then COPY FROM DATABASE"
        ) from error

    def _may_become_free(self) -> bool:
        # The file is valid and we may open it, but another process holds its lock.
        readable = os.access(self.path, os.R_OK | os.W_OK)
        return readable and not self._is_foreign_file()

    def _is_foreign_file(self) -> bool:
        try:
            with self.path.open("rb") as file:
                head = file.read(_MAGIC_AT + len(_MAGIC))
        except OSError:
            return False
        # If the file contains only zeros, another process is still writing its first header.
        return bool(head.strip(b"\0")) and head[_MAGIC_AT:] != _MAGIC


def _type(field: Field) -> str:
    if field.shape is Kind.LIST:
        return f"{_type(field.children[0])}[]"
    if field.shape is Kind.MAP:
        return f"MAP({_type(field.children[0])}, {_type(field.children[1])})"
    if field.shape is Kind.STRUCT:
        members = (f"{double_quoted(c.name)} {_type(c)}" for c in field.children)
        return f"STRUCT({', '.join(members)})"
    return _TYPES.get(str(field.shape), str(field.shape).upper())


DUCKDB = Dialect(
    name="duckdb",
    tables=f"SELECT table_name AS name FROM duckdb_tables() WHERE {_HERE}",
    indexes=f"SELECT index_name AS name FROM duckdb_indexes() WHERE {_HERE}",
    columns=(
        "SELECT table_name, column_name AS name, data_type AS kind FROM duckdb_columns()"
        f" WHERE {_HERE} AND starts_with(table_name, 'ducklake_') ORDER BY table_name, column_index"
    ),
    insert=insert,
    whole_number=("CASE WHEN regexp_full_match({0}, '-?[0-9]+') THEN TRY_CAST({0} AS HUGEINT) END"),
    inlined_type=_type,
    inlined_value=encoders({}, mark=""),
    never_inlined=frozenset({"geometry", "timestamptz_ns", "variant"}),
    read_as_text=lambda field: str(field.shape) != "blob",
    has_literal_structs=False,
    has_variants=True,
    # The text of a timestamp is in the time zone of the session.
    before_reading="SET TimeZone = 'UTC'",
    drops_at_once=True,
)
