"""The one Spark session of a test process."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

# Tests run many small queries once: compiling them well costs more than it saves.
QUICK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
}


@contextmanager
def local_session(folder: Path, more: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A small session whose files all lie below `folder`; it is stopped afterwards.

    `more` are further settings. With SHELDUCK_TEST_SPARK=compiled it compiles queries as a user's
    session does.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("shelduck-tests")
    own = {"spark.driver.memory": "2g", "spark.ui.showConsoleProgress": "false"}
    if os.environ.get("SHELDUCK_TEST_SPARK") != "compiled":
        own |= QUICK
    for key, value in (settings(folder) | own | dict(more or {})).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


def settings(folder: Path) -> dict[str, str]:
    """What a small local Spark is told, whose files all lie below `folder`."""
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
    }
