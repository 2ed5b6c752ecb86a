"""Columns as a tree of fields with ids: built, found by path and replaced."""

from __future__ import annotations

import pytest

from shelduck.errors import InvalidRequest, NotFound
from shelduck.model.tables.schema import Kind, Schema, new_field, new_schema, path_text
from shelduck.model.types.data_types import (
    Decimal,
    List,
    Map,
    Member,
    Primitive,
    Struct,
    parse_type,
)


def schema(**kinds: str) -> Schema:
    return new_schema([Member(name, parse_type(kind)) for name, kind in kinds.items()])


NESTED = schema(
    a="int",
    s="struct<f: int, g: struct<h: string>>",
    l="array<struct<e: int>>",
    m="map<int, int[]>",
)


def test_ids_are_given_in_pre_order_and_orders_follow_them():
    assert [(f.id, f.name, f.order) for f in NESTED.walk()] == [
        (1, "a", 1),
        (2, "s", 2),
        (3, "f", 3),
        (4, "g", 4),
        (5, "h", 5),
        (6, "l", 6),
        (7, "element", 7),
        (8, "e", 8),
        (9, "m", 9),
        (10, "key", 10),
        (11, "value", 11),
        (12, "element", 12),
    ]


def test_leaves_are_what_holds_values():
    assert [f.id for f in NESTED.leaves()] == [1, 3, 5, 8, 10, 12]


def test_each_kind_of_node_knows_its_shape():
    assert [f.shape for f in NESTED] == [Primitive("int32"), Kind.STRUCT, Kind.LIST, Kind.MAP]


@pytest.mark.parametrize(
    "text",
    [
        "int32",
        "decimal(9,2)",
        "struct<a: int32, b: struct<c: varchar>>",
        "array<array<int32>>",
        "map<varchar, struct<`a b`: int32>>",
    ],
)
def test_the_type_of_a_field_is_the_one_it_was_made_of(text):
    assert str(new_field("x", parse_type(text), 1).type) == text


def test_only_columns_are_not_null():
    made = new_schema(
        [
            Member("a", Primitive("int32"), nullable=False),
            Member("s", Struct((Member("f", Primitive("int32"), nullable=False),))),
        ]
    )

    assert [f.nullable for f in made.walk()] == [False, True, True]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (("a",), 1),
        (("A",), 1),
        (("S", "g", "H"), 5),
        (("l", "ELEMENT", "e"), 8),
        (("m", "key"), 10),
        (("m", "value", "element"), 12),
    ],
)
def test_a_field_is_found_by_its_path_in_any_case(path, found):
    assert NESTED.get(path).id == found


@pytest.mark.parametrize("path", [("b",), ("a", "f"), ("s", "x"), ("l", "e"), ("m", "element")])
def test_a_path_that_leads_nowhere_finds_nothing(path):
    assert NESTED.find(path) is None


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (("sss",), "column 'sss' does not exist in main.t; did you mean 's'?"),
        (("zz",), "column 'zz' does not exist in main.t; existing columns: 'a', 's', 'l', 'm'"),
        (("s", "ff"), "column 's.ff' does not exist in main.t; did you mean 's.f', 's.g'?"),
        (("l", "e"), "column 'l.e' does not exist in main.t; did you mean 'l.element'?"),
        (
            ("q q", "f"),
            "column '`q q`.f' does not exist in main.t; existing columns: 'a', 's', 'l', 'm'",
        ),
    ],
)
def test_a_missing_column_is_told_with_its_neighbours(path, message):
    with pytest.raises(NotFound) as caught:
        NESTED.get(path, "main.t")

    assert str(caught.value) == message


def test_a_field_is_found_by_id_at_any_depth():
    found = NESTED.by_id(8)

    assert found is not None
    assert found.name == "e"
    assert NESTED.by_id(13) is None


def test_replacing_a_nested_field_leaves_all_others_alone():
    changed = NESTED.replace(("s", "g", "h"), new_field("k", Decimal(5, 1), 20))

    assert str(changed.get(("s",)).type) == "struct<f: int32, g: struct<k: decimal(5,1)>>"
    assert [f.id for f in changed] == [f.id for f in NESTED]
    assert changed.by_id(5) is None
    assert NESTED.by_id(5) is not None


def test_a_schema_prints_one_column_per_line():
    made = new_schema(
        [
            Member("a b", Primitive("int64"), nullable=False),
            Member("l", List(Map(Primitive("int32"), Primitive("varchar")))),
        ]
    )

    assert str(made) == "`a b` int64 NOT NULL\nl array<map<int32, varchar>>"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "a table needs at least one column"),
        (["a", "A"], "column 'A' is listed twice"),
        (["a", ""], "the name of a column is empty"),
        (["a", "__Shelduck_file_id"], "is reserved"),
        (["a", "_ducklake_internal_row_id"], "is reserved"),
    ],
)
def test_columns_that_no_reader_could_tell_apart_are_refused(names, message):
    with pytest.raises(InvalidRequest, match=message):
        new_schema([Member(name, Primitive("int32")) for name in names])


def test_a_struct_field_without_a_name_is_refused():
    with pytest.raises(InvalidRequest, match="the name of a column is empty"):
        new_field("s", Struct((Member("", Primitive("int32")),)), 1)


def test_a_path_is_written_with_quotes_where_they_are_needed():
    assert path_text(("s", "a.b", "c`d")) == "s.`a.b`.`c``d`"
