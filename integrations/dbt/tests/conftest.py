"""A lake for dbt's own tests of adapters: each test class gets a schema of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest_plugins = ["dbt.tests.fixtures.project"]
SETTINGS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The address of a lake, and the folder of its files."""
    folder = tmp_path_factory.mktemp("lake")
    builder = SparkSession.builder.appName("dbt")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    yield {"catalog": f"sqlite:///{folder}/lake.db", "data_path": f"{folder}/data/"}
    spark.stop()


@pytest.fixture(scope="class")
def dbt_profile_target(lake: dict[str, str]) -> dict[str, Any]:
    """What a profile says but for the schema."""
    # Tests of the documentation ask who owns what: nobody does.
    return {"type": "shelduck", "method": "session", "user": None, **lake}
