"""INSERT of plain literals: what is understood without Spark, and what is left to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shelduck.model.files.fitted import InlinedBatch, batch_stats
from shelduck.model.tables.schema import Default, Schema, new_schema
from shelduck.model.types.data_types import Member, parse_type
from shelduck.text.query.value_rows import Cell, literal_rows
from shelduck.write.changes.append import literal_batch


def columns(**kinds: str) -> Schema:
    return new_schema([Member(n, parse_type(k)) for n, k in kinds.items()])


def test_plain_literals_are_read_with_their_kinds():
    text = "values (1, -2.50, 'it''s', NULL), (true, DATE '2024-01-02', .5, /* - */ -3) -- end"
    assert literal_rows(text, 10) == [
        [
            Cell("integer", "1"),
            Cell("fraction", "-2.50"),
            Cell("string", "it's"),
            Cell("null", "null"),
        ],
        [
            Cell("boolean", "true"),
            Cell("date", "2024-01-02"),
            Cell("fraction", ".5"),
            Cell("integer", "-3"),
        ],
    ]


def test_numbers_with_a_type_are_read_with_it():
    numbers = "1L, -128y, 5S, 0.25D, -1e-3, 5.d, .5F, 1.50BD, 5BD"
    moments = "TIMESTAMP '1', timestamp_ltz'2'"
    assert literal_rows(f"VALUES ({numbers}, {moments})", 1) == [
        [
            Cell("integer", "1"),
            Cell("integer", "-128"),
            Cell("integer", "5"),
            Cell("double", "0.25"),
            Cell("double", "-1e-3"),
            Cell("double", "5."),
            Cell("float", ".5"),
            Cell("fraction", "1.50"),
            Cell("fraction", "5"),
            Cell("timestamp", "1"),
            Cell("timestamp_ltz", "2"),
        ]
    ]


@pytest.mark.parametrize(
    ("kind", "literal"),
    [
        ("int", "1.5D"),
        ("decimal(5,2)", "1.5D"),
        ("float", "0.5D"),
        ("float", "1e39"),
        ("double", "1e400"),
        ("double", "1.1F"),
        ("float", "1.1F"),
        ("string", "1L"),
        ("timestamp", "TIMESTAMP '2024-01-01 00:00:00'"),
        ("timestamp", "TIMESTAMP '2024-01-01 00:00:00+19:00'"),
        ("timestamp", "TIMESTAMP '2024-02-30 00:00:00Z'"),
        ("timestamp", "TIMESTAMP_NTZ '2024-01-01 00:00:00'"),
        ("timestamp_ntz", "TIMESTAMP '2024-01-01 00:00:00Z'"),
        ("date", "TIMESTAMP '2024-01-01 00:00:00Z'"),
    ],
)
def test_what_may_be_rounded_or_depends_on_the_session_is_left_to_spark(kind, literal):
    assert literal_batch(columns(a=kind), None, literal_rows(f"VALUES ({literal})", 1)) is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "VALUES (1 + 1)",
        "VALUES (1), (f(2))",
        "VALUES ((1))",
        "VALUES 1, 2",
        "VALUES ('a' 'b')",
        r"VALUES ('a\nb')",
        'VALUES ("a")',
        "VALUES (r'a')",
        "VALUES (128Y)",
        "VALUES (-32769S)",
        "VALUES (9223372036854775808L)",
        "VALUES (1.5L)",
        "VALUES (1e3L)",
        "VALUES (1e3BD)",
        "VALUES (X'0A')",
        "VALUES (1) AS t(a)",
        "VALUES (1) LIMIT 1",
        "VALUES (1), (1, 2)",
        "VALUES (CAST(1 AS INT))",
        "VALUES (current_date)",
        "VALUES ()",
        "VALUES (1,)",
    ],
)
def test_anything_else_is_left_to_spark(text):
    assert literal_rows(text, 10) is None


def test_more_rows_than_asked_for_are_not_read():
    assert literal_rows("VALUES (1), (2)", 1) is None


TAKEN = [
    ("int", "1", "1"),
    ("tinyint", "-128", "-128"),
    ("bigint", "9223372036854775807", "9223372036854775807"),
    ("utinyint", "255", "255"),
    ("double", "3", "3.0"),
    ("double", "0.1", "0.1"),
    ("double", "-0.0", "0.0"),
    ("double", "-0", "0.0"),
    ("float", "0.25", "0.25"),
    ("decimal(5,2)", "1.5", "1.50"),
    ("decimal(5,2)", "7", "7.00"),
    ("string", "'x'", "x"),
    ("boolean", "FALSE", "false"),
    ("date", "DATE '2024-02-29'", "2024-02-29"),
    ("timestamp_ntz", "TIMESTAMP_NTZ '2024-01-02 03:04:05.50'", "2024-01-02 03:04:05.5"),
    ("int", "NULL", None),
]


@pytest.mark.parametrize(("kind", "literal", "stored"), TAKEN)
def test_literals_are_stored_as_spark_would_store_them(kind, literal, stored):
    found = literal_batch(columns(a=kind), None, literal_rows(f"VALUES ({literal})", 1))
    assert found == InlinedBatch(columns(a=kind), ((stored,),))


@pytest.mark.parametrize(
    ("kind", "literal"),
    [
        ("tinyint", "128"),
        ("utinyint", "-1"),
        ("int", "1.0"),
        ("int", "'1'"),
        ("string", "1"),
        ("float", "16777217"),
        ("float", "0.1"),
        ("decimal(5,2)", "1.555"),
        ("decimal(5,2)", "1000"),
        ("date", "'2024-1-1'"),
        ("timestamp_ntz", "'2024-01-01'"),
        ("timestamp", "'2024-01-01 00:00:00'"),
        ("date", "DATE '2023-02-29'"),
        ("date", "DATE '2024-1-1'"),
        ("timestamp", "DATE '2024-01-01'"),
        ("uuid", "'f79c3e09-677c-4bbd-a479-3f349cb785e7'"),
        ("interval", "NULL"),
        ("array<int>", "1"),
    ],
)
def test_what_is_not_certain_is_left_to_spark(kind, literal):
    assert literal_batch(columns(a=kind), None, literal_rows(f"VALUES ({literal})", 1)) is None


def test_named_columns_are_found_and_the_others_are_null():
    table = columns(a="int", b="string", c="array<int>")
    rows = literal_rows("VALUES ('x', 1)", 1)
    found = literal_batch(table, ("B", "a"), rows)
    assert found is not None
    assert found.rows == (("1", "x", None),)
    assert literal_batch(table, ("b", "z"), rows) is None
    assert literal_batch(table, ("b",), rows) is None


def test_a_default_or_not_null_that_matters_is_left_to_spark():
    a, b = columns(a="int", b="int").fields
    one = literal_rows("VALUES (1)", 1)
    assert literal_batch(Schema((a, replace(b, nullable=False))), ("a",), one) is None
    assert literal_batch(Schema((a, replace(b, default=Default("5")))), ("a",), one) is None
    null = literal_rows("VALUES (NULL)", 1)
    assert literal_batch(Schema((replace(a, nullable=False),)), None, null) is None


def test_statistics_of_a_batch_are_those_of_a_file_with_its_rows():
    table = columns(a="int", f="double", s="struct<x: string>", l="array<int>")
    rows = (
        ("5", "1.5", {"x": "b"}, ["3", None]),
        (None, "nan", None, []),
        ("-7", "-0.0", {"x": "a"}, None),
    )
    found = batch_stats(InlinedBatch(table, rows))
    told = [(s.column_id, s.value_count, s.null_count, s.min_value, s.max_value) for s in found]
    assert told == [
        (1, 2, 1, "-7", "5"),
        (2, 3, 0, "0.0", "1.5"),
        (4, 2, 1, "a", "b"),
        (6, 1, 2, "3", "3"),
    ]
    assert [s.contains_nan for s in found] == [None, True, None, None]


def test_values_without_certain_bounds_have_none():
    table = columns(f="double", t="timetz", s="string", z="string")
    rows = (("nan", "01:00:00+00", "a\0", "z" * 300),)
    bounds = [(s.min_value, s.max_value) for s in batch_stats(InlinedBatch(table, rows))]
    assert bounds == [(None, None), (None, None), (None, None), ("z" * 256, "z" * 255 + "{")]
