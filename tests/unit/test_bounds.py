"""Bounds in the texts of DuckLake's statistics, as files and as inlined rows write them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from shelduck.model.types.data_types import ducklake_type
from shelduck.model.types.literals import bound, bound_text, widen


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("boolean", "0", False),
        ("boolean", "1", True),
        ("boolean", "false", False),
        ("boolean", "true", True),
        ("int32", "-5", -5),
        ("uint64", "18446744073709551615", 18446744073709551615),
        ("int128", "170141183460469231731687303715884105727", 2**127 - 1),
        ("float64", "1.1", 1.1),
        ("float32", "1.1", 1.10000002384185791015625),
        ("float64", "1e+300", 1e300),
        ("float64", "-inf", float("-inf")),
        ("decimal(5,2)", "-1.50", Decimal("-1.5")),
        ("date", "1970-01-02", 1),
        ("date", "2024-01-02", 19724),
        ("date", "0044-03-15 (BC)", -735160),
        ("date", "infinity", 2147483647),
        ("date", "-infinity", -2147483647),
        ("timestamp", "1969-12-31 23:59:59.999999", -1),
        ("timestamp", "infinity", 9223372036854775807),
        ("timestamp_ms", "1970-01-01 00:00:00.001", 1000),
        ("timestamp_ns", "1970-01-01 00:00:00.000000001", 1),
        ("timestamptz", "1970-01-01 00:00:01+00", 1_000_000),
        ("time", "01:02:03.000004", 3723000004),
        ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        ("varchar", "", ""),
        ("json", "{}", "{}"),
        ("blob", "00FF", b"\x00\xff"),
        ("blob", r"\x00\xFF", b"\x00\xff"),
        ("blob", "abc", b"abc"),
    ],
)
def test_a_bound_is_read_as_a_value_that_compares(kind, text, value):
    found = bound(ducklake_type(kind), text)

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int32", None),
        ("int32", "true"),
        ("int8", "300"),
        ("boolean", "2"),
        ("float64", "nan"),
        ("date", "yesterday"),
        ("timestamp_s", "infinity"),
        ("timestamp", "2024-01-01 00:00:00+02"),
        ("decimal(5,2)", "1.505"),
        ("timetz", "01:02:03+02"),
        ("interval", "1 month"),
        ("variant", "1"),
        ("geometry", "POINT (1 1)"),
    ],
)
def test_a_bound_that_cannot_be_read_for_certain_is_unknown(kind, text):
    assert bound(ducklake_type(kind), text) is None


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("boolean", True, "1"),
        ("boolean", False, "0"),
        ("int64", -7, "-7"),
        ("float64", 1.0, "1.0"),
        ("float64", -0.0, "0.0"),
        ("float64", float("nan"), None),
        ("float32", 1.10000002384185791015625, "1.1"),
        ("decimal(5,2)", Decimal("-1.5"), "-1.50"),
        ("date", 19724, "2024-01-02"),
        ("date", -735160, "0044-03-15 (BC)"),
        ("date", 2147483647, "infinity"),
        ("timestamp", -1, "1969-12-31 23:59:59.999999"),
        ("timestamptz", 0, "1970-01-01 00:00:00+00"),
        ("timestamp_ns", 1, "1970-01-01 00:00:00.000000001"),
        ("time", 3723000004, "01:02:03.000004"),
        ("varchar", "é", "é"),
        ("blob", b"\x00\xff", "00FF"),
        ("uuid", "F79C3E09-677C-4BBD-A479-3F349CB785E7", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
    ],
)
def test_a_bound_is_written_as_duckdb_writes_it_for_files(kind, value, text):
    assert bound_text(ducklake_type(kind), value) == text


def test_varchar_bounds_compare_by_utf8_bytes():
    leaf = ducklake_type("varchar")

    assert widen(leaf, ("z", "z"), ("é", "\U0001f600")) == ("z", "\U0001f600")


@pytest.mark.parametrize(
    ("kind", "known", "added", "both"),
    [
        ("int32", ("2", "10"), ("9", "100"), ("2", "100")),
        ("decimal(5,2)", ("-1.50", "1.50"), ("-10.00", "0.00"), ("-10.00", "1.50")),
        ("boolean", ("false", "false"), ("1", "1"), ("false", "1")),
        ("date", ("0044-03-15 (BC)", "0044-03-15 (BC)"), ("2024-01-02", "2024-01-02"),
         ("0044-03-15 (BC)", "2024-01-02")),
        ("int32", (None, "10"), ("9", "100"), (None, "100")),
        ("int32", ("1", "2"), (None, None), (None, None)),
        ("int32", ("true", "2"), ("1", "2"), (None, "2")),
        ("float64", ("1.0", "nan"), ("1.0", "nan"), ("1.0", None)),
        ("blob", ("00FF", "00FF"), ("00FF", "00FF"), (None, None)),
        ("uuid", ("00000000-0000-0000-0000-000000000000",) * 2,
         ("f79c3e09-677c-4bbd-a479-3f349cb785e7",) * 2,
         ("00000000-0000-0000-0000-000000000000", "f79c3e09-677c-4bbd-a479-3f349cb785e7")),
    ],
)  # fmt: skip
def test_bounds_of_a_table_widen_and_give_up_when_unsure(kind, known, added, both):
    assert widen(ducklake_type(kind), known, added) == both
