"""A lake whose rows are all in files, and DuckDB beside it."""

from __future__ import annotations

import pytest

import shelduck
from tests.support.oracle import DuckDBOracle


@pytest.fixture
def lake(lake_url, data_path):
    with shelduck.connect(lake_url, data_path) as found:
        found.set_option("data_inlining_row_limit", 0)
        yield found


@pytest.fixture
def duck(lake, lake_url):
    with DuckDBOracle(lake_url) as oracle:
        yield oracle
