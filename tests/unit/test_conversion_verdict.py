"""What a change of type asks for at any depth, and which part of it decides."""

from __future__ import annotations

import itertools

import pytest

from shelduck.model.changes.retype import conversion_verdict
from shelduck.model.types.accepted import TypeRules
from shelduck.model.types.data_types import (
    PRIMITIVES,
    Decimal,
    Member,
    Primitive,
    Struct,
    parse_type,
)
from shelduck.model.types.promotions import NOT_WRITTEN, Verdict, promotion

SAME, SAFE, EXACT, CONVERT, REFUSED = Verdict
LEAVES = [Primitive(name) for name in sorted(PRIMITIVES)] + [Decimal(9, 2), Decimal(18, 2)]
NOT_STORED = "values of varchar are stored in another form than those of int32"
NOT_HELD = "int32 cannot hold every int64"
AS_DOUBLE = (
    "int128 holds every int64, but DuckDB 1.5.5 stores what it writes as a double, which loses"
    " digits; DECIMAL(38,0) keeps them"
)
NEW = "a new field is NULL in existing values"
MOVED = "fields of the struct change their order or spelling"
ONE_KEY = "map keys that differ only in this field would become equal"
CASES = [
    ("int", "bigint", SAFE, "int64 holds every int32"),
    ("string", "int", CONVERT, NOT_STORED),
    ("struct<a: int>", "struct<a: int>", SAME, "the type is the same"),
    ("struct<a: int>", "struct<a: int not null>", SAME, "the type is the same"),
    ("struct<a: int>", "struct<A: int>", SAFE, MOVED),
    ("struct<a: int, b: int>", "struct<b: int, a: int>", SAFE, MOVED),
    ("struct<a: int>", "struct<a: int, b: int>", SAFE, f"b: {NEW}"),
    ("struct<a: int>", "struct<b: int, a: int>", SAFE, f"b: {NEW}"),
    ("struct<a: int, b: int>", "struct<b: int>", SAFE, "a: the field is dropped"),
    ("struct<a: int>", "struct<b: int>", SAFE, "a: the field is dropped"),
    ("struct<a: int>", "struct<a: bigint>", SAFE, "a: int64 holds every int32"),
    ("struct<a: int, b: float>", "struct<a: bigint, b: double>", EXACT, None),
    ("struct<a: string>", "struct<a: int>", CONVERT, f"a: {NOT_STORED}"),
    ("struct<`a.b`: string>", "struct<`a.b`: int>", CONVERT, f"`a.b`: {NOT_STORED}"),
    ("struct<A: string>", "struct<a: int>", CONVERT, f"a: {NOT_STORED}"),
    ("struct<a: int, b: bigint, c: string>", "struct<c: int, b: int>", CONVERT, f"c: {NOT_STORED}"),
    ("struct<a: string, b: blob>", "struct<a: int, b: uuid>", REFUSED, None),
    ("int[]", "bigint[]", SAFE, "element: int64 holds every int32"),
    ("bigint[]", "int[]", CONVERT, f"element: {NOT_HELD}"),
    ("bigint[][]", "int[][]", CONVERT, f"element.element: {NOT_HELD}"),
    (
        "struct<a: struct<b: string>[]>",
        "struct<a: struct<b: int>[]>",
        CONVERT,
        f"a.element.b: {NOT_STORED}",
    ),
    ("map<string, bigint>", "map<string, int>", CONVERT, f"value: {NOT_HELD}"),
    ("map<string, bigint>", "map<int, int>", CONVERT, f"key: {NOT_STORED}"),
    ("map<int, float>", "map<bigint, double>", EXACT, None),
    ("map<int, struct<a: string>>", "map<int, struct<a: int>>", CONVERT, f"value.a: {NOT_STORED}"),
    # Without a member, keys that are two may become one; as a value it is only a member less.
    ("map<struct<a: int, b: int>, int>", "map<struct<a: int>, int>", CONVERT, f"key.b: {ONE_KEY}"),
    (
        "map<struct<a: int, b: int>[], int>",
        "map<struct<a: int>[], int>",
        CONVERT,
        f"key.element.b: {ONE_KEY}",
    ),
    ("map<struct<a: int>, int>", "map<struct<a: int, b: int>, int>", SAFE, f"key.b: {NEW}"),
    ("map<int, struct<a: int, b: int>>", "map<int, struct<a: int>>", SAFE, None),
    *[
        (one, other, REFUSED, f"there is no conversion from {one} to {other}; give one with USING")
        for one, other in [
            ("array<int32>", "int32"),
            ("int32", "array<int32>"),
            ("array<int32>", "varchar"),
            ("struct<a: int32>", "json"),
            ("map<int32, int32>", "varchar"),
            ("json", "struct<a: int32>"),
            ("array<int32>", "struct<a: int32>"),
            ("map<int32, int32>", "array<int32>"),
        ]
    ],
    (
        "struct<a: int, b: int[]>",
        "struct<a: bigint, b: int>",
        REFUSED,
        "b: there is no conversion from array<int32> to int32; give one with USING",
    ),
    ("bigint[]", "hugeint[]", EXACT, f"element: {AS_DOUBLE}"),
    # What stays as it is in metadata would be written anew beside a value that is converted.
    ("struct<a: timestamp_ns, b: int>", "struct<a: timestamp_ns, b: bigint>", SAFE, None),
    (
        "struct<a: timestamp_ns, b: string>",
        "struct<a: timestamp_ns, b: int>",
        REFUSED,
        "a: Spark has no data type that preserves the values of timestamp_ns",
    ),
    (
        "struct<b: string>",
        "struct<b: int, a: geometry[]>",
        REFUSED,
        "a.element: Spark has no data type that preserves the values of geometry",
    ),
    ("struct<a: timestamp_ns, b: string>", "struct<b: int>", CONVERT, f"b: {NOT_STORED}"),
    (
        "map<map<int, int>, string>",
        "map<map<int, int>, int>",
        REFUSED,
        "key: Spark does not support maps in the keys of a map",
    ),
    ("map<map<int, int>, int>", "map<map<int, int>, bigint>", SAFE, None),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target", "verdict", "reason"), CASES)
def test_the_verdict_names_the_first_part_that_decides(source, target, verdict, reason):
    found = conversion_verdict(parse_type(source), parse_type(target))

    assert found.verdict is verdict
    assert reason is None or found.reason == reason


def test_leaves_have_the_verdicts_of_promotions():
    pairs = itertools.product(LEAVES, LEAVES)

    assert [p for p in pairs if conversion_verdict(*p) != promotion(*p)] == []


def test_of_two_parts_the_worse_one_decides_whatever_the_order():
    for one, other in itertools.product([*zip(LEAVES, LEAVES, strict=True), *_SAMPLES], _SAMPLES):
        found = {
            conversion_verdict(_struct(x[0], y[0]), _struct(x[1], y[1])).verdict
            for x, y in ((one, other), (other, one))
        }
        worst = max((promotion(*one), promotion(*other)), key=_severity)

        assert found <= {worst.verdict, REFUSED}
        if not NOT_WRITTEN & {str(one[1]), str(other[1])}:
            assert found == {worst.verdict}


_SAMPLES = [
    (parse_type(one), parse_type(other))
    for one, other in (("int", "int"), ("int", "bigint"), ("float", "double"), ("string", "int"))
] + [(Primitive("blob"), Primitive("uuid"))]


def _severity(found):
    return (SAME, SAFE, EXACT, CONVERT, REFUSED).index(found.verdict)


def _struct(one, other):
    return Struct((Member("x", one), Member("y", other)))


def test_what_holds_of_bounds_grain_and_engines_holds_of_all_parts():
    widened = conversion_verdict(
        parse_type("struct<a: int, b: float>"), parse_type("struct<a: bigint, b: double>")
    )
    assert not widened.bounds_hold
    assert widened.is_default
    assert widened.is_finer
    grown = conversion_verdict(parse_type("int[]"), parse_type("bigint[]"))
    assert grown.bounds_hold
    assert not grown.is_finer
    apart = conversion_verdict(
        parse_type("struct<a: int, b: date>"), parse_type("struct<a: decimal(10,0), b: date>")
    )
    assert apart.accepted_by == frozenset({TypeRules.DELTA, TypeRules.DUCKDB})
    assert not apart.is_default


def test_what_is_not_written_is_what_promotions_refuse_to_write():
    refused = {
        str(leaf)
        for leaf in LEAVES
        if "Spark has no data type" in promotion(Primitive("boolean"), leaf).reason
    }

    assert refused == NOT_WRITTEN
