"""Columns that come with rows: merge_schema of append, WITH SCHEMA EVOLUTION in SQL."""

from __future__ import annotations

import pytest

from shelduck import (
    InvalidRequest,
    Unsupported,
    when_matched_update,
    when_matched_update_all,
    when_not_matched_insert_all,
)
from tests.support.lakes import newest, rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CREATE TABLE t (id INT, s STRUCT<a: INT, m: MAP<STRING, ARRAY<STRUCT<x: INT>>>>, f FLOAT)",
    (
        "INSERT INTO t"
        " SELECT 1, named_struct('a', 1, 'm', map('k', array(named_struct('x', 1)))), 0.1F"
    ),
]


@pytest.fixture
def wider(spark):
    return spark.sql(
        "SELECT 2L AS ID, named_struct('A', 5000000000L, 'm',"
        " map('k', array(named_struct('y', 'new', 'x', 2))), 'b', true) AS s,"
        " 0.1D AS f, DATE '2026-01-02' AS day"
    )


def duckdb(catalog):
    return DuckDBOracle(f"sqlite:///{catalog}")


@pytest.mark.slow
def test_columns_are_added_and_types_widened_with_the_rows(copied, wider):
    catalog, lake = copied
    before = newest(lake)
    done = lake.table("t").append(wider, merge_schema=True)
    assert (done.snapshot, done.inserted) == (before + 1, 1)
    assert lake.snapshots()[-1].changes_made == "altered_table:1,inlined_insert:1"
    assert str(lake.table("t").columns) == (
        "id int64\n"
        "s struct<a: int64, m: map<varchar, array<struct<x: int32, y: varchar>>>, b: boolean>\n"
        "f float64\n"
        "day date"
    )
    text = "id, s.a, s.m['k'][0].x, s.m['k'][0].y, s.b, f, day"
    found = rows(lake.sql(f"SELECT {text} FROM t ORDER BY id"))
    assert found[0] == (1, 1, 1, None, None, pytest.approx(0.1), None)
    assert found[1][:6] == (2, 5_000_000_000, 2, "new", True, 0.1)
    with duckdb(catalog) as oracle:
        assert oracle.sql(
            "SELECT id, s.a, s.m['k'][1].y, s.b, day::VARCHAR FROM t ORDER BY id"
        ) == [(1, 1, None, None, None), (2, 5_000_000_000, "new", True, "2026-01-02")]
        assert oracle.sql("SELECT max(id), count(*) FROM t") == [(2, 2)]


def test_rows_that_bring_nothing_new_change_no_column(lake, spark):
    before = lake.table("t").columns
    lake.table("t").append(spark.sql("SELECT 3Y AS id, 1 AS f"), merge_schema=True)
    assert lake.table("t").columns == before
    assert "altered_table" not in lake.snapshots()[-1].changes_made


def test_without_merge_schema_more_columns_are_an_error(lake, wider):
    with pytest.raises(InvalidRequest, match="the table has no column day"):
        lake.table("t").append(wider)


def test_a_type_that_does_not_widen_is_refused_as_ever(lake, spark):
    before = newest(lake)
    with pytest.raises(InvalidRequest, match="string cannot be stored as int32"):
        lake.table("t").append(spark.sql("SELECT 'x' AS id, 1 AS more"), merge_schema=True)
    with pytest.raises(Unsupported, match="void"):
        lake.table("t").append(spark.sql("SELECT 1 AS id, NULL AS more"), merge_schema=True)
    with pytest.raises(InvalidRequest, match="by the names of columns"):
        lake.table("t").append(spark.sql("SELECT 1 AS id"), merge_schema=True, by_position=True)
    assert newest(lake) == before


def test_inside_a_transaction_columns_and_rows_land_together(copied, wider, spark):
    catalog, lake = copied
    with lake.transaction() as tx:
        tx.table("t").append(wider, merge_schema=True)
        tx.table("t").append(spark.sql("SELECT 4 AS id, 'x' AS other"), merge_schema=True)
        made = tx.create_table("made", {"a": "int"})
        made.append(spark.sql("SELECT 1L AS a, 2 AS b"), merge_schema=True)
        assert tx.table("t").read().count() == 3
    assert lake.table("t").columns.names == ["id", "s", "f", "day", "other"]
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT id, other FROM t ORDER BY id") == [(1, None), (2, None), (4, "x")]
        assert oracle.sql("SELECT * FROM made") == [(1, 2)]


def test_a_merge_adds_what_the_source_has_and_keeps_what_it_has_not(copied, spark):
    catalog, lake = copied
    source = spark.sql(
        "SELECT * FROM VALUES (1L, named_struct('a', 10, 'c', 'c1'), 'n1'),"
        " (2L, named_struct('a', 20, 'c', 'c2'), 'n2') AS v(id, s, note)"
    )
    before = newest(lake)
    done = lake.table("t").merge(
        source,
        ["id"],
        when_matched_update_all(),
        when_not_matched_insert_all(),
        schema_evolution=True,
    )
    assert (done.snapshot, done.inserted, done.updated) == (before + 1, 1, 1)
    found = rows(lake.sql("SELECT id, s.a, s.c, s.m['k'][0].x, f IS NULL, note FROM t ORDER BY id"))
    assert found == [(1, 10, "c1", 1, False, "n1"), (2, 20, "c2", None, True, "n2")]
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT id, s.c, note, rowid FROM t ORDER BY id") == [
            (1, "c1", "n1", 0),
            (2, "c2", "n2", 1),
        ]
        assert oracle.sql("SELECT count(*), max(id) FROM t") == [(2, 2)]


def test_a_merge_without_a_star_adds_only_what_it_assigns(lake, spark):
    source = spark.sql("SELECT 1 AS id, 'x' AS note, 'y' AS other")
    lake.table("t").merge(
        source, ["id"], when_matched_update({"note": "s.note"}), schema_evolution=True
    )
    assert lake.table("t").columns.names == ["id", "s", "f", "note"]
    assert rows(lake.table("t").read(columns=["id", "note"])) == [(1, "x")]


def test_sql_evolves_in_merge_and_insert(copied):
    catalog, lake = copied
    lake.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 5 AS id, 'five' AS word) w ON t.id = w.id"
        " WHEN NOT MATCHED THEN INSERT *"
    )
    lake.sql("INSERT WITH SCHEMA EVOLUTION INTO t BY NAME SELECT 6L AS id, 1.5 AS price")
    with pytest.raises(InvalidRequest, match="needs rows with 5 column"):
        lake.sql("INSERT WITH SCHEMA EVOLUTION INTO t SELECT 6")
    with duckdb(catalog) as oracle:
        found = oracle.sql("SELECT id, word, price::DOUBLE FROM t ORDER BY id")
    assert found == [(1, None, None), (5, "five", None), (6, None, 1.5)]
