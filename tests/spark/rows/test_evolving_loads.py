"""What rows may change in the columns of their table, and where values go that do not fit."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from shelduck import InvalidRequest, Unsupported
from tests.support.jobs import jobs_of
from tests.support.lakes import newest, refusal, rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    (
        "CREATE TABLE t (id INT, s STRUCT<a: INT, l: ARRAY<STRUCT<x: INT>>>, m MAP<INT, STRING>,"
        " v VARCHAR(3), d DECIMAL(10,2))"
    ),
    (
        "INSERT INTO t SELECT 1, named_struct('a', 1, 'l', array(named_struct('x', 1))),"
        " map(1, 'x'), 'abc', 1.5"
    ),
    "CREATE TABLE u (id INT, n INT) UNIQUE KEY (id)",
    "INSERT INTO u VALUES (1, 10)",
    "CREATE TABLE p (id INT, day DATE) PARTITIONED BY (day)",
]


def duckdb(catalog):
    return DuckDBOracle(f"sqlite:///{catalog}")


def test_add_adds_and_does_not_widen(copied, spark):
    catalog, lake = copied
    wider = spark.sql(
        "SELECT 7L AS ID, named_struct('b', 'x', 'l', array(named_struct('y', 2))) AS s, 3 AS more"
    )
    lake.table("t").append(wider, evolve="add")
    assert str(lake.table("t").columns) == (
        "id int32\n"
        "s struct<a: int32, l: array<struct<x: int32, y: int32>>, b: varchar>\n"
        "m map<int32, varchar>\n"
        "v varchar\n"
        "d decimal(10,2)\n"
        "more int32"
    )
    with duckdb(catalog) as oracle:
        found = oracle.sql("SELECT id, s.b, s.l[1].y, more FROM t ORDER BY id")
    assert found == [(1, None, None, None), (7, "x", 2, 3)]
    with pytest.raises(InvalidRequest, match=r"(?s)got 5000000000.*ALTER COLUMN id TYPE BIGINT"):
        lake.table("t").append(spark.sql("SELECT 5000000000L AS id"), evolve="add")


def test_rows_that_add_a_column_leave_the_comments_of_others_as_they_are(copied, spark):
    catalog, lake = copied
    lake.sql("COMMENT ON COLUMN t.v IS 'three at most'")
    lake.sql("COMMENT ON TABLE t IS 'of rows'")
    query = "SELECT * FROM ducklake_column_tag UNION ALL SELECT *, NULL FROM ducklake_tag"
    with closing(sqlite3.connect(catalog)) as connection:
        before = connection.execute(query).fetchall()
        lake.table("t").append(spark.sql("SELECT 7 AS id, 3 AS more"), evolve="add")
        assert connection.execute(query).fetchall() == before


def test_widen_widens_and_does_not_add(copied, spark):
    catalog, lake = copied
    frame = spark.sql("SELECT 5000000000L AS id, 123456789.125BD AS d")
    with pytest.raises(InvalidRequest, match=r"(?s)got 123456789\.125.*enableTypeWidening"):
        lake.table("t").append(frame, evolve="widen")
    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    lake.table("t").append(frame, evolve=["widen"])
    columns = lake.table("t").columns
    assert [str(columns.get((n,)).type) for n in ("id", "d")] == ["int64", "decimal(12,3)"]
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT id, d::VARCHAR FROM t ORDER BY id") == [
            (1, "1.500"),
            (5_000_000_000, "123456789.125"),
        ]
    with pytest.raises(InvalidRequest, match=r"(?s)no column more.*ADD COLUMN more INT \(light"):
        lake.table("t").append(spark.sql("SELECT 1 AS id, 2 AS more"), evolve="widen")
    before = columns
    lake.table("t").append(spark.sql("SELECT 2 AS id"), evolve="widen")
    assert lake.table("t").columns == before


def test_what_is_heavy_is_refused_with_the_plan_that_would_do_it(copied, base, spark):
    catalog, lake = copied
    lake.set_option("data_inlining_row_limit", 0)
    lake.sql("INSERT INTO t (id) VALUES (2), (3)")
    bad = spark.sql("SELECT 'x' AS id, 2.5D AS d, array(1) AS m, 1 AS v")
    told = refusal(
        InvalidRequest,
        lambda: lake.table("t").append(bad, evolve="all"),
        catalog,
        base.folder / "data",
    )
    assert "column id: string cannot be stored as int32" in told
    assert (
        "id of the rows is STRING, of the table INT: ALTER TABLE main.t ALTER COLUMN id TYPE"
        " STRING (heavy, 2 file(s) with 3 row(s), 1 of them in the catalog: values of int32"
    ) in told
    assert "ALTER TABLE main.t ALTER COLUMN d TYPE DOUBLE (heavy" in told
    assert "m of the rows is ARRAY<INT>, of the table MAP<INT, STRING>: cannot change m" in told
    assert "v of the rows is INT, of the table VARCHAR(3): cast it to STRING" in told
    with pytest.raises(InvalidRequest) as plain:
        lake.table("t").append(bad)
    assert "ALTER TABLE" not in str(plain.value)


def test_the_lattice_says_what_widens(lake, spark):
    lake.sql("CREATE TABLE w (i INT) TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    rows_of = spark.sql("SELECT 1.5D AS i")
    lake.table("w").append(rows_of, evolve="widen")
    assert str(lake.table("w").columns) == "i float64"
    lake.sql("CREATE TABLE n (i INT)")
    with pytest.raises(InvalidRequest, match="enableTypeWidening"):
        lake.table("n").append(rows_of, evolve="widen")


def test_ways_of_asking_are_checked(lake, spark):
    frame = spark.sql("SELECT 1 AS id")
    before = newest(lake)
    with pytest.raises(InvalidRequest, match="by the names of columns"):
        lake.table("t").append(frame, evolve="add", by_position=True)
    with pytest.raises(InvalidRequest, match="leave out one of the two"):
        lake.table("t").append(frame, evolve="add", merge_schema=True)
    with pytest.raises(
        InvalidRequest, match=r"id of main\.t cannot hold rescued values: it is INT"
    ):
        lake.table("t").append(frame.select(), rescue="ID")
    with pytest.raises(InvalidRequest, match="already have a column Id"):
        lake.table("t").append(frame, rescue="Id")
    with pytest.raises(Unsupported, match="void"):
        lake.table("t").append(spark.sql("SELECT 1 AS id, NULL AS more"), evolve="add")
    assert newest(lake) == before


@pytest.fixture
def odd(spark):
    return spark.sql(
        """SELECT 'x12' AS ID, named_struct('a', '7', 'l', array(named_struct('x', 1, 'y', NULL),
             named_struct('x', 2, 'y', 'new'))) AS s, map('1', 'a', 'q', 'b') AS m, 'abcdef' AS v,
             1.234BD AS d, TIMESTAMP_NTZ '2026-01-02 03:04:05.000006' AS unknown, NULL AS nothing
           UNION ALL SELECT '13', named_struct('a', '8', 'l', array(named_struct('x', 1, 'y',
             CAST(NULL AS STRING)))), map('1', 'a'), 'abc', 1.23BD, NULL, NULL"""
    )


def test_values_that_do_not_fit_are_rescued_where_they_were(copied, odd, spark):
    catalog, lake = copied
    lake.set_option("data_inlining_row_limit", 0)
    before = newest(lake)
    # One job writes the rows, as without a rescue column.
    assert jobs_of(spark, lambda: lake.table("t").append(odd, rescue="_rescued")) == 1
    assert newest(lake) == before + 1
    assert lake.snapshots()[-1].changes_made == "inserted_into_table:1,altered_table:1"
    assert lake.table("t").columns.names == ["id", "s", "m", "v", "d", "_rescued"]
    with duckdb(catalog) as oracle:
        found = oracle.sql("SELECT id, s.a, [e.x FOR e IN s.l], m, v, d::VARCHAR, _rescued FROM t")
    kept = [row for row in found if row[-1] is not None]
    assert [row[:-1] for row in kept] == [(None, 7, [1, 2], None, None, None)]
    assert json.loads(kept[0][-1]) == {
        "ID": "x12",
        "s": {"l": [None, {"y": "new"}]},
        "m": {"1": "a", "q": "b"},
        "v": "abcdef",
        "d": 1.234,
        "unknown": "2026-01-02T03:04:05.000006",
    }
    assert sorted(row[:-1] for row in found if row[-1] is None) == [
        (1, 1, [1], {1: "x"}, "abc", "1.50"),
        (13, 8, [1], {1: "a"}, "abc", "1.23"),
    ]


def test_columns_are_added_where_asked_and_only_the_rest_is_rescued(copied, spark):
    catalog, lake = copied
    frame = spark.sql("SELECT 'many' AS id, 5 AS more, CAST(NULL AS STRING) AS _r2, NULL AS gone")
    lake.table("t").append(frame, evolve="all", rescue="_rescued")
    lake.table("t").append(spark.sql("SELECT 3 AS id"), rescue="_RESCUED")
    with duckdb(catalog) as oracle:
        found = oracle.sql("SELECT id, more, _r2, _rescued FROM t ORDER BY id NULLS LAST")
    assert found == [(1, None, None, None), (3, None, None, None), (None, 5, None, '{"id":"many"}')]


def test_keys_partitions_and_transactions_evolve_and_rescue(copied, spark):
    catalog, lake = copied
    lake.table("u").append(
        spark.sql("SELECT 1 AS id, '11' AS n, 'x' AS w UNION ALL SELECT 2, 'many', 'y'"),
        evolve="add",
        rescue="_rescued",
    )
    with lake.transaction() as tx:
        days = "SELECT 1 AS id, '2026-01-02' AS day UNION ALL SELECT 2, 'someday'"
        tx.table("p").append(spark.sql(days), rescue="_rescued")
        tx.table("p").append(spark.sql("SELECT 5000000000L AS id, 1 AS c"), evolve="all")
        assert tx.table("p").read().count() == 3
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT id, n, w, _rescued FROM u ORDER BY id") == [
            (1, 11, "x", None),
            (2, None, "y", '{"n":"many"}'),
        ]
        assert oracle.sql("SELECT id, day::VARCHAR, _rescued, c FROM p ORDER BY id") == [
            (1, "2026-01-02", None, None),
            (2, None, '{"day":"someday"}', None),
            (5_000_000_000, None, None, 1),
        ]


def test_rows_that_the_table_cannot_tell_apart_are_not_rescued(lake, spark):
    lake.sql("CREATE TABLE g (k INT, n INT SUM) AGGREGATE KEY (k)")
    lake.sql("CREATE TABLE c (id INT NOT NULL)")
    before = newest(lake)
    texts = spark.sql("SELECT 'x1' AS id, 1 AS n UNION ALL SELECT 'x2', 2")
    # Both rows would have the key NULL, and one would replace the other.
    with pytest.raises(InvalidRequest, match=r"id of main\.u is int32 and part of the key.*got x"):
        lake.table("u").append(texts, rescue="_rescued")
    with pytest.raises(InvalidRequest, match=r"id of main\.c is int32 NOT NULL, got x"):
        lake.table("c").append(texts.select("id"), rescue="_rescued")
    with pytest.raises(InvalidRequest, match=r"an AGGREGATE KEY table combines rows"):
        lake.table("g").append(spark.sql("SELECT 1 AS k, 'x' AS n"), rescue="_rescued")
    with pytest.raises(InvalidRequest, match=r"cannot add column z to main\.g: its columns need"):
        lake.table("g").append(spark.sql("SELECT 1 AS k, 2 AS n, 3 AS z"), evolve="add")
    assert newest(lake) == before
    signed = spark.sql("SELECT '7' AS id, 'y' AS n, false AS gone UNION ALL SELECT '1', '1', true")
    lake.table("u").append(signed, rescue="_rescued", delete_sign="gone")
    assert rows(lake.sql("SELECT id, n, _rescued FROM u")) == [(7, None, '{"n":"y"}')]


def test_keys_of_maps_and_shapes_that_do_not_fit_are_rescued_whole(lake, spark):
    lake.sql("CREATE TABLE k (m MAP<INT, STRUCT<a: INT>>, l ARRAY<INT>, s STRUCT<a: INT>)")
    frame = spark.sql(
        "SELECT map(1, named_struct('a', 1, 'b', 2), 2, named_struct('a', 2, 'b', NULL)) AS m,"
        " array(1L, 5000000000L) AS l, 'text' AS s"
    )
    lake.table("k").append(frame, rescue="r")
    other = spark.sql("SELECT map(DATE '2026-01-01', named_struct('a', 1)) AS m, 1 AS l")
    lake.table("k").append(other, rescue="r")
    found = rows(lake.sql("SELECT m, l, s, r FROM k ORDER BY r LIKE '%2026%'"))
    assert found == [
        (
            {1: (1,), 2: (2,)},
            [1, None],
            None,
            '{"m":{"1":{"b":2}},"l":[null,5000000000],"s":"text"}',
        ),
        (None, None, None, '{"m":{"2026-01-01":{"a":1}},"l":1}'),
    ]


def test_numbers_of_which_a_float_loses_digits_are_rescued(lake, spark):
    lake.sql("CREATE TABLE f (d DOUBLE, e DOUBLE, r FLOAT)")
    large = "CAST(9999999999999999 AS DECIMAL(20,4)) AS d, 9007199254740993 AS e, 16777217 AS r"
    exact = "CAST(0.1 AS DECIMAL(20,4)) AS d, 9007199254740992 AS e, 16777216 AS r"
    lake.table("f").append(spark.sql(f"SELECT {large} UNION ALL SELECT {exact}"), rescue="x")

    assert rows(lake.sql("SELECT * FROM f ORDER BY d")) == [
        (None, None, None, '{"d":9999999999999999.0000,"e":9007199254740993,"r":16777217}'),
        (0.1, 9007199254740992.0, 16777216.0, None),
    ]
