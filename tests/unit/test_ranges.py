"""Whole numbers that filters leave possible, as facts."""

from __future__ import annotations

import pytest

from shelduck.model.files.predicate import (
    And,
    ComparedValue,
    Comparison,
    In,
    IsNotNull,
    Operator,
    Or,
    Unknown,
)
from shelduck.model.types.data_types import Primitive
from shelduck.read.plan.answers import whole_number_ranges

ID = ("id",)


def whole(value):
    return ComparedValue(value, Primitive("int64"))


def compare(operator, value):
    return Comparison(operator, ID, whole(value))


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (Operator.EQ, (7, 7)),
        (Operator.LT, (None, 6)),
        (Operator.LE, (None, 7)),
        (Operator.GT, (8, None)),
        (Operator.GE, (7, None)),
    ],
)
def test_a_comparison_leaves_a_range(operator, expected):
    assert whole_number_ranges(compare(operator, 7)) == {ID: expected}


def test_not_equal_leaves_everything():
    assert whole_number_ranges(compare(Operator.NE, 7)) == {}


def test_conditions_that_all_hold_narrow_each_other():
    found = And((compare(Operator.GE, 3), compare(Operator.LT, 9), IsNotNull(ID), Unknown()))
    assert whole_number_ranges(found) == {ID: (3, 8)}


def test_one_of_several_conditions_widens():
    assert whole_number_ranges(Or((compare(Operator.EQ, 3), compare(Operator.EQ, 9)))) == {
        ID: (3, 9)
    }
    assert whole_number_ranges(Or((compare(Operator.EQ, 3), compare(Operator.GT, 9)))) == {
        ID: (3, None)
    }


def test_a_part_that_is_not_understood_leaves_an_or_open():
    assert whole_number_ranges(Or((compare(Operator.EQ, 3), Unknown()))) == {}


def test_a_list_spans_from_its_least_to_its_greatest():
    assert whole_number_ranges(In(ID, (whole(4), whole(-2), whole(1)))) == {ID: (-2, 4)}


def test_dates_and_fractions_are_no_whole_numbers():
    for kind, value in (("date", 20000), ("float64", 1.0), ("timestamptz", 5)):
        literal = ComparedValue(value, Primitive(kind))
        assert whole_number_ranges(Comparison(Operator.EQ, ID, literal)) == {}
