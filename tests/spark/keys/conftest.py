"""What the tests of key models share."""

from __future__ import annotations

import pytest

from tests.support.lakes import newest, rows
from tests.support.oracle import DuckDBOracle


@pytest.fixture
def both(copied):
    """The rows of a table, which DuckDB finds too; in the end at every snapshot since."""
    catalog, lake = copied
    first, seen = newest(lake), set()

    def both(table):
        seen.add(table)
        found = sorted(rows(lake.table(table).read()), key=str)
        with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
            assert sorted(duckdb.rows(table), key=str) == found
        return found

    yield both
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        for table, version in ((t, v) for t in seen for v in range(first, newest(lake))):
            ours = sorted(rows(lake.table(table).read(version=version)), key=str)
            assert sorted(duckdb.rows(table, version=version), key=str) == ours
