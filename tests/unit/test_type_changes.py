"""The history of types, told as Delta tells it."""

from __future__ import annotations

from shelduck.errors import InvalidRequest
from shelduck.model.files.compaction import ColumnVersion
from shelduck.model.files.data_file import Layout, PhysicalField
from shelduck.model.files.resolve import resolve
from shelduck.model.shadows.type_changes import (
    OlderType,
    first_narrowing,
    older_types,
    type_changes,
)
from shelduck.model.tables.schema import Kind, new_field
from shelduck.model.types.data_types import Primitive, ducklake_type, parse_type
from tests.support.scans import table


def column(name, kind, number):
    try:
        return new_field(name, ducklake_type(kind), number)
    except InvalidRequest:
        return new_field(name, parse_type(kind), number)


def versions(field_id, *types, parent=None):
    """One version per (type, begin), each ended by the next."""
    ends = [begin for _, begin in types[1:]] + [None]
    return [
        ColumnVersion(field_id, kind, parent, None, begin, end)
        for (kind, begin), end in zip(types, ends, strict=True)
    ]


def told(columns, history, **options):
    found = type_changes(columns, history, **{"at": 99, **options})
    return {".".join(path): [c.as_delta() for c in changes] for path, changes in found.items()}


def test_a_column_tells_its_changes_in_order():
    columns = table(column("a", "decimal(20,0)", 1), column("b", "int32", 2)).columns
    history = versions(1, ("int8", 1), ("int32", 3), ("int64", 4), ("decimal(20,0)", 9))
    history += versions(2, ("int32", 1))

    assert told(columns, history) == {
        "a": [
            {"fromType": "byte", "toType": "integer"},
            {"fromType": "integer", "toType": "long"},
            {"fromType": "long", "toType": "decimal(20,0)"},
        ]
    }


def test_parts_of_collections_are_told_of_the_nearest_struct_field():
    columns = table(
        column("m", "map<bigint, array<struct<f: double, k: array<bigint>>>>", 1)
    ).columns
    ids = {".".join(path): field.id for path, field in _paths(columns)}
    history = versions(ids["m"], ("map", 1))
    history += versions(ids["m.key"], ("int32", 1), ("int64", 2))
    history += versions(ids["m.value"], ("list", 1)) + versions(
        ids["m.value.element"], ("struct", 1)
    )
    history += versions(ids["m.value.element.f"], ("float32", 1), ("float64", 3))
    history += versions(ids["m.value.element.k"], ("list", 1))
    history += versions(ids["m.value.element.k.element"], ("int16", 1), ("int64", 4))

    assert told(columns, history) == {
        "m": [{"fromType": "integer", "toType": "long", "fieldPath": "key"}],
        "m.value.element.f": [{"fromType": "float", "toType": "double"}],
        "m.value.element.k": [{"fromType": "short", "toType": "long", "fieldPath": "element"}],
    }


def test_changes_after_a_snapshot_and_forgotten_ones_do_not_count():
    columns = table(column("a", "int64", 1)).columns
    history = versions(1, ("int8", 1), ("int16", 3), ("int32", 5), ("int64", 7))

    def chain(**options):
        return [c["toType"] for c in told(columns, history, **options).get("a", [])]

    assert chain(at=5) == ["short", "integer"]
    assert chain(forgotten_at=4) == ["integer", "long"]
    assert chain(forgotten_at=7) == []


def test_a_change_that_was_taken_back_is_gone():
    columns = table(column("a", "int32", 1)).columns
    history = versions(1, ("int16", 1), ("int32", 2), ("int64", 3), ("int32", 5))

    assert told(columns, history) == {"a": [{"fromType": "short", "toType": "integer"}]}


def test_versions_of_other_reasons_are_no_change_of_type():
    columns = table(column("a", "timestamp", 1)).columns
    # A rename, and a finer unit that Delta has no word for.
    history = versions(1, ("timestamp_s", 1), ("timestamp_s", 2), ("timestamp", 3))

    assert told(columns, history) == {}


def test_a_file_tells_which_leaves_it_holds_in_older_types():
    version = table(column("a", "bigint", 1), column("s", "struct<f: double>", 2))
    stored = Layout(
        (
            PhysicalField("a", 1, Primitive("int32")),
            PhysicalField("s", 2, Kind.STRUCT, (PhysicalField("f", 3, Primitive("float32")),)),
            PhysicalField("gone", 9, Primitive("int8")),
        )
    )
    fields = version.columns.fields
    nodes = resolve(stored, fields, None, fields).nodes

    assert older_types(nodes, stored.fields) == (
        OlderType(("a",), Primitive("int32"), Primitive("int64")),
        OlderType(("s", "f"), Primitive("float32"), Primitive("float64")),
    )


def test_what_a_type_is_stored_as_is_not_older():
    pairs = [
        *[("uint8", "int16"), ("uint64", "decimal(20,0)"), ("timestamp_s", "timestamp")],
        *[("json", "varchar"), ("time", "varchar"), ("int128", "float64"), ("uuid", "varchar")],
    ]
    for name, kept in pairs:
        version = table(column("a", name, 1))
        encoding = "utf8" if name == "uuid" else ""
        stored = Layout((PhysicalField("a", 1, ducklake_type(kept), encoding=encoding),))
        nodes = resolve(stored, version.columns.fields, None, version.columns.fields).nodes
        assert older_types(nodes, stored.fields) == (), name


def _paths(columns):
    def walk(field, path):
        yield (*path, field.name), field
        for child in field.children:
            yield from walk(child, (*path, field.name))

    for top in columns:
        yield from walk(top, ())


def test_the_first_snapshot_that_made_a_column_narrower():
    history = versions(1, ("int32", 1), ("int64", 3), ("int16", 5), ("int8", 9))
    history += versions(2, ("decimal(18,4)", 1), ("decimal(9,4)", 7))
    history += versions(3, ("struct", 1)) + versions(4, ("float32", 1), ("float64", 2), parent=3)

    assert first_narrowing(history, 0, 99) == 5
    assert first_narrowing(history, 4, 5) == 5
    # The batch that begins with the change has the narrower column.
    assert first_narrowing(history, 5, 99) == 7
    assert first_narrowing(history, 7, 8) is None
    assert first_narrowing(history, 9, 99) is None
