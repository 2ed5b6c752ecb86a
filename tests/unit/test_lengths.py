"""Lengths of VARCHAR(n): types that carry them, and the property that keeps them."""

from __future__ import annotations

import pytest

from shelduck.errors import InvalidRequest
from shelduck.model.tables.lengths import LENGTHS, is_longer, limited, with_lengths
from shelduck.model.tables.rollup import ROLLUP
from shelduck.model.tables.schema import new_schema
from shelduck.model.types.data_types import Member, Primitive, Text, parse_type, type_text


def columns(**types):
    return new_schema([Member(name, parse_type(text)) for name, text in types.items()])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("varchar(5)", "VARCHAR(5)"),
        ("CHAR(3)", "VARCHAR(3)"),
        ("character(3)", "VARCHAR(3)"),
        ("varchar", "STRING"),
        ("string(5)", "STRING"),
        ("array<struct<a: varchar(2)>>", "ARRAY<STRUCT<a: VARCHAR(2)>>"),
    ],
)
def test_a_type_shows_its_length(text, shown):
    assert type_text(parse_type(text)) == shown
    assert type_text(parse_type(shown)) == shown


def test_a_text_with_a_length_is_equal_to_one_without():
    assert Text(length=3) == Primitive("varchar")
    assert Primitive("varchar") == Text(length=3)
    assert hash(Text(length=3)) == hash(Primitive("varchar"))
    assert Text(length=3) != Primitive("json")
    with pytest.raises(InvalidRequest, match="must be at least 1"):
        parse_type("VARCHAR(0)")


def test_a_property_keeps_the_lengths_by_id():
    made = columns(a="int", b="varchar(5)", c="struct<x: char(2), y: string>")
    kept = with_lengths({"own": "x"}, made)
    assert kept == {"own": "x", LENGTHS: '{"version":1,"fields":[[2,5],[4,2]]}'}

    # The catalog has no lengths, and another type may have come since.
    read = columns(a="int", b="varchar", c="struct<x: string, y: string>")
    assert [type_text(f.type) for f in limited(read, kept, "t")] == [
        *("INT", "VARCHAR(5)", "STRUCT<x: VARCHAR(2), y: STRING>")
    ]
    other = columns(a="int", b="blob", c="struct<x: string, y: string>")
    assert type_text(limited(other, kept, "t").fields[1].type) == "BINARY"
    assert limited(read, {}, "t") is read
    assert with_lengths(kept, read) == {"own": "x"}
    assert with_lengths({ROLLUP: "{}"}, made) == {ROLLUP: "{}"}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("varchar(5)", "varchar(5)", None),
        ("varchar(5)", "varchar(6)", None),
        ("varchar(5)", "string", None),
        ("varchar(5)", "varchar(4)", "texts of VARCHAR(5) have up to 5 characters, and VARCHAR(4)"),
        ("string", "varchar(9)", "texts of STRING have any length, and VARCHAR(9) takes 9"),
        ("int", "varchar(11)", None),
        ("int", "varchar(10)", "texts of INT have up to 11 characters"),
        ("decimal(5,2)", "varchar(8)", None),
        ("decimal(5,2)", "varchar(7)", "up to 8 characters"),
        ("double", "varchar(100)", "any length"),
        ("struct<a: varchar(3), b: int>", "struct<b: int, c: varchar(1)>", None),
        ("struct<a: varchar(3)>", "struct<A: varchar(2)>", "texts of VARCHAR(3)"),
        ("map<string, array<varchar(3)>>", "map<string, array<varchar(2)>>", "texts of VARCHAR(3)"),
    ],
)
def test_texts_may_get_longer_only(old, new, why):
    found = is_longer(parse_type(old), parse_type(new))
    assert found is None if why is None else why in found
