"""The name of a file in the metadata."""

from __future__ import annotations

from shelduck.spark.files.storage import local_path


def named(path: str) -> str:
    """Return a path as the metadata names it: a URI, as Iceberg requires.

    Readers take a URI literally, without decoding it, but PyIceberg ends it at ``#`` and ``?``. So
    a local path with one of these has no scheme.
    """
    plain = local_path(path)
    if plain is not None and any(mark in plain for mark in "#?"):
        return plain
    return path if plain is None else f"file://{plain}"
