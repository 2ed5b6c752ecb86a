"""DuckDB's text of nested values; tests/differential asks DuckDB itself."""

from __future__ import annotations

import pytest

from shelduck.errors import CorruptLake
from shelduck.model.files.duckdb_text import parse_nested
from shelduck.model.tables.schema import new_field
from shelduck.model.types.data_types import parse_type


def parsed(kind: str, text: str) -> object:
    return parse_nested(new_field("c", parse_type(kind), 1), text)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("int[]", "[1, NULL, 3]", ["1", None, "3"]),
        ("string[]", "[a, b c, NULL, '', 'N\"L', 'NULL']", ["a", "b c", None, "", 'N"L', "NULL"]),
        ("string[]", r"['it\'s', 'a\\,b', a\b]", ["it's", "a\\,b", "a\\b"]),
        ("string[]", "[]", []),
        ("string[]", "['']", [""]),
        ("int[][]", "[[1], [], NULL]", [["1"], [], None]),
        ("struct<a: int, b: string>", "{'a': 1, 'b': 'x,\\'\\'y\" '}", {"a": "1", "b": "x,''y\" "}),
        ("struct<a: int, b: int>", "{'b': 2}", {"a": None, "b": "2"}),
        ("struct<A: int>", "{'a': 1}", {"A": "1"}),
        ("map<string, int>", "{k=1, 'a=b'=NULL}", [("k", "1"), ("a=b", None)]),
        ("map<string, int>", "{}", []),
        ("map<int, struct<q: string[]>>", "{1={'q': [x]}}", [("1", {"q": ["x"]})]),
        ("timestamp[]", "['2024-01-01 00:00:00+00']", ["2024-01-01 00:00:00+00"]),
        ("binary[]", r"[a\x00, ',\\xFF']", [b"a\x00", b",\xff"]),
        ("int[]", "NULL", None),
    ],
)  # fmt: skip
def test_nested_text_is_read_by_the_shape_of_the_field(kind, text, value):
    assert parsed(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("struct<a: string>", r"""{'a': 'it''s "q" a\b, x'}""", {"a": 'it\'s "q" a\\b, x'}),
        ("struct<`it's`: int, n: string>", "{'it''s': 2, 'n': NULL}", {"it's": "2", "n": None}),
        (
            "struct<d: date, f: double, b: binary>",
            (
                r"{'d': CAST('2024-01-01' AS DATE), 'f': CAST('nan' AS VARCHAR),"
                r" 'b': CAST('\x01q\x27' AS BLOB)}"
            ),
            {"d": "2024-01-01", "f": "nan", "b": b"\x01q'"},
        ),
        (
            "struct<s: struct<a: string>, l: array<string>>",
            r"{'s': {'a': 'it''s'}, 'l': ['it\'s', a\b]}",
            {"s": {"a": "it's"}, "l": ["it's", r"a\b"]},
        ),
        ("struct<a: string>", "{'a': 'CAST(''x'' AS DATE)'}", {"a": "CAST('x' AS DATE)"}),
        ("array<struct<a: string>>", r"[{'a': 'it\'s'}]", [{"a": "it's"}]),
    ],
)
def test_structs_that_duckdb_wrote_as_sql_literals_are_read_as_such(kind, text, value):
    assert parse_nested(new_field("c", parse_type(kind), 1), text, sql_structs=True) == value


@pytest.mark.parametrize("text", ["{'a': CAST('x'", "{'a': CAST(x AS DATE)}", "{'a': 'it''s"])
def test_a_broken_sql_literal_is_told_apart(text):
    field = new_field("c", parse_type("struct<a: string>"), 1)
    with pytest.raises(CorruptLake, match="cannot be parsed at character"):
        parse_nested(field, text, sql_structs=True)


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        ("int[]", "[1, 2", "expected ',' or ']'"),
        ("int[]", "[1] 2", "unexpected text after the value"),
        ("int[]", "7", "expected"),
        ("string[]", "['a]", "a quote is not closed"),
        ("struct<a: int>", "{'z': 1}", "there is no field 'z'"),
        ("map<string, int>", "{k}", "expected '='"),
    ],
)
def test_text_that_is_no_value_of_the_field_is_told_apart(kind, text, why):
    with pytest.raises(CorruptLake, match=why):
        parsed(kind, text)
