"""APPEND: rows in, files out, ready for a commit."""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.errors import Unsupported
from shelduck.model.table import TableVersion


def refuse_unwritable(table: TableVersion) -> None:
    """Raise Unsupported for a table whose new files Shelduck cannot lay out yet."""
    if table.partition:
        raise Unsupported(
            f"table {table.full_name} is partitioned, and Shelduck does not write partitioned files"
            " yet; insert with DuckDB, or ALTER TABLE … RESET PARTITIONED BY there first"
        )
