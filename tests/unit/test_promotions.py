"""Which type changes keep every value: the table of facts, and the laws that hold for all pairs."""

from __future__ import annotations

import itertools

import pytest

from shelduck.model.promotions import Verdict, promotion
from shelduck.model.types import PRIMITIVES, Decimal, List, Primitive

# The full set of the DuckLake specification.
SPECIFIED = [
    ("int8", "int16"),
    ("int8", "int32"),
    ("int8", "int64"),
    ("int16", "int32"),
    ("int16", "int64"),
    ("int32", "int64"),
    ("uint8", "uint16"),
    ("uint8", "uint32"),
    ("uint8", "uint64"),
    ("uint16", "uint32"),
    ("uint16", "uint64"),
    ("uint32", "uint64"),
    ("float32", "float64"),
]
FINER_UNITS = [
    ("timestamp_s", "timestamp_ms"),
    ("timestamp_s", "timestamp"),
    ("timestamp_ms", "timestamp"),
]
LEAVES = [Primitive(name) for name in sorted(PRIMITIVES)] + [
    Decimal(p, s) for p, s in [(1, 0), (9, 0), (9, 2), (10, 2), (18, 2), (19, 2), (38, 2), (38, 38)]
]


@pytest.mark.parametrize(("source", "target"), SPECIFIED)
def test_every_promotion_of_the_specification_is_metadata_only(source, target):
    found = promotion(Primitive(source), Primitive(target))

    assert found.verdict in (Verdict.SAFE, Verdict.EXACT)


def test_no_other_pair_of_primitives_is_metadata_only():
    light = {
        (source, target)
        for source, target in itertools.permutations(sorted(PRIMITIVES), 2)
        if promotion(Primitive(source), Primitive(target)).verdict is not Verdict.REWRITE
    }

    assert light == {*SPECIFIED, *FINER_UNITS}


def test_only_float_to_double_makes_old_bounds_and_duckdbs_filters_unsafe():
    unsafe = [
        (source, target)
        for source, target in itertools.permutations(LEAVES, 2)
        if promotion(source, target).verdict is Verdict.EXACT
        or not promotion(source, target).bounds_hold
    ]

    assert unsafe == [(Primitive("float32"), Primitive("float64"))]
    assert "DuckDB 1.5.5 may filter old rows wrongly" in promotion(*unsafe[0]).reason


@pytest.mark.parametrize(
    ("source", "target", "verdict"),
    [
        (Decimal(9, 2), Decimal(18, 2), Verdict.SAFE),
        (Decimal(9, 2), Decimal(38, 2), Verdict.SAFE),
        (Decimal(9, 2), Decimal(9, 2), Verdict.SAME),
        (Decimal(18, 2), Decimal(9, 2), Verdict.REWRITE),
        (Decimal(9, 2), Decimal(18, 3), Verdict.REWRITE),
        (Decimal(9, 2), Decimal(18, 1), Verdict.REWRITE),
        (Decimal(9, 0), Primitive("int64"), Verdict.REWRITE),
        (Primitive("int32"), Decimal(10, 0), Verdict.REWRITE),
        (Primitive("int64"), Primitive("varchar"), Verdict.REWRITE),
        (List(Primitive("int32")), List(Primitive("int64")), Verdict.REWRITE),
    ],
)
def test_a_decimal_may_get_digits_before_the_point_and_nothing_else(source, target, verdict):
    assert promotion(source, target).verdict is verdict


def test_a_rewrite_says_which_types_do_not_fit():
    reason = promotion(Primitive("int64"), Primitive("varchar")).reason

    assert reason == "values of int64 are not stored as varchar is"


def test_promotions_are_a_partial_order():
    light = {
        (a, b)
        for a, b in itertools.product(LEAVES, LEAVES)
        if promotion(a, b).verdict is not Verdict.REWRITE
    }

    assert all((a, a) in light for a in LEAVES)
    assert [(a, b) for a, b in light if a != b and (b, a) in light] == []
    chains = [(a, c) for a, b in light for b2, c in light if b == b2]
    assert [pair for pair in chains if pair not in light] == []
