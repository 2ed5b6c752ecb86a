"""Files that readers of Iceberg would misread: told before an export, written anew when asked."""

from __future__ import annotations

import uuid
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shelduck
from shelduck.errors import Unsupported
from tests.support.iceberg import IcebergReaders
from tests.support.normal import duckdb_rows, spark_rows
from tests.support.oracle import DuckDBOracle

NO_INLINING = {"DATA_INLINING_ROW_LIMIT": 0}
FIRST_UUID = "00000000-0000-0000-0000-000000000001"


@pytest.fixture
def lake(spark, sqlite_url, data_path):
    """A lake whose small writes go into files."""
    with shelduck.connect(sqlite_url, data_path, spark) as found:
        found.set_option("data_inlining_row_limit", 0)
        yield found


@pytest.fixture
def duckdb(lake, sqlite_url):
    """Runs statements in DuckDB, which writes its own files into the lake."""

    def run_there(*statements):
        with DuckDBOracle(sqlite_url, None, NO_INLINING) as oracle:
            for statement in statements:
                oracle.execute(statement)

    return run_there


@pytest.fixture
def file(tmp_path):
    """Writes a Parquet file of somebody else, below a folder of its own."""

    def write(name, table, ids=None):
        place = tmp_path / "theirs" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if ids is not None:
            fields = [
                f.with_metadata({b"PARQUET:field_id": str(i).encode()})
                for f, i in zip(table.schema, ids, strict=True)
            ]
            table = pa.Table.from_arrays(table.columns, schema=pa.schema(fields))
        pq.write_table(table, place, store_schema=False)
        return str(place)

    return write


def run(lake, *statements):
    for statement in statements:
        lake.sql(statement)


def by_both(rows):
    return {"duckdb": rows, "pyiceberg": rows}


def reasons(report):
    return [reason for found in report.rewrites for reason in found.reasons]


def refused(table, place):
    """The report of a table that is not ready, after making sure that an export is refused."""
    report = table.plan_export("iceberg")
    with pytest.raises(Unsupported) as caught:
        table.export_iceberg(place)
    assert str(caught.value) == str(report)
    assert not place.exists()
    return report


def test_a_widening_that_iceberg_has_not_needs_new_files(lake, tmp_path):
    run(
        lake,
        "CREATE TABLE t (id INT, c INT) TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
        "INSERT INTO t VALUES (1, 6), (2, 7)",
        "ALTER TABLE t ALTER COLUMN c TYPE DOUBLE",
        "INSERT INTO t VALUES (3, 6.25D)",
    )
    table, place = lake.table("t"), tmp_path / "out"

    report = refused(table, place)
    [old] = [r.data_file_id for r in table.files().collect() if r.record_count == 2]
    assert [f.file_id for f in report.rewrites] == [old]
    assert reasons(report) == ["column 'c' is int32 in the file, not double"]
    assert f"table.rewrite([{old}])" in str(report)

    done = table.export_iceberg(place, rewrite=True)
    readers = IcebergReaders(place)
    assert readers.rows() == by_both([(1, "6.0"), (2, "7.0"), (3, "6.25")])
    assert readers.rows("c < 6.5", columns="id") == by_both([(1,), (3,)])
    assert done.snapshot == table.history()[0].id
    assert done.report.is_ready


def test_floats_that_are_rewritten_as_doubles_are_found(lake, tmp_path):
    run(
        lake,
        "CREATE TABLE t (id INT, f FLOAT)",
        "INSERT INTO t VALUES (1, 1.1)",
        "ALTER TABLE t ALTER COLUMN f TYPE DOUBLE",
    )
    table = lake.table("t")
    [found] = table.files().collect()
    table.rewrite([found.data_file_id])
    done = table.export_iceberg(tmp_path / "out")

    assert done.report.losses == ()
    readers = IcebergReaders(tmp_path / "out")
    assert readers.rows("f > 1.1", columns="id") == by_both([(1,)])
    assert readers.rows("f = 1.100000023841858", columns="id") == by_both([(1,)])


def test_what_duckdb_wrote_is_shown_as_it_is_stored(lake, duckdb, tmp_path, sqlite_url):
    duckdb(
        "CREATE TABLE t (id INTEGER, u UUID, ti TIME, n TIMESTAMP_NS, s TIMESTAMP_S, j JSON,"
        " b BLOB, w SMALLINT, d DECIMAL(18,3), x STRUCT(a UUID))",
        f"INSERT INTO t VALUES (1, '{FIRST_UUID}', '01:02:03.5', '2024-01-01 00:00:00.123456789',"
        f" '2024-01-01 00:00:01', '[1]', '\\x00\\xFF', 255, 1.125, {{'a': '{FIRST_UUID}'}}),"
        " (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        "DELETE FROM t WHERE id > 5",
    )
    table = lake.table("t")
    done = table.export_iceberg(tmp_path / "out")

    readers = IcebergReaders(tmp_path / "out")
    with DuckDBOracle(sqlite_url) as oracle:
        assert readers.rows() == by_both(duckdb_rows(oracle, "t"))
    assert readers.types() == {
        "id": "int",
        "u": "uuid",
        "ti": "time",
        "n": "timestamp_ns",
        "s": "timestamp",
        "j": "string",
        "b": "binary",
        "w": "int",
        "d": "decimal(18, 3)",
        "x": "struct<11: a: optional uuid>",
    }
    assert [loss.subject for loss in done.report.losses] == [
        "column 'j'",
        "column 'ti'",
        "column 'n'",
    ]


def test_files_that_differ_from_those_of_shelduck_are_brought_to_its_form(
    lake, duckdb, tmp_path, sqlite_url
):
    columns = "id INTEGER, u UUID, ti TIME, tz TIMETZ, ms TIMESTAMP_MS"
    duckdb(
        f"CREATE TABLE t ({columns}, u1 UTINYINT, u2 USMALLINT, u4 UINTEGER, u8 UBIGINT)",
        f"INSERT INTO t VALUES (1, '{FIRST_UUID}', '01:02:03', '01:02:03+00',"
        " '2024-01-01 00:00:00.5', 255, 65535, 4294967295, 18446744073709551615)",
    )
    table = lake.table("t")
    run(
        lake,
        f"INSERT INTO t VALUES (2, '{uuid.UUID(int=2)}', '04:05:06', '04:05:06+00',"
        " TIMESTAMP_NTZ'2024-01-02 00:00:00', 3, 4, 5, 6)",
    )

    assert reasons(refused(table, tmp_path / "out")) == [
        "column 'u' is uuid (fixed) in the file, not string",
        "column 'ti' is time in the file, not string",
        "column 'tz' is timetz in the file, not string",
        "column 'ms' is timestamp_ms in the file, not timestamp",
        "column 'u1' is uint8 in the file, not int",
        "column 'u2' is uint16 in the file, not int",
        "column 'u4' is uint32 in the file, not long",
        "column 'u8' is uint64 in the file, not decimal(20, 0)",
    ]
    table.export_iceberg(tmp_path / "out", rewrite=True)

    readers = IcebergReaders(tmp_path / "out")
    with DuckDBOracle(sqlite_url) as oracle:
        assert readers.rows() == by_both(duckdb_rows(oracle, "t"))
    assert readers.rows("u4 > 4294967294", columns="id") == by_both([(1,)])


def test_annotated_integers_that_became_longs_need_new_files(lake, duckdb, tmp_path):
    """DuckDB annotates every integer, Spark the small ones; Iceberg's Spark reader 1.11 fails."""
    duckdb(
        "CREATE TABLE t (id INTEGER, a SMALLINT, s STRUCT(x INTEGER))",
        "INSERT INTO t VALUES (1, 7, {'x': 8})",
        "ALTER TABLE t ALTER id SET TYPE BIGINT",
        "ALTER TABLE t ALTER a SET TYPE INTEGER",
        "ALTER TABLE t ALTER COLUMN s SET TYPE STRUCT(x BIGINT)",
    )
    run(
        lake,
        "CREATE TABLE ours (id INT, a SMALLINT)",
        "INSERT INTO ours VALUES (1, 7S)",
        "ALTER TABLE ours ALTER COLUMN id TYPE BIGINT, ALTER COLUMN a TYPE BIGINT",
    )

    assert reasons(refused(lake.table("t"), tmp_path / "out")) == [
        "column 'id' is int32 (annotated) in the file, not long",
        "column 's.x' is int32 (annotated) in the file, not long",
    ]
    assert reasons(refused(lake.table("ours"), tmp_path / "ours")) == [
        "column 'a' is int16 in the file, not long"
    ]
    assert lake.table("t").export_iceberg(tmp_path / "out", rewrite=True).report.is_ready
    assert IcebergReaders(tmp_path / "out").rows() == by_both([(1, 7, (8,))])


@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 3])
def test_deletion_vectors_of_duckdb_are_written_anew_for_iceberg(lake, duckdb, tmp_path, version):
    duckdb(
        "CALL lake.set_option('write_deletion_vectors', true)",
        "CREATE TABLE t (id INTEGER)",
        "INSERT INTO t SELECT * FROM range(1000)",
        "DELETE FROM t WHERE id % 3 = 0",
    )
    lake.table("t").export_iceberg(tmp_path / "out", format_version=version)

    expected = [(i,) for i in range(1000) if i % 3]
    found = IcebergReaders(tmp_path / "out")
    assert found.plain_by_duckdb() == expected
    assert found.plain_by_pyiceberg() == expected


def test_every_type_that_shelduck_writes_keeps_its_values(lake, tmp_path):
    values = {
        "boolean": ("true", "true", "boolean"),
        "tinyint": ("-128", -128, "int"),
        "smallint": ("32767", 32767, "int"),
        "int": ("-2147483648", -2147483648, "int"),
        "bigint": ("9223372036854775807", 9223372036854775807, "long"),
        "hugeint": ("12345678901234567890123456789012345678BD",
                    12345678901234567890123456789012345678, "decimal(38, 0)"),
        "utinyint": ("255", 255, "int"),
        "usmallint": ("65535", 65535, "int"),
        "uinteger": ("4294967295", 4294967295, "long"),
        "ubigint": ("18446744073709551615BD", 18446744073709551615, "decimal(20, 0)"),
        "uhugeint": ("7", 7, "decimal(38, 0)"),
        "float": ("CAST(1.1 AS FLOAT)", "1.100000023841858", "float"),
        "double": ("1.1D", "1.1", "double"),
        "decimal(30,5)": ("-12.34567", Decimal("-12.34567"), "decimal(30, 5)"),
        "date": ("DATE'1969-02-28'", "1969-02-28", "date"),
        "time": ("'23:59:59.000001'", "23:59:59.000001", "string"),
        "timetz": ("'01:02:03+02'", "01:02:03+02", "string"),
        "timestamp_ntz": ("TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'",
                          "1969-12-31T23:59:59.999999", "timestamp"),
        "timestamp_s": ("TIMESTAMP_NTZ'2024-01-01 00:00:01'", "2024-01-01T00:00:01", "timestamp"),
        "timestamp_ms": ("TIMESTAMP_NTZ'2024-01-01 00:00:01.5'", "2024-01-01T00:00:01.500000",
                         "timestamp"),
        "timestamp": ("TIMESTAMP'2024-01-01 00:00:00+02:00'", "2023-12-31T22:00:00Z",
                      "timestamptz"),
        "string": ("'née'", "née", "string"),
        "json": ("'{}'", "{}", "string"),
        "uuid": (f"'{FIRST_UUID}'", FIRST_UUID, "string"),
        "binary": ("X'00FF'", b"\x00\xff", "binary"),
    }  # fmt: skip
    columns = ", ".join(f"c{n} {kind}" for n, kind in enumerate(values))
    written = ", ".join(text for text, _, _ in values.values())
    run(lake, f"CREATE TABLE t ({columns})", f"INSERT INTO t VALUES ({written})")
    lake.table("t").export_iceberg(tmp_path / "out")
    readers = IcebergReaders(tmp_path / "out")

    assert list(readers.types().values()) == [shown for _, _, shown in values.values()]
    assert readers.rows() == by_both([tuple(value for _, value, _ in values.values())])


def test_columns_that_iceberg_has_no_type_for_are_left_out_by_name(lake, duckdb, tmp_path):
    duckdb(
        "CREATE TABLE t (id INTEGER, i INTERVAL, n TIMESTAMP_NS, s STRUCT(a INTEGER, i INTERVAL),"
        " l INTERVAL[], g GEOMETRY)",
        "INSERT INTO t VALUES (1, '1 day', '2024-01-01', {'a': 2, 'i': '1 day'}, ['1 day'], NULL)",
        "CREATE TABLE none (i INTERVAL)",
    )
    done = lake.table("t").export_iceberg(tmp_path / "out", format_version=2)

    assert IcebergReaders(tmp_path / "out").rows() == by_both([(1, (2,))])
    assert [str(loss) for loss in done.report.losses] == [
        "column 'i': left out: Iceberg has no type for interval",
        "column 'n': left out: nanoseconds need format_version=3",
        "column 's.i': left out: Iceberg has no type for interval",
        "column 'l.element': left out: Iceberg has no type for interval",
        "column 'l': left out, because a part of the list is",
        "column 'g': left out: Iceberg has no type for geometry",
    ]
    with pytest.raises(Unsupported, match=r"main\.none has no column with an Iceberg type"):
        lake.table("none").plan_export("iceberg")


def test_files_that_only_duckdb_can_write_anew_are_refused_with_the_reason(lake, duckdb, tmp_path):
    duckdb("CREATE TABLE t (n UINTEGER, i INTERVAL)", "INSERT INTO t VALUES (1, '1 day')")
    report = refused(lake.table("t"), tmp_path / "out")

    with pytest.raises(Unsupported) as caught:
        lake.table("t").export_iceberg(tmp_path / "out", rewrite=True)

    assert str(caught.value).startswith(str(report))
    assert "i: Spark has no data type that preserves the values of interval" in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_variants_are_left_out_and_it_is_said_who_cannot_open_such_files(lake, duckdb, tmp_path):
    duckdb("CREATE TABLE t (id INTEGER, v VARIANT)", "INSERT INTO t VALUES (1, 42)")
    done = lake.table("t").export_iceberg(tmp_path / "out")
    readers = IcebergReaders(tmp_path / "out")

    assert readers.by_duckdb() == [(1,)]
    assert [str(loss) for loss in done.report.losses] == [
        (
            "column 'v': left out: it is not in Iceberg's form, and PyIceberg cannot open files"
            " with a variant"
        )
    ]
    with pytest.raises(ValueError, match="does not have field-ids"):
        readers.by_pyiceberg()

    lake.sql("ALTER TABLE t DROP COLUMN v")
    assert reasons(refused(lake.table("t"), tmp_path / "later")) == [
        "the dropped column 'v' is a variant whose parts have no field ids"
    ]
    lake.table("t").export_iceberg(tmp_path / "later", rewrite=True)
    assert IcebergReaders(tmp_path / "later").rows() == by_both([(1,)])


def test_adopted_files_are_found_by_one_name_mapping(lake, file, tmp_path):
    run(lake, "CREATE TABLE t (id BIGINT, v STRING, gone INT, s STRUCT<a: INT>, l ARRAY<INT>)")
    rows = {
        "ID": pa.array([1, 2]),
        "v": ["a", "b"],
        "gone": pa.array([0, 0], pa.int32()),
        "s": pa.array([{"a": 1}, None], pa.struct([("a", pa.int32())])),
        "l": pa.array([[1], None], pa.list_(pa.int32())),
    }
    table = lake.table("t")
    table.add_files(file("one.parquet", pa.table(rows)))
    table.add_files(
        file(
            "two.parquet",
            pa.table(
                {
                    "Id": rows["ID"],
                    "v": rows["v"],
                    "gone": rows["gone"],
                    "s": rows["s"],
                    "l": rows["l"],
                }
            ),
        )
    )
    run(
        lake,
        "ALTER TABLE t RENAME COLUMN v TO w",
        "ALTER TABLE t RENAME COLUMN id TO v",
        "ALTER TABLE t RENAME COLUMN s.a TO b",
        "ALTER TABLE t DROP COLUMN gone",
        "ALTER TABLE t ADD COLUMN gone STRING",
        "INSERT INTO t VALUES (3, 'c', named_struct('b', 3), array(3), 'here')",
    )
    done = table.export_iceberg(tmp_path / "out")

    readers = IcebergReaders(tmp_path / "out")
    assert done.report.rewrites == ()
    assert readers.rows() == by_both(spark_rows(table.read()))
    assert readers.rows("w = 'b'", columns="v") == by_both([(2,), (2,)])
    assert readers.rows("gone is null", columns="w") == by_both([("a",), ("a",), ("b",), ("b",)])


def test_adopted_files_that_one_name_mapping_cannot_serve_are_written_anew(lake, file, tmp_path):
    run(lake, "CREATE TABLE t (a INT, b INT)")
    table = lake.table("t")
    old = pa.table({"a": pa.array([1], pa.int32()), "b": pa.array([10], pa.int32())})
    table.add_files(file("old.parquet", old))
    run(
        lake,
        "ALTER TABLE t RENAME COLUMN a TO c",
        "ALTER TABLE t RENAME COLUMN b TO a",
        "ALTER TABLE t RENAME COLUMN c TO b",
    )
    table.add_files(file("new.parquet", old))
    expected = [(1, 10), (10, 1)]
    assert spark_rows(table.read()) == expected

    assert reasons(refused(table, tmp_path / "out")) == [
        "it has no field ids, and other files without field ids use 'a', 'b' for a different column"
    ]
    table.export_iceberg(tmp_path / "out", rewrite=True)
    readers = IcebergReaders(tmp_path / "out")
    assert readers.rows() == by_both(expected)
    assert readers.rows("b = 10") == by_both([(10, 1)])


def test_adopted_files_that_need_more_than_names_are_written_anew(lake, file, tmp_path):
    run(lake, "CREATE TABLE t (a INT, p INT)")
    table = lake.table("t")
    column = pa.array([1], pa.int32())
    both = pa.table({"a": column, "p": column})
    table.add_files(file("p=5/hive.parquet", pa.table({"a": column})))
    table.add_files(file("ids.parquet", both, ids=[2, 1]))
    table.add_files(
        file("extra.parquet", both.append_column("x", column)), ignore_extra_columns=True
    )

    assert reasons(refused(table, tmp_path / "out")) == [
        "column 'p' is in the path or the catalog, not in the file",
        "it has its own field ids, not those of the table",
        "'x' has no field id and is not a column of the table",
    ]
    table.export_iceberg(tmp_path / "out", rewrite=True)
    assert IcebergReaders(tmp_path / "out").rows() == by_both([(1, 1), (1, 1), (1, 5)])


def test_rows_that_lack_a_default_which_json_cannot_say_are_written_anew(lake, tmp_path):
    run(
        lake,
        "CREATE TABLE t (id INT)",
        "INSERT INTO t VALUES (1)",
        "ALTER TABLE t ADD COLUMN d DOUBLE DEFAULT 'NaN'",
    )
    table = lake.table("t")

    assert reasons(refused(table, tmp_path / "out")) == [
        "column 'd' is missing, and Iceberg cannot express that its rows have 'nan'"
    ]
    table.export_iceberg(tmp_path / "out", rewrite=True)
    assert IcebergReaders(tmp_path / "out").rows() == by_both([(1, "nan")])


def test_version_2_shows_defaults_of_files_that_were_written_anew(lake, tmp_path):
    run(
        lake,
        "CREATE TABLE t (id INT)",
        "INSERT INTO t VALUES (1), (2)",
        "DELETE FROM t WHERE id = 1",
        "ALTER TABLE t ADD COLUMN d INT DEFAULT 5",
    )
    table, place = lake.table("t"), tmp_path / "out"
    with pytest.raises(Unsupported, match="version 2 cannot express that its rows have '5'"):
        table.export_iceberg(place, format_version=2)

    table.export_iceberg(place, format_version=2, rewrite=True)

    readers = IcebergReaders(place)
    assert readers.rows() == by_both([(2, 5)])
    assert readers.table().format_version == 2


def test_defaults_for_new_rows_are_shown_or_told(lake, tmp_path):
    run(lake, "CREATE TABLE t (id INT, d INT DEFAULT 5, e TIMESTAMP DEFAULT current_timestamp())")
    table = lake.table("t")

    [constant, computed] = table.export_iceberg(tmp_path / "2").report.losses
    assert str(constant).startswith("column 'd': its default for new rows, '5', is not shown")
    assert computed.subject == "column 'e'"
    [told] = table.export_iceberg(tmp_path / "3", format_version=3).report.losses
    assert told.subject == "column 'e'"
    # Delta keeps any SQL of Spark.
    assert table.plan_export("delta").losses == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("BOOLEAN", "true", "true"),
        ("BIGINT", "-5", -5),
        ("DOUBLE", "1.5", "1.5"),
        ("DECIMAL(9,2)", "1.5", Decimal("1.5")),
        ("DATE", "'2024-02-29'", "2024-02-29"),
        ("TIMESTAMP_NTZ", "'2024-01-01 00:00:00.5'", "2024-01-01T00:00:00.500000"),
        ("TIMESTAMP", "'2024-01-01 00:00:00+02'", "2023-12-31T22:00:00Z"),
        ("STRING", "'née'", "née"),
        ("BINARY", "X'00FF'", b"\x00\xff"),
        ("UUID", f"'{FIRST_UUID}'", FIRST_UUID),
    ],
)
def test_defaults_of_files_that_lack_a_column_are_shown(lake, tmp_path, kind, text, value):
    run(
        lake,
        "CREATE TABLE t (id INT)",
        "INSERT INTO t VALUES (1)",
        f"ALTER TABLE t ADD COLUMN d {kind} DEFAULT {text}",
    )
    lake.table("t").export_iceberg(tmp_path / "out")
    readers = IcebergReaders(tmp_path / "out")

    assert readers.rows() == by_both([(1, value)])
    assert readers.rows("d is not null") == by_both([(1, value)])
