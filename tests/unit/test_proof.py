"""Bounds of a file prove that all values of a column fit another type, or that one does not."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shelduck.model.shadows.proof import FileBounds, Fitting, Proof, fitting, is_narrower
from shelduck.model.types.data_types import ducklake_type

PROVEN, FAILS, UNKNOWN = Proof.PROVEN, Proof.FAILS, Proof.UNKNOWN

# The least value, the greatest one, and the step between two values.
RANGES = {
    "int8": (-128, 127, 1),
    "int16": (-32768, 32767, 1),
    "int32": (-2147483648, 2147483647, 1),
    "int64": (-9223372036854775808, 9223372036854775807, 1),
    "uint8": (0, 255, 1),
    "uint16": (0, 65535, 1),
    "uint32": (0, 4294967295, 1),
    "uint64": (0, 18446744073709551615, 1),
    "decimal(3,0)": (-999, 999, 1),
    "decimal(4,2)": (Decimal("-99.99"), Decimal("99.99"), Decimal("0.01")),
    "decimal(5,1)": (Decimal("-9999.9"), Decimal("9999.9"), Decimal("0.1")),
    "decimal(9,2)": (Decimal("-9999999.99"), Decimal("9999999.99"), Decimal("0.01")),
    "decimal(12,4)": (Decimal("-99999999.9999"), Decimal("99999999.9999"), Decimal("0.0001")),
    "decimal(20,0)": (-99999999999999999999, 99999999999999999999, 1),
    # Whole numbers of which a float is certain.
    "float32": (-16777216, 16777216, 1),
    "float64": (-9007199254740992, 9007199254740992, 1),
}
EDGES = sorted({edge + n * step for least, most, step in RANGES.values() for edge in (least, most)
                for n in (-1, 0, 1)} | {0, 1, -1, Decimal("0.5"), Decimal("-0.01")})  # fmt: skip


def is_value(number, kind):
    least, most, step = RANGES[kind]
    return least <= number <= most and number % step == 0


def fit(source, target):
    return Fitting(ducklake_type(source), ducklake_type(target))


def text(number, kind):
    """A bound as DuckDB writes it: all digits that the type has after the point."""
    scale = int(kind[:-1].rpartition(",")[2]) if kind.startswith("decimal") else 0
    return f"{number:.{scale}f}" if scale else str(int(number))


def bounds(low, high, rows=2, nulls=0, **more):
    return FileBounds(rows, rows - nulls, nulls, low, high, **more)


SOURCES = [kind for kind in RANGES if not kind.startswith("float")]


@given(
    st.sampled_from(SOURCES),
    st.sampled_from(list(RANGES)),
    st.lists(st.sampled_from(EDGES) | st.integers(-70000, 70000), min_size=1, max_size=5),
    st.booleans(),
)
def test_a_proof_never_says_what_the_values_deny(source, target, drawn, has_null):
    values = [n for n in drawn if is_value(n, source)]
    if not values:
        return
    stats = bounds(
        text(min(values), source), text(max(values), source), len(values) + has_null, int(has_null)
    )
    fits = [is_value(n, target) for n in values]
    found = fit(source, target).proof(stats)

    assert found is not PROVEN or all(fits)
    assert found is not FAILS or not all(fits)
    # Of whole numbers, bounds tell all.
    if source.startswith(("int", "uint")) and not target.startswith("float"):
        assert (found is PROVEN) == all(fits)
    for number in values:
        assert fit(source, target).holds(text(number, source)) == is_value(number, target)


@pytest.mark.parametrize(
    ("source", "target", "low", "high", "found"),
    [
        ("int64", "int32", "-2147483648", "2147483647", PROVEN),
        ("int64", "int32", "-2147483649", "0", FAILS),
        ("int64", "int32", "0", "2147483648", FAILS),
        ("int32", "uint8", "0", "255", PROVEN),
        ("int32", "uint8", "-1", "255", FAILS),
        ("uint32", "int16", "0", "32768", FAILS),
        ("int64", "decimal(5,1)", "-9999", "9999", PROVEN),
        ("int64", "decimal(5,1)", "-9999", "10000", FAILS),
        ("int64", "decimal(10,0)", "-9999999999", "9999999999", PROVEN),
        ("decimal(18,4)", "decimal(10,4)", "-999999.9999", "999999.9999", PROVEN),
        ("decimal(18,4)", "decimal(10,4)", "0.0000", "1000000.0000", FAILS),
        # Digits after the point may be lost between bounds that have none.
        ("decimal(18,4)", "decimal(18,2)", "1.0000", "2.0000", UNKNOWN),
        ("decimal(18,4)", "decimal(18,2)", "1.0000", "1.0000", PROVEN),
        ("decimal(18,4)", "decimal(18,2)", "1.0000", "2.0001", FAILS),
        ("decimal(9,2)", "int32", "1.00", "2.00", UNKNOWN),
        ("decimal(9,0)", "int16", "-5", "5", PROVEN),
        ("int64", "float64", "0", "9007199254740992", PROVEN),
        # Larger floats hold some whole numbers, so bounds say neither.
        ("int64", "float64", "0", "9007199254740994", UNKNOWN),
    ],
)
def test_bounds_at_the_edges_of_types(source, target, low, high, found):
    assert fit(source, target).proof(bounds(low, high)) is found


@pytest.mark.parametrize(
    "stats",
    [
        FileBounds(None, None, None, None, None),
        bounds(None, "5"),
        bounds("1", None),
        bounds("5", "1"),
        bounds("a", "b"),
        bounds("1.5", "2"),
        bounds("1e3", "2e3"),
        bounds("99999999999999999999", "99999999999999999999"),
        # All values are NULL, and yet there are bounds.
        FileBounds(2, 0, 2, "1", "5"),
        # Counters of other writers.
        FileBounds(2, 0, 1, None, None),
        FileBounds(2, 0, None, None, None),
        FileBounds(None, 0, 2, None, None),
        bounds("1", "5", nan=True),
        bounds("1", "5", is_trusted=False),
        bounds("1", "5000000000", is_trusted=False),
        bounds("1", "5000000000", is_whole=False),
    ],
)
def test_what_is_in_doubt_must_be_read(stats):
    assert fit("int64", "int32").proof(stats) is UNKNOWN


@pytest.mark.parametrize("target", ["int8", "decimal(3,0)", "float32"])
def test_a_file_of_nulls_is_proven(target):
    assert fit("int64", target).proof(FileBounds(3, 0, 3, None, None)) is PROVEN


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("varchar", "int32"),
        ("float64", "int32"),
        ("float64", "float32"),
        ("int32", "varchar"),
        ("int32", "int64"),
        ("boolean", "int8"),
        ("date", "int32"),
    ],
)
def test_bounds_of_other_pairs_are_not_asked(source, target):
    assert fitting(ducklake_type(source), ducklake_type(target)) is None


def test_bounds_of_many_digits_need_a_writer_that_is_known():
    assert not fit("decimal(18,2)", "decimal(4,2)").needs_own_bounds
    assert fit("decimal(19,2)", "decimal(4,2)").needs_own_bounds


@pytest.mark.parametrize(
    ("source", "target", "found"),
    [
        ("int64", "int32", True),
        ("int64", "uint8", True),
        ("uint32", "int8", True),
        ("decimal(18,4)", "decimal(10,4)", True),
        ("decimal(38,2)", "decimal(4,2)", True),
        ("decimal(18,4)", "decimal(18,2)", False),
        ("int64", "decimal(10,0)", False),
        ("decimal(10,0)", "int32", False),
        ("uint64", "int32", False),
        ("int128", "int64", False),
        ("int32", "int64", False),
        ("int32", "int32", False),
    ],
)
def test_files_of_some_wider_types_stay(source, target, found):
    assert is_narrower(ducklake_type(source), ducklake_type(target)) is found
