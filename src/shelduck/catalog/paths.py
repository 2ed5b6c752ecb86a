"""Absolute places from the catalog's relative ones: plain concatenation, as DuckLake does it."""

from __future__ import annotations

from urllib.parse import unquote

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def resolve(base: str, path: str, is_relative: object) -> str:
    """Return ``path`` below ``base``, which ends in '/', unless it is absolute already."""
    return base + path if is_relative else path


def hive_values(path: str) -> dict[str, str | None]:
    """Return the ``name=value`` directories of a path by lower-cased name, None for Hive's null."""
    values: dict[str, str | None] = {}
    for part in path.split("/")[:-1]:
        name, equals, value = part.partition("=")
        if equals:
            values[unquote(name).lower()] = None if value == HIVE_NULL else unquote(value)
    return values
