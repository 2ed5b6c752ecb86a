"""Files that Shelduck adopts, read by both; and what DuckDB thinks of adopting them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shelduck
from shelduck import Unsupported
from tests.support.normal import duckdb_rows, spark_rows
from tests.support.oracle import DuckDBOracle

# The type that Spark knows, DuckDB's expression for a value of the file, and whether that fits.
PAIRS = [
    ("boolean", "true"),
    ("int", "(-7)::TINYINT"),
    ("int", "7::USMALLINT"),
    ("bigint", "(-7)::BIGINT"),
    ("bigint", "4294967295::UINTEGER"),
    ("float", "1.5::FLOAT"),
    ("double", "0.1::FLOAT"),
    ("double", "'nan'::DOUBLE"),
    ("decimal(12,2)", "-1.50::DECIMAL(9,2)"),
    ("decimal(38,2)", "1.50::DECIMAL(38,2)"),
    ("date", "DATE '0044-03-15'"),
    ("timestamp_ntz", "TIMESTAMP '2024-01-01 00:00:00.5'"),
    ("timestamp_ntz", "TIMESTAMP_MS '1969-12-31 23:59:59.999'"),
    ("timestamp", "TIMESTAMPTZ '2024-01-01 00:00:00+02'"),
    ("string", "'née'"),
    ("string", "'{}'::JSON"),
    ("binary", "'\\x00\\xFF'::BLOB"),
    ("array<int>", "[1, NULL]::SMALLINT[]"),
    ("struct<x: int, y: array<string>>", "{'y': ['a'], 'x': 1::TINYINT}"),
    ("map<string, bigint>", "MAP {'k': 1::INT, 'l': NULL}"),
]
REFUSED_BY_BOTH = [
    ("int", "7::BIGINT"),
    ("int", "true"),
    ("double", "7::INT"),
    ("timestamp", "TIMESTAMP '2024-01-01'"),
    ("timestamp_ntz", "TIMESTAMPTZ '2024-01-01 00:00:00+00'"),
    ("date", "TIMESTAMP '2024-01-01'"),
    ("string", "7"),
    ("string", "'x'::BLOB"),
    ("array<int>", "7"),
    ("struct<x: int>", "{'x': 'a'}"),
]


@pytest.fixture
def lake(spark, sqlite_url, data_path):
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        yield lake


def same_rows(lake, url, table):
    """The rows of a table after making sure that both read the same."""
    ours = spark_rows(lake.table(table).read())
    lake.close()
    with DuckDBOracle(url) as oracle:
        assert duckdb_rows(oracle, table) == ours
        [(count,)] = oracle.sql(f"SELECT count(*) FROM {table}")
        assert count == len(ours)
    return ours


@pytest.mark.sampled(1)
@pytest.mark.parametrize("part", range(3))
def test_values_of_every_type_that_fits_are_read_alike(lake, sqlite_url, tmp_path, part):
    pairs = PAIRS[part::3]
    for number, (kind, value) in enumerate(pairs):
        path = tmp_path / f"{number}.parquet"
        duckdb.sql(f"COPY (SELECT {value} AS c UNION ALL SELECT NULL) TO '{path}'")
        lake.create_table(f"t{number}", {"c": kind}).add_files(path)

    ours = [spark_rows(lake.table(f"t{number}").read()) for number in range(len(pairs))]
    lake.close()
    with DuckDBOracle(sqlite_url) as oracle:
        theirs = [duckdb_rows(oracle, f"t{number}") for number in range(len(pairs))]
    assert ours == theirs
    assert [len(rows) for rows in ours] == [2] * len(pairs)


def test_what_we_refuse_duckdb_refuses_too(lake, sqlite_url, tmp_path):
    paths = []
    for number, (kind, value) in enumerate(REFUSED_BY_BOTH):
        paths.append(tmp_path / f"{number}.parquet")
        duckdb.sql(f"COPY (SELECT {value} AS c) TO '{paths[number]}'")
        table = lake.create_table(f"t{number}", {"c": kind})
        with pytest.raises(shelduck.InvalidRequest, match=r"in the table but .* in the file"):
            table.add_files(paths[number])
    lake.close()

    with DuckDBOracle(sqlite_url) as oracle:
        for number, path in enumerate(paths):
            with pytest.raises(duckdb.InvalidInputException, match="Failed to map column"):
                oracle.execute(f"CALL ducklake_add_data_files('lake', 't{number}', '{path}')")


@pytest.mark.slow
@pytest.mark.parametrize("legacy", ["true", "false"])
def test_lists_and_maps_of_spark_are_read_alike(lake, spark, sqlite_url, tmp_path, legacy):
    rows = spark.sql(
        "SELECT 1 AS a, array('x', NULL) AS l, array(array(1), array()) AS ll,"
        " array(map('k', 1)) AS lm, map('k', array(1, 2)) AS m"
    )
    spark.conf.set("spark.sql.parquet.writeLegacyFormat", legacy)
    try:
        rows.write.parquet(str(tmp_path / "from_spark"))
    finally:
        spark.conf.unset("spark.sql.parquet.writeLegacyFormat")
    lake.create_table("t", rows.schema).add_files(tmp_path / "from_spark")

    assert same_rows(lake, sqlite_url, "t") == [
        (1, ["x", None], [[1], []], [("map", [("k", 1)])], ("map", [("k", [1, 2])]))
    ]


@pytest.mark.parametrize("compliant", [True, False])
def test_structs_in_lists_are_read_alike(lake, sqlite_url, tmp_path, compliant):
    inner = pa.list_(pa.struct({"z": pa.int32()}))
    kinds = {
        "l": pa.list_(pa.struct({"x": pa.int32(), "y": inner})),
        "m": pa.map_(pa.string(), pa.struct({"v": pa.int32()})),
    }
    rows = {"l": [[{"x": 1, "y": [{"z": 2}]}, None], []], "m": [[("k", {"v": 3})], []]}
    table = pa.table(rows, schema=pa.schema(kinds))
    pq.write_table(table, tmp_path / "1.parquet", use_compliant_nested_type=compliant)
    columns = {
        "l": "array<struct<x: int, y: array<struct<z: int>>>>",
        "m": "map<string, struct<v: int>>",
    }
    lake.create_table("t", columns).add_files(tmp_path / "1.parquet")

    assert same_rows(lake, sqlite_url, "t") == [
        ([(1, [(2,)]), None], ("map", [("k", (3,))])),
        ([], ("map", [])),
    ]


@pytest.mark.parametrize("element", ["named_struct('x', 1)", "nullif(named_struct('x', 1), NULL)"])
def test_structs_in_lists_of_old_writers_are_refused(lake, spark, tmp_path, element):
    spark.conf.set("spark.sql.parquet.writeLegacyFormat", "true")
    try:
        spark.sql(f"SELECT array({element}) AS l").write.parquet(str(tmp_path / "old"))
    finally:
        spark.conf.unset("spark.sql.parquet.writeLegacyFormat")
    table = lake.create_table("t", {"l": "array<struct<x: int>>"})

    with pytest.raises(
        shelduck.InvalidRequest, match="a list of structs in the layout of old writers"
    ):
        table.add_files(tmp_path / "old")


def test_a_file_with_the_field_ids_of_another_table_goes_by_name(lake, sqlite_url, tmp_path):
    ids = [("b", 1), ("a", 2)]
    schema = pa.schema(
        [pa.field(n, pa.int32(), metadata={"PARQUET:field_id": str(i)}) for n, i in ids]
    )
    pq.write_table(pa.table({"b": [20], "a": [10]}, schema=schema), tmp_path / "f.parquet")
    lake.create_table("t", {"a": "int", "b": "int"}).add_files(tmp_path / "f.parquet")

    assert same_rows(lake, sqlite_url, "t") == [(10, 20)]


def test_columns_of_paths_missing_and_extra_ones_are_read_alike(lake, sqlite_url, tmp_path):
    table = lake.create_table("t", {"a": "int", "p": "int", "q": "string"})
    lake.sql("ALTER TABLE t ADD COLUMN d INT DEFAULT 7")
    lake.sql("ALTER TABLE t ADD COLUMN n STRING")
    for directory in ("p=1/q=x%20y", "p=__HIVE_DEFAULT_PARTITION__/q=%3D"):
        place = tmp_path / "f" / directory
        place.mkdir(parents=True)
        pq.write_table(
            pa.table({"A": pa.array([1, None], pa.int32()), "z": [0, 0]}), place / "1.parquet"
        )
    table.add_files(tmp_path / "f", allow_missing=True, ignore_extra_columns=True)

    assert same_rows(lake, sqlite_url, "t") == [
        (1, 1, "x y", 7, None),
        (1, None, "=", 7, None),
        (None, 1, "x y", 7, None),
        (None, None, "=", 7, None),
    ]


def test_duckdb_counts_and_bounds_adopted_rows_and_goes_on_with_them(lake, sqlite_url, tmp_path):
    values = pa.array([3, None, 9], pa.int64())
    pq.write_table(pa.table({"a": values, "f": [1.0, float("nan"), 2.0]}), tmp_path / "1.parquet")
    lake.create_table("t", {"a": "bigint", "f": "double"}).add_files(tmp_path / "1.parquet")
    lake.close()

    with DuckDBOracle(sqlite_url, options={"DATA_INLINING_ROW_LIMIT": 0}) as oracle:
        assert oracle.sql("SELECT count(*), min(a), max(a), max(f)::VARCHAR FROM t") == [
            (3, 3, 9, "nan")
        ]
        assert oracle.sql("SELECT count(*) FROM t WHERE f >= 2") == [(2,)]
        assert oracle.sql("SELECT count(*) FROM t WHERE a = 9") == [(1,)]
        oracle.execute("UPDATE t SET a = 10 WHERE a = 9")
        oracle.execute("DELETE FROM t WHERE a IS NULL")
        oracle.execute("ALTER TABLE t RENAME COLUMN a TO b")
        oracle.execute("INSERT INTO t VALUES (11, 0)")

    assert same_rows(lake, sqlite_url, "t") == [(10, "2.0"), (11, "0.0"), (3, "1.0")]


def test_a_mapping_that_duckdb_made_is_used_again(lake, sqlite_url, tmp_path):
    for name in ("1", "2"):
        pq.write_table(
            pa.table({"a": [1], "l": [["x"]], "s": [{"y": 1, "x": 2}]}),
            tmp_path / f"{name}.parquet",
        )
    columns = {"a": "bigint", "l": "array<string>", "s": "struct<x: bigint, y: bigint>"}
    table = lake.create_table("t", columns)
    lake.close()
    with DuckDBOracle(sqlite_url) as oracle:
        oracle.execute(f"CALL ducklake_add_data_files('lake', 't', '{tmp_path}/1.parquet')")
    table.add_files(tmp_path / "2.parquet")

    assert same_rows(lake, sqlite_url, "t") == [(1, ["x"], (2, 1))] * 2
    with DuckDBOracle(sqlite_url) as oracle:
        metadata = oracle.dump_metadata()
    assert len(metadata["ducklake_column_mapping"]) == 1
    [one, other] = metadata["ducklake_data_file"]
    same = ("mapping_id", "path_is_relative", "record_count", "footer_size", "file_size_bytes")
    assert {k: one[k] for k in same} == {k: other[k] for k in same}


def test_old_timestamps_and_decimals_are_read_alike(lake, sqlite_url, tmp_path):
    table = pa.table(
        {
            "at": pa.array(
                [dt.datetime(2024, 1, 1, 12, 30, tzinfo=dt.UTC), None], pa.timestamp("us")
            ),
            "n": pa.array([Decimal("-1.50"), None], pa.decimal128(9, 2)),
        }
    )
    pq.write_table(
        table,
        tmp_path / "1.parquet",
        use_deprecated_int96_timestamps=True,
        store_decimal_as_integer=True,
    )
    lake.create_table("t", {"at": "timestamp_ntz", "n": "decimal(9,2)"}).add_files(
        tmp_path / "1.parquet"
    )

    assert same_rows(lake, sqlite_url, "t") == [
        ("2024-01-01T12:30:00", Decimal("-1.5")),
        (None, None),
    ]


def test_a_file_whose_codec_spark_lacks_is_not_damaged(lake, sqlite_url, tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet", compression="brotli")
    lake.create_table("t", {"a": "bigint"}).add_files(tmp_path / "1.parquet")

    told = r"of main.t cannot be read: Spark does not come with the class \S+BrotliCodec; add a JAR"
    with pytest.raises(Unsupported, match=told):
        lake.table("t").read().collect()
    with DuckDBOracle(sqlite_url) as oracle:
        assert oracle.sql("SELECT a FROM t") == [(1,)]
