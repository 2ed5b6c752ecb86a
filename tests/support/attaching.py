"""A lake on SQLite that is catalog ``lake`` of a session, and what DuckDB reads of it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import shelduck
from tests.support.lakes import lake_with_files
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.support.lakes import Row


# What statements have made in this process: each later lake of theirs is a copy.
_made: dict[tuple[str, ...], TemporaryDirectory[str]] = {}


def url_of(folder: Path) -> str:
    return f"sqlite:///{folder}/lake.db"


@contextmanager
def attached_lake(spark: SparkSession, folder: Path, *statements: str) -> Iterator[shelduck.Lake]:
    """A lake made by some statements; a test may detach it by itself."""
    kept = _made.get(statements)
    if kept is not None:
        lake_with_files(Path(kept.name, "lake.db"), Path(kept.name, "data"), folder)
    found = shelduck.attach(spark, "lake", url_of(folder), f"{folder}/data/")
    try:
        if kept is None:
            for statement in statements:
                found.sql(statement)
            _keep(statements, folder)
        yield found
    finally:
        if spark.conf.get("spark.sql.catalog.lake", None) is not None:
            shelduck.detach(spark, "lake")


def _keep(statements: tuple[str, ...], folder: Path) -> None:
    if not statements or str(folder) in "".join(statements):
        return
    kept = _made[statements] = TemporaryDirectory(ignore_cleanup_errors=True)
    with (
        closing(sqlite3.connect(folder / "lake.db")) as catalog,
        closing(sqlite3.connect(Path(kept.name) / "lake.db")) as copy,
    ):
        catalog.backup(copy)
    if (folder / "data").exists():
        shutil.copytree(folder / "data", Path(kept.name) / "data")


def duck(url: str, query: str) -> list[Row]:
    """The rows that DuckDB finds, in an order of their own."""
    with DuckDBOracle(url) as oracle:
        return sorted(oracle.sql(query), key=str)
