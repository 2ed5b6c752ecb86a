"""Tables for inlined rows that ALTERs have replaced: an expiry removes the empty ones."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from shelduck.catalog.databases.known import dialect_of
from shelduck.catalog.upkeep.expire import ExpiryRequest
from shelduck.errors import CorruptLake
from shelduck.model.changes.schema_change import AddColumn
from shelduck.model.types.data_types import parse_type
from shelduck.upkeep.lake_upkeep import expire_snapshots

INLINING = {"DATA_INLINING_ROW_LIMIT": 10}
pytestmark = pytest.mark.every_database


def add(lake, name):
    lake.alter("t", AddColumn((name,), parse_type("int")))


def expire(lake):
    expire_snapshots(lake.store, lake.info, ExpiryRequest(retain_last=100))


def registered(lake):
    return sorted(row["table_name"] for row in lake.metadata("ducklake_inlined_data_tables"))


def present(lake):
    with lake.store.read() as connection:
        names = connection.execute(text(dialect_of(connection).tables)).scalars().all()
    return sorted(name for name in names if name.startswith("ducklake_inlined_data_1_"))


def test_an_expiry_drops_them_and_duckdb_reads_and_writes_on(lake):
    lake.create("t", i="int")
    with lake.duckdb(INLINING) as oracle:
        oracle.execute("INSERT INTO t VALUES (1)")
    with_row = registered(lake)
    for name in "abc":
        add(lake, name)
    [*_, newest] = sorted(registered(lake), key=lambda name: int(name.rsplit("_", 1)[1]))
    before = present(lake)
    assert len(before) == 4

    expire(lake)

    stays = before if lake.url.startswith("postgresql") else sorted({*with_row, newest})
    assert present(lake) == registered(lake) == stays
    with lake.duckdb(INLINING) as oracle:
        assert oracle.sql("SELECT * FROM t") == [(1, None, None, None)]
        oracle.execute("INSERT INTO t VALUES (2, 3, 4, 5)")
        assert oracle.sql("SELECT * FROM t ORDER BY i") == [(1, None, None, None), (2, 3, 4, 5)]
        assert oracle.sql("SELECT i FROM t AT (VERSION => 2)") == [(1,)]


def test_a_registered_table_of_another_name_is_not_dropped(lake):
    lake.create("t", i="int")
    with lake.store.write() as connection:
        connection.execute(text("CREATE TABLE mine (row_id BIGINT)"))
        connection.execute(text("INSERT INTO ducklake_inlined_data_tables VALUES (1, 'mine', 0)"))

    if lake.url.startswith("postgresql"):
        expire(lake)
    else:
        with pytest.raises(CorruptLake, match="'mine' for table_id 1, which is not one of its own"):
            expire(lake)

    with lake.store.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM mine")).scalar() == 0
