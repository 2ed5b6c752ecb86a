"""Snapshots that DuckDB expired: nothing else is read in their place."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from shelduck.catalog import read
from shelduck.catalog.store import open_store
from shelduck.errors import NotFound
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from pathlib import Path


def test_an_expired_snapshot_is_told_and_not_read_as_the_one_before(
    tmp_path: Path, sqlite_url: str
) -> None:
    with DuckDBOracle(sqlite_url, tmp_path / "data") as duckdb:
        for name in "abcd":
            duckdb.execute(f"CREATE TABLE {name} (i INTEGER)")
    store = open_store(sqlite_url)
    with store.read() as connection:
        times = [s.time for s in read.snapshots(connection)]
    store.close()
    with DuckDBOracle(sqlite_url) as duckdb:
        duckdb.execute("CALL ducklake_expire_snapshots('lake', versions => [2, 3])")

    with store.read() as connection:
        with pytest.raises(NotFound, match="snapshot 2 has expired"):
            read.snapshot(connection, 2)
        for lost in (times[2], times[3], times[4] - timedelta(microseconds=1)):
            with pytest.raises(NotFound, match=r"2 to 3 have expired.* read version 1 or 4"):
                read.snapshot(connection, timestamp=lost)
        assert read.snapshot(connection, timestamp=times[4]).id == 4
        assert read.snapshot(connection, timestamp=times[0]).id == 0
    store.close()
