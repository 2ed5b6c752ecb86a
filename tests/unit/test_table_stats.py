"""Statistics of a whole table: certain, or absent."""

from __future__ import annotations

import pytest

from shelduck.catalog.commit.rows.stats import (
    TableColumnStats,
    grown,
    stats_of_added,
    stats_of_files,
)
from shelduck.model.files.data_files import ColumnStats
from shelduck.model.tables.schema import Field, FieldId
from shelduck.model.types.data_types import Decimal, Primitive

INT = Primitive("int32")
DOUBLE = Primitive("float64")


def part(low, high, values=1, nulls=0, nan=None):
    return ColumnStats(FieldId(1), 10, values, nulls, low, high, nan)


ALL_NULL = part(None, None, 0, 3)


@pytest.mark.parametrize(
    ("leaf", "parts", "expected"),
    [
        (INT, [part("9", "10"), part("-5", "9")], TableColumnStats(False, None, "-5", "10")),
        (INT, [part("1", "1", 1, 2)], TableColumnStats(True, None, "1", "1")),
        (INT, [ALL_NULL, part("1", "2")], TableColumnStats(True, None, "1", "2")),
        (INT, [part("1", "2"), ALL_NULL], TableColumnStats(True, None, "1", "2")),
        (INT, [ALL_NULL], TableColumnStats(True, None, None, None)),
        (INT, [], TableColumnStats(False, None, None, None)),
        (INT, [part("1", "2"), None], None),
        (INT, [part(None, None)], None),
        (INT, [part("1", None)], None),
        (INT, [part("1", "2"), part("x", "y")], None),
        (
            Decimal(4, 1),
            [part("9.5", "9.5"), part("10.0", "10.0")],
            TableColumnStats(False, None, "9.5", "10.0"),
        ),
        (DOUBLE, [part("1.0", "2.0", nan=False)], TableColumnStats(False, False, "1.0", "2.0")),
        (
            DOUBLE,
            [part("1.0", "2.0", nan=False), part("0.5", "0.5", nan=True)],
            TableColumnStats(False, True, "0.5", "2.0"),
        ),
        (
            DOUBLE,
            [part("1.0", "2.0"), part("3.0", "3.0", nan=False)],
            TableColumnStats(False, None, "1.0", "3.0"),
        ),
        (Primitive("blob"), [part("00", "FF")], None),
    ],
    ids=str,
)
def test_files_amount_to_statistics_that_hold_for_all_or_to_none(leaf, parts, expected):
    assert stats_of_files(leaf, parts) == expected


KNOWN = TableColumnStats(False, None, "3", "5")
NO_VALUES = TableColumnStats(True, None, None, None)


@pytest.mark.parametrize(
    ("old", "added", "expected"),
    [
        (KNOWN, TableColumnStats(True, None, "4", "20"), TableColumnStats(True, None, "3", "20")),
        (KNOWN, NO_VALUES, TableColumnStats(True, None, "3", "5")),
        (KNOWN, None, None),
        (NO_VALUES, NO_VALUES, NO_VALUES),
        (NO_VALUES, KNOWN, None),
        (NO_VALUES, None, None),
    ],
)
def test_a_table_grows_by_more_rows(old, added, expected):
    assert grown(INT, old, added) == expected


@pytest.mark.parametrize(
    ("kind", "default", "expected"),
    [
        ("int32", None, TableColumnStats(True, None, None, None)),
        ("int32", "7", TableColumnStats(False, None, "7", "7")),
        ("float64", "1.5", TableColumnStats(False, False, "1.5", "1.5")),
        ("boolean", "true", TableColumnStats(False, None, "1", "1")),
        ("date", "2024-01-02", TableColumnStats(False, None, "2024-01-02", "2024-01-02")),
        ("float64", "nan", None),
        ("blob", "x", None),
        ("interval", "1 month", None),
    ],
)
def test_an_added_column_holds_its_default_everywhere(kind, default, expected):
    column = Field(FieldId(2), "b", Primitive(kind), initial_default=default)

    assert stats_of_added(column, is_nested=False) == expected


def test_an_added_field_of_a_struct_may_be_null_with_its_struct():
    column = Field(FieldId(2), "b", INT, initial_default="7")

    assert stats_of_added(column, is_nested=True) == TableColumnStats(True, None, "7", "7")
