"""Old files under a new schema: names, types, defaults and nested parts; filters at the seams."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from shelduck.read.plan.scan import plan_scan
from shelduck.read.scan.scan_frames import read_rows
from tests.support.scans import arrow, column, known, table, written


def at(*parts):
    """A timestamp without a zone."""
    return dt.datetime(*parts)  # noqa: DTZ001


@pytest.fixture
def values_as(spark, tmp_path):
    """What values stored as an Arrow type read as in a column of a DuckLake type."""

    def read_as(kind, stored, values):
        file = written(tmp_path / "f.parquet", [arrow("a", stored, 1)], [{"a": v} for v in values])
        plan = plan_scan(table(column("a", kind, 1)), [file], {})
        return [row[0] for row in read_rows(spark, plan).collect()]

    return read_as


def numbers(path, names, ids, values, number=1, **more):
    fields = [arrow(n, pa.int32(), i) for n, i in zip(names, ids, strict=True)]
    return written(path, fields, [dict(zip(names, v, strict=True)) for v in values], number, **more)


@pytest.mark.slow
def test_swapped_names_find_their_own_values_under_a_filter(tmp_path, rows):
    old = numbers(tmp_path / "old.parquet", ["a", "b"], [1, 2], [(7, 100), (8, 200)])
    new = numbers(tmp_path / "new.parquet", ["b", "a"], [1, 2], [(9, 300)], 2)
    swapped = table(column("b", "int32", 1), column("a", "int32", 2))

    assert rows(swapped, [old, new], "b = 7") == [(7, 100)]
    assert rows(swapped, [old, new], "a = 300") == [(9, 300)]
    assert rows(swapped, [old, new], "b = 100") == []


@pytest.mark.slow
def test_a_column_dropped_and_added_again_reads_its_default_in_old_files(tmp_path, rows):
    old = numbers(tmp_path / "old.parquet", ["k", "x"], [1, 2], [(1, 50), (2, None)])
    new = numbers(tmp_path / "new.parquet", ["k", "x"], [1, 3], [(3, 50), (4, None)], 2)
    again = table(column("k", "int32", 1), column("x", "int32", 3, default="5"))

    assert rows(again, [old, new]) == [(1, 5), (2, 5), (3, 50), (4, None)]
    assert rows(again, [old, new], "x = 5") == [(1, 5), (2, 5)]
    assert rows(again, [old, new], "x is null") == [(4, None)]


@pytest.mark.slow
def test_an_added_column_reads_its_default_where_files_lack_it_and_null_where_it_was_written(
    tmp_path, rows
):
    old = numbers(tmp_path / "old.parquet", ["k"], [1], [(1,)])
    new = numbers(tmp_path / "new.parquet", ["k", "x"], [1, 2], [(2, None), (3, 9)], 2)
    added = table(column("k", "int32", 1), column("x", "int32", 2, default="5"))

    assert len(plan_scan(added, [old, new], {}).groups) == 1
    assert rows(added, [old, new]) == [(1, 5), (2, None), (3, 9)]
    assert rows(added, [old, new], "x = 5") == [(1, 5)]
    assert rows(added, [old, new], "x is null") == [(2, None)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "default", "expected"),
    [
        ("boolean", "true", True),
        ("uint64", "18446744073709551615", Decimal(18446744073709551615)),
        ("decimal(30,2)", "-1.5", Decimal("-1.50")),
        ("float32", "1.5", 1.5),
        ("date", "2024-02-29", dt.date(2024, 2, 29)),
        ("timestamp", "2024-02-29 01:02:03.5", at(2024, 2, 29, 1, 2, 3, 500000)),
        ("timestamp_ns", "1970-01-01 00:00:01.000000002", 1_000_000_002),
        ("varchar", "it's \\ é\n", "it's \\ é\n"),
        ("blob", "a\\x00", bytearray(b"a\x00")),
        ("uuid", "A0EEBC999C0B4EF8BB6D6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ("time", "01:02:03.5", "01:02:03.5"),
    ],
)
def test_defaults_of_every_type_are_read_by_old_files(tmp_path, spark, kind, default, expected):
    old = numbers(tmp_path / "old.parquet", ["k"], [1], [(1,)])
    added = table(column("k", "int32", 1), column("x", kind, 2, default=default))

    [row] = read_rows(spark, plan_scan(added, [old], {})).collect()

    assert row == (1, expected)


def test_files_before_and_after_widening_are_one_group_and_filters_are_right_between(
    tmp_path, rows
):
    old = numbers(tmp_path / "old.parquet", ["a"], [1], [(i,) for i in range(300)])
    new = written(tmp_path / "new.parquet", [arrow("a", pa.int64(), 1)], [{"a": 2**40}], 2)
    wide = table(column("a", "int64", 1))

    assert len(plan_scan(wide, [old, new], {}).groups) == 1
    assert rows(wide, [old, new], "a > 298") == [(1099511627776,), (299,)]
    assert rows(wide, [old, new], "a = 7") == [(7,)]


def test_float_values_keep_their_binary_value_when_the_column_becomes_double(tmp_path, rows):
    old = written(tmp_path / "old.parquet", [arrow("a", pa.float32(), 1)], [{"a": 1.1}, {"a": 0.5}])
    wide = table(column("a", "float64", 1))

    assert rows(wide, [old], "a > 1.1D") == [(1.100000023841858,)]
    assert rows(wide, [old], "a = 1.100000023841858D") == [(1.100000023841858,)]


@pytest.mark.parametrize(
    ("stored", "value", "kind", "expected"),
    [
        (pa.uint32(), 4294967295, "float64", 4294967295.0),
        (pa.uint32(), 4294967295, "uint64", Decimal(4294967295)),
        (pa.uint64(), 2**64 - 1, "int128", Decimal(2**64 - 1)),
        (pa.int64(), 2**53 + 1, "float64", 9007199254740992.0),
        (pa.int32(), 16777217, "float32", 16777216.0),
        (pa.bool_(), True, "int32", 1),
        (pa.decimal128(9, 2), Decimal("99.99"), "float64", 99.99),
        (pa.decimal128(9, 2), Decimal("99.99"), "decimal(38,0)", Decimal(100)),
        (pa.int8(), -5, "decimal(5,2)", Decimal("-5.00")),
        (pa.float64(), 1e20, "int128", Decimal(10**20)),
        (pa.date32(), dt.date(2024, 2, 29), "timestamp", at(2024, 2, 29)),
        (pa.date32(), dt.date(1970, 1, 2), "timestamp_ns", 86_400_000_000_000),
        (pa.timestamp("ns"), 1500, "timestamp", at(1970, 1, 1, 0, 0, 0, 1)),
        (pa.timestamp("us"), 7, "timestamp_ns", 7000),
        (pa.timestamp("ms"), 1500, "timestamp", at(1970, 1, 1, 0, 0, 1, 500000)),
        (pa.time64("us"), 3_723_500_000, "time", "01:02:03.5"),
        (pa.string(), "{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}", "uuid",
         "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        (pa.string(), "170141183460469231731687303715884105", "int128",
         Decimal(170141183460469231731687303715884105)),
    ],
)  # fmt: skip
def test_stored_types_that_spark_cannot_read_as_the_column_are_cast(
    values_as, stored, value, kind, expected
):
    assert values_as(kind, stored, [value, None]) == [expected, None]


def test_dates_and_timestamps_become_instants_in_utc_whatever_the_session_zone(tmp_path, spark):
    days = written(
        tmp_path / "d.parquet", [arrow("a", pa.date32(), 1)], [{"a": dt.date(2024, 7, 1)}]
    )
    noons = written(
        tmp_path / "t.parquet", [arrow("a", pa.timestamp("us"), 1)], [{"a": at(2024, 7, 1, 12)}], 2
    )
    plan = plan_scan(table(column("a", "timestamptz", 1)), [days, noons], {})
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        micros = read_rows(spark, plan).selectExpr("unix_micros(a)").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")

    assert [r[0] for r in micros] == [1719792000000000, 1719835200000000]


def test_a_value_that_the_column_cannot_hold_is_an_error_that_names_it(tmp_path, spark):
    file = written(tmp_path / "f.parquet", [arrow("a", pa.int64(), 1)], [{"a": 300}])
    frame = read_rows(spark, plan_scan(table(column("a", "int8", 1)), [file], {}))

    with pytest.raises(Exception, match=r"f\.parquet: a: 300 is not a value of int8"):
        frame.collect()


STRUCTS = [
    arrow("k", pa.int32(), 1),
    arrow("s", pa.struct([arrow("x", pa.int32(), 3), arrow("y", pa.int32(), 4)]), 2),
]


@pytest.mark.slow
def test_struct_fields_are_renamed_dropped_added_and_widened(tmp_path, rows):
    old = written(
        tmp_path / "f.parquet",
        STRUCTS,
        [{"k": 1, "s": {"x": 7, "y": 8}}, {"k": 2, "s": None}, {"k": 3, "s": {"x": None, "y": 1}}],
    )
    now = table(
        column("k", "int32", 1),
        column(
            "s", "struct", 2,
            column("z", "int64", 3), column("n", "varchar", 5, default="new"),
        ),
    )  # fmt: skip

    assert rows(now, [old]) == [(1, (7, "new")), (2, None), (3, (None, "new"))]
    assert rows(now, [old], "s.z = 7") == [(1, (7, "new"))]
    assert rows(now, [old], "s.n = 'new' and s.z is null") == [(3, (None, "new"))]


def test_swapped_struct_fields_find_their_own_values_under_a_filter(tmp_path, rows):
    old = written(tmp_path / "f.parquet", STRUCTS, [{"k": 1, "s": {"x": 7, "y": 8}}])
    now = table(
        column("k", "int32", 1),
        column("s", "struct", 2, column("y", "int32", 3), column("x", "int32", 4)),
    )

    assert rows(now, [old], "s.y = 7") == [(1, (7, 8))]
    assert rows(now, [old], "s.x = 7") == []


def test_a_struct_none_of_whose_fields_are_in_the_file_keeps_null_apart_from_empty(tmp_path, rows):
    old = written(
        tmp_path / "f.parquet", STRUCTS, [{"k": 1, "s": {"x": 7, "y": 8}}, {"k": 2, "s": None}]
    )
    now = table(column("k", "int32", 1), column("s", "struct", 2, column("x", "int32", 9)))

    assert rows(now, [old]) == [(1, (None,)), (2, None)]


def test_fields_change_inside_lists_and_maps(tmp_path, rows):
    inside = pa.struct([arrow("x", pa.int32(), 4), arrow("y", pa.int32(), 5)])
    fields = [
        arrow("k", pa.int32(), 1),
        arrow("l", pa.list_(arrow("element", inside, 3)), 2),
        arrow(
            "m",
            pa.map_(arrow("key", pa.int32(), 7, nullable=False), arrow("value", pa.int32(), 8)),
            6,
        ),
    ]
    old = written(
        tmp_path / "f.parquet",
        fields,
        [{"k": 1, "l": [{"x": 1, "y": 2}, None], "m": [(1, 2)]}, {"k": 2, "l": None, "m": None}],
    )
    now = table(
        column("k", "int32", 1),
        column(
            "l", "list", 2,
            column("element", "struct", 3, column("yy", "int32", 5), column("n", "int32", 9)),
        ),
        column("m", "map", 6, column("key", "int64", 7), column("value", "int64", 8)),
    )  # fmt: skip

    assert rows(now, [old]) == [(1, [(2, None), None], {1: 2}), (2, None, None)]


def test_uuids_inside_nested_columns_are_text(tmp_path, spark):
    path = tmp_path / "f.parquet"
    duckdb.execute(
        "COPY (SELECT ['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID, NULL] AS l)"
        f" TO '{path}' (FIELD_IDS {{l: {{__duckdb_field_id: 1, element: 2}}}})"
    )
    now = table(column("l", "list", 1, column("element", "uuid", 2)))

    [row] = read_rows(spark, plan_scan(now, [known(path)], {})).collect()

    assert row.l == ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", None]


def test_a_list_element_without_id_reads_as_null_as_in_duckdb(tmp_path, rows):
    fields = [arrow("l", pa.list_(arrow("element", pa.int32(), None)), 1)]
    file = written(tmp_path / "f.parquet", fields, [{"l": [1, 2]}, {"l": None}])

    assert rows(table(column("l", "list", 1, column("element", "int32", 2))), [file]) == [
        (None,),
        ([None, None],),
    ]


@pytest.mark.slow
def test_results_do_not_depend_on_settings_of_the_session(tmp_path, spark):
    old = numbers(tmp_path / "old.parquet", ["Key", "x"], [1, 2], [(1, 50)])
    new = numbers(tmp_path / "new.parquet", ["key", "y"], [1, 3], [(2, 60)], 2)
    now = table(column("KEY", "int64", 1), column("x", "int64", 3, default="5"))
    settings = {
        "spark.sql.caseSensitive": "true",
        "spark.sql.parquet.enableVectorizedReader": "false",
        "spark.sql.parquet.fieldId.read.enabled": "true",
        "spark.sql.ansi.enabled": "false",
    }
    for name, value in settings.items():
        before = spark.conf.get(name)
        spark.conf.set(name, value)
        try:
            frame = read_rows(spark, plan_scan(now, [old, new], {}))
            assert sorted(map(tuple, frame.where("x < 60 or KEY = 2").collect())) == [
                (1, 5),
                (2, 60),
            ]
        finally:
            spark.conf.set(name, before)


def test_no_files_give_an_empty_frame_of_the_right_types(spark):
    frame = read_rows(
        spark, plan_scan(table(column("a", "uint8", 1), column("b", "timestamp", 2)), [], {})
    )

    assert frame.dtypes == [("a", "smallint"), ("b", "timestamp_ntz")]
    assert frame.collect() == []


def test_the_columns_of_a_frame_carry_no_metadata_of_the_read(tmp_path, spark):
    old = numbers(tmp_path / "old.parquet", ["k"], [1], [(1,)])
    new = numbers(tmp_path / "new.parquet", ["k", "x"], [1, 2], [(2, 9)], 2)
    added = table(column("k", "int32", 1), column("x", "int32", 2, default="5"))

    frame = read_rows(spark, plan_scan(added, [old, new], {}))

    assert [f.metadata for f in frame.schema.fields] == [{}, {}]
