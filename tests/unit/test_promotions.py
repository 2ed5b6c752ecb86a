"""Which type changes keep every value: measured facts of others, and laws that hold for all."""

from __future__ import annotations

import csv
import itertools
from decimal import Context
from decimal import Decimal as Number
from pathlib import Path

import numpy as np
import pytest

from shelduck.model.types.accepted import TypeRules
from shelduck.model.types.data_types import PRIMITIVES, Decimal, List, Primitive, ducklake_type
from shelduck.model.types.promotions import NO_RULE, RULES, Verdict, promotion

TYPES = Path(__file__).parents[2] / "docs" / "types.md"
FACTS = Path(__file__).parents[1] / "data" / "promotions.csv"
"""What each engine was seen to do with 307 pairs, and whether each value survives."""
ENGINES = {
    "ducklake": TypeRules.DUCKLAKE,
    "duckdb": TypeRules.DUCKDB,
    "delta": TypeRules.DELTA,
    "iceberg": TypeRules.ICEBERG,
    "doris": TypeRules.DORIS,
}
DECIMALS = [(1, 0), (3, 0), (5, 0), (9, 0), (9, 2), (10, 0), (10, 2), (18, 2), (19, 0), (19, 2)]
DECIMALS += [(20, 0), (38, 0), (38, 2), (38, 38)]
LEAVES = [Primitive(name) for name in sorted(PRIMITIVES)] + [Decimal(p, s) for p, s in DECIMALS]
PAIRS = list(itertools.permutations(LEAVES, 2))
LIGHT = [pair for pair in PAIRS if promotion(*pair).is_light]
LOSSLESS = ("yes",)


def facts() -> list[dict[str, str]]:
    with FACTS.open() as file:
        return list(csv.DictReader(file))


def measured(row):
    return promotion(ducklake_type(row["source"]), ducklake_type(row["target"]))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_takes_the_pairs_that_it_was_seen_to_take(engine):
    wrong = [
        row
        for row in facts()
        if bool(row[engine]) is not (ENGINES[engine] in measured(row).accepted_by)
    ]

    assert wrong == []
    assert len(facts()) == 307


def test_only_pairs_that_lose_nothing_are_metadata():
    lossy = [row for row in facts() if measured(row).is_light and row["lossless"] not in LOSSLESS]

    assert lossy == []


def test_what_loses_nothing_and_is_still_no_metadata_is_written_down():
    heavy = {
        (row["source"], row["target"])
        for row in facts()
        if row["lossless"] in LOSSLESS and not measured(row).is_light
    }

    # A boolean has no place among the numbers: it is no decimal and no float, so what is wider than
    # an integer would not be wider than it. DuckDB stores an integer of 128 bits as a double.
    signed, unsigned = "int8 int16 int32 int64".split(), "uint8 uint16 uint32 uint64".split()
    wide = [*signed, *unsigned, "int128", "uint128"]
    assert heavy == {("boolean", target) for target in wide}


def test_all_promotions_of_delta_and_of_the_specification_are_metadata_only():
    specified = {TypeRules.DUCKLAKE, TypeRules.DELTA}
    found = {pair: promotion(*pair) for pair in PAIRS}

    # Spark can read no values of these types, and writes none.
    unread = "geometry interval time_ns timestamp_ns timestamptz_ns unknown".split()
    heavy = {p for p, f in found.items() if specified & f.accepted_by and not f.is_light}
    assert {(str(source), str(target)) for source, target in heavy} == {("null", t) for t in unread}


@pytest.mark.parametrize(
    ("source", "target", "verdict"),
    [
        ("int8", "int64", Verdict.SAFE),
        ("uint32", "int64", Verdict.SAFE),
        ("uint32", "int32", Verdict.CONVERT),
        ("int64", "decimal(19,0)", Verdict.SAFE),
        ("int64", "decimal(18,0)", Verdict.CONVERT),
        ("int8", "decimal(5,2)", Verdict.EXACT),
        ("int8", "decimal(4,2)", Verdict.CONVERT),
        ("uint64", "decimal(20,0)", Verdict.SAFE),
        ("uint64", "decimal(19,0)", Verdict.CONVERT),
        ("int32", "float64", Verdict.EXACT),
        ("int32", "float32", Verdict.CONVERT),
        ("int64", "float64", Verdict.CONVERT),
        ("uint16", "float32", Verdict.EXACT),
        ("float32", "float64", Verdict.EXACT),
        ("float64", "float32", Verdict.CONVERT),
        ("decimal(9,2)", "decimal(18,2)", Verdict.SAFE),
        ("decimal(9,2)", "decimal(18,4)", Verdict.EXACT),
        ("decimal(9,2)", "decimal(9,3)", Verdict.CONVERT),
        ("decimal(9,2)", "decimal(9,2)", Verdict.SAME),
        ("decimal(9,2)", "float64", Verdict.CONVERT),
        ("timestamp_s", "timestamp", Verdict.SAFE),
        ("timestamp", "timestamp_ns", Verdict.REFUSED),
        ("date", "timestamp", Verdict.EXACT),
        ("date", "timestamptz", Verdict.CONVERT),
        ("timestamp", "date", Verdict.CONVERT),
        ("int32", "date", Verdict.CONVERT),
        ("int64", "date", Verdict.REFUSED),
        ("int64", "int128", Verdict.EXACT),
        ("uint64", "int128", Verdict.EXACT),
        ("int8", "uint128", Verdict.CONVERT),
        ("uint128", "int128", Verdict.CONVERT),
        ("varchar", "int128", Verdict.CONVERT),
        ("int64", "varchar", Verdict.CONVERT),
        ("varchar", "json", Verdict.CONVERT),
        ("uuid", "varchar", Verdict.CONVERT),
        ("uuid", "blob", Verdict.CONVERT),
        ("blob", "uuid", Verdict.REFUSED),
        ("varchar", "variant", Verdict.REFUSED),
        ("boolean", "int8", Verdict.CONVERT),
        ("time", "timetz", Verdict.REFUSED),
    ],
)
def test_the_verdict_on_a_pair(source, target, verdict):
    assert promotion(ducklake_type(source), ducklake_type(target)).verdict is verdict


def test_nested_types_are_no_pair():
    found = promotion(List(Primitive("int32")), List(Primitive("int64")))

    assert found.verdict is Verdict.REFUSED
    assert found.reason == "array<int32> and array<int64> are not both primitive types"


def test_light_pairs_are_a_partial_order():
    light = set(LIGHT)

    assert [(a, b) for a, b in light if (b, a) in light] == []
    chains = {(a, d) for a, b in light for c, d in light if b == c}
    assert sorted(map(str, chains - light)) == []


def test_bounds_and_grain_follow_from_the_types():
    unsafe = [pair for pair in LIGHT if not promotion(*pair).bounds_hold]
    coarse = [(a, b) for a, b in LIGHT if promotion(a, b).is_finer and str(b).startswith("int")]

    assert unsafe == [(Primitive("float32"), Primitive("float64"))]
    assert coarse == []
    assert promotion(Primitive("date"), Primitive("timestamp")).is_finer
    assert not promotion(Decimal(9, 2), Decimal(18, 2)).is_finer


# The ends of each type and what stands beside them, as numbers: what a wider type must hold.
EDGES = {
    **{f"int{n}": (-(2 ** (n - 1)), -1, 0, 1, 2 ** (n - 1) - 1) for n in (8, 16, 32, 64)},
    **{f"uint{n}": (0, 1, 2**n - 1) for n in (8, 16, 32, 64)},
}


@pytest.mark.parametrize(("source", "target"), [p for p in LIGHT if str(p[0]) in EDGES], ids=str)
def test_values_of_integers_and_their_order_survive(source, target):
    values = EDGES[str(source)]
    after = [_as(target, value) for value in values]

    assert [Number(value) for value in after] == [Number(value) for value in values]
    assert after == sorted(after)


def _as(target, value):
    """The value of ``target`` that stands for a whole number, by the type's own arithmetic."""
    name = str(target)
    if name.startswith("float"):
        return float(np.float32(value) if name == "float32" else np.float64(value))
    if isinstance(target, Decimal):
        assert abs(value) < 10 ** (target.precision - target.scale)
        return Number(value)
    wide = {"int128": (-(2**127), 2**127 - 1), "uint128": (0, 2**128 - 1)}
    assert wide.get(name, EDGES.get(name))[0] <= value <= wide.get(name, EDGES.get(name))[-1]
    return value


def test_a_decimal_keeps_its_digits():
    for source, target in LIGHT:
        if isinstance(source, Decimal) and isinstance(target, Decimal):
            most = Number(10**source.precision - 1).scaleb(-source.scale)
            kept = most.quantize(Number(1).scaleb(-target.scale), context=_wide())
            assert kept == most
            assert len(kept.as_tuple().digits) <= target.precision


def _wide():
    return Context(prec=80)


def test_a_reason_names_the_types_and_what_to_do():
    assert promotion(Primitive("int64"), Primitive("int128")).reason == (
        "int128 holds every int64, but DuckDB 1.5.5 stores what it writes as a double, which loses"
        " digits; DECIMAL(38,0) keeps them"
    )
    assert promotion(Primitive("int64"), Primitive("varchar")).reason == (
        "values of int64 are stored in another form than those of varchar"
    )
    assert promotion(Primitive("blob"), Primitive("uuid")).reason == ("blob cannot be cast to uuid")


def test_every_rule_decides_some_pair():
    idle = [
        rule.name
        for number, rule in enumerate((*RULES, NO_RULE))
        if not any(
            rule.holds(*pair) and not any(r.holds(*pair) for r in RULES[:number]) for pair in PAIRS
        )
    ]

    assert idle == []


@pytest.mark.parametrize("rule", [*RULES, NO_RULE], ids=lambda rule: rule.name)
def test_the_documentation_has_every_rule(rule):
    why = rule.reason.format(source="`S`", target="`T`")

    assert f"| {rule.name} | {rule.verdict.value} | {why} |\n" in TYPES.read_text()
