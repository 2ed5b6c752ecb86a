"""Fixtures of the tests that have DuckDB's extension as their oracle."""

from __future__ import annotations

import pytest


@pytest.fixture
def one_file(spark):
    """The Spark session; rows written in a statement go into one file, as DuckDB writes them."""
    spark.conf.set("spark.sql.leafNodeDefaultParallelism", "1")
    yield spark
    spark.conf.unset("spark.sql.leafNodeDefaultParallelism")
