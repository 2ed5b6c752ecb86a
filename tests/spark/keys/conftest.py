"""What the tests of key models share."""

from __future__ import annotations

import pytest

from tests.support.lakes import newest, rows
from tests.support.oracle import DuckDBOracle


@pytest.fixture
def in_order():
    """Puts rows in an order in which two lists of them can be compared."""
    return lambda found: sorted(found, key=str)


@pytest.fixture
def both(copied, in_order):
    """The rows of a table, which DuckDB finds too; in the end at every snapshot since."""
    catalog, lake = copied
    first, seen = newest(lake), set()

    def both(table):
        seen.add(table)
        found = in_order(rows(lake.table(table).read()))
        with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
            assert in_order(duckdb.rows(table)) == found
        return found

    yield both
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        for table, version in ((t, v) for t in seen for v in range(first, newest(lake))):
            ours = in_order(rows(lake.table(table).read(version=version)))
            assert in_order(duckdb.rows(table, version=version)) == ours
