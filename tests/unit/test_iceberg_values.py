"""What single types, values and bounds become in Iceberg's metadata."""

from __future__ import annotations

import pytest
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile

from shelduck.formats.iceberg.iceberg_export import PuffinWriter
from shelduck.formats.iceberg.iceberg_survey import name_mapping_json
from shelduck.formats.iceberg.iceberg_types import certain_bounds, choose, default_json, shown_as
from shelduck.model.files.data_file import ColumnStats, PhysicalField
from shelduck.model.tables.schema import Field
from shelduck.model.types.data_types import PRIMITIVES, Decimal, ducklake_type

# What a column is shown as that only Shelduck has written, None for left out.
WRITTEN = {
    "boolean": "boolean",
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "long",
    "int128": "decimal(38, 0)",
    "uint8": "int",
    "uint16": "int",
    "uint32": "long",
    "uint64": "decimal(20, 0)",
    "uint128": "decimal(38, 0)",
    "float32": "float",
    "float64": "double",
    "date": "date",
    "time": "string",
    "time_ns": None,
    "timetz": "string",
    "timestamp": "timestamp",
    "timestamp_s": "timestamp",
    "timestamp_ms": "timestamp",
    "timestamp_ns": "timestamp_ns",
    "timestamptz": "timestamptz",
    "interval": None,
    "varchar": "string",
    "json": "string",
    "blob": "binary",
    "uuid": "string",
    "geometry": None,
    "variant": None,
    "unknown": None,
    "null": None,
    "timestamptz_ns": None,
}


def stored(kind, encoding="", is_annotated=False):
    shape = ducklake_type(kind)
    return PhysicalField("c", 1, shape, encoding=encoding, is_annotated=is_annotated)


def column(kind):
    return Field(1, "c", ducklake_type(kind))


def chosen(kind, *forms, version=3):
    found = choose(ducklake_type(kind), [stored(*form) for form in forms], version)
    return None if found is None else found.type


def bounds(kind, kept, low, high, **more):
    return certain_bounds(column(kind), stored(kept), ColumnStats(1, 0, 2, 0, low, high, **more))


@pytest.mark.parametrize("name", sorted(PRIMITIVES))
def test_every_type_of_ducklake_is_decided(name):
    assert chosen(name) == WRITTEN[name]


def test_decimals_keep_their_digits():
    assert chosen("decimal(18,3)") == "decimal(18, 3)"


def test_nanoseconds_come_with_version_3():
    assert chosen("timestamp_ns", ("timestamp_ns",), version=2) is None


@pytest.mark.parametrize(
    ("kind", "forms", "shown"),
    [
        ("uuid", [("uuid", "fixed")], "uuid"),
        ("uuid", [("varchar",)], "string"),
        ("uuid", [("uuid", "fixed"), ("varchar",)], "string"),
        ("time", [("time",)], "time"),
        ("time", [("time", "ms")], "string"),
        ("time", [("time",), ("varchar",)], "string"),
    ],
)
def test_uuids_and_times_are_shown_as_all_files_hold_them(kind, forms, shown):
    assert chosen(kind, *forms) == shown


@pytest.mark.parametrize(
    ("kind", "form", "is_right"),
    [
        ("int64", ("int32",), True),
        ("int64", ("int32", "", True), False),
        ("int64", ("int64", "", True), True),
        ("int64", ("int8",), False),
        ("int64", ("int16",), False),
        ("int64", ("uint16",), False),
        ("int64", ("uint32",), False),
        ("int32", ("int32", "", True), True),
        ("int32", ("int8",), True),
        ("int32", ("int16",), True),
        ("int32", ("uint8",), False),
        ("uint8", ("uint8",), False),
        ("uint8", ("int16",), True),
        ("uint16", ("uint16",), False),
        ("uint16", ("int32",), True),
        ("uint32", ("int64",), True),
        ("int32", ("boolean",), False),
        ("float64", ("float32",), True),
        ("float64", ("int32",), False),
        ("decimal(20,2)", ("decimal(9,2)",), True),
        ("decimal(20,3)", ("decimal(9,2)",), False),
        ("decimal(9,2)", ("decimal(9,2)", "bytes"), False),
        ("decimal(20,0)", ("int64",), False),
        ("int128", ("decimal(38,0)",), True),
        ("int128", ("float64",), False),
        ("uint64", ("uint64",), False),
        ("timestamp", ("date",), False),
        ("timestamp", ("timestamp", "int96"), False),
        ("timestamp", ("timestamptz",), False),
        ("timestamptz", ("timestamptz", "ns"), False),
        ("timestamp_ms", ("timestamp_ms",), False),
        ("timestamp_s", ("timestamp",), True),
        ("varchar", ("json",), True),
        ("varchar", ("blob",), False),
        ("blob", ("blob", "fixed"), False),
    ],
)
def test_files_hold_a_type_only_where_iceberg_says_so(kind, form, is_right):
    [shown] = shown_as(ducklake_type(kind))

    assert shown.holds(stored(*form)) is is_right


@pytest.mark.parametrize(
    ("kind", "text", "shown", "said"),
    [
        ("boolean", "t", "boolean", True),
        ("int8", "-5", "int", -5),
        ("uint64", "18446744073709551615", "decimal(20, 0)", "18446744073709551615"),
        ("float32", "1.1", "float", 1.1),
        ("float64", "nan", "double", None),
        ("float64", "-inf", "double", None),
        ("decimal(9,2)", "1.5", "decimal(9, 2)", "1.50"),
        ("date", "2024-02-29", "date", "2024-02-29"),
        ("date", "0044-03-15 (BC)", "date", None),
        ("date", "10000-01-01", "date", None),
        ("date", "infinity", "date", None),
        ("time", "1:02:03.50", "time", "01:02:03.5"),
        ("time", "24:00:00", "time", None),
        ("timestamp", "2024-01-01 00:00:00.5", "timestamp", "2024-01-01T00:00:00.5"),
        ("timestamp", "infinity", "timestamp", None),
        ("timestamptz", "2024-01-01 00:00:00+02", "timestamptz", "2023-12-31T22:00:00+00:00"),
        ("timestamp_ns", "2024-01-01 00:00:00", "timestamp_ns", None),
        ("varchar", "née", "string", "née"),
        ("blob", "a\\x00\\xFF", "binary", "6100ff"),
        ("uuid", "{00000000000000000000000000000001}", "uuid", f"{'0' * 8}-0000-0000-0000-{1:012}"),
        ("int8", "many", "int", None),
    ],
)
def test_defaults_are_said_in_json_or_not_at_all(kind, text, shown, said):
    assert default_json(ducklake_type(kind), text, shown) == said


@pytest.mark.parametrize(
    ("kind", "kept", "low", "high", "expected"),
    [
        ("int64", "int32", "-5", "7", (-5, 7)),
        ("int64", "int32", "-5", None, None),
        ("decimal(20,2)", "decimal(9,2)", "1.50", "2.50", (Decimal, "1.50", "2.50")),
        ("float64", "float32", "1.1", "1.1", None),
        ("date", "date", "1970-01-02", "infinity", None),
        ("date", "date", "1970-01-02", "1970-01-03", (1, 2)),
        (
            "timestamp_s",
            "timestamp",
            "1970-01-01 00:00:01",
            "1970-01-01 00:00:02",
            (10**6, 2 * 10**6),
        ),
        ("varchar", "varchar", "a", "née", ("a", "née")),
        ("uuid", "varchar", "a", "b", None),
        ("time", "varchar", "01:02:03", "01:02:03", None),
        ("blob", "blob", "00", "FF", None),
    ],
)
def test_bounds_are_told_in_the_type_of_today_where_they_are_certain(
    kind, kept, low, high, expected
):
    found = bounds(kind, kept, low, high)

    if expected is not None and expected[0] is Decimal:
        assert [str(value) for value in found] == list(expected[1:])
    else:
        assert found == expected


def test_bounds_of_floats_take_in_both_zeros_and_need_to_know_of_nan():
    low, high = bounds("float64", "float64", "0.0", "0.0", contains_nan=False)

    assert (str(low), str(high)) == ("-0.0", "0.0")
    assert bounds("float64", "float64", "1.0", "2.0", contains_nan=True) is None
    assert bounds("float64", "float64", "1.0", "2.0", contains_nan=None) is None


def test_a_name_mapping_has_all_names_of_a_field_and_what_is_below_it():
    names = {(None, "A"): 1, (None, "a"): 1, (None, "l"): 2, (2, "element"): 3, (3, "x"): 4}

    assert name_mapping_json(names) == [
        {"field-id": 1, "names": ["A", "a"]},
        {
            "field-id": 2,
            "names": ["l"],
            "fields": [
                {"field-id": 3, "names": ["element"], "fields": [{"field-id": 4, "names": ["x"]}]}
            ],
        },
    ]


def test_deletion_vectors_of_any_position_read_back():
    writer = PuffinWriter()
    writer.add("file:///a", [0, 5, 2**31, 2**32 + 1])
    writer.add("file:///b", range(1000))

    found = {
        v.referenced_data_file: v.to_vector()
        for v in deletion_vectors_from_puffin_file(PuffinFile(writer.bytes()))
    }

    assert found["file:///a"].to_pylist() == [0, 5, 2**31, 2**32 + 1]
    assert found["file:///b"].to_pylist() == list(range(1000))
    assert [(b["properties"]["cardinality"], b["offset"]) for b in writer.blobs] == [
        ("4", 4),
        ("1000", 4 + writer.blobs[0]["length"]),
    ]
