"""Statistics of a whole table: certain, or absent."""

from __future__ import annotations

import pytest

from shelduck.catalog.commit.rows.table_stats import (
    TableColumnStats,
    grown,
    stats_of_added,
    stats_of_files,
)
from shelduck.model.files.data_file import ColumnStats
from shelduck.model.tables.schema import Field, FieldId
from shelduck.model.types.data_types import Decimal, Primitive

INT = Primitive("int32")
DOUBLE = Primitive("float64")


def row(null, nan, low, high, exact=True):
    """Return the statistics of a table whose bounds, if it has some, are values or are not."""
    flag = None if low is None else exact
    return TableColumnStats(null, nan, low, high, flag, flag)


def part(low, high, values=1, nulls=0, nan=None):
    return ColumnStats(FieldId(1), 10, values, nulls, low, high, nan)


ALL_NULL = part(None, None, 0, 3)


@pytest.mark.parametrize(
    ("leaf", "parts", "expected"),
    [
        (INT, [part("9", "10"), part("-5", "9")], row(False, None, "-5", "10")),
        (INT, [part("1", "1", 1, 2)], row(True, None, "1", "1")),
        (INT, [ALL_NULL, part("1", "2")], row(True, None, "1", "2")),
        (INT, [part("1", "2"), ALL_NULL], row(True, None, "1", "2")),
        (INT, [ALL_NULL], row(True, None, None, None)),
        (INT, [], row(False, None, None, None)),
        (INT, [part("1", "2"), None], None),
        (INT, [part(None, None)], None),
        (INT, [part("1", None)], None),
        (INT, [part("1", "2"), part("x", "y")], None),
        (
            Decimal(4, 1),
            [part("9.5", "9.5"), part("10.0", "10.0")],
            row(False, None, "9.5", "10.0"),
        ),
        (DOUBLE, [part("1.0", "2.0", nan=False)], row(False, False, "1.0", "2.0")),
        (
            DOUBLE,
            [part("1.0", "2.0", nan=False), part("0.5", "0.5", nan=True)],
            row(False, True, "0.5", "2.0"),
        ),
        (
            DOUBLE,
            [part("1.0", "2.0"), part("3.0", "3.0", nan=False)],
            row(False, None, "1.0", "3.0"),
        ),
        (Primitive("blob"), [part("00", "FF")], None),
    ],
    ids=str,
)
def test_files_amount_to_statistics_that_hold_for_all_or_to_none(leaf, parts, expected):
    assert stats_of_files(leaf, parts) == expected


KNOWN = row(False, None, "3", "5")
NO_VALUES = row(True, None, None, None)


@pytest.mark.parametrize(
    ("old", "added", "expected"),
    [
        (KNOWN, row(True, None, "4", "20"), row(True, None, "3", "20")),
        (KNOWN, NO_VALUES, row(True, None, "3", "5")),
        (KNOWN, None, None),
        (NO_VALUES, NO_VALUES, NO_VALUES),
        (NO_VALUES, KNOWN, None),
        (NO_VALUES, None, None),
    ],
)
def test_a_table_grows_by_more_rows(old, added, expected):
    assert grown(INT, old, added) == expected


VARCHAR = Primitive("varchar")


@pytest.mark.parametrize(
    ("kind", "one", "other", "expected"),
    [
        ("varchar", ("a", "k", True, True), ("b", "z", True, False), ("a", "z", True, False)),
        ("varchar", ("a", "z", False, True), ("b", "k", True, True), ("a", "z", False, True)),
        # Bounds that are equal are values only if both are.
        ("varchar", ("a", "z", True, True), ("a", "z", False, True), ("a", "z", False, True)),
        ("varchar", ("a", "z", False, True), ("a", "z", True, None), ("a", "z", False, False)),
        # Of a text, nobody knows it without the flag. Numbers need none.
        ("varchar", ("a", "k", None, None), ("b", "z", None, None), ("a", "z", False, False)),
        ("json", ("1", "1", None, None), ("1", "1", True, True), ("1", "1", False, False)),
        ("int64", ("1", "2", None, None), ("5", "6", None, False), ("1", "6", True, True)),
        ("date", ("2024-01-01",) * 2 + (None,) * 2, ("2024-01-01",) * 2 + (None,) * 2,
         ("2024-01-01", "2024-01-01", True, True)),
    ],
)  # fmt: skip
def test_the_bound_that_wins_brings_whether_it_is_a_value(kind, one, other, expected):
    leaf = Primitive(kind)
    low, high, low_is_exact, high_is_exact = expected
    told = [ColumnStats(FieldId(1), 10, 1, 0, a, b, None, c, d) for a, b, c, d in (one, other)]
    found = TableColumnStats(False, None, low, high, low_is_exact, high_is_exact)

    assert stats_of_files(leaf, told) == found
    assert grown(leaf, stats_of_files(leaf, told[:1]), stats_of_files(leaf, told[1:])) == found


@pytest.mark.parametrize(
    ("kind", "default", "expected"),
    [
        ("int32", None, row(True, None, None, None)),
        ("int32", "7", row(False, None, "7", "7")),
        ("float64", "1.5", row(False, False, "1.5", "1.5")),
        ("boolean", "true", row(False, None, "1", "1")),
        ("date", "2024-01-02", row(False, None, "2024-01-02", "2024-01-02")),
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

    assert stats_of_added(column, is_nested=True) == row(True, None, "7", "7")
