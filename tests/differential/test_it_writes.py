"""What DuckDB writes in its own ways, Shelduck reads: at every snapshot, the rows DuckDB sees."""

from __future__ import annotations

import pytest

import shelduck
from shelduck.errors import Unsupported
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.no_bridge import without_bridge
from tests.support.normal import duckdb_rows, spark_rows, spark_rows_by_key
from tests.support.oracle import at

pytestmark = [pytest.mark.every_database, pytest.mark.usefixtures("ducklake_version")]

# Small changes stay in the catalog, larger ones become files; maintenance moves them about.
LIFE = (
    "CREATE TABLE t (id INTEGER, v VARCHAR, s STRUCT(a INTEGER, b VARCHAR[]), seen TIMESTAMPTZ)",
    (
        "INSERT INTO t VALUES (1, 'it''s \"q\"', {'a': 1, 'b': ['x, y', NULL, '']},"
        " '2024-01-01 00:00:00+02'), (2, NULL, NULL, NULL)"
    ),
    "INSERT INTO t SELECT i, 'v' || i, {'a': i, 'b': []}, NULL FROM range(100, 160) r(i)",
    "DELETE FROM t WHERE id IN (100, 101)",
    "DELETE FROM t WHERE id BETWEEN 110 AND 125",
    "UPDATE t SET v = 'inlined update' WHERE id IN (1, 105)",
    "UPDATE t SET s = {'a': -1, 'b': NULL} WHERE id BETWEEN 130 AND 145",
    "DELETE FROM t WHERE id = 2",
    "ALTER TABLE t ADD COLUMN n BIGINT DEFAULT 7",
    "INSERT INTO t VALUES (3, 'three', NULL, NULL, NULL)",
    "DELETE FROM t WHERE id IN (3, 126, 127)",
    "ALTER TABLE t RENAME COLUMN v TO w",
    "ALTER TABLE t ALTER id TYPE BIGINT",
    "INSERT INTO t VALUES (4, 'four', {'a': 4, 'b': ['f']}, '1969-12-31 23:59:59.5+00', 4)",
    "CALL ducklake_flush_inlined_data('lake')",
    "INSERT INTO t SELECT i, 'w' || i, NULL, NULL, i FROM range(200, 220) r(i)",
    "INSERT INTO t SELECT i, 'w' || i, NULL, NULL, i FROM range(220, 240) r(i)",
    "CALL ducklake_merge_adjacent_files('lake')",
    "UPDATE t SET n = n + 1 WHERE id BETWEEN 215 AND 230",
    "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)",
    "ALTER TABLE t DROP COLUMN s",
    "DELETE FROM t WHERE id > 230",
    "CHECKPOINT",
    "DELETE FROM t",
    "INSERT INTO t VALUES (5, 'after all', NULL, 5)",
)


@pytest.mark.slow
def test_a_table_is_read_through_all_that_happens_to_it(lake_url, data_path, spark):
    with oracle_at(lake_url, data_path) as oracle:
        for statement in LIFE:
            oracle.execute(statement)
        versions = range(1, oracle.snapshot() + 1)
        expected = {v: duckdb_rows(oracle, at("t", v)) for v in versions}
        times = {
            v: str(when)
            for v, when in oracle.sql(
                "SELECT snapshot_id, snapshot_time::VARCHAR"
                " FROM ducklake_snapshots('lake') WHERE snapshot_id > 0"
            )
        }
        by_time = {
            v: duckdb_rows(oracle, f"t AT (TIMESTAMP => '{when}'::TIMESTAMPTZ)")
            for v, when in times.items()
        }
    with shelduck.connect(lake_url, spark=spark) as lake:
        table = lake.table("t")
        found = spark_rows_by_key({v: table.read(version=v) for v in expected})
        last = max(expected)
        now = spark_rows(table.read(timestamp=times[last]))
    assert found == expected
    assert by_time == expected
    assert now == expected[last]
    assert len(expected) > len(LIFE) - 2


ODD_TYPES = (
    "h HUGEINT, uh UHUGEINT, t TIME, tz TIMETZ, j JSON, u UUID, bl BLOB, ns TIMESTAMP_NS, f FLOAT,"
    " b BOOLEAN, dec DECIMAL(30,5)"
)
ODD_ROWS = (
    (
        "12, 13, '01:02:03.5', '01:02:03.25+00', '{\"a\": [1, null]}',"
        " 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '\\x00\\xFFq''\"'::BLOB,"
        " '2024-01-01 00:00:00.123456789', 'NaN', true, -0.00001"
    ),
    ", ".join(["NULL"] * 11),
    (
        "-5, 0, '00:00:00', '00:00:00+00', 'null', '00000000-0000-0000-0000-000000000000', '',"
        " '1969-12-31 23:59:59.999999999', '-Infinity', false, 0"
    ),
)
# DuckDB cannot read such values in rows that it inlined into SQLite and PostgreSQL itself.
NESTED_TYPES = (
    "us UUID[], st STRUCT(t TIME, u UUID, j JSON, d DECIMAL(20,3), bl BLOB, day DATE),"
    " mt MAP(DATE, TIMESTAMP), lz TIMESTAMPTZ[]"
)
NESTED_ROWS = (
    (
        "['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', NULL],"
        " {'t': '23:59:59.999999', 'u': 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'j': '[1]',"
        " 'd': -1.5, 'bl': '\\x01'::BLOB, 'day': '2024-02-29'},"
        " MAP {DATE '2024-01-01': TIMESTAMP '2024-01-01 10:00:00.000001'},"
        " ['2024-01-01 00:00:00+02', NULL]"
    ),
    "NULL, NULL, NULL, NULL",
    "[], {'t': NULL, 'u': NULL, 'j': NULL, 'd': NULL, 'bl': NULL, 'day': NULL}, MAP {}, []",
)


@pytest.mark.parametrize("limit", [0, 1000], ids=["files", "inlined"])
def test_types_without_a_word_in_spark_are_read_by_the_documented_mapping(
    lake_url, data_path, spark, limit, ducklake_version
):
    tables = {"odd": (ODD_TYPES, ODD_ROWS)}
    if limit == 0 or lake_url.startswith("duckdb"):
        tables["nested"] = (NESTED_TYPES, NESTED_ROWS)
    with oracle_at(lake_url, data_path, {"DATA_INLINING_ROW_LIMIT": limit}) as oracle:
        for name, (types, rows) in tables.items():
            oracle.execute(f"CREATE TABLE {name} ({types})")
            for row in rows:
                oracle.execute(f"INSERT INTO {name} VALUES ({row})")
        if ducklake_version == "1.1":
            # ducklakepy writes them as decimals of 76 digits, which Spark does not read.
            oracle.execute("ALTER TABLE odd DROP COLUMN h")
            oracle.execute("ALTER TABLE odd DROP COLUMN uh")
        expected = {name: duckdb_rows(oracle, name) for name in tables}
    with shelduck.connect(lake_url, spark=spark) as lake:
        assert {name: spark_rows(lake.table(name).read()) for name in tables} == expected


@pytest.mark.versions("1.0")
@pytest.mark.parametrize("limit", [0, 1000], ids=["files", "inlined"])
def test_a_column_that_spark_cannot_hold_is_refused_by_name_and_only_when_it_is_read(
    sqlite_url, data_path, spark, limit
):
    with oracle_at(sqlite_url, data_path, {"DATA_INLINING_ROW_LIMIT": limit}) as oracle:
        oracle.execute("CREATE TABLE t (id INTEGER, pause INTERVAL)")
        oracle.execute("INSERT INTO t VALUES (1, INTERVAL '1 month'), (2, NULL)")
    with shelduck.connect(sqlite_url, spark=spark) as lake:
        with pytest.raises(Unsupported, match=r"pause.*interval"):
            lake.table("t").read()
        assert spark_rows(lake.table("t").read(columns=["id"])) == [(1,), (2,)]
        with pytest.raises(Unsupported, match=r"pause.*interval"):
            lake.sql("SELECT * FROM t")


@pytest.mark.versions("1.0")
def test_geometry_and_variant_are_read(sqlite_url, data_path, spark):
    with oracle_at(sqlite_url, data_path) as oracle:
        oracle.execute("CREATE TABLE g (id INTEGER, g GEOMETRY)")
        oracle.execute("INSERT INTO g VALUES (1, 'POINT(1 2)'::GEOMETRY), (2, NULL)")
        oracle.execute("CREATE TABLE v (id INTEGER, v VARIANT)")
        oracle.execute("INSERT INTO v VALUES (1, 5::VARIANT), (2, NULL), (3, 'x'::VARIANT)")
        oracle.execute("INSERT INTO v VALUES (4, {'a': [1, 2], 'b': NULL}::VARIANT)")
        shapes = duckdb_rows(oracle, "g")
        values = duckdb_rows(oracle, "v")
    with shelduck.connect(sqlite_url, spark=spark) as lake:
        assert spark_rows(lake.table("g").read()) == shapes
        assert spark_rows(lake.table("v").read()) == values


@pytest.mark.parametrize("limit", [0, 1000], ids=["files", "inlined"])
def test_moments_beyond_the_calendar_of_python_are_exact(sqlite_url, data_path, spark, limit):
    with oracle_at(sqlite_url, data_path, {"DATA_INLINING_ROW_LIMIT": limit}) as oracle:
        oracle.execute("CREATE TABLE t (id INTEGER, d DATE, ts TIMESTAMP, tz TIMESTAMPTZ)")
        oracle.execute(
            "INSERT INTO t VALUES (1, '0044-03-15 (BC)', '0044-03-15 (BC) 12:00:00',"
            " '0044-03-15 (BC) 12:00:00+00'), (2, '99999-12-31', '99999-12-31 23:59:59.999999',"
            " '99999-12-31 23:59:59.999999+00'), (3, '1500-02-28', '1500-02-28 00:00:00',"
            " '1500-02-28 00:00:00+00')"
        )
        expected = oracle.sql(
            "SELECT id, d - DATE '1970-01-01', epoch_us(ts), epoch_us(tz) FROM t ORDER BY id"
        )
    with shelduck.connect(sqlite_url, spark=spark) as lake:
        found = (
            lake.table("t")
            .read()
            .selectExpr(
                "id", "unix_date(d)", "unix_micros(CAST(ts AS TIMESTAMP))", "unix_micros(tz)"
            )
        )
        assert sorted(tuple(row) for row in found.collect()) == expected


PARTITIONS = (
    "CREATE TABLE t (id INTEGER, region VARCHAR, seen TIMESTAMP, n BIGINT)",
    "INSERT INTO t SELECT i, 'r', TIMESTAMP '2020-01-01' + INTERVAL (i) DAY, i FROM range(20) r(i)",
    "ALTER TABLE t SET PARTITIONED BY (region)",
    (
        "INSERT INTO t SELECT i, CASE i % 4 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN 'x/y z=%'"
        " ELSE 'é' END, TIMESTAMP '2021-01-01' + INTERVAL (i * 20) DAY, i FROM range(20, 60) r(i)"
    ),
    "ALTER TABLE t SET PARTITIONED BY (year(seen), month(seen), bucket(4, n))",
    (
        "INSERT INTO t SELECT i, 'b', TIMESTAMP '2022-11-20' + INTERVAL (i) DAY, i"
        " FROM range(60, 100) r(i)"
    ),
    "DELETE FROM t WHERE id % 3 = 0",
    "UPDATE t SET region = 'moved' WHERE id BETWEEN 70 AND 90",
    "ALTER TABLE t RENAME COLUMN region TO place",
    "ALTER TABLE t ALTER n TYPE HUGEINT",
    "INSERT INTO t SELECT i, NULL, NULL, NULL FROM range(100, 120) r(i)",
    "ALTER TABLE t RESET PARTITIONED BY",
    "INSERT INTO t SELECT i, 'late', NULL, i FROM range(120, 140) r(i)",
    "CALL ducklake_merge_adjacent_files('lake')",
)


@pytest.mark.slow
def test_partitioned_tables_are_read_and_filtered(sqlite_url, data_path, spark, ducklake_version):
    # ducklakepy writes a HUGEINT as a decimal of 76 digits, which Spark does not read.
    story = [s for s in PARTITIONS if ducklake_version == "1.0" or "HUGEINT" not in s]
    with oracle_at(sqlite_url, data_path, {"DATA_INLINING_ROW_LIMIT": 0}) as oracle:
        for statement in story:
            oracle.execute(statement)
        expected = {v: duckdb_rows(oracle, at("t", v)) for v in range(1, oracle.snapshot() + 1)}
        conditions = (
            "place IS NULL", "place = 'x/y z=%'", "place = ''", "place > 'r'", "n = 77",
            "seen >= TIMESTAMP_NTZ '2023-01-01' AND n < 80", "id = 101",
        )  # fmt: skip
        counts = [
            oracle.sql(f"SELECT count(*) FROM t WHERE {c.replace('_NTZ', '')}") for c in conditions
        ]
    with shelduck.connect(sqlite_url, spark=spark) as lake:
        table = lake.table("t")
        found = spark_rows_by_key({v: table.read(version=v) for v in expected})
        frame = lake.table("t").read()
        filtered = [[(frame.where(c).count(),)] for c in conditions]
    assert found == expected
    assert dict(zip(conditions, filtered, strict=True)) == dict(
        zip(conditions, counts, strict=True)
    )


@pytest.mark.slow
def test_deletion_vectors_are_read(lake_url, data_path, spark):
    with oracle_at(lake_url, data_path, {"DATA_INLINING_ROW_LIMIT": 0}) as oracle:
        oracle.execute("CALL lake.set_option('write_deletion_vectors', true)")
        oracle.execute("CREATE TABLE t AS SELECT i AS id, 'v' || i AS v FROM range(1000) r(i)")
        oracle.execute("DELETE FROM t WHERE id < 100")
        oracle.execute("DELETE FROM t WHERE id % 10 = 3")
        oracle.execute("UPDATE t SET v = 'new' WHERE id BETWEEN 500 AND 510")
        expected = {v: duckdb_rows(oracle, at("t", v)) for v in range(1, oracle.snapshot() + 1)}
        kinds = {row["format"] for row in oracle.dump_metadata()["ducklake_delete_file"]}
    with shelduck.connect(lake_url, spark=spark) as lake:
        table = lake.table("t")
        found = spark_rows_by_key({v: table.read(version=v) for v in expected})
    assert kinds == {"puffin"}
    assert found == expected


def test_inlined_structs_hold_what_was_inserted_even_where_duckdb_cannot_read_them(
    lake_url, data_path, spark
):
    # In SQLite and PostgreSQL DuckDB 1.5.5 writes them as SQL literals and reads them as text.
    with oracle_at(lake_url, data_path) as oracle:
        oracle.execute("CREATE TABLE t (s STRUCT(a VARCHAR, day DATE, u UUID, f DOUBLE, bl BLOB))")
        oracle.execute(
            "INSERT INTO t VALUES ({'a': 'it''s \"q\" a\\b', 'day': '2024-02-29',"
            " 'u': 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'f': 'NaN', 'bl': '\\x00''q'::BLOB})"
        )
    with shelduck.connect(lake_url, spark=spark) as lake:
        assert spark_rows(lake.table("t").read()) == [
            (
                (
                    'it\'s "q" a\\b',
                    "2024-02-29",
                    "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
                    "nan",
                    b"\x00'q",
                ),
            )
        ]


@pytest.mark.versions("1.0")
@pytest.mark.parametrize("door", ["bridge", pytest.param("no bridge", marks=pytest.mark.slow)])
def test_variants_are_written_and_null_is_null(sqlite_url, data_path, spark, door, monkeypatch):
    if door != "bridge":
        without_bridge(monkeypatch)
    steps = (
        "CREATE TABLE t (id INT, v VARIANT)",
        """INSERT INTO t SELECT id, parse_json(concat('{"a": ', id, ', "b": [1, null]}'))
             FROM range(1, 40)""",
        "INSERT INTO t VALUES (50, NULL), (51, parse_json('null'))",
        "UPDATE t SET v = parse_json('{\"z\": 1.5}') WHERE id = 7",
        "DELETE FROM t WHERE variant_get(v, '$.a', 'int') BETWEEN 10 AND 39",
        # DuckDB reads a variant in a struct, but cannot write one.
        "CREATE TABLE n (s STRUCT<p: VARIANT, q: INT>)",
        "INSERT INTO n SELECT named_struct('p', parse_json('\"x\"'), 'q', 1)",
    )
    with shelduck.connect(sqlite_url, data_path, spark) as lake, oracle_at(sqlite_url) as oracle:
        lake.sql("CALL set_option('data_inlining_row_limit', 0)")
        for step in steps:
            lake.sql(step)
        oracle.execute("INSERT INTO t VALUES (60, 5::VARIANT), (61, NULL)")
        assert oracle.sql("FROM n") == [({"p": "x", "q": 1},)]
        values = duckdb_rows(oracle, "t")
        assert len(values) == 13
        assert spark_rows(lake.table("t").read()) == values
        lake.table("t").compact()
        assert duckdb_rows(oracle, "t") == values == spark_rows(lake.table("t").read())
        query = "SELECT id FROM t WHERE v IS NULL ORDER BY id"
        assert oracle.sql(query) == lake.sql(query).collect() == [(50,), (51,), (61,)]
        lake.sql("ALTER TABLE t ADD COLUMN w STRING")
        lake.sql("ALTER TABLE t ALTER v TYPE STRING USING to_json(v)")
        assert oracle.sql("SELECT v FROM t WHERE id IN (7, 61) ORDER BY id") == [
            ('{"z":1.5}',),
            (None,),
        ]
