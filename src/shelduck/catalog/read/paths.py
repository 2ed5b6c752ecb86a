"""Absolute paths from the catalog's relative ones, and values in the names of directories."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from shelduck.ducklake.checked import RESTORE
from shelduck.errors import CorruptLake, Unsupported
from shelduck.model.files.place import is_absolute, joined, require_allowed, split_address
from shelduck.model.tables.partition import NULL_DIRECTORY
from shelduck.model.tables.schema import SchemaId
from shelduck.model.tables.table import SchemaInfo, TableVersion

# Other people's servers, which no lake can write, and which a reader must not call for a stranger.
_SERVERS = ("http", "https", "ftp", "ftps")


def resolve(base: str, path: str | None, is_relative: object) -> str:
    """Return ``path`` below ``base``, which ends in '/', unless it is already absolute.

    Clients that know only DuckLake's page about queries give schemas and tables no path: their
    files are below ``base`` itself. Raises CorruptLake for a relative path that leaves ``base``,
    and for one that is neither relative nor absolute.
    """
    if path is None:
        return base
    if is_relative:
        return joined(base, path)
    if is_relative is None or not is_absolute(path):
        raise CorruptLake(
            f"the path {path!r} in the catalog is not absolute, and path_is_relative is"
            f" {'NULL' if is_relative is None else 'false'}; {RESTORE}"
        )
    return path


def schema_of_row(row: Any, data_path: str, prefix: str = "") -> SchemaInfo:
    """Return the schema that a row with columns of `queries.about_schema` describes."""
    relative = getattr(row, f"{prefix}path_is_relative")
    path = resolve(data_path, getattr(row, f"{prefix}path"), relative)
    parent = getattr(row, "parent_schema_id", None)
    return SchemaInfo(
        SchemaId(row.schema_id), row.schema_name, path, None if parent is None else SchemaId(parent)
    )


def file_place(table: TableVersion, path: str, is_relative: object) -> str:
    """Return the absolute path of a file of a table that is about to be read.

    Raises CorruptLake for a relative path that leaves the table's directory, InvalidRequest for a
    file outside of the places that the user allows, and Unsupported for a file on a web server.
    """
    place = resolve(table.path, path, is_relative)
    if split_address(place)[0] in _SERVERS:
        raise Unsupported(
            f"file {place!r} of {table.full_name} is on a web server, which Shelduck does not read;"
            " copy it into the lake"
        )
    require_allowed(place, table.roots, f"file {place!r} of {table.full_name}")
    return place


def hive_values(path: str) -> dict[str, str | None]:
    """Return the ``name=value`` directories of a path by lower-cased name, None for Hive's null.

    If a name occurs twice, the first one counts, as in DuckDB.
    """
    values: dict[str, str | None] = {}
    for name, value in hive_parts(path):
        values.setdefault(name.lower(), value)
    return values


def hive_parts(path: str) -> list[tuple[str, str | None]]:
    """Return the ``name=value`` directories of a path in order, None for Hive's null."""
    parts: list[tuple[str, str | None]] = []
    for part in path.split("/")[:-1]:
        name, equals, value = part.partition("=")
        if equals:
            parts.append((unquote(name), None if value == NULL_DIRECTORY else unquote(value)))
    return parts
