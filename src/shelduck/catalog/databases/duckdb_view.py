"""A lake as DuckDB's own ``ducklake`` extension reads it, if the extension is installed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from importlib import resources
from typing import Any

from shelduck.catalog.databases.address import parse_address
from shelduck.catalog.databases.known import DATABASES
from shelduck.errors import ShelduckError, Unsupported


class DuckDBMissing(ShelduckError):
    """DuckDB or one of its extensions is not installed; pip can install them."""


_CONFIG = {
    "allow_unsigned_extensions": "true",
    # Nothing is fetched from the network because of what a catalog says.
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}


def duckdb_rows(url: str, *queries: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the queries, run by DuckDB with the lake attached and in use.

    Raises DuckDBMissing if DuckDB or an extension that the catalog needs is not installed, and
    Unsupported, without secrets, for what DuckDB refuses.
    """
    try:
        duckdb = importlib.import_module("duckdb")
    except ModuleNotFoundError as error:
        raise DuckDBMissing("pip install duckdb duckdb-extension-ducklake") from error
    parsed = parse_address(url)
    database = DATABASES[parsed.kind]
    try:
        with duckdb.connect(config=_CONFIG) as connection:
            # In `python -c`, DuckDB takes itself for interactive: it would print a bar among rows.
            connection.execute("SET enable_progress_bar = false")
            for name in [n for n in (database.duckdb_extension, "ducklake") if n]:
                connection.load_extension(_extension_file(name))
            address = database.duckdb_address(parsed.url).replace("'", "''")
            connection.execute(f"ATTACH 'ducklake:{address}' AS lake (READ_ONLY)")
            connection.execute("USE lake")
            for query in queries:
                yield from connection.execute(query).fetchall()
    except duckdb.Error as error:
        parsed.hide_in(error)
        told = str(error).partition("\n")[0]
        raise Unsupported(f"DuckDB does not read lake {parsed.shown}: {told}") from error


def _extension_file(name: str) -> str:
    package = f"duckdb_extension_{name}"
    try:
        root = resources.files(package)
    except ModuleNotFoundError as error:
        raise DuckDBMissing(f"pip install {package.replace('_', '-')}") from error
    found = next((p for p in _walk(root) if p.name.endswith(".duckdb_extension")), None)
    if found is None:
        raise DuckDBMissing(f"{package} contains no extension for this platform")
    return str(found)


def _walk(folder: Any) -> Iterator[Any]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry)
        else:
            yield entry
