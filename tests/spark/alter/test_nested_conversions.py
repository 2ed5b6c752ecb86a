"""Values inside structs, lists and maps made into others: what survives, and what is lost."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.rows.conversions import converted, lost
from shelduck.engine.types import same_type, spark_type
from shelduck.model.changes.retype import conversion_verdict
from shelduck.model.types.data_types import PRIMITIVES, Primitive, parse_type
from shelduck.model.types.promotions import Verdict

NAN = float("nan")
UUID = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
DAY = dt.date(2024, 2, 29)


@dataclass(frozen=True)
class Lost:
    """What is made of a value of which a part does not survive."""

    made: Any = None


# Source, target, and for each value (a tuple is a struct) what it becomes.
CASES = [
    ("string[]", "int[]", [
        (["1", " 2 "], [1, 2]),
        ([], []),
        (None, None),
        ([None, "1", None], [None, 1, None]),
        ([None], [None]),
        (["1", "x", None], Lost([1, None, None])),
    ]),
    ("string[][]", "date[][]", [
        ([["24/2/29"], [], None], [[DAY], [], None]),
        ([["24/2/29"], ["2023-02-29"]], Lost([[DAY], [None]])),
    ]),
    ("double[]", "float[]", [
        ([0.5, NAN, float("-inf"), None], [0.5, "nan", float("-inf"), None]),
        ([0.5, 0.1], Lost([0.5, None])),
    ]),
    ("double[]", "int[]", [([3.0], [3]), ([NAN], Lost([None])), ([3.5], Lost([None]))]),
    ("double[]", "json[]", [([1.5], ["1.5"]), ([NAN], Lost([None]))]),
    ("string[]", "json[]", [(['{"a": 1}'], ['{"a": 1}']), (["{", None], Lost([None, None]))]),
    ("date[]", "json[]", [([DAY, None], ['"2024-02-29"', None])]),
    ("string[]", "decimal(5,2)[]", [(["1.25"], [Decimal("1.25")]), (["1.255"], Lost([None]))]),
    ("string[]", "utinyint[]", [(["255"], [255]), (["256"], Lost([None]))]),
    ("string[]", "timestamp_s[]", [
        (["2024-02-29 01:02:03"], [dt.datetime(2024, 2, 29, 1, 2, 3)]),  # noqa: DTZ001
        (["2024-02-29 01:02:03.5"], Lost([None])),
    ]),
    ("string[]", "uuid[]", [([UUID.upper(), None], [UUID, None]), (["x"], Lost([None]))]),
    # What need not be converted is not judged: texts that are no JSON stay beside those that are.
    ("struct<a: json, b: string>", "struct<a: json, b: int>", [(("{", "1"), ("{", 1))]),
    ("struct<a: string, b: double>", "struct<a: int, b: double>", [
        (("1", 0.1), (1, 0.1)),
        (("1", NAN), (1, "nan")),
        (None, None),
        ((None, None), (None, None)),
        (("x", 0.1), Lost((None, 0.1))),
    ]),
    ("struct<a: string, B: int, c: int>", "struct<b: bigint, d: array<int>, A: int>", [
        (("1", 2, 3), (2, None, 1)),
        ((None, None, 3), (None, None, None)),
        (None, None),
        (("x", 2, 3), Lost((2, None, None))),
    ]),
    ("struct<a: int, b: string>", "struct<b: string, a: int>", [
        ((1, "x"), ("x", 1)),
        (None, None),
    ]),
    ("struct<a: int>", "struct<A: int, b: int>", [((1,), (1, None)), (None, None)]),
    ("struct<a: string>", "struct<b: int>", [(("x",), (None,)), (None, None)]),
    ("struct<`a.b`: string, `c``d`: int>", "struct<`c``d`: int, `a.b`: int>", [
        (("1", 2), (2, 1)),
        (("x", 2), Lost((2, None))),
    ]),
    ("struct<s: struct<a: string>>", "struct<s: struct<a: int>>", [
        (((("1"),),), ((1,),)),
        ((None,), (None,)),
        ((("x",),), Lost(((None,),))),
    ]),
    ("struct<a: string>[]", "struct<n: int, a: int>[]", [
        ([("1",), None, (None,)], [(None, 1), None, (None, None)]),
        ([("1",), ("x",)], Lost([(None, 1), (None, None)])),
    ]),
    ("struct<a: int, b: int>[]", "struct<b: bigint, a: int>[]", [([(1, 2), None], [(2, 1), None])]),
    ("map<string, string>", "map<string, int>", [
        ({"a": "1", "b": None}, {"a": 1, "b": None}),
        ({}, {}),
        (None, None),
        ({"a": "1", "b": "x"}, Lost({"a": 1, "b": None})),
    ]),
    ("map<string, string>", "map<int, string>", [
        ({"1": "x", "2": None}, {1: "x", 2: None}),
        ({}, {}),
        (None, None),
        ({"1": "x", "01": "y"}, Lost()),
        ({"1": "x", "1 ": "x"}, Lost()),
        ({"1": "x", "y": "x"}, Lost()),
        ({"x": "x", "y": "x"}, Lost()),
    ]),
    ("map<string, string>", "map<int, int>", [
        ({"1": "2"}, {1: 2}),
        ({"1": "x"}, Lost({1: None})),
        ({"x": "2"}, Lost()),
    ]),
    ("map<int, string>", "map<bigint, int>", [
        ({1: "2", 2: None}, {1: 2, 2: None}),
        (None, None),
        ({1: "x"}, Lost({1: None})),
    ]),
    ("map<string, int>", "map<double, int>", [
        ({"0": 1, "NaN": 2}, {0.0: 1, "nan": 2}),
        ({"0": 1, "-0": 2}, Lost()),
        ({"NaN": 1, "nan": 2}, Lost()),
    ]),
    ("map<timestamp_ntz, int>", "map<date, int>", [
        ({dt.datetime(2024, 2, 29, 1): 1}, {DAY: 1}),  # noqa: DTZ001
        ({dt.datetime(2024, 2, 29, hour): 1 for hour in (1, 2)}, Lost()),  # noqa: DTZ001
    ]),
    ("map<struct<a: string, b: int>, int>", "map<struct<a: int, b: int>, int>", [
        ({("1", 1): 1, ("1", 2): 2, (None, 1): 3}, {(1, 1): 1, (1, 2): 2, (None, 1): 3}),
        ({("x", 1): 1}, Lost()),
        ({("1", 1): 1, ("01", 1): 2}, Lost()),
    ]),
    ("map<struct<a: int, b: int>, int>", "map<struct<b: int>, int>", [
        ({(1, 1): 1, (1, 2): 2}, {(1,): 1, (2,): 2}),
        ({(1, 1): 1, (2, 1): 2}, Lost()),
    ]),
    ("map<struct<a: int, b: int>, string>", "map<struct<b: int, c: int, a: int>, string>", [
        ({(1, 2): "x"}, {(2, None, 1): "x"}),
    ]),
    ("map<int, map<string, string[]>>", "map<int, map<int, int[]>>", [
        ({1: {"1": ["1", None]}, 2: None, 3: {}}, {1: {1: [1, None]}, 2: None, 3: {}}),
        ({1: {"1": ["x"]}}, Lost({1: {1: [None]}})),
        ({1: {"1": ["1"]}, 2: {"x": []}}, Lost({1: {1: [1]}, 2: None})),
    ]),
    ("struct<l: array<map<string, struct<a: string>>>>",
     "struct<l: array<map<int, struct<a: int>>>>", [
        (([{"1": ("2",), "2": None}, None],), ([{1: (2,), 2: None}, None],)),
        (([{"1": ("2",)}, {"1": ("x",)}],), Lost(([{1: (2,)}, {1: (None,)}],))),
        (([{"1": None}, {"x": None}],), Lost(([{1: None}, None],))),
    ]),
    # Light pairs are casts of the whole.
    ("map<int, float[]>", "map<bigint, double[]>", [
        ({1: [0.5, NAN]}, {1: [0.5, "nan"]}),
        ({}, {}),
    ]),
    ("struct<a: int, b: date[]>", "struct<A: bigint, b: timestamp_ntz[]>", [
        ((1, [DAY, None]), (1, [dt.datetime(2024, 2, 29), None])),  # noqa: DTZ001
        (None, None),
    ]),
]  # fmt: skip


@pytest.fixture
def what_becomes(spark):
    def found(source, target, values):
        old, new = parse_type(source), parse_type(target)
        assert conversion_verdict(old, new).verdict is not Verdict.REFUSED
        schema = T.StructType([T.StructField("v", spark_type(old))])
        rows = spark.createDataFrame([(value,) for value in values], schema)
        given = F.col("v")
        made = rows.select(converted(given, old, new), lost(given, old, new))
        assert same_type(made.schema[0].dataType, spark_type(new))
        return [Lost(_plain(m)) if is_lost else _plain(m) for m, is_lost in _checked(made)]

    return found


def _checked(made):
    rows = made.collect()
    assert {type(is_lost) for _, is_lost in rows} == {bool}
    return rows


def _plain(value):
    """Rows as tuples, and NaN as a text, which is the same as itself."""
    match value:
        case Row():
            return tuple(map(_plain, value))
        case list():
            return list(map(_plain, value))
        case dict():
            return {_plain(k): _plain(v) for k, v in value.items()}
        case float():
            return value if value == value else "nan"  # noqa: PLR0124
    return value


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("source", "target", "values"), CASES)
def test_what_becomes_of_each_value(what_becomes, source, target, values):
    assert what_becomes(source, target, [v for v, _ in values]) == [made for _, made in values]


@pytest.mark.every_spark
@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("spark.sql.mapKeyDedupPolicy", "LAST_WIN"),
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.caseSensitive", "true"),
        ("spark.sql.codegen.wholeStage", "false"),
    ],
)
def test_settings_of_the_session_change_nothing(spark, what_becomes, setting, value):
    spark.conf.set(setting, value)
    try:
        for source, target, values in CASES:
            if source.startswith(("map", "struct<a: string, B")):
                expected = [made for _, made in values]
                assert what_becomes(source, target, [v for v, _ in values]) == expected
    finally:
        spark.conf.unset(setting)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("part", range(3))
def test_spark_knows_how_to_make_every_pair_that_is_not_refused(spark, part):
    leaves = [Primitive(n) for n in sorted(PRIMITIVES - {"interval", "time_ns", "unknown"})]
    for old in leaves[part::3]:
        source = parse_type(f"array<{_named(old)}>")
        rows = spark.createDataFrame([], T.StructType([T.StructField("v", spark_type(source))]))
        found = {}
        for new in leaves:
            target = parse_type(f"array<{_named(new)}>")
            if conversion_verdict(source, target).verdict is not Verdict.REFUSED:
                found[str(new)] = target
        given = F.col("v")
        made = rows.select(
            *[converted(given, source, target).alias(name) for name, target in found.items()],
            *[lost(given, source, target) for target in found.values()],
        )
        kinds = {field.name: field.dataType for field in made.schema}
        wrong = [n for n, target in found.items() if not same_type(kinds[n], spark_type(target))]
        assert wrong == []


def _named(leaf):
    return {"timestamp": "timestamp_ntz", "null": "void"}.get(leaf.name, leaf.name)


def test_keys_that_a_file_has_twice_are_kept_where_keys_stay(spark):
    twice = spark.sql("select cast(map('1', 'x', '01', 'y') as map<int, string>) v")
    old, new = parse_type("map<int, string>"), parse_type("map<bigint, int>")
    found = twice.select(F.map_keys(converted(F.col("v"), old, new)), lost(F.col("v"), old, new))

    assert found.collect() == [([1, 1], True)]


def test_leaves_are_lost_where_they_become_null(spark):
    texts = spark.createDataFrame([("1",), ("x",), (None,)], "t string")
    found = texts.select(lost(F.col("t"), Primitive("varchar"), Primitive("int32")))

    assert [row[0] for row in found.collect()] == [False, True, False]
