"""The partition values of rows that the catalog keeps; tests/differential asks DuckDB."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shelduck.errors import CorruptLake
from shelduck.model.files.data_file import InlinedRows
from shelduck.model.files.fitted import partition_values
from shelduck.model.tables.schema import new_schema
from shelduck.model.tables.table_version import PartitionColumn
from shelduck.model.types.data_types import Member, parse_type
from tests.support.scans import table

UNITS = ("year", "month", "day", "hour")


def values(old, new, transform, *given):
    """The values of rows that were written with the type ``old``, of a column of type ``new``."""
    columns = new_schema([Member("x", parse_type(new))])
    made = replace(table(*columns), partition=(PartitionColumn(1, transform),))
    before = new_schema([Member("x", parse_type(old))])
    numbers = tuple(range(len(given)))
    part = InlinedRows(before, tuple((v,) for v in given), numbers, numbers)
    return [value for (value,) in partition_values(made, part)]


@pytest.mark.parametrize(
    ("type_", "transform", "given", "expected"),
    [
        ("int", "identity", "34", "34"),
        ("int", "bucket(1000000)", "34", "239379"),
        ("string", "identity", "", ""),
        ("string", "bucket(1000000)", "iceberg", "89"),
        ("binary", "identity", b"ab", "ab"),
        ("decimal(3,3)", "identity", "0.125", ".125"),
        ("double", "identity", "-0.0", "0.0"),
        ("date", "year", "0044-03-15 (BC)", "-43"),
        ("date", "day", "2024-02-29", "29"),
        ("timestamp_ntz", "month", "1969-12-31 23:59:59.5", "12"),
        ("timestamp_ntz", "hour", "1969-12-31 23:59:59.5", "23"),
        ("timestamp", "hour", "2024-02-29 23:30:00+00", "23"),
        ("timestamp", "epoch_hour", "2024-02-01 10:30:00+02", "474104"),
        ("timestamp_ntz", "epoch_day", "2024-02-01 10:30:00.123456", "19754"),
        ("timestamp_ntz", "epoch_month", "2024-02-01 10:30:00", "649"),
        ("timestamp_ntz", "epoch_year", "2024-02-01 10:30:00", "54"),
        *(("timestamp_ntz", f"epoch_{u}", "1969-12-31 23:00:00", "-1") for u in UNITS),
        ("timestamp_ns", "epoch_hour", "1969-12-31 23:59:59.999999999", "-1"),
        ("date", "epoch_hour", "1969-12-31", "-24"),
        ("date", "year", "infinity", None),
        ("timestamp_ntz", "epoch_day", "-infinity", None),
    ],
)
def test_a_row_has_the_value_that_its_file_would_have(type_, transform, given, expected):
    assert values(type_, type_, transform, given, None) == [expected, None]


def test_a_row_of_a_narrower_type_has_the_value_of_the_wider_one():
    assert values("float", "double", "identity", "0.1") == ["0.10000000149011612"]
    assert values("date", "timestamp_ntz", "hour", "2024-02-29") == ["0"]


def test_a_table_without_keys_has_one_partition():
    columns = new_schema([Member("x", parse_type("int"))])
    part = InlinedRows(columns, (("1",), ("2",)), (0, 1), (1, 1))
    assert partition_values(table(*columns), part) == [(), ()]


def test_a_text_that_is_not_a_value_of_its_column_is_refused():
    with pytest.raises(CorruptLake, match="inlined column x holds 'soon', which has no year"):
        values("date", "date", "year", "soon")
