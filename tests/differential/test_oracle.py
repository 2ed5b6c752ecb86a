"""The oracle itself: DuckDB makes a lake in each kind of catalog and reads it back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.oracle import DuckDBOracle, at, duckdb_attach_string, duckdb_catalog_string


@pytest.fixture
def oracle(lake_url, data_path):
    with DuckDBOracle(lake_url, data_path, {"DATA_INLINING_ROW_LIMIT": 0}) as oracle:
        oracle.execute("CREATE TABLE events (id BIGINT, name VARCHAR)")
        oracle.execute("INSERT INTO events VALUES (2, 'two'), (1, 'one')")
        yield oracle


def test_rows_come_back_from_each_catalog(oracle):
    assert oracle.rows("events") == [(1, "one"), (2, "two")]


def test_columns_carry_their_types(oracle):
    assert oracle.columns("events") == [("id", "BIGINT"), ("name", "VARCHAR")]


def test_an_older_version_has_the_older_rows(oracle):
    before = oracle.snapshot()
    oracle.execute("DELETE FROM events WHERE id = ?", [1])

    assert oracle.rows("events") == [(2, "two")]
    assert oracle.rows("events", version=before) == [(1, "one"), (2, "two")]
    assert oracle.sql(f"SELECT count(*) FROM {at('events', before)}") == [(2,)]


def test_rows_survive_closing_and_attaching_without_a_data_path(lake_url, data_path):
    with DuckDBOracle(lake_url, data_path) as first:
        first.execute("CREATE TABLE events AS SELECT 7 AS id")

    with DuckDBOracle(lake_url) as second:
        assert second.rows("events") == [(7,)]


def test_files_lie_below_the_data_path(oracle, data_path):
    [file] = oracle.dump_metadata()["ducklake_data_file"]

    assert (Path(data_path) / "main" / "events" / file["path"]).is_file()


def test_the_dump_holds_the_metadata_as_rows(oracle):
    dump = oracle.dump_metadata()

    assert [row["changes_made"] for row in dump["ducklake_snapshot_changes"]] == [
        'created_schema:"main"',
        'created_table:"main"."events"',
        "inserted_into_table:1",
    ]
    assert [(row["column_id"], row["column_name"]) for row in dump["ducklake_column"]] == [
        (1, "id"),
        (2, "name"),
    ]


def test_the_dump_of_a_new_lake_holds_the_28_tables_of_the_format(lake_url, data_path):
    with DuckDBOracle(lake_url, data_path) as oracle:
        dump = oracle.dump_metadata()

    assert len(dump) == 28
    assert {"key": "version", "value": "1.0", "scope": None, "scope_id": None} in dump[
        "ducklake_metadata"
    ]


def test_the_dump_holds_inlined_rows_and_inlined_deletes(lake_url, data_path):
    with DuckDBOracle(lake_url, data_path, {"DATA_INLINING_ROW_LIMIT": 5}) as oracle:
        oracle.execute("CREATE TABLE events AS SELECT range AS id FROM range(9)")
        oracle.execute("DELETE FROM events WHERE id = 3")
        oracle.execute("INSERT INTO events VALUES (70)")
        dump = oracle.dump_metadata()

    [inlined] = [name for name in dump if name.startswith("ducklake_inlined_data_1_")]
    assert [row["id"] for row in dump[inlined]] == [70]
    assert [row["row_id"] for row in dump["ducklake_inlined_delete_1"]] == [3]


def test_an_option_of_attach_takes_effect(lake_url, data_path):
    with DuckDBOracle(lake_url, data_path, {"DATA_INLINING_ROW_LIMIT": 5}) as oracle:
        oracle.execute("CREATE TABLE events AS SELECT 7 AS id")
        oracle.execute("INSERT INTO events VALUES (8)")

        assert oracle.rows("events") == [(7,), (8,)]
        assert oracle.dump_metadata()["ducklake_data_file"] == []


@pytest.mark.parametrize(
    ("url", "catalog"),
    [
        ("sqlite:////lakes/a.db", "sqlite:/lakes/a.db"),
        ("duckdb:////lakes/a.ducklake", "/lakes/a.ducklake"),
        ("postgresql://me@/a?host=/run/pg", "postgres:dbname=a user=me host=/run/pg"),
        (
            "postgresql+psycopg://me:p%40ss@db:5433/a",
            "postgres:dbname=a host=db port=5433 user=me password=p@ss",
        ),
    ],
)
def test_an_address_reads_the_same_in_duckdbs_words(url, catalog):
    assert duckdb_catalog_string(url) == catalog


def test_an_unknown_address_is_refused():
    with pytest.raises(ValueError, match="not an address of a lake: mysql://h/a"):
        duckdb_catalog_string("mysql://h/a")


def test_the_attach_statement_quotes_what_it_is_given():
    statement = duckdb_attach_string(
        "duckdb:////it's", "/d/", name="x", options={"READ_ONLY": True}
    )

    assert statement == "ATTACH 'ducklake:/it''s' AS x (READ_ONLY true, DATA_PATH '/d/')"
