"""Texts of single values, as DuckDB writes them."""

from __future__ import annotations

import pytest

from shelduck.errors import InvalidRequest
from shelduck.model.types.data_types import ducklake_type
from shelduck.model.types.literals import blob_bytes, blob_text, canonical_text


@pytest.mark.parametrize(
    ("kind", "text", "canonical"),
    [
        ("boolean", "TRUE", "true"),
        ("boolean", "f", "false"),
        ("int8", "-128", "-128"),
        ("int32", "+007", "7"),
        ("uint64", "18446744073709551615", "18446744073709551615"),
        (
            "int128",
            "-170141183460469231731687303715884105728",
            "-170141183460469231731687303715884105728",
        ),
        ("decimal(5,2)", "1.5", "1.50"),
        ("decimal(5,2)", "-.5", "-0.50"),
        ("decimal(5,2)", "1.500", "1.50"),
        ("decimal(5,2)", "-0", "0.00"),
        ("decimal(5,2)", "1e2", "100.00"),
        ("decimal(3,0)", "42", "42"),
        (
            "decimal(38,2)",
            "999999999999999999999999999999999999.99",
            "999999999999999999999999999999999999.99",
        ),
        ("float64", "1", "1.0"),
        ("float64", "1e300", "1e+300"),
        ("float64", "1.1", "1.1"),
        ("float64", "0.00000015", "1.5e-07"),
        ("float64", "-0", "-0.0"),
        ("float64", "-Infinity", "-inf"),
        ("float64", "NaN", "nan"),
        ("float32", "1.1", "1.1"),
        ("float32", "16777217", "16777216.0"),
        ("float32", "3.4028235e38", "3.4028235e+38"),
        ("float32", "1e17", "1e+17"),
        ("float32", "1e-45", "1e-45"),
        ("date", "2024-1-2", "2024-01-02"),
        ("date", "0044-03-15 (BC)", "0044-03-15 (BC)"),
        ("date", "infinity", "infinity"),
        ("date", "12024-01-01", "12024-01-01"),
        ("date", "2000-02-29", "2000-02-29"),
        ("timestamp", "2024-01-02 03:04:05.123000", "2024-01-02 03:04:05.123"),
        ("timestamp", "2024-01-02T03:04", "2024-01-02 03:04:00"),
        ("timestamp", "2024-01-02", "2024-01-02 00:00:00"),
        ("timestamp", "1969-12-31 23:59:59.999999", "1969-12-31 23:59:59.999999"),
        ("timestamp", "0044-03-15 (BC) 01:02:03", "0044-03-15 (BC) 01:02:03"),
        ("timestamp_s", "2024-01-02 03:04:05.000", "2024-01-02 03:04:05"),
        ("timestamp_s", "-infinity", "-infinity"),
        ("timestamp_ms", "2024-01-02 03:04:05.120", "2024-01-02 03:04:05.12"),
        ("timestamp_ns", "2024-01-02 03:04:05.123456789", "2024-01-02 03:04:05.123456789"),
        ("timestamptz", "2024-01-01 00:00:00+02", "2023-12-31 22:00:00+00"),
        ("timestamptz", "2024-01-01 00:00:00.5-05:30", "2024-01-01 05:30:00.5+00"),
        ("timestamptz", "2024-01-01T00:00:00Z", "2024-01-01 00:00:00+00"),
        ("timestamptz", "2024-01-01 00:00:00", "2024-01-01 00:00:00+00"),
        ("time", "1:02:03.000004", "01:02:03.000004"),
        ("time", "24:00:00", "24:00:00"),
        ("time_ns", "01:02:03.123456789", "01:02:03.123456789"),
        ("timetz", "01:02:03", "01:02:03+00"),
        ("timetz", "01:02:03.5-02:30", "01:02:03.5-02:30"),
        ("uuid", "F79C3E09-677C-4BBD-A479-3F349CB785E7", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        ("uuid", "f79c3e09677c4bbda4793f349cb785e7", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        ("varchar", " as it is ", " as it is "),
        ("json", '{"a": [1, null]}', '{"a": [1, null]}'),
        ("blob", r"a\x00\xff", r"a\x00\xFF"),
        ("blob", "it's", r"it\x27s"),
    ],
)
def test_a_value_is_written_as_ducklake_writes_it(kind, text, canonical):
    assert canonical_text(ducklake_type(kind), text) == canonical


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        ("boolean", "maybe", "'maybe' is not a value of type boolean"),
        ("int8", "128", "the range is -128 to 127"),
        ("uint8", "-1", "the range is 0 to 255"),
        ("int32", "1.0", "whole number"),
        ("int32", "٣", "whole number"),
        ("decimal(5,2)", "1.005", "more than 2 digits after the point"),
        ("decimal(5,2)", "1000", "too many digits before the point"),
        ("decimal(5,2)", "NaN", "not a value"),
        ("decimal(5,2)", "1e999999999", "out of range"),
        ("float64", "1e999", "out of range"),
        ("float32", "1e39", "out of range"),
        ("float64", "1_0", "not a value"),
        ("date", "2023-02-29", "2024-01-31"),
        ("date", "2023-01-01 00:00:00", "2024-01-31"),
        ("timestamp", "2024-01-01 00:00:00+02", "without a time zone"),
        ("timestamp", "2024-01-01 00:00:00.1234567", "at most 6 digits"),
        ("timestamp_s", "2024-01-01 00:00:00.5", "at most 0 digits"),
        ("timestamp", "2024-01-01 24:00:00", "not a value"),
        ("time", "25:00:00", "23:59:59"),
        ("timetz", "01:02:03+99", "not a value"),
        ("uuid", "f79c3e09", "not a value of type uuid"),
        ("json", "{a: 1}", "not a value of type json"),
        ("json", "NaN", "NaN is not valid JSON"),
        ("blob", "é", "beyond ASCII"),
        ("blob", r"a\b", r"\\xFF"),
        ("geometry", "POINT(1 1)", "literals of type geometry are not supported"),
        ("interval", "1 month", "literals of type interval are not supported"),
    ],
)
def test_what_a_type_cannot_hold_is_refused_with_the_reason(kind, text, why):
    with pytest.raises(InvalidRequest, match=why):
        canonical_text(ducklake_type(kind), text)


def test_every_byte_survives_the_text_of_a_blob():
    every = bytes(range(256))

    assert blob_bytes(blob_text(every)) == every
