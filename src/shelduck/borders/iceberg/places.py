"""What metadata calls a file."""

from __future__ import annotations

from shelduck.spark.files.storage import local_path, spark_path


def named(path: str) -> str:
    """Return a path as readers are told it: a URI, as Iceberg wants it.

    Readers take a URI by its letters, without codes, but PyIceberg ends it at ``#`` and ``?``; a
    local path that has one stands without a scheme.
    """
    plain = local_path(path)
    if plain is not None and any(mark in plain for mark in "#?"):
        return plain
    return spark_path(path)
