"""Snapshots that DuckDB expired: nothing else is read in their place."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from shelduck.catalog.databases.store import open_store
from shelduck.catalog.read import read
from shelduck.errors import Conflict, NotFound
from shelduck.model.changes.schema_change import AddColumn
from shelduck.model.types.data_types import parse_type
from tests.support.lake import altered
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.lake import Lake


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
        with pytest.raises(NotFound, match=r"snapshot 2 has expired"):
            read.snapshot(connection, 2)
        for lost in (times[2], times[3], times[4] - timedelta(microseconds=1)):
            with pytest.raises(NotFound, match=r"2 to 3 have expired.* read version 1 or 4"):
                read.snapshot(connection, timestamp=lost)
        assert read.snapshot(connection, timestamp=times[4]).id == 4
        assert read.snapshot(connection, timestamp=times[0]).id == 0
    store.close()


def test_what_an_expired_snapshot_did_to_a_table_is_not_taken_for_nothing(lake: Lake) -> None:
    lake.create("t", a="int")
    before = lake.table("t")
    lake.alter("t", AddColumn(("b",), parse_type("int")))
    lake.create("u", a="int")
    lake.tell("CALL ducklake_expire_snapshots('lake', versions => [2])")

    with pytest.raises(
        Conflict, match=r"snapshot 2, later than snapshot 1 of your changes, has expired"
    ):
        lake.commit(altered(before, AddColumn(("c",), parse_type("int"))))
    assert lake.table("t").columns.names == ["a", "b"]
    lake.alter("t", AddColumn(("c",), parse_type("int")))
    assert lake.table("t").columns.names == ["a", "b", "c"]
