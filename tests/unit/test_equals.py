"""The values that a filter leaves possible for a column, and the buckets that they lie in."""

from __future__ import annotations

import pytest

from shelduck.model.files.predicate import (
    And,
    ComparedValue,
    Comparison,
    In,
    IsNull,
    Operator,
    Or,
    Unknown,
)
from shelduck.model.types.data_types import ducklake_type
from shelduck.read.plan.answers import buckets_of, equal_values

ID, REGION = ("id",), ("region",)


def whole(value):
    return ComparedValue(value, ducklake_type("int64"))


def equals(value, path=ID):
    return Comparison(Operator.EQ, path, whole(value))


@pytest.mark.parametrize(
    ("predicate", "values"),
    [
        (equals(7), {ID: (7,)}),
        (In(ID, (whole(1), whole(2))), {ID: (1, 2)}),
        (In(ID, ()), {ID: ()}),
        (Comparison(Operator.GE, ID, whole(7)), {}),
        (And((equals(7), equals(8, REGION), Unknown())), {ID: (7,), REGION: (8,)}),
        (And((In(ID, (whole(1), whole(2))), equals(1))), {ID: (1,)}),
        (Or((equals(7), equals(8))), {ID: (7, 8)}),
        (Or((equals(7), And((equals(8), equals(1, REGION))))), {ID: (7, 8)}),
        (Or((equals(7), IsNull(ID))), {}),
        (Or((equals(7), Unknown())), {}),
    ],
)
def test_values_are_counted_up_where_a_filter_names_them(predicate, values):
    found = equal_values(predicate)
    assert {path: tuple(lit.value for lit in found[path]) for path in found} == values


@pytest.mark.parametrize(
    ("column", "literals", "buckets"),
    [
        ("int32", [(34, "int32")], {239379}),
        ("int64", [(34, "int32"), (-34, "int64")], {239379, 870797}),
        ("uint32", [(34, "int64")], {925257}),
        ("varchar", [("iceberg", "varchar")], {89}),
        ("uuid", [("f79c3e09-677c-4bbd-a479-3f349cb785e7", "varchar")], {414783}),
        ("boolean", [(True, "boolean")], {991556}),
        ("date", [(17486, "date")], {153226}),
        ("timestamp", [(1510871468000000, "timestamp")], {539207}),
        ("int64", [], set()),
        ("float64", [(1.0, "float64")], None),
        ("int64", [(34, "int64"), (1.5, "float64")], None),
        ("date", [(1510871468000000, "timestamp")], None),
        ("timestamptz", [(1510871468000000, "timestamp")], None),
        ("interval", [("1 month", "varchar")], None),
    ],
)
def test_buckets_are_told_only_where_they_are_certain(column, literals, buckets):
    found = tuple(ComparedValue(value, ducklake_type(kind)) for value, kind in literals)
    assert buckets_of(ducklake_type(column), found, 1_000_000) == buckets
