"""The demands on a database that holds a catalog, and the meaning of its failures."""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa

from shelduck.errors import CatalogUnavailable, InvalidRequest


class Failure(Enum):
    """The classes of all drivers' errors."""

    RETRYABLE = (
        "it was busy or another writer was faster; nothing was written, and you can repeat the work"
    )
    UNAVAILABLE = "it cannot be reached, opened or written; nothing was written"
    DENIED = "the server denies its role a right; nothing was written"
    OUTCOME_UNKNOWN = "the connection broke during COMMIT"
    CORRUPT = "the database file is damaged or is not a database"
    OTHER = "an error of the statement itself, or of the caller"


class Contention(CatalogUnavailable):
    """The catalog was locked, or another writer won a race: nothing was written, run it again."""


class Database(Protocol):
    """A database that can hold a catalog; what is said here is true of most of them."""

    kind: str
    names: tuple[str, ...]
    """The words with which its addresses may begin."""
    form: str
    """The form of its addresses."""
    extra: str
    """The extra that installs its driver."""
    is_server: bool = False
    """Whether it can close a connection that we hold, and has users and passwords."""
    shown: frozenset[str]
    """The options of an address that are not secret, so that errors may show their values."""
    cannot_hold: re.Pattern[str]
    """The characters that its texts cannot have."""
    duckdb_extension: str | None
    """The extension that DuckDB loads to use the database, None if it needs none."""
    url: sa.URL
    begin_read: str
    begin_write: str
    indexed: bool = True
    """Whether our indexes help on this database."""
    default_data_path: str | None = None
    has_savepoints: bool = True
    """Whether a part of a transaction can be rolled back, so that several commits can share one."""

    def make_engine(self) -> sa.Engine:
        """Return an engine whose driver does not begin transactions by itself."""

    @staticmethod
    def duckdb_address(url: sa.URL) -> str:
        """Return what DuckDB attaches, after ``ducklake:``."""

    def pipeline(self, driver: Any) -> AbstractContextManager[Any]:  # noqa: ARG002
        """Send statements without waiting for their answers until the end, if a driver can."""
        return nullcontext()

    def exists(self) -> bool:
        """Return whether the database exists; the check must not create it."""
        return True

    def session(self) -> AbstractContextManager[None]:
        """Keep open what takes long to open."""
        return nullcontext()

    def is_transaction_open(self, driver: Any) -> bool:
        """Return whether the driver's connection still has a valid transaction."""
        return bool(driver.in_transaction)

    def classify(self, error: BaseException, *, committing: bool) -> Failure:
        """Return what a driver's error means for the caller."""

    def way_out(self, told: str) -> str:
        """Return what to do about an error with that text, '' if that is not known."""


def refuse_settings(url: sa.URL, known: Collection[str]) -> None:
    """Raise InvalidRequest for a setting that the database does not know, and name it."""
    for name in url.query:
        if name not in known:
            listed = f"known settings: {', '.join(known)}" if known else "there are no settings"
            raise InvalidRequest(
                f"the address of a {url.get_backend_name()} catalog does not support the setting"
                f" {name!r}; leave it out ({listed})"
            )


def file_at(url: sa.URL) -> Path:
    """Return the absolute path of a catalog's file, which need not exist.

    Raises InvalidRequest if it is a folder, or if its folder does not exist.
    """
    path = Path(url.database or "").absolute()
    kind = url.get_backend_name()
    if path.is_dir():
        raise InvalidRequest(f"the {kind} catalog {path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise InvalidRequest(
            f"the folder {path.parent} of the {kind} catalog {path.name} does not exist; create it"
        )
    return path
