"""Loads into UNIQUE tables: the last row of each key is left, for Shelduck and for DuckDB."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from shelduck import InvalidRequest, Unchanged
from shelduck.model.tables.keys import DELETE_SIGN
from tests.support.lakes import newest, refusal, rows
from tests.support.oracle import DuckDBOracle

KEYS = {
    "t": ("STRING", "'é'", "''", "é", ""),
    "d": (
        "DATE",
        "DATE'2024-02-29'",
        "DATE'1970-01-01'",
        dt.date(2024, 2, 29),
        dt.date(1970, 1, 1),
    ),
    "n": ("DECIMAL(38, 2)", "-1.50", "0.00", Decimal("-1.50"), Decimal("0.00")),
    "o": ("BOOLEAN", "true", "false", True, False),
    "x": ("BINARY", "X'00FF'", "X''", b"\x00\xff", b""),
    "i": ("UBIGINT", "18446744073709551615", "0", 2**64 - 1, 0),
    "y": ("TINYINT", "-128Y", "127Y", -128, 127),
}
STATEMENTS = [
    "CREATE TABLE u (k INT, s STRING, v INT NOT NULL, d INT DEFAULT 7) UNIQUE KEY (k, s)",
    (
        "INSERT INTO u VALUES (1, 'a', 1, 1), (1, 'b', 2, 2), (NULL, NULL, 3, 3), (2, NULL, 4, 4),"
        " (1, 'a', 5, 5), (NULL, NULL, 6, 6), (NULL, 'a', 7, NULL)"
    ),
    (
        "CREATE TABLE q (k INT, v STRING, at INT) UNIQUE KEY (k)"
        " PROPERTIES ('function_column.sequence_col' = 'at')"
    ),
    (
        f"CREATE TABLE t ({', '.join(f'{n} {k[0]}' for n, k in KEYS.items())}, v INT)"
        f" UNIQUE KEY ({', '.join(KEYS)})"
    ),
    "INSERT INTO q VALUES (1, 'b', 5), (1, 'a', 3), (2, 'x', NULL), (2, 'y', NULL), (3, 'c', 1)",
]
LOADED = [
    *[(1, "a", 5, 5), (1, "b", 2, 2), (2, None, 4, 4)],
    *[(None, "a", 7, None), (None, None, 6, 6)],
]


def row_ids(catalog, table="u"):
    """The row id of each key, as DuckDB sees it."""
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        return {tuple(row[:-1]): row[-1] for row in duckdb.sql(f"SELECT k, s, rowid FROM {table}")}


def done(frame):
    row = frame.first()
    return row.inserted, row.updated, row.deleted


@pytest.mark.slow
def test_of_the_rows_of_one_load_the_last_is_left(copied, both):
    catalog, lake = copied

    assert both("u") == LOADED
    assert lake.table("u").files().collect() == []
    lake.table("u").flush_inlined_data()
    [file] = lake.table("u").files().collect()
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        found = duckdb.sql("SELECT k, s FROM read_parquet(?)", [file.file_path])
    assert found == [(1, "a"), (1, "b"), (2, None), (None, "a"), (None, None)]


@pytest.mark.slow
def test_a_load_takes_the_place_of_rows_of_its_keys(copied, both):
    catalog, lake = copied
    before = row_ids(catalog)
    values = "(1, 'a', 9), (NULL, NULL, 8), (3, 'c', 1), (3, 'c', 2)"
    found = lake.sql(f"INSERT INTO u (k, s, v) VALUES {values}")

    assert done(found) == (1, 2, 0)
    assert both("u") == [
        *[(1, "a", 9, 7), (1, "b", 2, 2), (2, None, 4, 4), (3, "c", 2, 7)],
        *[(None, "a", 7, None), (None, None, 8, 7)],
    ]
    after = row_ids(catalog)
    assert {key: after[key] for key in before} == before
    assert after[3, "c"] > max(before.values())
    assert rows(lake.sql("SELECT v FROM u VERSION AS OF 2 WHERE k = 1 AND s = 'a'")) == [(5,)]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        changes = f"lake.table_changes('u', {newest(lake)}, {newest(lake)})"
        assert duckdb.sql(f"SELECT change_type, count(*) FROM {changes} GROUP BY 1 ORDER BY 1") == [
            *[("insert", 1), ("update_postimage", 2), ("update_preimage", 2)]
        ]


@pytest.mark.slow
def test_rows_of_many_tasks_are_in_their_order(lake, both, spark):
    frame = spark.range(0, 400, 1, 4).selectExpr(
        "CAST(id % 10 AS INT) AS k", "'a' AS s", "CAST(id AS INT) AS v"
    )
    assert lake.table("u").append(frame).inserted == 9

    expected = [(k, "a", 390 + k, 7) for k in range(10)]
    assert [row for row in both("u") if row[3] == 7] == expected


def test_a_load_of_nothing_makes_no_snapshot(lake, spark):
    before = newest(lake)
    empty = spark.createDataFrame([], "k int, s string, v int")

    assert lake.table("u").append(empty) == Unchanged(before)
    gone = lake.sql(f"INSERT INTO u (k, s, v, {DELETE_SIGN}) VALUES (8, 'x', 1, true)").first()
    assert (gone.snapshot, gone.rows, newest(lake)) == (before, 0, before)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("(1, 'a', NULL), (5, 'x', 1)", "column v of main.u is NOT NULL, got NULL"),
        ("(1, 'a', 3000000000)", "column v of main.u is int32, which must hold every value"),
    ],
)
def test_a_value_that_does_not_fit_fails_the_load(copied, base, values, message):
    catalog, lake = copied
    told = refusal(
        InvalidRequest,
        lambda: lake.sql(f"INSERT INTO u (k, s, v) VALUES {values}"),
        *(catalog, base.folder / "data"),
    )
    assert message in told


def test_a_load_needs_its_not_null_columns(lake):
    with pytest.raises(
        InvalidRequest, match="column v is missing: it is NOT NULL and has no default"
    ):
        lake.sql("INSERT INTO u (k, s) VALUES (1, 'a')")


@pytest.mark.slow
def test_rows_that_say_so_are_deleted(lake, both):
    found = lake.sql(
        f"INSERT INTO u (k, s, v, {DELETE_SIGN}) VALUES (1, 'a', 0, 1), (NULL, NULL, 0, 1),"
        " (9, 'z', 0, 1), (1, 'b', 20, 0), (2, NULL, 40, NULL), (4, 'x', 0, 1), (4, 'x', 1, 0),"
        " (5, 'x', 1, 0), (5, 'x', 0, 1)"
    )
    assert done(found) == (1, 2, 2)
    assert both("u") == [(1, "b", 20, 7), (2, None, 40, 7), (4, "x", 1, 7), (None, "a", 7, None)]


@pytest.mark.slow
def test_python_names_the_column_that_deletes(lake, both, spark):
    sign = "k int, gone boolean, s string, v int, d int"
    frame = spark.createDataFrame([(1, True, "a", 0, 0), (1, False, "b", 3, 3)], sign)
    found = lake.table("u").append(frame, delete_sign="GONE")
    assert (found.inserted, found.updated, found.deleted) == (0, 1, 1)
    assert both("u") == [(1, "b", 3, 3), *LOADED[2:]]
    placed = frame.selectExpr("k AS a", "s AS b", "v AS c", "d AS e", f"k = 1 AS {DELETE_SIGN}")
    found = lake.table("u").append(placed.where("b = 'b'"), by_position=True)
    assert (found.inserted, found.updated, found.deleted) == (0, 0, 1)
    assert both("u") == LOADED[2:]


@pytest.mark.slow
def test_a_delete_sign_is_no_column_that_a_merged_schema_adds(lake, both, spark):
    columns = "k int, s string, v int, note string, gone boolean"
    frame = spark.createDataFrame([(1, "a", 0, "x", True), (1, "b", 3, "y", False)], columns)
    lake.table("u").append(frame, delete_sign="gone", merge_schema=True)

    assert lake.table("u").columns.names == ["k", "s", "v", "d", "note"]
    assert both("u")[0] == (1, "b", 3, 7, "y")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delete_sign": "nope"}, "do not have the column nope, which marks deleted keys"),
        ({}, "the table has no column gone"),
    ],
)
def test_a_delete_sign_has_to_be_there(lake, spark, options, message):
    frame = spark.sql("SELECT 1 AS k, 'a' AS s, 1 AS v, true AS gone")
    with pytest.raises(InvalidRequest, match=message):
        lake.table("u").append(frame, **options)


@pytest.mark.slow
def test_the_greatest_sequence_is_the_last_whatever_the_order(lake, both):
    assert both("q") == [(1, "b", 5), (2, "y", None), (3, "c", 1)]
    older = "(1, 'old', 4), (1, 'none', NULL), (2, 'z', NULL), (3, 'd', 9), (3, 'e', 8)"
    assert done(lake.sql(f"INSERT INTO q VALUES {older}")) == (0, 2, 0)
    assert both("q") == [(1, "b", 5), (2, "z", None), (3, "d", 9)]
    newer = "(1, 'same', 5), (2, 'w', -1), (3, 'less', NULL)"
    assert done(lake.sql(f"INSERT INTO q VALUES {newer}")) == (0, 2, 0)
    assert both("q") == [(1, "same", 5), (2, "w", -1), (3, "d", 9)]


def test_a_key_is_deleted_by_what_comes_after_it_by_sequence(lake, both):
    found = lake.sql(
        f"INSERT INTO q (k, at, {DELETE_SIGN}) VALUES (1, 4, 1), (3, 1, 1), (2, NULL, 1),"
        " (4, 5, 0), (4, 4, 1), (5, 4, 0), (5, 5, 1)"
    )
    assert done(found) == (1, 0, 2)
    assert both("q") == [(1, "b", 5), (4, None, 5)]


def test_only_older_rows_change_nothing(lake):
    before = newest(lake)
    found = lake.sql("INSERT INTO q VALUES (1, 'old', 4), (3, 'old', 0)").first()

    assert (found.rows, newest(lake)) == (0, before)


@pytest.mark.slow
def test_keys_of_all_types_and_null_in_each_of_them(lake, both):
    one, two, *_ = zip(*((k[1], k[2]) for k in KEYS.values()), strict=True)
    nulls = [[*one[:n], "NULL", *one[n + 1 :]] for n in range(len(KEYS))]
    texts = [", ".join(key) for key in (one, two, *nulls, ["NULL"] * len(KEYS))]
    for v in (1, 2):
        twice = [f"({key}, {n})" for key in texts for n in (0, v)]
        lake.sql(f"INSERT INTO t VALUES {', '.join(twice)}")

    found = both("t")
    assert [row[-1] for row in found] == [2] * len(texts)
    assert (*(k[3] for k in KEYS.values()), 2) in found
    assert (*(k[4] for k in KEYS.values()), 2) in found


@pytest.mark.parametrize("limit", [10, 0])
def test_values_of_few_rows_arrive_as_they_are(copied, spark, limit):
    catalog, lake = copied
    lake.sql(
        "CREATE TABLE e (id INT, d DATE, instant TIMESTAMP, wall TIMESTAMP_NTZ, f FLOAT, n DOUBLE,"
        " m DECIMAL(38, 10), b BINARY, s STRING) UNIQUE KEY (id)"
    )
    lake.set_option("data_inlining_row_limit", limit, table="e")
    one = (
        "(1, DATE'0001-01-01', TIMESTAMP'1883-11-18 11:00:00', TIMESTAMP_NTZ'2024-03-10 02:30:00',"
        " float('1.1'), double('NaN'), -1234567890123456789012345678.0123456789, X'00FF', 'é')"
    )
    two = "(2, DATE'9999-12-31', NULL, NULL, float('NaN'), -0.0D, NULL, NULL, '')"
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        lake.sql("INSERT INTO e (id) VALUES (1)")
        lake.sql(f"INSERT INTO e VALUES {one}, {two}")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")

    query = (
        "SELECT id, CAST(d AS VARCHAR), epoch_us(instant), CAST(wall AS VARCHAR),"
        " CAST(f AS VARCHAR), CAST(n AS VARCHAR), CAST(m AS VARCHAR), hex(b), hex(s)"
        " FROM e ORDER BY id"
    )
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        found = duckdb.sql(query)
    # New York was 4 h 56 min 2 s behind until noon of that day.
    instant = -2717654638000000
    number = "-1234567890123456789012345678.0123456789"
    assert found == [
        (1, "0001-01-01", instant, "2024-03-10 02:30:00", "1.1", "nan", number, "00FF", "C3A9"),
        (2, "9999-12-31", None, None, "nan", "-0.0", None, None, ""),
    ]


def test_names_that_need_quotes(lake):
    lake.sql("CREATE TABLE o (`a.b` INT, `x``y` INT, `V v` STRING) UNIQUE KEY (`a.b`, `x``y`)")
    lake.sql("INSERT INTO o VALUES (1, 1, 'a'), (1, 1, 'b')")
    lake.sql("INSERT INTO o VALUES (1, 1, 'c'), (2, NULL, 'd')")

    assert sorted(rows(lake.sql("SELECT * FROM o")), key=str) == [(1, 1, "c"), (2, None, "d")]
