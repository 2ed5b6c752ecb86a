"""Fixtures of the tests that have DuckDB's extension as their oracle."""

from __future__ import annotations

import pytest


@pytest.fixture
def one_file(spark):
    """The Spark session; rows written in a statement go into one file, as DuckDB writes them."""
    spark.conf.set("spark.sql.leafNodeDefaultParallelism", "1")
    yield spark
    spark.conf.unset("spark.sql.leafNodeDefaultParallelism")


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.slow),
        pytest.param("duckdb", marks=pytest.mark.slow),
    ]
)
def long_story_url(request):
    """The address of a fresh catalog, for a test too long to run in each kind of database."""
    return request.getfixturevalue(f"{request.param}_url")
