"""How files that others wrote fit a table."""

from __future__ import annotations

import pytest

from shelduck.model.files.adoption import match_file, same_names
from shelduck.model.files.data_file import ROW_ID_FIELD, Layout, PhysicalField
from shelduck.model.tables.schema import FieldId, Kind, Schema, new_schema
from shelduck.model.types.data_types import Member, ducklake_type, parse_type


def columns(**kinds) -> Schema:
    return new_schema([Member(name, parse_type(kind)) for name, kind in kinds.items()])


def leaf(name, kind, encoding="", number=None):
    return PhysicalField(name, number, ducklake_type(kind), encoding=encoding)


def group(name, kind, *children, repeated=""):
    return PhysicalField(name, None, kind, children, group=repeated)


def names_of(mapped):
    return [(n.source_name, n.field_id, n.is_partition, names_of(n.children)) for n in mapped]


def test_names_match_without_case_in_the_order_of_the_file():
    found = match_file(
        Layout((leaf("B", "varchar"), leaf("a", "int16"))), columns(a="int", b="string")
    )

    assert found.problems == ()
    assert names_of(found.names) == [("B", 2, False, []), ("a", 1, False, [])]
    assert [(f.name, path) for f, _, path in found.leaves] == [("b", "B"), ("a", "a")]


def test_parts_of_structs_match_by_name_and_those_of_lists_and_maps_by_place():
    layout = Layout(
        (
            group("S", Kind.STRUCT, leaf("Y", "float32"), leaf("x", "int32")),
            group("l", Kind.LIST, leaf("array_element", "varchar"), repeated="bag"),
            group("m", Kind.MAP, leaf("k", "varchar"), leaf("v", "int8"), repeated="entries"),
        )
    )
    found = match_file(
        layout, columns(l="array<string>", m="map<string,int>", s="struct<x: int, y: double>")
    )

    assert found.problems == ()
    assert names_of(found.names) == [
        ("S", 6, False, [("Y", 8, False, []), ("x", 7, False, [])]),
        ("l", 1, False, [("bag", 2, False, [])]),
        ("m", 3, False, [("k", 4, False, []), ("v", 5, False, [])]),
    ]
    assert [path for _, _, path in found.leaves] == [
        "S.Y",
        "S.x",
        "l.bag.array_element",
        "m.entries.k",
        "m.entries.v",
    ]


def test_the_list_of_an_old_writer_has_no_group_around_its_elements():
    two_level = PhysicalField(
        "l", None, Kind.LIST, (leaf("array", "int32"),), "two-level", group="array"
    )
    found = match_file(Layout((two_level,)), columns(l="array<int>"))

    assert names_of(found.names) == [("l", 1, False, [("array", 2, False, [])])]
    assert [path for _, _, path in found.leaves] == ["l.array"]


def test_each_column_that_does_not_fit_is_told_with_both_types():
    layout = Layout((leaf("a", "varchar"), leaf("extra", "int32"), leaf("l", "int32")))
    found = match_file(layout, columns(a="int", b="int", l="array<int>"))

    assert found.problems == (
        "column 'a' is int32 in the table but varchar in the file",
        (
            "column 'extra' is in the file but not in the table (ignore_extra_columns=True leaves"
            " it out)"
        ),
        "column 'l' is list in the table but int32 in the file",
        (
            "column 'b' is in the table but not in the file (allow_missing=True reads its"
            " default, or NULL)"
        ),
    )


def test_missing_and_extra_columns_pass_when_that_is_asked_for():
    layout = Layout((group("s", Kind.STRUCT, leaf("x", "int32"), leaf("zz", "int32")),))
    found = match_file(
        layout, columns(s="struct<x: int, y: int>", b="int"), allow_missing=True, ignore_extra=True
    )

    assert found.problems == ()
    assert names_of(found.names) == [("s", 1, False, [("x", 2, False, [])])]
    assert [f.name for f in found.missing] == ["y", "b"]


def test_a_missing_column_that_must_not_be_null_does_not_pass():
    schema = new_schema([Member("a", parse_type("int")), Member("b", parse_type("int"), False)])
    found = match_file(Layout((leaf("a", "int32"),)), schema, allow_missing=True)

    assert found.problems == ("column 'b' is NOT NULL but not in the file",)


def test_a_name_in_the_path_wins_over_the_column_in_the_file():
    layout = Layout((leaf("p", "varchar"), leaf("a", "int32")))
    found = match_file(layout, columns(a="int", p="int"), ["P", "other"])

    assert found.problems == ()
    assert names_of(found.names) == [("a", 1, False, []), ("P", 2, True, [])]
    assert [f.name for f in found.from_path] == ["p"]


def test_a_nested_column_cannot_be_in_a_path():
    found = match_file(Layout((leaf("a", "int32"),)), columns(a="int", s="struct<x: int>"), ["s"])

    assert found.problems == ("column 's' is nested and cannot be in a path",)


def test_a_file_that_carries_row_ids_is_refused():
    layout = Layout((leaf("a", "int32"), leaf("rid", "int64", number=ROW_ID_FIELD)))
    found = match_file(layout, columns(a="int"))

    assert len(found.problems) == 1
    assert "'rid' contains row ids or snapshots of another lake" in found.problems[0]


def test_a_column_that_is_there_twice_up_to_case_is_refused():
    found = match_file(Layout((leaf("a", "int32"), leaf("A", "int32"))), columns(a="int"))

    assert "column 'a' is in the file more than once, if case is ignored" in found.problems


@pytest.mark.parametrize(
    ("stored", "column"),
    [
        ("int8", "int32"),
        ("uint32", "int64"),
        ("float32", "float64"),
        ("decimal(9,2)", "decimal(12,2)"),
        ("timestamp_ms", "timestamp"),
        ("json", "varchar"),
        ("timestamptz", "timestamptz"),
    ],
)
def test_values_that_every_reader_widens_alike_pass(stored, column):
    schema = new_schema([Member("a", ducklake_type(column))])

    assert match_file(Layout((leaf("a", stored),)), schema).problems == ()


@pytest.mark.parametrize(
    ("stored", "column"),
    [
        ("int64", "int32"),
        ("uint64", "int64"),
        ("boolean", "int32"),
        ("int32", "float64"),
        ("int32", "decimal(12,2)"),
        ("float64", "float32"),
        ("decimal(12,2)", "decimal(9,2)"),
        # What these mean is decided by the time zone of who reads.
        ("timestamp", "timestamptz"),
        ("timestamptz", "timestamp"),
        ("date", "timestamptz"),
        ("time", "timetz"),
        ("timestamp", "timestamp_s"),
        ("varchar", "uuid"),
        ("varchar", "json"),
        ("unknown", "int32"),
    ],
)
def test_values_that_readers_may_make_differently_or_lose_are_refused(stored, column):
    schema = new_schema([Member("a", ducklake_type(column))])

    assert match_file(Layout((leaf("a", stored),)), schema).problems == (
        f"column 'a' is {column} in the table but {stored} in the file",
    )


def test_mappings_are_the_same_whatever_the_order_of_their_names():
    schema = columns(a="int", b="int", s="struct<x: int, y: int>")
    x_y = group("s", Kind.STRUCT, leaf("x", "int32"), leaf("y", "int32"))
    y_x = group("s", Kind.STRUCT, leaf("y", "int32"), leaf("x", "int32"))
    one = match_file(Layout((leaf("a", "int32"), leaf("b", "int32"), x_y)), schema)
    other = match_file(Layout((y_x, leaf("b", "int16"), leaf("a", "int32"))), schema)
    upper = match_file(Layout((leaf("A", "int32"), leaf("b", "int32"), x_y)), schema)

    assert same_names(one.names, other.names)
    assert not same_names(one.names, upper.names)


def test_the_order_of_names_in_paths_tells_mappings_apart():
    schema = columns(a="int", p="int", q="int")
    layout = Layout((leaf("a", "int32"),))
    one = match_file(layout, schema, ["p", "q"])
    other = match_file(layout, schema, ["q", "p"])

    assert [n.field_id for n in one.names] == [FieldId(1), FieldId(2), FieldId(3)]
    assert not same_names(one.names, other.names)


@pytest.mark.parametrize("repeated", ["bag", "array"])
def test_lists_with_structs_that_duckdb_reads_as_null_are_refused(repeated):
    inside = group("element", Kind.STRUCT, leaf("x", "int32"))
    layout = Layout((group("l", Kind.LIST, inside, repeated=repeated),))

    [problem] = match_file(layout, columns(l="array<struct<x: int>>")).problems
    assert problem == (
        "column 'l' is a list of structs in the layout of old writers, which DuckDB reads as"
        " NULL; rewrite the file"
    )
