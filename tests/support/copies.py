"""Copies of a catalog, each a database of its own over the same files."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from tests.support.postgres import database_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.postgres import PostgresServer


class Copies(Protocol):
    """A place for catalogs and their copies. Nobody may be connected to what is copied."""

    def fresh(self) -> str:
        """The address of a catalog that does not exist yet."""

    def copy(self, url: str, to: str | None = None) -> str:
        """The address of a copy: a new one, or that of a catalog which it takes the place of."""

    def remove(self, url: str) -> None:
        """Drop a catalog."""


class SQLiteCopies:
    """Copies are files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def fresh(self) -> str:
        self._count += 1
        return f"sqlite:///{self._folder}/catalog-{self._count}.db"

    def copy(self, url: str, to: str | None = None) -> str:
        made = to or self.fresh()
        shutil.copy(_file(url), _file(made))
        return made

    def remove(self, url: str) -> None:
        _file(url).unlink()


class DuckDBCopies(SQLiteCopies):
    """Copies are files in a folder, without the log that a killed writer left beside one."""

    def fresh(self) -> str:
        self._count += 1
        return f"duckdb:///{self._folder}/catalog-{self._count}.ducklake"

    def copy(self, url: str, to: str | None = None) -> str:
        made = super().copy(url, to)
        _file(f"{made}.wal").unlink(missing_ok=True)
        return made


class PostgresCopies:
    """Copies are databases of one server."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._made: list[str] = []

    def fresh(self) -> str:
        self._made.append(self._server.create_database())
        return self._made[-1]

    def copy(self, url: str, to: str | None = None) -> str:
        if to is not None:
            self._server.drop_database(to)
            return self._server.create_database(template=url, name=database_name(to))
        self._made.append(self._server.create_database(template=url))
        return self._made[-1]

    def remove(self, url: str) -> None:
        self._made.remove(url)
        self._server.drop_database(url)

    def close(self) -> None:
        """Drop what is left."""
        for url in list(self._made):
            self.remove(url)


@contextmanager
def postgres_copies(server: PostgresServer) -> Iterator[PostgresCopies]:
    """Copies that are all gone afterwards."""
    copies = PostgresCopies(server)
    try:
        yield copies
    finally:
        copies.close()


def _file(url: str) -> Path:
    return Path(urlsplit(url).path.removeprefix("/"))
