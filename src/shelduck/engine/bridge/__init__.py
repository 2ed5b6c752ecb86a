"""The two ways into Spark: by its public API, and by Shelduck's Java classes in its JVM."""

from __future__ import annotations

from shelduck.engine.bridge.classic import engine_for, listed_rows, select_named, select_names
from shelduck.engine.bridge.engine import Engine
from shelduck.engine.bridge.relation import Deletes, FileEntry, FileRelation, Named, Sql, column_of

__all__ = [
    "Deletes",
    "Engine",
    "FileEntry",
    "FileRelation",
    "Named",
    "Sql",
    "column_of",
    "engine_for",
    "listed_rows",
    "select_named",
    "select_names",
]
