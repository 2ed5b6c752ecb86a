"""Types: every spelling that is understood, what is refused and how, and text that reads back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.text.names import quote_name
from shelduck.model.types.data_types import (
    PRIMITIVES,
    Decimal,
    List,
    Map,
    Member,
    Primitive,
    Struct,
    declared_type,
    ducklake_type,
    parse_type,
)

SPELLINGS = {
    "boolean": ["boolean", "BOOL", "Boolean"],
    "int8": ["tinyint", "BYTE", "int8"],
    "int16": ["smallint", "SHORT", "int16"],
    "int32": ["int", "INTEGER", "int32"],
    "int64": ["bigint", "LONG", "int64"],
    "int128": ["hugeint", "int128"],
    "uint8": ["UTINYINT", "uint8"],
    "uint16": ["USMALLINT", "uint16"],
    "uint32": ["UINTEGER", "uint32"],
    "uint64": ["UBIGINT", "uint64"],
    "uint128": ["UHUGEINT", "uint128"],
    "float32": ["float", "REAL", "float32"],
    "float64": ["double", "DOUBLE PRECISION", "float64"],
    "date": ["DATE"],
    "time": ["time", "time(6)", "TIME WITHOUT TIME ZONE"],
    "time_ns": ["time_ns"],
    "timetz": ["timetz", "TIME WITH TIME ZONE"],
    "timestamptz": ["timestamp", "TIMESTAMP_LTZ", "timestamptz", "TIMESTAMP WITH TIME ZONE"],
    "timestamp": [
        "timestamp_ntz",
        "timestamp_us",
        "datetime",
        "TIMESTAMP WITHOUT TIME ZONE",
        "timestamp_ntz(6)",
    ],
    "timestamp_s": ["timestamp_s"],
    "timestamp_ms": ["timestamp_ms"],
    "timestamp_ns": ["timestamp_ns"],
    "interval": ["interval"],
    "varchar": ["string", "TEXT", "varchar", "varchar(20)", "char(3)", "character(3)", "char"],
    "blob": ["binary", "BLOB", "bytea", "varbinary"],
    "json": ["json"],
    "uuid": ["uuid"],
    "geometry": ["geometry"],
    "variant": ["variant"],
    "timestamptz_ns": ["timestamptz_ns"],
    "null": ["void"],
}


@pytest.mark.parametrize(
    ("name", "text"), [(n, t) for n, texts in SPELLINGS.items() for t in texts]
)
def test_a_spelling_means_its_ducklake_type(name, text):
    assert parse_type(text) == Primitive(name)
    assert parse_type(f"  {text.upper()} ") == Primitive(name)


def test_every_ducklake_type_that_holds_values_has_a_spelling():
    assert set(SPELLINGS) == PRIMITIVES - {"unknown"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("decimal", Decimal(10, 0)),
        ("DECIMAL(5)", Decimal(5, 0)),
        ("decimal( 38 , 38 )", Decimal(38, 38)),
        ("numeric(9,2)", Decimal(9, 2)),
        ("DEC(1, 0)", Decimal(1, 0)),
        ("array<int>", List(Primitive("int32"))),
        ("ARRAY<ARRAY<STRING>>", List(List(Primitive("varchar")))),
        ("INTEGER[]", List(Primitive("int32"))),
        ("varchar[][]", List(List(Primitive("varchar")))),
        ("list(int)", List(Primitive("int32"))),
        ("map<string, int>", Map(Primitive("varchar"), Primitive("int32"))),
        ("MAP(VARCHAR, INTEGER[])", Map(Primitive("varchar"), List(Primitive("int32")))),
        ("struct<a: int>", Struct((Member("a", Primitive("int32")),))),
        ("STRUCT(a INTEGER)", Struct((Member("a", Primitive("int32")),))),
        ("row(a int)", Struct((Member("a", Primitive("int32")),))),
        ("struct<a int NOT NULL>", Struct((Member("a", Primitive("int32"), False),))),
        ("struct<map: map<int, int>>", Struct((Member("map", Map(*[Primitive("int32")] * 2)),))),
        (
            "STRUCT(a INTEGER, b VARCHAR)[]",
            List(Struct((Member("a", Primitive("int32")), Member("b", Primitive("varchar"))))),
        ),
        (
            'struct<`a.b`: int, "say ""hi""": int, größe: int, `x``y`: int, 名: int>',
            Struct(
                tuple(
                    Member(n, Primitive("int32")) for n in ("a.b", 'say "hi"', "größe", "x`y", "名")
                )
            ),
        ),
    ],
)
def test_types_with_parts_are_read_in_both_styles(text, expected):
    assert parse_type(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot parse the data type ''"),
        ("integr", "unknown data type 'integr' in 'integr'"),
        ("unknown", "unknown data type 'unknown'"),
        ("int int", "cannot parse the data type 'int int'"),
        ("array", "unknown data type 'array'"),
        ("array<", "cannot parse the data type 'array<'"),
        ("array<int", "cannot parse the data type 'array<int'"),
        ("array<int)", "cannot parse the data type 'array<int)'"),
        ("array<int>>", "cannot parse the data type 'array<int>>'"),
        ("map<int>", "cannot parse the data type 'map<int>'"),
        ("struct<>", "'>' is not a valid field name; put it in backticks"),
        ("struct<a>", "unknown data type '>'"),
        ("struct<a: int, A: string>", "two fields of a struct have the same name"),
        ("int[3]", "DuckLake does not support arrays of a fixed size: 'int[3]'; use array<...>"),
        ("int[", "DuckLake does not support arrays of a fixed size"),
        ("decimal(39)", "is not a valid decimal: its precision is 1 to 38"),
        ("decimal(0)", "is not a valid decimal: its precision is 1 to 38"),
        ("decimal(5,6)", "its scale at most the precision"),
        ("decimal(a)", "cannot parse the data type 'decimal(a)'"),
        ("decimal(5,-1)", "cannot parse the data type"),
        ("time(9)", "is too precise: times have microseconds, time"),
        ("timestamp with zone", "cannot parse the data type"),
        ("int(5)", "cannot parse the data type"),
    ],
)
def test_what_is_no_type_is_refused_with_its_text(text, message):
    with pytest.raises(InvalidRequest, match=re.escape(message)):
        parse_type(text)


@pytest.mark.parametrize(
    "text",
    [
        "struct<a int NOT NULL>",
        "STRUCT<x: INT, y: STRUCT<a: INT NOT NULL>>",
        "map<string, array<struct<a: int not null>>>",
        "map<struct<a: int not null>, string>",
    ],
)
def test_a_field_below_a_column_is_not_declared_as_not_null(text):
    with pytest.raises(
        Unsupported, match=r"field 'a' of '.*' cannot be NOT NULL: DuckLake supports"
    ):
        declared_type(text)
    nullable = re.sub(" not null", "", text, flags=re.IGNORECASE)
    assert declared_type(nullable) == parse_type(nullable)


@pytest.mark.parametrize("name", sorted(PRIMITIVES))
def test_the_catalog_names_every_primitive(name):
    assert ducklake_type(name) == Primitive(name)
    assert ducklake_type(f" {name.upper()} ") == Primitive(name)


def test_timestamp_in_the_catalog_is_a_local_time_and_in_statements_an_instant():
    assert ducklake_type("timestamp") == Primitive("timestamp")
    assert ducklake_type("timestamp_us") == Primitive("timestamp")
    assert parse_type("timestamp") == Primitive("timestamptz")


def test_the_catalog_names_decimals_with_both_numbers():
    assert ducklake_type("decimal(18, 3)") == Decimal(18, 3)


@pytest.mark.parametrize("text", ["bigint", "struct", "list", "map", "decimal", "", "int64[]"])
def test_a_word_that_is_no_leaf_of_ducklake_is_refused(text):
    with pytest.raises(InvalidRequest, match="unknown DuckLake column type"):
        ducklake_type(text)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("a", "a"),
        ("_a1", "_a1"),
        ("A_b", "A_b"),
        ("1a", "`1a`"),
        ("a b", "`a b`"),
        ("a.b", "`a.b`"),
        ("a`b", "`a``b`"),
        ("größe", "`größe`"),
        ('say "hi"', '`say "hi"`'),
        ("", "``"),
    ],
)
def test_a_name_is_quoted_where_it_must_be(name, written):
    assert quote_name(name) == written


LEAVES = st.one_of(
    # The word "timestamp" is Spark's instant in text, so it does not print as what it was.
    st.sampled_from(sorted(PRIMITIVES - {"unknown", "timestamp"})).map(Primitive),
    st.tuples(st.integers(1, 38), st.integers(0, 38))
    .filter(lambda d: d[1] <= d[0])
    .map(lambda d: Decimal(*d)),
)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)


def _structs(inside):
    members = st.lists(
        st.tuples(NAMES, inside), min_size=1, max_size=3, unique_by=lambda m: m[0].lower()
    )
    return members.map(lambda found: Struct(tuple(Member(*m) for m in found)))


TYPES = st.recursive(
    LEAVES,
    lambda inside: st.one_of(
        inside.map(List), st.tuples(inside, inside).map(lambda p: Map(*p)), _structs(inside)
    ),
    max_leaves=6,
)


@given(TYPES)
def test_the_text_of_a_type_reads_back(kind):
    assert parse_type(str(kind)) == kind


def test_a_local_timestamp_prints_as_ducklake_names_it():
    assert str(parse_type("struct<at: timestamp_ntz>")) == "struct<at: timestamp>"
