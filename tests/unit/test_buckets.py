"""The bucket of a value is DuckDB's; the numbers are answers of its extension."""

from __future__ import annotations

from decimal import Decimal as Number

import pytest

from shelduck.model.types.buckets import bucket_of, murmur3_32
from shelduck.model.types.data_types import ducklake_type
from shelduck.model.types.literals import bound


@pytest.mark.parametrize(
    ("type_", "text", "bucket"),
    [
        ("boolean", "true", 991556),
        ("boolean", "false", 671676),
        ("int8", "-5", 806974),
        ("int16", "-5", 806974),
        ("int32", "34", 239379),
        ("int32", "-34", 870797),
        ("int64", "34", 239379),
        ("uint8", "200", 818824),
        ("uint16", "60000", 752849),
        ("uint32", "34", 925257),
        ("uint64", "18446744073709551615", 701963),
        ("int128", "170141183460469231731687303715884105727", 318409),
        ("decimal(4,2)", "1.50", 386831),
        ("decimal(9,2)", "14.20", 56465),
        ("decimal(9,2)", "-14.20", 975521),
        ("decimal(18,3)", "5.000", 594847),
        ("date", "2017-11-16", 153226),
        ("date", "0044-03-15 (BC)", 257939),
        ("time", "22:31:08.5", 791381),
        ("timestamp", "2017-11-16 22:31:08", 539207),
        ("timestamp", "1500-01-01 00:00:00", 468011),
        ("timestamp_s", "2017-11-16 22:31:08", 221379),
        ("timestamp_ms", "2017-11-16 22:31:08", 699510),
        ("timestamp_ms", "2017-11-16 22:31:08.12", 522486),
        ("timestamp_ns", "2017-11-16 22:31:08", 733579),
        ("timestamptz", "2017-11-16 20:31:08+00", 554852),
        ("varchar", "iceberg", 89),
        ("varchar", "", 0),
        ("varchar", "a b/c=%?é#\"'\\:*", 181334),
        ("json", '{"a": 1}', 57829),
        ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", 414783),
        ("blob", "00FF6162", 683742),
        ("blob", "00010203", 800441),
    ],
)
def test_the_bucket_of_a_value_is_that_of_duckdb(type_, text, bucket):
    leaf = ducklake_type(type_)
    assert bucket_of(leaf, bound(leaf, text), 1_000_000) == bucket


@pytest.mark.parametrize(
    ("data", "hashed"),
    [(b"", 0), (b"..", 1283235079), (b"NULL", 3461262191), (b"iceberg", 1210000089)],
)
def test_the_hash_is_murmur3_with_the_standard_tail(data, hashed):
    assert murmur3_32(data) == hashed


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("decimal(38,2)", Number("14.20")),
        ("decimal(9,2)", Number("1.234")),
        ("timestamp_s", 1),
        ("int32", "34"),
        ("varchar", 1.5),
        ("float64", 1.5),
        ("interval", "1 month"),
        ("timetz", "01:02:03+00"),
    ],
)
def test_a_value_whose_hash_is_not_certain_has_no_bucket(type_, value):
    assert bucket_of(ducklake_type(type_), value, 4) is None
