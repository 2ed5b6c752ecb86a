"""A lake on SQLite that is catalog ``lake`` of a session, and what DuckDB reads of it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import shelduck
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.lakes import Row


def url_of(folder: Path) -> str:
    return f"sqlite:///{folder}/lake.db"


@contextmanager
def attached_lake(spark: SparkSession, folder: Path, *statements: str) -> Iterator[shelduck.Lake]:
    """A lake made by some statements; a test may detach it by itself."""
    found = shelduck.attach(spark, "lake", url_of(folder), f"{folder}/data/")
    try:
        for statement in statements:
            found.sql(statement)
        yield found
    finally:
        if spark.conf.get("spark.sql.catalog.lake", None) is not None:
            shelduck.detach(spark, "lake")


def duck(url: str, query: str) -> list[Row]:
    """The rows that DuckDB finds, in an order of their own."""
    with DuckDBOracle(url) as oracle:
        return sorted(oracle.sql(query), key=str)
