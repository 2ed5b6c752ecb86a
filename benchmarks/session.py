"""The Spark session of a measurement."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame


@contextmanager
def session(folder: Path, more: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A local session on all cores, its warehouse below `folder`; stopped afterwards.

    `more` are further settings.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[*]").appName("shelduck-benchmarks")
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "4g",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for key, value in (settings | dict(more or {})).items():
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    try:
        yield made
    finally:
        made.stop()


def run_to_the_end(rows: DataFrame) -> list[tuple[object, ...]]:
    """Execute a query that has few rows, and return them."""
    return [tuple(row) for row in rows.collect()]
