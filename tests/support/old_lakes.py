"""Lakes that earlier versions of Shelduck left, as tests/data/lakes keeps them."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parents[1] / "data" / "lakes"


class OldLake:
    """A copy of one, with its catalog in SQLite."""

    def __init__(self, name: str, folder: Path) -> None:
        shutil.copytree(KEPT / name, folder)
        self.folder = folder
        self.catalog = folder / "catalog.db"
        self.url = f"sqlite:///{self.catalog}"
        text = (folder / "catalog.sql").read_text().replace("@LAKE@", str(folder))
        with closing(sqlite3.connect(self.catalog)) as connection:
            connection.executescript(text)

    def sql(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Ask or change the catalog itself."""
        with closing(sqlite3.connect(self.catalog)) as connection, connection:
            return connection.execute(statement, values).fetchall()

    def tag(self, table: str, key: str) -> str:
        """The text of a property of a table."""
        [(text,)] = self.sql(
            "SELECT value FROM ducklake_tag JOIN ducklake_table ON object_id = table_id"
            " WHERE table_name = ? AND key = ? AND ducklake_tag.end_snapshot IS NULL"
            " AND ducklake_table.end_snapshot IS NULL",
            *(table, key),
        )
        return str(text)

    def retag(self, table: str, key: str, text: str) -> None:
        """Let another writer have kept this text; its commit raised the schema version."""
        self.sql(
            "UPDATE ducklake_snapshot SET schema_version = schema_version + 1"
            " WHERE snapshot_id = (SELECT max(snapshot_id) FROM ducklake_snapshot)"
        )
        self.sql(
            "UPDATE ducklake_tag SET value = ? WHERE key = ? AND end_snapshot IS NULL"
            " AND object_id = (SELECT table_id FROM ducklake_table WHERE table_name = ?"
            " AND end_snapshot IS NULL)",
            *(text, key, table),
        )
