"""Tables for inlined rows that ALTERs have replaced: the empty ones go."""

from __future__ import annotations

import duckdb
import psycopg
import pytest
from sqlalchemy import text

from shelduck.catalog.databases.known import dialect_of
from shelduck.catalog.upkeep.expire import ExpiryRequest
from shelduck.errors import CorruptLake
from shelduck.model.changes.schema_change import RenameColumn
from shelduck.upkeep.lake_upkeep import expire_snapshots

INLINING = {"DATA_INLINING_ROW_LIMIT": 10}
pytestmark = pytest.mark.every_database


def expire(lake, retain_last=100):
    expire_snapshots(lake.store, lake.info, ExpiryRequest(retain_last=retain_last))


def registered(lake):
    return sorted(row["table_name"] for row in lake.metadata("ducklake_inlined_data_tables"))


def present(lake):
    with lake.store.read() as connection:
        names = connection.execute(text(dialect_of(connection).tables)).scalars().all()
    return sorted(name for name in names if name.startswith("ducklake_inlined_data_1_"))


def rename(lake, first, last):
    for n in range(first, last):
        lake.alter("t", RenameColumn((f"c{n}",), f"c{n + 1}"))


def with_two_rows(lake):
    """A table with a row of its first columns, and one after five ALTERs."""
    lake.create("t", c0="int")
    with lake.duckdb(INLINING) as oracle:
        oracle.execute("INSERT INTO t VALUES (1)")
    rename(lake, 0, 5)
    with lake.duckdb(INLINING) as oracle:
        oracle.execute("INSERT INTO t VALUES (2)")


def test_thirty_alters_leave_few_and_duckdb_reads_each_snapshot(lake):
    with_two_rows(lake)
    rename(lake, 5, 35)

    assert len(registered(lake)) <= 10
    assert registered(lake) == present(lake) or lake.store.kind != "duckdb"
    with lake.duckdb(INLINING) as oracle:
        found = [len(oracle.rows("t", version=v)) for v in (1, 2, 7, 8, 9, 20, 38)]
        assert found == [0, 1, 1, 2, 2, 2, 2]
        oracle.execute("INSERT INTO t VALUES (3)")
        assert oracle.sql("SELECT c35 FROM t ORDER BY 1") == [(1,), (2,), (3,)]


@pytest.mark.databases("postgres")
# The client of 1.1 has no transactions.
@pytest.mark.versions("1.0")
def test_a_session_of_duckdb_that_knows_one_reads_on(lake):
    with_two_rows(lake)
    with lake.duckdb(INLINING) as oracle, lake.duckdb(INLINING) as writer:
        assert oracle.rows("t") == [(1,), (2,)]
        writer.execute("BEGIN")
        writer.execute("INSERT INTO t VALUES (7)")
        expire(lake)
        expire(lake)
        assert oracle.rows("t") == oracle.rows("t", version=8) == [(1,), (2,)]
        writer.execute("COMMIT")
        rename(lake, 5, 25)
        writer.execute("BEGIN")
        writer.execute("INSERT INTO t VALUES (8)")
        rename(lake, 25, 26)
        with pytest.raises(duckdb.Error):
            writer.execute("COMMIT")
        writer.execute("INSERT INTO t VALUES (9)")
        assert oracle.rows("t") == [(1,), (2,), (7,), (9,)]
        assert oracle.rows("t", version=8) == [(1,), (2,)]


@pytest.mark.databases("sqlite", "postgres")
def test_an_expiry_drops_them_once_no_older_snapshot_is_left(lake):
    with_two_rows(lake)
    with_rows = {"ducklake_inlined_data_1_1", "ducklake_inlined_data_1_6"}

    expire(lake)

    assert set(registered(lake)) == with_rows
    rename(lake, 5, 6)
    [newest] = set(registered(lake)) - with_rows
    with lake.duckdb(INLINING) as oracle:
        assert oracle.rows("t", version=2) == [(1,)]
        expire(lake)
        # Its list for the snapshot is older than the expiry.
        assert oracle.rows("t", version=2) == [(1,)]
    expire(lake, retain_last=1)
    assert set(present(lake)) == set(registered(lake)) == {*with_rows, newest}
    with lake.duckdb(INLINING) as oracle:
        oracle.execute("INSERT INTO t VALUES (3)")
        assert oracle.rows("t") == [(1,), (2,), (3,)]


@pytest.mark.databases("postgres")
def test_an_expiry_waits_for_nobody_who_reads_one(lake, postgres_url):
    with_two_rows(lake)
    with psycopg.connect(postgres_url) as reader:
        reader.execute("SELECT * FROM ducklake_inlined_data_1_3")
        expire(lake)
        rename(lake, 5, 6)
        expire(lake, retain_last=1)
        assert "ducklake_inlined_data_1_3" in present(lake)
    expire(lake, retain_last=1)
    assert "ducklake_inlined_data_1_3" not in present(lake)


def test_a_registered_table_of_another_name_is_not_dropped(lake):
    lake.create("t", i="int")
    with lake.store.write() as connection:
        connection.execute(text("CREATE TABLE mine (row_id BIGINT)"))
        connection.execute(text("INSERT INTO ducklake_inlined_data_tables VALUES (1, 'mine', 0)"))

    with pytest.raises(CorruptLake, match="'mine' for table_id 1, which is not one of its own"):
        expire(lake)

    with lake.store.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM mine")).scalar() == 0
