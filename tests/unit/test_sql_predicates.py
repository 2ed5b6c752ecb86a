"""Pushed filters: the texts are those of Spark 4.3's Catalyst."""

from __future__ import annotations

import math
from decimal import Decimal as Number

import pytest

from shelduck.model.files.predicate import (
    And,
    ComparedValue,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Operator,
    Or,
    StartsWith,
    Unknown,
)
from shelduck.model.types.data_types import Decimal, Primitive
from shelduck.text.query.predicates import parse_filter

COLUMNS = ("id", "i", "b", "f", "d", "dec", "st", "bin", "bo", "dt", "ts", "tn", "s", "é", "a.b")


def read(text, columns=COLUMNS, time_zone="Europe/Berlin"):
    return parse_filter(text, columns, time_zone)


def is_(name, operator, value, kind):
    kind = Primitive(kind) if isinstance(kind, str) else kind
    return Comparison(Operator(operator), (name,), ComparedValue(value, kind))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(t.id >= 2500L)", is_("id", ">=", 2500, "int64")),
        ("(id = 1L)", is_("id", "=", 1, "int64")),
        ("(spark_catalog.default.t.id = -5L)", is_("id", "=", -5, "int64")),
        ("(t.i = 5)", is_("i", "=", 5, "int32")),
        ("(5 < t.i)", is_("i", ">", 5, "int32")),
        ("(t.b = 5Y)", is_("b", "=", 5, "int8")),
        ("(t.b < 6S)", is_("b", "<", 6, "int16")),
        ("(t.f > CAST('1.5' AS FLOAT))", is_("f", ">", 1.5, "float32")),
        ("(t.f = CAST('0.1' AS FLOAT))", is_("f", "=", 0.10000000149011612, "float32")),
        ("(t.d = 1.0E-5D)", is_("d", "=", 1e-5, "float64")),
        ("(t.d <= CAST('-Infinity' AS DOUBLE))", is_("d", "<=", -math.inf, "float64")),
        ("(t.dec = -5.00BD)", is_("dec", "=", Number("-5.00"), Decimal(3, 2))),
        ("(t.dec > 0.001BD)", is_("dec", ">", Number("0.001"), Decimal(3, 3))),
        (r"(t.st = 'it\'s \"q\" \\ x')", Unknown()),
        (r"""(t.st = 'it\'s "q" \\ x')""", is_("st", "=", 'it\'s "q" \\ x', "varchar")),
        ("(t.st = 'a\nb')", is_("st", "=", "a\nb", "varchar")),
        ("(t.bin = X'00FF')", is_("bin", "=", b"\x00\xff", "blob")),
        ("t.bo", is_("bo", "=", True, "boolean")),
        ("(NOT t.bo)", is_("bo", "=", False, "boolean")),
        ("(t.bo <=> true)", is_("bo", "=", True, "boolean")),
        ("(t.dt = DATE '2024-01-01')", is_("dt", "=", 19723, "date")),
        (
            "(t.ts > TIMESTAMP '2024-01-01 01:00:00')",
            is_("ts", ">", 1704067200000000, "timestamptz"),
        ),
        (
            "(t.ts > TIMESTAMP '2024-01-01 00:00:00.123456')",
            is_("ts", ">", 1704063600123456, "timestamptz"),
        ),
        (
            "(t.tn = TIMESTAMP_NTZ '2024-01-01 00:00:00.5')",
            is_("tn", "=", 1704067200500000, "timestamp"),
        ),
        ("(t.i IS NULL)", IsNull(("i",))),
        ("(t.i IS NOT NULL)", IsNotNull(("i",))),
        ("(t.s.`f` IS NOT NULL)", IsNotNull(("s", "f"))),
        ("(t.s.`z`.`x.y` IS NULL)", IsNull(("s", "z", "x.y"))),
        ("(NOT (t.i IS NULL))", IsNotNull(("i",))),
        ("(t.`é` = 4)", is_("é", "=", 4, "int32")),
        ("(t.`a.b` = 4)", is_("a.b", "=", 4, "int32")),
        ("startswith(t.st, 'a')", StartsWith(("st",), "a")),
        ("t.st LIKE 'a_b%'", StartsWith(("st",), "a")),
        (r"t.st LIKE 'a\\%b%'", StartsWith(("st",), "a")),
        ("(t.i <=> 5)", is_("i", "=", 5, "int32")),
        ("((t.i = 1) <=> true)", is_("i", "=", 1, "int32")),
        ("(NOT (t.i = 5))", is_("i", "!=", 5, "int32")),
        ("(NOT (t.i < 5))", is_("i", ">=", 5, "int32")),
        ("(NOT (NOT (t.i < 5)))", is_("i", "<", 5, "int32")),
    ],
)
def test_one_condition_is_read(text, expected):
    assert read(text) == expected


def test_nan_is_a_literal():
    found = read("(t.d = CAST('NaN' AS DOUBLE))")
    assert isinstance(found, Comparison)
    assert math.isnan(found.literal.value)


def test_in_leaves_out_nulls():
    one, two = ComparedValue(1, Primitive("int32")), ComparedValue(2, Primitive("int32"))
    assert read("(t.i IN (1, 2))") == In(("i",), (one, two))
    assert read("(t.i IN (1, CAST(NULL AS INT)))") == In(("i",), (one,))


def test_not_in_is_many_inequalities_and_unknown_with_a_null():
    assert read("(NOT (t.i IN (1, 2)))") == And(
        (is_("i", "!=", 1, "int32"), is_("i", "!=", 2, "int32"))
    )
    assert read("(NOT (t.i IN (1, CAST(NULL AS INT))))") == Unknown()


def test_rows_that_do_not_pass_are_also_those_for_which_a_filter_is_null():
    def failing(text):
        return parse_filter(text, COLUMNS, negated=True)

    # Of 5, NOT IN (1, NULL) is NULL.
    assert failing("(NOT (t.i IN (1, CAST(NULL AS INT))))") == Unknown()
    assert failing("(NOT (t.i IN (1)))") == In(("i",), (ComparedValue(1, Primitive("int32")),))
    for comparison in ("=", "<>", "<=>", ">"):
        assert failing(f"(NOT (t.i {comparison} CAST(NULL AS INT)))") == Unknown()


def test_not_null_safe_equal_keeps_nulls():
    assert read("(NOT (t.i <=> 5))") == Or((is_("i", "!=", 5, "int32"), IsNull(("i",))))


def test_and_or_and_not_are_carried_down():
    one, two, three = (is_("i", "=", n, "int32") for n in (1, 2, 3))
    assert read("(((t.i = 1) AND (t.i = 2)) AND (t.i = 3))") == And((one, two, three))
    assert read("(((t.i = 1) OR (t.i = 2)) OR (t.i = 3))") == Or((one, two, three))
    assert read("(NOT ((t.i = 1) OR (t.i IS NULL)))") == And(
        (is_("i", "!=", 1, "int32"), IsNotNull(("i",)))
    )


def test_what_is_unknown_weakens_and_but_swallows_or():
    assert read("((t.i = 1) AND (rand() > 0.5D))") == is_("i", "=", 1, "int32")
    assert read("((t.i = 1) OR (rand() > 0.5D))") == Unknown()
    assert read("(NOT ((t.i = 1) AND (rand() > 0.5D)))") == Unknown()
    assert read("(NOT ((t.i = 1) OR (rand() > 0.5D)))") == is_("i", "!=", 1, "int32")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(",
        "'",
        "true",
        "(t.unknown = 5)",
        "(t.i = t.id)",
        "(CAST(t.i AS BIGINT) > 5L)",
        "(CAST(t.i AS BIGINT) > t.id)",
        "((t.i + 1) > 5)",
        "(t.i = 5 + 1)",
        "(t.i = 3000000000)",
        "(t.i = CAST('5' AS INT))",
        "(t.l[0] = 3)",
        "(t.m['k'] = 3)",
        "(coalesce(t.i, 0) = 0)",
        "endswith(t.st, 'a')",
        "(NOT startswith(t.st, 'a'))",
        "(NOT t.st LIKE 'a%')",
        "t.st LIKE '%a'",
        "t.st LIKE 'a%' ESCAPE '/'",
        "(t.st = 'b' collate UTF8_LCASE)",
        r"(t.st = '\n')",
        "(t.dt >= DATE '-0044-03-15')",
        "(t.ts = TIMESTAMP '+10000-01-01 00:00:00')",
        "(t.i IN (1, t.id))",
        "(t.i <=> CAST(NULL AS INT))",
        "((t.i = 1) <=> false)",
        "(NOT ((t.i = 1) <=> true))",
        "CASE WHEN (t.i = 1) THEN true ELSE false END",
        "(t.i = 1))",
        "(t.i BETWEEN 1 AND 5)",
        "(t.s.f = 1).x",
    ],
)
def test_anything_else_is_unknown(text):
    assert read(text) == Unknown()


def test_a_local_time_that_came_twice_or_never_is_unknown():
    assert read("(t.ts = TIMESTAMP '2024-10-27 02:30:00')") == Unknown()
    assert read("(t.ts = TIMESTAMP '2024-03-31 02:30:00')") == Unknown()
    assert read("(t.ts = TIMESTAMP '2024-10-27 02:30:00')", time_zone="UTC") == is_(
        "ts", "=", 1729996200000000, "timestamptz"
    )
    assert read("(t.ts = TIMESTAMP '2024-10-27 02:30:00')", time_zone="+02:00") == is_(
        "ts", "=", 1729989000000000, "timestamptz"
    )


@pytest.mark.parametrize("zone", [None, "Nowhere/Land", "../etc"])
def test_without_a_known_zone_an_instant_is_unknown(zone):
    assert read("(t.ts = TIMESTAMP '2024-01-01 00:00:00')", time_zone=zone) == Unknown()


def test_an_alias_is_told_from_a_struct_of_its_name():
    both = ("id", "t", "é")
    assert read("(t.id = 1)", both) == is_("id", "=", 1, "int32")
    assert read("(t.`id` = 1)", both) == Comparison(
        Operator.EQ, ("t", "id"), ComparedValue(1, Primitive("int32"))
    )
    assert read("(t.`é` = 1)", both) == Unknown()


def test_a_very_deep_filter_is_unknown():
    assert read("(NOT " * 2000 + "t.bo" + ")" * 2000) == Unknown()


CHECK = (
    "CASE WHEN (t.id IS NULL) THEN CAST(NULL AS INT) WHEN (((TRY_CAST(t.id AS INT) IS NOT NULL) AND"
    " (TRY_CAST(t.id AS INT) >= -2147483648)) AND ((TRY_CAST(t.id AS INT) IS NOT NULL) OR CAST(NULL"
    " AS BOOLEAN))) THEN TRY_CAST(t.id AS INT) ELSE CAST(raise_error(concat('Shelduck: f: id: ',"
    " CAST(t.id AS STRING), ' is not a value of int32')) AS INT) END"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"({CHECK} = 150)", is_("id", "=", 150, "int32")),
        (f"(5 < {CHECK})", is_("id", ">", 5, "int32")),
        (f"({CHECK} IS NULL)", IsNull(("id",))),
        (f"({CHECK} IS NOT NULL)", IsNotNull(("id",))),
        (
            f"(({CHECK} >= 1) AND ({CHECK} <= 3))",
            And((is_("id", ">=", 1, "int32"), is_("id", "<=", 3, "int32"))),
        ),
        (f"(({CHECK} + 1) = 150)", Unknown()),
        ("(CASE WHEN (t.id IS NULL) THEN 0 ELSE CAST(t.id AS INT) END = 150)", Unknown()),
        (f"(CASE WHEN ({CHECK} IS NULL) THEN 0 ELSE 1 END = 1)", Unknown()),
    ],
)
def test_a_checked_column_is_the_column(text, expected):
    assert parse_filter(text, COLUMNS, checked={"id"}) == expected
    assert parse_filter(text, COLUMNS) == Unknown()
    assert parse_filter(text, COLUMNS, checked={"i"}) == Unknown()
