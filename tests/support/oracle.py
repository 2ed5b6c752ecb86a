"""DuckDB and its own DuckLake extension as the oracle: what they read is what a lake holds."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

import duckdb

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.support.s3 import S3Server

Row = tuple[Any, ...]

# In the order in which they must load: DuckLake asks for the scanner of its catalog's database.
EXTENSIONS = ("sqlite_scanner", "postgres_scanner", "ducklake")

# DuckDB hides the catalog's database from its lists of tables, so the names stand here.
METADATA_TABLES = (
    "ducklake_column",
    "ducklake_column_mapping",
    "ducklake_column_tag",
    "ducklake_data_file",
    "ducklake_delete_file",
    "ducklake_file_column_stats",
    "ducklake_file_partition_value",
    "ducklake_file_variant_stats",
    "ducklake_files_scheduled_for_deletion",
    "ducklake_inlined_data_tables",
    "ducklake_macro",
    "ducklake_macro_impl",
    "ducklake_macro_parameters",
    "ducklake_metadata",
    "ducklake_name_mapping",
    "ducklake_partition_column",
    "ducklake_partition_info",
    "ducklake_schema",
    "ducklake_schema_versions",
    "ducklake_snapshot",
    "ducklake_snapshot_changes",
    "ducklake_sort_expression",
    "ducklake_sort_info",
    "ducklake_table",
    "ducklake_table_column_stats",
    "ducklake_table_stats",
    "ducklake_tag",
    "ducklake_view",
)


# Statements that change a DuckDB for whoever comes next.
_TRACES = ("SET", "RESET", "PRAGMA", "LOAD", "ATTACH", "DETACH", "USE", "CREATE SECRET")
# What an oracle has left in a DuckDB beside its lake.
_LEFT = (
    "SELECT database_name FROM duckdb_databases() WHERE NOT internal AND database_name <> 'memory'"
    " UNION ALL SELECT table_name FROM duckdb_tables()"
    " UNION ALL SELECT view_name FROM duckdb_views() WHERE NOT internal"
)
# DuckDBs without a lake, which have the extensions.
_IDLE: list[duckdb.DuckDBPyConnection] = []


class DuckDBOracle:
    """A DuckDB connection that has a lake attached as `lake` and in use.

    `url` is a Shelduck address (`sqlite:////abs.db`, `postgresql://...`, `duckdb:////abs.ducklake`).
    `data_path` is needed where DuckDB is to create the lake; an existing lake knows its own.
    `options` go into ATTACH as they are: `{"DATA_INLINING_ROW_LIMIT": 0}`.
    `store` is the server of a lake on S3.

    A lake in a DuckDB file can be open in one place only: close the oracle before Shelduck opens
    it, and the other way round.

    To start a DuckDB costs twice as much as to attach a lake: the next oracle gets one that an
    oracle before it has left as it was.
    """

    def __init__(
        self,
        url: str,
        data_path: str | Path | None = None,
        options: Mapping[str, str | int | bool] | None = None,
        store: S3Server | None = None,
    ) -> None:
        self._leaves_no_trace = store is None
        if store is None:
            self._home: duckdb.DuckDBPyConnection | None = (
                _IDLE.pop() if _IDLE else duckdb_with(EXTENSIONS)
            )
        else:
            self._home = duckdb_with((*EXTENSIONS, "httpfs"))
            self._home.execute(store.duckdb_secret)
        self._connection = self._home.cursor()
        try:
            self._connection.execute("SET TimeZone = 'UTC'")
            self._connection.execute(duckdb_attach_string(url, data_path, options=options))
            self._connection.execute("USE lake")
        except duckdb.Error:
            self._leaves_no_trace = False
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Releases the lake."""
        if self._home is None:
            return
        home, self._home = self._home, None
        self._connection.close()
        if self._leaves_no_trace:
            try:
                home.execute("DETACH lake")
                if home.execute(_LEFT).fetchall() == []:
                    _IDLE.append(home)
                    return
            except duckdb.Error:
                pass  # whatever holds the lake goes with its DuckDB
        home.close()

    def execute(self, statement: str, parameters: Sequence[object] | None = None) -> None:
        """Runs a statement whose rows do not matter."""
        self._leaves_no_trace &= not statement.lstrip().upper().startswith(_TRACES)
        self._connection.execute(statement, parameters)

    def sql(self, query: str, parameters: Sequence[object] | None = None) -> list[Row]:
        """The rows of a query."""
        return self._connection.execute(query, parameters).fetchall()

    def typed(self, query: str) -> tuple[list[Any], list[Row]]:
        """The DuckDB types of a query's columns, and its rows."""
        cursor = self._connection.execute(query)
        return [kind for _, kind, *_ in cursor.description], cursor.fetchall()

    def rows(self, table: str, *, version: int | None = None, columns: str = "*") -> list[Row]:
        """The rows of a table, now or at a snapshot, in the order of their columns."""
        source = table if version is None else at(table, version)
        return self.sql(f"SELECT {columns} FROM {source} ORDER BY ALL")

    def columns(self, table: str, *, version: int | None = None) -> list[tuple[str, str]]:
        """Name and DuckDB type of each column of a table, now or at a snapshot."""
        source = table if version is None else at(table, version)
        return [(name, kind) for name, kind, *_ in self.sql(f"DESCRIBE SELECT * FROM {source}")]

    def snapshot(self) -> int:
        """The newest snapshot that is committed."""
        [(snapshot,)] = self.sql("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")
        return int(snapshot)

    def dump_metadata(self) -> dict[str, list[dict[str, Any]]]:
        """Every `ducklake_*` table by name: its rows, in the order of their columns' values."""
        return {table: self._metadata_rows(table) for table in self._metadata_tables()}

    def _metadata_tables(self) -> list[str]:
        inlined = self.sql(
            "SELECT table_name FROM __ducklake_metadata_lake.ducklake_inlined_data_tables "
            "UNION SELECT DISTINCT 'ducklake_inlined_delete_' || table_id "
            "FROM __ducklake_metadata_lake.ducklake_table ORDER BY 1"
        )
        return [*METADATA_TABLES, *(name for (name,) in inlined if self._has_metadata_table(name))]

    def _has_metadata_table(self, table: str) -> bool:
        # Tables of inlined deletes are in no registry and are made by the first such delete.
        try:
            self._connection.execute(f'SELECT 1 FROM __ducklake_metadata_lake."{table}" LIMIT 0')
        except duckdb.CatalogException:
            return False
        return True

    def _metadata_rows(self, table: str) -> list[dict[str, Any]]:
        cursor = self._connection.execute(
            f'SELECT * FROM __ducklake_metadata_lake."{table}" ORDER BY ALL'
        )
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def duckdb_with(extensions: tuple[str, ...]) -> duckdb.DuckDBPyConnection:
    """A DuckDB that has these extensions and gets no others."""
    connection = duckdb.connect(
        config={
            "allow_unsigned_extensions": "true",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            # Few rows: to share them out among threads takes longer than to read them.
            "threads": "1",
            # It encrypts only with OpenSSL, which comes with the extension for S3, or if told so.
            "force_mbedtls_unsafe": "true",
        }
    )
    for path in extension_files(extensions):
        connection.execute(f"LOAD {_literal(path)}")
    # Answers must not depend on the time zone of the machine.
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def at(table: str, version: int) -> str:
    """A table at a snapshot, to stand after FROM."""
    return f"{table} AT (VERSION => {version})"


def duckdb_attach_string(
    url: str,
    data_path: str | Path | None = None,
    *,
    name: str = "lake",
    options: Mapping[str, str | int | bool] | None = None,
) -> str:
    """The ATTACH statement by which DuckDB opens the lake at a Shelduck address."""
    settings = dict(options or {})
    if data_path is not None:
        settings["DATA_PATH"] = str(data_path)
    listed = ", ".join(f"{key} {_literal(value)}" for key, value in settings.items())
    return f"ATTACH {_literal('ducklake:' + duckdb_catalog_string(url))} AS {name}" + (
        f" ({listed})" if listed else ""
    )


def duckdb_catalog_string(url: str) -> str:
    """A Shelduck address in DuckDB's words: `sqlite:/abs.db`, `postgres:dbname=...` or a path."""
    parts = urlsplit(url)
    kind = parts.scheme.split("+")[0]
    if kind == "postgresql":
        return "postgres:" + " ".join(f"{k}={v}" for k, v in _postgres_settings(url).items())
    # SQLAlchemy writes an absolute path with four slashes: the third ends the empty host.
    path = unquote(parts.path.removeprefix("/"))
    if kind == "sqlite":
        return f"sqlite:{path}"
    if kind == "duckdb":
        return path
    raise ValueError(f"not an address of a lake: {url}")


def _postgres_settings(url: str) -> dict[str, str]:
    parts = urlsplit(url)
    settings = {"dbname": unquote(parts.path.removeprefix("/"))}
    if parts.hostname:
        settings["host"] = parts.hostname
    if parts.port:
        settings["port"] = str(parts.port)
    if parts.username:
        settings["user"] = unquote(parts.username)
    if parts.password:
        settings["password"] = unquote(parts.password)
    return settings | {key: values[0] for key, values in parse_qs(parts.query).items()}


@cache
def extension_files(names: tuple[str, ...] = EXTENSIONS) -> tuple[str, ...]:
    """Where the extensions lie that came from PyPI, built for the DuckDB that is installed."""
    version = f"v{duckdb.__version__}"
    files = []
    for name in names:
        package = resources.files(f"duckdb_extension_{name}")
        file = package / "extensions" / version / f"{name}.duckdb_extension"
        if not file.is_file():
            raise FileNotFoundError(f"duckdb_extension_{name} has nothing for DuckDB {version}")
        files.append(str(file))
    return tuple(files)


def _literal(value: str | float | bool) -> str:
    if isinstance(value, bool | int | float):
        return str(value).lower()
    return "'" + value.replace("'", "''") + "'"
