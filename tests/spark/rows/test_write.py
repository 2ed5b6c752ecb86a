"""What Spark writes, DuckDB's extension reads: the same values, and statistics it can prune by."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, datetime
from datetime import time as clock
from decimal import Decimal
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet
import pytest

from shelduck.engine.files import footers
from shelduck.engine.rows.assign import assign
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.lake.done import discard
from shelduck.model.tables.schema import FieldId
from shelduck.write.parquet.plain_write import _writer, write_plain_parts
from shelduck.write.parquet.write import write_files
from tests.support.no_bridge import without_bridge
from tests.support.written import HandMadeLake, columns, table_version

if TYPE_CHECKING:
    from shelduck.model.tables.table_version import TableVersion
    from shelduck.write.parquet.write import WrittenFiles
    from tests.support.oracle import DuckDBOracle


@pytest.fixture
def lake(tmp_path: Path) -> HandMadeLake:
    return HandMadeLake(tmp_path)


@pytest.fixture(params=["bridge", "no bridge"])
def door(request, monkeypatch) -> str:
    """With the bridge, and as over Spark Connect without one."""
    if request.param != "bridge":
        without_bridge(monkeypatch)
    return str(request.param)


def written(spark, lake: HandMadeLake, table: TableVersion, query: str) -> WrittenFiles:
    rows = assign(spark.sql(query), table).coalesce(1)
    return write_files(spark, rows, table)


at = datetime.fromisoformat

# DuckLake type, DuckDB type, two values in Spark's SQL, and what DuckDB reads for them.
TYPES: list[tuple[str, str, str, list[object]]] = [
    ("boolean", "BOOLEAN", "true false", [True, False]),
    ("int8", "TINYINT", "127Y -128Y", [127, -128]),
    ("int16", "SMALLINT", "32767S -32768S", [32767, -32768]),
    ("int32", "INTEGER", "2147483647 -2147483648", [2147483647, -2147483648]),
    ("int64", "BIGINT", "9223372036854775807 -9223372036854775808L", [2**63 - 1, -(2**63)]),
    ("uint8", "UTINYINT", "255 0", [255, 0]),
    ("uint16", "USMALLINT", "65535 0", [65535, 0]),
    ("uint32", "UINTEGER", "4294967295 0", [4294967295, 0]),
    ("uint64", "UBIGINT", "18446744073709551615 0", [2**64 - 1, 0]),
    ("int128", "HUGEINT", f"{10**38 - 1} -{10**38 - 1}", [10**38 - 1, 1 - 10**38]),
    ("uint128", "UHUGEINT", f"{10**38 - 1} 0", [10**38 - 1, 0]),
    ("decimal(5,2)", "DECIMAL(5,2)", "999.99 -0.01", [Decimal("999.99"), Decimal("-0.01")]),
    ("decimal(18,3)", "DECIMAL(18,3)", "1.5 -1.5", [Decimal("1.500"), Decimal("-1.500")]),
    (
        "decimal(38,2)",
        "DECIMAL(38,2)",
        f"{10**36 - 1}.99 -0.01",
        [Decimal(f"{10**36 - 1}.99"), Decimal("-0.01")],
    ),
    ("float64", "DOUBLE", "1.5E308D double('-inf')", [1.5e308, float("-inf")]),
    ("float32", "FLOAT", "1.5F float('inf')", [1.5, float("inf")]),
    ("date", "DATE", "DATE'0001-01-01' DATE'9999-12-31'", [date(1, 1, 1), date(9999, 12, 31)]),
    (
        "timestamp_ntz",
        "TIMESTAMP",
        "TIMESTAMP_NTZ'0001-01-01T00:00:00.000001' TIMESTAMP_NTZ'9999-12-31T23:59:59.999999'",
        [at("0001-01-01 00:00:00.000001"), at("9999-12-31 23:59:59.999999")],
    ),
    (
        "timestamp_s",
        "TIMESTAMP_S",
        "TIMESTAMP_NTZ'1969-12-31T23:59:59' TIMESTAMP_NTZ'2024-01-02T03:04:05'",
        [at("1969-12-31 23:59:59"), at("2024-01-02 03:04:05")],
    ),
    (
        "timestamp_ms",
        "TIMESTAMP_MS",
        "TIMESTAMP_NTZ'1969-12-31T23:59:59.999' TIMESTAMP_NTZ'2024-01-02T03:04:05'",
        [at("1969-12-31 23:59:59.999"), at("2024-01-02 03:04:05")],
    ),
    (
        "timestamp",
        "TIMESTAMPTZ",
        "TIMESTAMP'2024-01-02T03:04:05.000006+02:00' TIMESTAMP'1969-12-31T23:59:59Z'",
        [
            at("2024-01-02 01:04:05.000006+00:00"),
            at("1969-12-31 23:59:59+00:00"),
        ],
    ),
    ("time", "TIME", "'01:02:03.000004' '23:59:59'", [clock(1, 2, 3, 4), clock(23, 59, 59)]),
    ("string", "VARCHAR", "'' 'é\\0\U0001f986'", ["", "é\0\U0001f986"]),
    ("json", "JSON", "'{\"a\":1}' 'null'", ['{"a":1}', "null"]),
    (
        "uuid",
        "UUID",
        "'F79C3E09-677C-4BBD-A479-3F349CB785E7' '00000000-0000-0000-0000-000000000000'",
        [UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), UUID(int=0)],
    ),
    ("binary", "BLOB", "X'00FF' X''", [b"\x00\xff", b""]),
    ("int[]", "INTEGER[]", "array(1,null) array()", [[1, None], []]),
    ("map<string,bigint>", "MAP(VARCHAR,BIGINT)", "map('k',null) map()", [{"k": None}, {}]),
    (
        "struct<a:int,b:struct<c:string>>",
        "STRUCT(a INTEGER, b STRUCT(c VARCHAR))",
        "named_struct('a',1,'b',null) named_struct('B',named_struct('C','x'),'A',2)",
        [{"a": 1, "b": None}, {"a": 2, "b": {"c": "x"}}],
    ),
    (
        "array<struct<m:map<uuid,array<uint8>>>>",
        "STRUCT(m MAP(UUID, UTINYINT[]))[]",
        f"array(named_struct('m',map('{UUID(int=7)}',array(255,null)))) array(null)",
        [[{"m": {UUID(int=7): [255, None]}}], [None]],
    ),
]  # fmt: skip


def test_duckdb_reads_what_was_written_nulls_and_extremes_too(spark, lake, door):
    names = [f"c{n}" for n in range(len(TYPES))]
    ddl = ", ".join(f"{name} {kind[1]}" for name, kind in zip(names, TYPES, strict=True))
    lake.create("t", f"n INTEGER, {ddl}")
    kinds = {name: kind[0] for name, kind in zip(names, TYPES, strict=True)}
    table = table_version(lake, "t", columns(n="int32", **kinds))
    listed = [kind[2].split(" ") for kind in TYPES]
    first, second = (
        ", ".join(f"{values[place]} {name}" for name, values in zip(names, listed, strict=True))
        for place in (0, 1)
    )
    nulls = ", ".join(f"NULL {name}" for name in names)
    rows = [assign(spark.sql(f"SELECT {n} n, {row}"), table)
            for n, row in enumerate((first, nulls, second))]  # fmt: skip
    lake.publish("t", write_files(spark, rows[0].union(rows[1]).union(rows[2]), table).files)
    with lake.oracle() as oracle:
        read = oracle.sql("SELECT * EXCLUDE n FROM t ORDER BY n")
        pruned = [
            (kind, oracle.sql(f"SELECT n FROM t WHERE {name} = {text}::{kind[1]}"))
            for name, kind in zip(names, TYPES, strict=True)
            for text in [_literal(oracle, name, kind[1])]
        ]

    expected = [[kind[3][0], None, kind[3][1]] for kind in TYPES]
    found = [list(values) for values in zip(*read, strict=True)]
    assert dict(zip(names, found, strict=True)) == dict(zip(names, expected, strict=True))
    # By an equality with a constant DuckDB looks at the statistics first.
    assert [kind for kind, rows in pruned if rows != [(0,)]] == []


def _literal(oracle: DuckDBOracle, name: str, kind: str) -> str:
    [(text,)] = oracle.sql(f"SELECT {name}::VARCHAR FROM t WHERE n = 0")
    return "'" + text.replace("'", "''") + "'"


def test_a_time_with_an_offset_keeps_it(spark, lake):
    lake.create("t", "c TIMETZ")
    table = table_version(lake, "t", columns(c="timetz"))
    lake.publish("t", written(spark, lake, table, "SELECT '01:02:03.5+02:30' c").files)

    with lake.oracle() as oracle:
        assert oracle.sql("SELECT c::VARCHAR FROM t") == [("01:02:03.5+02:30",)]


def test_columns_with_awkward_names_are_found_by_id(spark, lake, door):
    names = {
        "a.b": "int32",
        'it\'s "q"': "string",
        "é `x`": "array<struct<`p.q`: int>>",
        "tab\there": "int32",
    }
    lake.create(
        "t", '"a.b" INT, "it\'s ""q""" VARCHAR, "é `x`" STRUCT("p.q" INT)[], "tab\there" INT'
    )
    table = table_version(lake, "t", columns(**names))
    query = (
        "SELECT 1 `a.b`, 'v' `it's \"q\"`, array(named_struct('p.q', 2)) `é ``x```, 3 `tab\there`"
    )
    lake.publish("t", written(spark, lake, table, query).files)

    with lake.oracle() as oracle:
        assert oracle.rows("t") == [(1, "v", [{"p.q": 2}], 3)]


def test_a_file_calls_a_column_by_the_first_name_of_its_id(spark, lake, door):
    schema = columns(now="int32", back="int32", s="struct<new: int>")
    first = {FieldId(1): "before", FieldId(2): "back", FieldId(3): "s", FieldId(4): "old"}
    table = table_version(lake, "t", schema, first)
    [file] = written(spark, lake, table, "SELECT 1 now, 2 back, named_struct('new', 3) s").files

    assert [(f.name, f.id) for f in file.layout.fields] == [("before", 1), ("back", 2), ("s", 3)]
    assert [(f.name, f.id) for f in file.layout.fields[2].children] == [("old", 4)]


def test_a_name_that_another_id_had_first_gets_the_id_behind_it(spark, lake, door):
    # Column 2 was dropped and column 4 took its name; column 3 took the name that 1 had given up.
    schema = columns(b="int32", skipped="int32", c="int32", x="int32")
    live = schema.replace(("skipped",), None)
    first = {FieldId(1): "a", FieldId(2): "X", FieldId(3): "A", FieldId(4): "x"}
    table = table_version(lake, "t", live, first)
    [file] = written(spark, lake, table, "SELECT 1 b, 2 c, 3 x").files

    assert [(f.name, f.id) for f in file.layout.fields] == [("a", 1), ("A_3", 3), ("x_4", 4)]


def test_statistics_are_those_that_duckdb_writes_for_the_same_rows(spark, lake):
    kinds = {
        "bo": ("boolean", "BOOLEAN"), "i8": ("int8", "TINYINT"), "i64": ("int64", "BIGINT"),
        "u8": ("uint8", "UTINYINT"), "u64": ("uint64", "UBIGINT"), "f": ("float32", "FLOAT"),
        "d": ("float64", "DOUBLE"), "p": ("decimal(5,2)", "DECIMAL(5,2)"),
        "q": ("decimal(30,4)", "DECIMAL(30,4)"), "da": ("date", "DATE"), "ti": ("time", "TIME"),
        "ts": ("timestamp_ntz", "TIMESTAMP"), "tz": ("timestamp", "TIMESTAMPTZ"),
        "s": ("string", "VARCHAR"), "j": ("json", "JSON"), "u": ("uuid", "UUID"),
        "b": ("binary", "BLOB"), "n": ("int32", "INTEGER"), "l": ("int[]", "INTEGER[]"),
        "st": ("struct<x:string>", "STRUCT(x VARCHAR)"),
    }  # fmt: skip
    lake.create("t", ", ".join(f"{name} {duckdb}" for name, (_, duckdb) in kinds.items()))
    lake.create("twin", ", ".join(f"{name} {duckdb}" for name, (_, duckdb) in kinds.items()))
    table = table_version(lake, "t", columns(**{name: kind for name, (kind, _) in kinds.items()}))
    query = """SELECT true bo, 5Y i8, 9L i64, 255 u8, 18446744073709551615 u64, 1.1F f, 1e300D d,
        -1.5 p, 2.25 q, DATE'2024-01-02' da, '01:02:03.000004' ti,
        TIMESTAMP_NTZ'1969-12-31T23:59:59.999999' ts, TIMESTAMP'2024-01-01T00:00:00+02:00' tz,
        'b' s, '{}' j, 'F79C3E09-677C-4BBD-A479-3F349CB785E7' u, X'00FF' b, CAST(NULL AS INT) n,
        array(3, 1) l, named_struct('x', 'é') st
        UNION ALL SELECT false, -5Y, -9L, 0, 0, -1.0F, double('-inf'), 1.25, -2.25,
        DATE'1969-12-31', '23:59:59', TIMESTAMP_NTZ'2024-01-02T03:04:05',
        TIMESTAMP'2024-01-01T00:00:00.5Z', 'aa', '[]', '00000000-0000-0000-0000-000000000000',
        X'FF', NULL, array(2), NULL"""
    lake.publish("t", written(spark, lake, table, query).files)
    with lake.oracle() as oracle:
        oracle.execute("INSERT INTO twin SELECT * FROM t")
        found: dict[int, dict[int, tuple[object, ...]]] = {1: {}, 2: {}}
        for row in oracle.dump_metadata()["ducklake_file_column_stats"]:
            keys = ("value_count", "null_count", "min_value", "max_value", "contains_nan")
            found[row["table_id"]][row["column_id"]] = tuple(row[key] for key in keys)

    assert found[1] == found[2]
    assert found[1][14] == (2, 0, "aa", "b", None)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["1, 2, 3", "3, 1, 2", "2, 3, 1"])
@pytest.mark.parametrize("kind", ["double", "float"])
def test_a_nan_hides_the_bounds_of_its_file_and_is_told(spark, lake, door, kind, order):
    table = table_version(lake, "t", columns(c=kind))
    query = f"SELECT if(v = 3, {kind}('NaN'), {kind}(v)) c FROM (SELECT explode(array({order})) v)"
    [file] = written(spark, lake, table, query).files

    [stats] = file.stats
    assert (stats.value_count, stats.min_value, stats.max_value) == (3, None, None)
    assert stats.contains_nan is True


def test_duckdb_finds_a_nan_and_a_negative_zero(spark, lake):
    lake.create("t", "c DOUBLE")
    table = table_version(lake, "t", columns(c="double"))
    query = "SELECT double(v) c FROM (SELECT explode(array('NaN', '-0.0', '1')) v)"
    lake.publish("t", written(spark, lake, table, query).files)

    with lake.oracle() as oracle:
        [(nan,)] = oracle.sql("SELECT c FROM t WHERE c > 1")
        assert isnan(nan)
        assert oracle.sql("SELECT c::VARCHAR FROM t WHERE c = 0") == [("-0.0",)]


def test_a_negative_zero_is_a_zero_in_the_bounds(spark, lake, door):
    table = table_version(lake, "t", columns(c="double"))
    [file] = written(spark, lake, table, "SELECT double('-0.0') c").files

    [stats] = file.stats
    assert (stats.min_value, stats.max_value, stats.contains_nan) == ("0.0", "0.0", False)


def test_long_texts_are_cut_so_that_they_still_bound(spark, lake):
    lake.create("t", "c VARCHAR")
    table = table_version(lake, "t", columns(c="string"))
    query = "SELECT repeat('a', 300) c UNION ALL SELECT repeat('é', 200)"
    [file] = written(spark, lake, table, query).files
    lake.publish("t", [file])

    [stats] = file.stats
    assert (stats.min_value, stats.max_value) == ("a" * 256, "é" * 127 + "ê")
    with lake.oracle() as oracle:
        assert oracle.sql("SELECT count(*) FROM t WHERE c = repeat('é', 200)") == [(1,)]
        assert oracle.sql("SELECT count(*) FROM t WHERE c = repeat('a', 300)") == [(1,)]


def test_a_text_too_long_for_the_footer_has_no_statistics(spark, lake):
    lake.create("t", "c VARCHAR")
    table = table_version(lake, "t", columns(c="string"))
    [file] = written(spark, lake, table, "SELECT repeat('a', 100000) c").files
    lake.publish("t", [file])

    assert [s for s in file.stats if s.min_value is not None] == []
    with lake.oracle() as oracle:
        assert oracle.sql("SELECT count(*) FROM t WHERE c LIKE 'a%'") == [(1,)]
        assert oracle.sql("SELECT count(*) FROM t WHERE c IS NOT NULL") == [(1,)]


@pytest.mark.slow
def test_row_groups_are_merged_into_one_row_of_statistics(spark, lake):
    table = table_version(lake, "t", columns(c="int64", p="string"))
    rows = spark.range(0, 300_000, 1, 1).selectExpr("id c", "uuid() p")
    spark.sparkContext._jsc.hadoopConfiguration().set("parquet.block.size", str(1 << 20))
    try:
        [file] = write_files(spark, rows, table).files
    finally:
        spark.sparkContext._jsc.hadoopConfiguration().unset("parquet.block.size")

    assert pyarrow.parquet.read_metadata(table.path + file.path).num_row_groups > 1
    stats = file.stats[0]
    assert (stats.min_value, stats.max_value, stats.value_count) == ("0", "299999", 300_000)


def test_nothing_is_said_about_floats_where_nan_may_hide(spark, lake, door):
    lake.create("t", "c DOUBLE, l INTEGER[]")
    table = table_version(lake, "t", columns(c="float64", l="int[]"))
    query = "SELECT c, array(1) l FROM VALUES (1D), (double('NaN')), (null) AS found(c)"
    [file] = written(spark, lake, table, query).files
    lake.publish("t", [file])

    told = [s for s in file.stats if s.column_id == table.columns.fields[0].id]
    assert [s.max_value for s in told] in ([], [None])
    assert [s.contains_nan for s in told] in ([], [True])
    with lake.oracle() as oracle:
        assert oracle.sql("SELECT count(*) FROM t WHERE c > 5") == [(1,)]


def test_footer_size_is_the_length_that_the_file_tells(spark, lake, door):
    table = table_version(lake, "t", columns(c="int64"))
    [file] = written(spark, lake, table, "SELECT 1L c").files

    content = Path(table.path, file.path).read_bytes()
    assert file.file_size_bytes == len(content)
    assert file.footer_size == int.from_bytes(content[-8:-4], "little")


def test_no_rows_leave_no_file_and_no_directory(spark, lake, door):
    for name, kind in (("t", "int64"), ("l", "int[]")):
        table = table_version(lake, name, columns(c=kind))
        none = assign(spark.range(1).where("id < 0").selectExpr("null c"), table)

        assert write_files(spark, none, table).files == ()
        assert list(Path(table.path).glob("*")) == []


def test_tasks_without_rows_leave_no_file(spark, lake, door):
    table = table_version(lake, "t", columns(c="int64"))
    rows = spark.range(0, 10, 1, 4).where("id >= 8").selectExpr("id c")
    found = write_files(spark, rows, table)

    assert [f.record_count for f in found.files] == [2]
    assert len(list(Path(table.path).rglob("*.parquet"))) == 1


@pytest.mark.parametrize("kind", ["int64", "array<int64>"])
def test_a_failed_write_leaves_nothing(spark, lake, door, kind):
    table = table_version(lake, "t", columns(c=f"{kind} not null"))
    value = "if(id = 7, null, id)" if kind == "int64" else "if(id = 7, null, array(id))"
    rows = assign(spark.range(10).selectExpr(f"{value} c"), table)

    with pytest.raises(InvalidRequest, match=r"^column c of main\.t is NOT NULL, got NULL$"):
        write_files(spark, rows, table)
    assert list(Path(table.path).glob("*")) == []


def test_rows_that_are_not_yet_those_of_the_table_are_refused(spark, lake):
    table = table_version(lake, "t", columns(c="int64", s="struct<a: int, b: int>"))

    with pytest.raises(InvalidRequest, match="pass them through store assignment first"):
        write_files(spark, spark.sql("SELECT 1L c, named_struct('b', 1, 'a', 2) s"), table)


def test_discarded_files_are_gone_with_their_directory(spark, lake):
    table = table_version(lake, "t", columns(c="int64"))
    kept = write_files(spark, spark.range(3).selectExpr("id c"), table)
    dropped = write_files(spark, spark.range(3).selectExpr("id c"), table)
    discard(table, [f.path for f in dropped.files])

    remaining = {str(p.relative_to(table.path)) for p in Path(table.path).rglob("*.parquet")}
    assert remaining == {f.path for f in kept.files}
    assert len(list(Path(table.path).iterdir())) == 1


def test_progress_hears_of_rows_files_and_bytes(spark, lake):
    table = table_version(lake, "t", columns(c="int64"))
    heard: list[tuple[int, int, int]] = []
    rows = spark.range(0, 10, 1, 2).selectExpr("id c")
    found = write_files(spark, rows, table, progress=lambda *told: heard.append(told))

    assert [(r, n) for r, n, _ in heard] == [(5, 1), (10, 2)]
    assert heard[-1] == (found.rows, len(found.files), found.bytes)
    assert found.bytes == sum(p.stat().st_size for p in Path(table.path).rglob("*.parquet"))


def test_footers_of_many_files_are_read_in_the_executors(spark, lake, monkeypatch):
    monkeypatch.setattr(footers, "is_one_machine", lambda _: False)
    table = table_version(lake, "t", columns(c="int64"))
    rows = spark.range(0, 700, 1, 70).selectExpr("id c")
    found = write_files(spark, rows, table)

    assert [int(f.stats[0].min_value or -1) for f in found.files] == list(range(0, 700, 10))
    assert {f.record_count for f in found.files} == {10}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"},
        {"spark.sql.parquet.fieldId.write.enabled": "false"},
        {"spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY"},
        {"spark.sql.parquet.writeLegacyFormat": "true"},
    ],
)
def test_a_plain_write_needs_no_settings_of_the_session(spark, lake, monkeypatch, settings):
    without_bridge(monkeypatch)
    table = table_version(lake, "t", columns(c="timestamp", d="decimal(9,2)", e="date"))
    for key, value in settings.items():
        spark.conf.set(key, value)
    before, ended = spark.conf.getAll, threading.Event()
    with ThreadPoolExecutor(1) as other:
        seen = other.submit(lambda: [*iter(lambda: ended.is_set() or spark.conf.getAll, True)])
        try:
            query = "SELECT TIMESTAMP'1500-01-01T00:00:00Z' c, 1.5BD d, DATE'1500-01-01' e"
            [file] = written(spark, lake, table, query).files
        finally:
            ended.set()
            looks = seen.result()
            for key in settings:
                spark.conf.unset(key)
    assert looks
    assert all(each == before for each in looks)
    assert [s.max_value for s in file.stats] == ["1500-01-01 00:00:00+00", "1.50", "1500-01-01"]


@pytest.mark.parametrize("beside", ["timestamp", "int64[]"])
def test_pyarrow_writes_no_variant(spark, lake, monkeypatch, beside):
    without_bridge(monkeypatch)
    table = table_version(lake, "t", columns(c=beside, v="variant"))
    with pytest.raises(Unsupported, match=r"^cannot write VARIANT over Spark Connect beside lists"):
        written(spark, lake, table, "SELECT CAST(NULL AS VOID) c, parse_json('1') v")


def test_a_session_that_writes_no_ids_cannot_write_delete_files(spark, tmp_path):
    key = "spark.sql.parquet.fieldId.write.enabled"
    spark.conf.set(key, "false")
    try:
        with pytest.raises(Unsupported, match=rf"^the session has {key} = false; set it to true"):
            write_plain_parts(spark, spark.range(1), "id", str(tmp_path), "zstd")
    finally:
        spark.conf.unset(key)


def test_the_compression_is_the_one_asked_for(spark, lake, door):
    table = table_version(lake, "t", columns(c="int64"))
    table = replace(table, options=replace(table.options, parquet_compression="zstd"))
    rows = spark.range(3).selectExpr("id c").coalesce(1)
    [file] = write_files(spark, rows, table).files

    metadata = pyarrow.parquet.read_metadata(table.path + file.path)
    assert metadata.row_group(0).column(0).compression == "ZSTD"


@pytest.mark.parametrize("keys", [[], ["d"]])
def test_a_task_that_outlives_its_job_makes_no_directory(tmp_path, keys):
    gone = tmp_path / "gone"
    rows = pa.record_batch([pa.array([1]), pa.array(["1"])], ["c", "d"])
    write = _writer(pa.schema([("c", pa.int64())]), keys, str(gone), None, {})
    with pytest.raises(FileNotFoundError):
        list(write(iter([rows])))
    assert not gone.exists()
    gone.mkdir()
    [names] = write(iter([rows]))
    assert (gone / names.to_pylist()[0]["name"]).exists()
