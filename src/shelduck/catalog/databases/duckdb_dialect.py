"""DuckDB under SQLAlchemy Core: PostgreSQL's SQL compiler on DuckDB's own Python driver.

It covers only what the catalog needs: Core statements and `text`, no reflection.
"""

# ruff: noqa: D102 - SQLAlchemy documents what a dialect answers.

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.base import PGDialect

SCHEME = "shelduck_duckdb"
# The version of PostgreSQL whose SQL DuckDB supports well enough for our statements.
_SPEAKS_LIKE = (14, 0)


class DuckDBDialect(PGDialect):
    """SQLAlchemy dialect over `duckdb.connect(path)` without any configuration.

    DuckDB refuses a second connection to a file in one process if the configurations differ. With
    plain arguments, the lake can be used beside the caller's own `duckdb.connect(path)`.
    """

    name = "duckdb"
    driver = "duckdb"
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_sane_multi_rowcount = False
    # DuckDB's RETURNING knows no subqueries.
    insert_returning = False
    # DuckDB runs executemany row by row; one INSERT of many rows is far faster.
    use_insertmanyvalues_wo_returning = True

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        return importlib.import_module("duckdb")

    def create_connect_args(self, url: sa.URL) -> tuple[list[Any], dict[str, Any]]:
        return [url.database], {}

    def connect(self, *cargs: Any, **_cparams: Any) -> Any:
        return _Connection(self.loaded_dbapi.connect(cargs[0]))

    def initialize(self, connection: Any) -> None:  # noqa: ARG002
        # Otherwise SQLAlchemy would ask PostgreSQL for its version and settings here.
        self.server_version_info = _SPEAKS_LIKE
        self.default_schema_name = "main"

    def on_connect(self) -> None:
        return None

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:  # noqa: ARG002
        return isinstance(
            e, self.loaded_dbapi.FatalException | self.loaded_dbapi.ConnectionException
        )


registry.register(SCHEME, __name__, DuckDBDialect.__name__)


class _Connection:
    """DuckDB's connection with the DBAPI behaviour that SQLAlchemy expects."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self.in_transaction = False

    def cursor(self) -> _Cursor:
        return _Cursor(self)

    def execute(self, statement: str) -> None:
        """Begin a transaction: the store itself runs no other statement."""
        self.raw.execute(statement)
        self.in_transaction = True

    def commit(self) -> None:
        if self.in_transaction:
            self.in_transaction = False
            self.raw.execute("COMMIT")

    def rollback(self) -> None:
        if self.in_transaction:
            self.in_transaction = False
            self.raw.execute("ROLLBACK")

    def close(self) -> None:
        self.raw.close()


class _Cursor:
    """One statement's rows, fetched at once: a DuckDB connection holds only one open result."""

    arraysize = 1

    def __init__(self, connection: _Connection) -> None:
        self._raw = connection.raw
        self.description: Any = None
        self.rowcount = -1
        self._rows: Iterator[tuple[Any, ...]] = iter(())

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        self._raw.execute(statement, parameters)
        description = self._raw.description
        if not description or _is_pseudo(statement, description):
            self.description = None
            done = self._raw.fetchall()
            self.rowcount = done[0][0] if done and description[0][0] == "Count" else -1
            return
        self.description = description
        rows = self._raw.fetchall()
        self.rowcount = len(rows)
        self._rows = iter(rows)

    def executemany(self, statement: str, parameters: Sequence[Sequence[Any]]) -> None:
        self._raw.executemany(statement, parameters)
        self.description = None
        self.rowcount = -1

    def fetchone(self) -> tuple[Any, ...] | None:
        return next(self._rows, None)

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        return [row for _, row in zip(range(size), self._rows, strict=False)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(self._rows)

    def close(self) -> None:
        self._rows = iter(())


def _is_pseudo(statement: str, description: Sequence[Sequence[Any]]) -> bool:
    # DuckDB answers DML with a row "Count" and other statements with "Success".
    if statement.lstrip()[:6].upper() == "SELECT":
        return False
    return len(description) == 1 and description[0][0] in {"Count", "Success"}
