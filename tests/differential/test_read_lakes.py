"""Lakes that DuckDB made, read at every snapshot: Spark's rows are DuckDB's rows."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import functions as F  # noqa: N812

import shelduck
from tests.support.normal import duckdb_rows, spark_rows, spark_rows_by_key
from tests.support.oracle import DuckDBOracle, at

TYPES = """
    b BOOLEAN, i8 TINYINT, i16 SMALLINT, i32 INTEGER, i64 BIGINT, u8 UTINYINT, u16 USMALLINT,
    u32 UINTEGER, u64 UBIGINT, f REAL, d DOUBLE, d9 DECIMAL(9,2), d38 DECIMAL(38,10), da DATE,
    ti TIME, ts TIMESTAMP, tss TIMESTAMP_S, tsm TIMESTAMP_MS, tsn TIMESTAMP_NS, tz TIMESTAMPTZ,
    s VARCHAR, bl BLOB, uu UUID
"""
VALUES = [
    """(true, -128, -32768, -2147483648, -9223372036854775808, 255, 65535, 4294967295,
    18446744073709551615, 1.1, -0.0, -9999999.99, 1.0000000001, '2024-02-29', '23:59:59.000001',
    '1500-03-01 12:00:00', '2024-01-01 00:00:01', '2024-01-01 00:00:00.123',
    '2024-01-01 00:00:00.123456789', '2024-01-01 00:00:00+00', 'é', '\\x00\\xFF'::BLOB,
    'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11')""",
    "(" + ", ".join(["NULL"] * 23) + ")",
]

SCRIPTS = {
    "every type": [f"CREATE TABLE t ({TYPES})", *(f"INSERT INTO t VALUES {v}" for v in VALUES)],
    "integers that widen": [
        "CREATE TABLE t (a TINYINT, b UTINYINT, c INTEGER, k INTEGER)",
        "INSERT INTO t VALUES (-128, 255, 2147483647, 1), (127, 0, -2147483648, 2)",
        "ALTER TABLE t ALTER a TYPE SMALLINT",
        "ALTER TABLE t ALTER b TYPE USMALLINT",
        "ALTER TABLE t ALTER c TYPE BIGINT",
        "INSERT INTO t VALUES (-32768, 65535, 9223372036854775807, 3)",
        "ALTER TABLE t ALTER a TYPE BIGINT",
        "ALTER TABLE t ALTER b TYPE UBIGINT",
        "INSERT INTO t VALUES (NULL, 18446744073709551615, NULL, 4)",
    ],
    "numbers that lose": [
        "CREATE TABLE t (a INTEGER, b BIGINT, c DECIMAL(9,2), d UINTEGER, f REAL)",
        (
            "INSERT INTO t VALUES (16777217, 9007199254740993, 99.99, 4294967295, 1.1), (NULL, "
            "NULL, NULL, NULL, NULL)"
        ),
        "ALTER TABLE t ALTER a TYPE REAL",
        "ALTER TABLE t ALTER b TYPE DOUBLE",
        "ALTER TABLE t ALTER c TYPE DECIMAL(38,0)",
        "ALTER TABLE t ALTER d TYPE DOUBLE",
        "ALTER TABLE t ALTER f TYPE DOUBLE",
        "INSERT INTO t VALUES (0.5, 0.25, 7, 1.5, 1.1)",
    ],
    "moments": [
        "CREATE TABLE t (a DATE, b DATE, c TIMESTAMP, d TIMESTAMP_S, e TIMESTAMP_MS)",
        (
            "INSERT INTO t VALUES ('2024-07-01', '1969-12-31', '2024-07-01 12:00:00.5', "
            "'2024-01-01 00:00:01', '1969-12-31 23:59:59.999')"
        ),
        "ALTER TABLE t ALTER a TYPE TIMESTAMP",
        "ALTER TABLE t ALTER b TYPE TIMESTAMPTZ",
        "ALTER TABLE t ALTER c TYPE TIMESTAMPTZ",
        "ALTER TABLE t ALTER d TYPE TIMESTAMP",
        "ALTER TABLE t ALTER e TYPE TIMESTAMP_NS",
        (
            "INSERT INTO t VALUES ('2024-07-01 01:00:00', '2024-07-01 00:00:00+02', '2024-07-01 "
            "00:00:00+02', '2024-01-01 00:00:00.000001', '2024-01-01 00:00:00.000000001')"
        ),
    ],
    "names": [
        "CREATE TABLE t (a INTEGER, b INTEGER, c VARCHAR)",
        "INSERT INTO t VALUES (1, 10, 'x'), (2, 20, NULL)",
        "ALTER TABLE t RENAME a TO tmp",
        "ALTER TABLE t RENAME b TO a",
        "ALTER TABLE t RENAME tmp TO b",
        "INSERT INTO t VALUES (3, 30, 'y')",
        "ALTER TABLE t DROP COLUMN c",
        "ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 7",
        "INSERT INTO t VALUES (4, 40, 400), (5, 50, NULL)",
        "ALTER TABLE t RENAME c TO C",
        "INSERT INTO t VALUES (6, 60, 600)",
    ],
    "nested": [
        (
            "CREATE TABLE t (k INTEGER, s STRUCT(x INTEGER, y STRUCT(z VARCHAR, v INTEGER)), l "
            "STRUCT(p INTEGER, q INTEGER)[], m MAP(VARCHAR, INTEGER))"
        ),
        (
            "INSERT INTO t VALUES (1, {'x': 1, 'y': {'z': 'a', 'v': 1}}, [{'p': 1, 'q': 2}, "
            "NULL], MAP {'k': 1}), (2, NULL, NULL, NULL), (3, {'x': NULL, 'y': NULL}, [], MAP {})"
        ),
        "ALTER TABLE t ADD COLUMN s.n INTEGER DEFAULT 5",
        "ALTER TABLE t ADD COLUMN s.y.w INTEGER",
        "ALTER TABLE t RENAME s.x TO xx",
        "ALTER TABLE t DROP COLUMN s.y.z",
        "ALTER TABLE t ALTER s TYPE STRUCT(xx BIGINT, y STRUCT(v INTEGER, w INTEGER), n INTEGER)",
        (
            "INSERT INTO t VALUES (4, {'xx': 9000000000, 'y': {'v': 2, 'w': 3}, 'n': NULL}, "
            "[{'p': 5, 'q': 6}], MAP {'z': 9})"
        ),
        "ALTER TABLE t ADD COLUMN s2 STRUCT(g INTEGER)",
        "ALTER TABLE t ADD COLUMN s2.h INTEGER DEFAULT 8",
    ],
    "deletes and updates": [
        "CREATE TABLE t (a INTEGER, b VARCHAR)",
        "INSERT INTO t SELECT i, 'v' || i FROM range(300) r(i)",
        "DELETE FROM t WHERE a < 5",
        "UPDATE t SET b = 'new' WHERE a BETWEEN 100 AND 120",
        "DELETE FROM t WHERE a % 7 = 0",
        "INSERT INTO t VALUES (1000, 'z')",
        "ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 1",
        "DELETE FROM t WHERE a > 290",
        "CALL ducklake_merge_adjacent_files('lake')",
        "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)",
    ],
    "defaults": [
        "CREATE TABLE t (k INTEGER)",
        "INSERT INTO t VALUES (1)",
        "ALTER TABLE t ADD COLUMN a UBIGINT DEFAULT 18446744073709551615",
        "ALTER TABLE t ADD COLUMN b DECIMAL(30,2) DEFAULT -1.5",
        "ALTER TABLE t ADD COLUMN c TIMESTAMPTZ DEFAULT '2024-01-01 00:00:00+02'",
        "ALTER TABLE t ADD COLUMN d VARCHAR DEFAULT 'it''s \\ é'",
        "ALTER TABLE t ADD COLUMN e BLOB DEFAULT '\\x00a'",
        "ALTER TABLE t ADD COLUMN f REAL DEFAULT 1.1",
        "INSERT INTO t VALUES (2, 1, 2, '2024-01-01 00:00:00+00', 'd', 'e', 2)",
        "ALTER TABLE t ALTER f TYPE DOUBLE",
        "INSERT INTO t VALUES (3, NULL, NULL, NULL, NULL, NULL, NULL)",
    ],
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("inlining", [0, 1000], ids=["files", "inlined"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_every_snapshot_holds_the_rows_that_duckdb_sees(spark, lake_dir, script, inlining):
    url, data = lake_dir
    with DuckDBOracle(url, data, {"DATA_INLINING_ROW_LIMIT": inlining}) as oracle:
        versions = []
        for statement in SCRIPTS[script]:
            oracle.execute(statement)
            versions.append(oracle.snapshot())
        expected = {v: duckdb_rows(oracle, at("t", v)) for v in sorted(set(versions))}
    with shelduck.connect(url, spark=spark) as lake:
        found = spark_rows_by_key({v: lake.table("t").read(version=v) for v in expected})

    assert found == expected


@pytest.mark.sampled(3)
@pytest.mark.parametrize("script", ["integers that widen", "numbers that lose", "moments", "names"])
def test_a_filter_on_any_value_finds_its_rows(spark, lake_dir, script):
    url, data = lake_dir
    with DuckDBOracle(url, data, {"DATA_INLINING_ROW_LIMIT": 0}) as oracle:
        for statement in SCRIPTS[script]:
            oracle.execute(statement)
    with shelduck.connect(url, spark=spark) as lake:
        frame = lake.table("t").read()
        rows = frame.collect()
        counts = {}
        for name, kind in frame.dtypes:
            for value in {row[name] for row in rows}:
                same = F.col(name).eqNullSafe(F.lit(value).cast(kind))
                counts[name, value] = frame.where(same).count()

    assert counts == Counter((name, row[name]) for row in rows for name in frame.columns)


def test_adopted_files_read_as_duckdb_reads_them(spark, lake_dir, tmp_path):
    url, data = lake_dir
    place = tmp_path / "adopted" / "region=e%2Fu" / "n=3"
    place.mkdir(parents=True)
    with DuckDBOracle(url, data) as oracle:
        oracle.execute(
            "COPY (SELECT 1::INTEGER AS A, [2::INTEGER] AS l, {'X': 3::INTEGER} AS s,"
            f" MAP {{'k': 4::INTEGER}} AS m) TO '{place}/f.parquet'"
        )
        oracle.execute(
            "CREATE TABLE t (a INTEGER, l INTEGER[], s STRUCT(x INTEGER), m MAP(VARCHAR, INTEGER),"
            " n INTEGER, region VARCHAR)"
        )
        oracle.execute(
            f"CALL ducklake_add_data_files('lake', 't', '{tmp_path}/adopted/**/*.parquet',"
            " hive_partitioning => true)"
        )
        oracle.execute("ALTER TABLE t RENAME a TO b")
        oracle.execute("ALTER TABLE t ALTER b TYPE BIGINT")
        oracle.execute("ALTER TABLE t RENAME region TO place")
        oracle.execute("ALTER TABLE t ADD COLUMN z INTEGER DEFAULT 9")
        expected = duckdb_rows(oracle, "t")
    with shelduck.connect(url, spark=spark) as lake:
        assert spark_rows(lake.table("t").read()) == expected


@pytest.fixture
def lake_dir(tmp_path):
    """The address of a SQLite catalog that does not exist yet, and a place for files."""
    return f"sqlite:///{tmp_path}/catalog.db", f"{tmp_path}/data/"
