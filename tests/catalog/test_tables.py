"""Our tables against those that DuckDB's extension creates, in each kind of database."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta, timezone

import duckdb
import psycopg
import pytest
from sqlalchemy import insert, select, text, update

from shelduck.catalog.databases.store import open_store
from shelduck.catalog.schema.lake_schema import create_lake
from shelduck.ducklake import tables
from shelduck.ducklake.checked import timestamp_from_text, timestamp_text
from tests.support.oracle import METADATA_TABLES, DuckDBOracle

SQLITE_COLUMNS = """
    SELECT m.name, c.cid, c.name, c.type, c."notnull", c.pk
    FROM sqlite_master m, pragma_table_info(m.name) c
    WHERE m.name LIKE 'ducklake%' AND m.type = 'table' ORDER BY 1, 2
"""
DUCKDB_COLUMNS = """
    SELECT table_name, column_index, column_name, data_type, is_nullable
    FROM duckdb_columns() WHERE table_name LIKE 'ducklake%' ORDER BY 1, 2
"""
DUCKDB_CONSTRAINTS = """
    SELECT table_name, constraint_type, constraint_column_names
    FROM duckdb_constraints() WHERE table_name LIKE 'ducklake%' ORDER BY ALL
"""
POSTGRES_COLUMNS = """
    SELECT table_name, ordinal_position, column_name, data_type, character_maximum_length,
           is_nullable
    FROM information_schema.columns WHERE table_name LIKE 'ducklake%' ORDER BY 1, 2
"""
POSTGRES_KEYS = """
    SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE conrelid::regclass::text LIKE 'ducklake%' ORDER BY 1, 2
"""


def physical_schema(url):
    kind, _, path = url.partition(":///")
    if kind == "sqlite":
        with sqlite3.connect(path) as connection:
            return connection.execute(SQLITE_COLUMNS).fetchall()
    if kind == "duckdb":
        with duckdb.connect(path) as connection:
            return [
                connection.execute(query).fetchall()
                for query in (DUCKDB_COLUMNS, DUCKDB_CONSTRAINTS)
            ]
    with psycopg.connect(url) as connection:
        return [connection.execute(query).fetchall() for query in (POSTGRES_COLUMNS, POSTGRES_KEYS)]


@pytest.fixture
def second_postgres_url(postgres_server):
    with postgres_server.fresh_database() as url:
        yield url


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "postgres"])
def test_tables_are_physically_those_of_the_extension(request, kind, tmp_path):
    if kind == "postgres":
        ours = request.getfixturevalue("postgres_url")
        theirs = request.getfixturevalue("second_postgres_url")
    else:
        ours, theirs = f"{kind}:///{tmp_path}/ours", f"{kind}:///{tmp_path}/theirs"
    store = open_store(ours)
    create_lake(store, f"{tmp_path}/data")
    store.close()
    DuckDBOracle(theirs, f"{tmp_path}/data").close()

    found = physical_schema(ours)

    assert found == physical_schema(theirs)
    assert len(found) > 1


def test_all_tables_of_the_spec_are_there():
    assert set(tables.DUCKLAKE.tables) == set(METADATA_TABLES)
    assert len(tables.DUCKLAKE.tables) == 28


def test_python_types_are_the_same_in_every_database(lake_url, data_path):
    store = open_store(lake_url)
    create_lake(store, data_path)
    at = datetime(2026, 11, 20, 8, 3, 32, 970510, tzinfo=UTC)
    identity = "39b0ac40-7996-4de1-adb2-ccecdd6abf98"
    other = "50a9cbbe-8aa3-4fd9-9e0e-7e0a3a4cd1e6"
    with store.write() as connection:
        connection.execute(
            insert(tables.snapshot), {"snapshot_id": 1, "snapshot_time": at, "schema_version": 1}
        )
        connection.execute(
            insert(tables.table),
            [
                {"table_id": 1, "table_uuid": identity, "path_is_relative": True},
                {"table_id": 2, "table_uuid": other, "path_is_relative": False},
                {"table_id": 3, "table_uuid": other, "path_is_relative": None},
            ],
        )

    t = tables.table.c
    with store.read() as connection:
        times = connection.execute(
            select(tables.snapshot.c.snapshot_time).where(tables.snapshot.c.snapshot_time == at)
        ).all()
        rows = connection.execute(
            select(t.table_id, t.table_uuid, t.path_is_relative).order_by(t.table_id)
        ).all()
        by_uuid = connection.execute(select(t.table_id).where(t.table_uuid == identity)).all()
        by_flag = connection.execute(select(t.table_id).where(t.path_is_relative.is_(True))).all()
    store.close()

    assert times == [(at,)]
    assert rows == [(1, identity, True), (2, other, False), (3, other, None)]
    assert [type(value) for value in rows[0]] == [int, str, bool]
    assert by_uuid == by_flag == [(1,)]


def test_guarded_update_tells_how_many_rows_it_changed(lake_url, data_path):
    store = open_store(lake_url)
    create_lake(store, data_path)
    s = tables.snapshot
    with store.write() as connection:
        hit = connection.execute(
            update(s).where(s.c.snapshot_id == 0).values(next_file_id=5)
        ).rowcount
        miss = connection.execute(
            update(s).where(s.c.snapshot_id == 99).values(next_file_id=5)
        ).rowcount
    store.close()

    assert (hit, miss) == (1, 0)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime(2026, 11, 20, 8, 3, 32, 970510, tzinfo=UTC), "2026-11-20 08:03:32.97051+00"),
        (datetime(2026, 11, 20, 8, 3, 32, tzinfo=UTC), "2026-11-20 08:03:32+00"),
        (
            datetime(2026, 11, 20, 8, 3, 32, 1, tzinfo=timezone(timedelta(hours=2))),
            "2026-11-20 06:03:32.000001+00",
        ),
    ],
)
def test_timestamp_text_is_that_of_the_extension(value, expected):
    assert timestamp_text(value) == expected
    assert timestamp_from_text(expected) == value


@pytest.mark.parametrize(
    "stored",
    [
        "2026-11-20T08:03:32.970510+00:00",
        "2026-11-20 08:03:32.97051",
        "2026-11-20 09:03:32.97051+01",
    ],
)
def test_timestamps_of_other_writers_are_read(stored):
    assert timestamp_from_text(stored) == datetime(2026, 11, 20, 8, 3, 32, 970510, tzinfo=UTC)


def test_time_written_by_us_is_the_time_that_duckdb_reads(lake_url, data_path):
    store = open_store(lake_url)
    create_lake(store, data_path)
    with store.read() as connection:
        [(ours,)] = connection.execute(select(tables.snapshot.c.snapshot_time)).all()
    store.close()
    with DuckDBOracle(lake_url) as oracle:
        [(micros,)] = oracle.sql("SELECT epoch_us(snapshot_time) FROM ducklake_snapshots('lake')")

    assert datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros) == ours


def test_results_of_two_statements_may_be_read_side_by_side(lake_url, data_path):
    store = open_store(lake_url)
    create_lake(store, data_path)
    keys = select(tables.metadata.c.key).order_by(tables.metadata.c.key)
    with store.read() as connection:
        outer = connection.execute(keys)
        first = outer.fetchone()
        inner = connection.execute(text("SELECT 1 AS one")).all()
        rest = outer.fetchall()
    store.close()

    assert inner == [(1,)]
    assert [first, *rest] == [("created_by",), ("data_path",), ("encrypted",), ("version",)]
