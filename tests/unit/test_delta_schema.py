"""Columns of a Delta table from version to version."""

from __future__ import annotations

import json

import pytest

from shelduck.borders.delta.columns import first_columns, next_columns, notes_of
from shelduck.borders.delta.log import Metadata, absolute
from shelduck.borders.delta.vectors import z85_bytes, z85_text


def version(*fields, mode="none", partition=(), **settings):
    """The metadata of a version; a field is a name, a type, and its number and physical name."""
    found = []
    for name, kind, *more in fields:
        metadata = {}
        if more:
            metadata = {
                "delta.columnMapping.id": more[0],
                "delta.columnMapping.physicalName": more[1] if len(more) > 1 else name,
            }
        found.append({"name": name, "type": kind, "nullable": True, "metadata": metadata})
    schema = json.dumps({"type": "struct", "fields": found})
    configuration = {"delta.columnMapping.mode": mode, **settings}
    return Metadata("id", schema, tuple(partition), configuration)


def ids(columns):
    return {f.name: f.id for f in columns.schema}


def test_ids_are_given_in_the_order_of_the_tree():
    inner = {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": True}]}
    listed = {"type": "array", "elementType": inner, "containsNull": True}
    found = first_columns(version(("l", listed), ("a", "string")))

    assert [(f.id, f.name) for f in found.schema.walk()] == [
        (1, "l"),
        (2, "element"),
        (3, "x"),
        (4, "a"),
    ]
    assert found.next_id == 5


def test_a_renamed_column_keeps_its_id_and_a_new_one_of_its_name_gets_another():
    before = first_columns(version(("a", "long", 1), ("b", "long", 2), mode="name"))
    after = next_columns(
        before, version(("c", "long", 1, "a"), ("a", "long", 3, "col-3"), mode="name")
    )

    assert (ids(before), ids(after)) == ({"a": 1, "b": 2}, {"c": 1, "a": 3})


def test_columns_that_get_mapped_later_stay_what_they_are():
    before = first_columns(version(("a", "long"), ("b", "long")))
    mapped = next_columns(before, version(("a", "long", 1), ("b", "long", 2), mode="name"))
    renamed = next_columns(
        mapped, version(("b", "long", 1, "a"), ("a", "long", 2, "b"), mode="name")
    )

    assert ids(mapped) == ids(before)
    assert ids(renamed) == {"b": 1, "a": 2}


@pytest.mark.parametrize(
    ("old", "new", "stays", "bounds_hold"),
    [
        ("byte", "long", True, True),
        ("float", "double", True, False),
        ("integer", "double", True, True),
        ("integer", "decimal(10,0)", True, True),
        ("decimal(10,2)", "decimal(12,2)", True, True),
        ("date", "timestamp_ntz", True, True),
        ("long", "integer", False, True),
        ("long", "double", False, True),
        ("string", "long", False, True),
        ("long", {"type": "struct", "fields": []}, False, True),
    ],
)
def test_a_column_is_the_same_where_its_old_values_are_values_of_the_new_type(
    old, new, stays, bounds_hold
):
    before = first_columns(version(("a", old)))
    after = next_columns(before, version(("a", new)))

    assert (ids(after) == ids(before)) is stays
    assert (not after.unsafe_bounds) is bounds_hold


def test_orders_grow_along_the_columns_that_were_moved():
    before = first_columns(version(("a", "long"), ("b", "long"), ("c", "long")))
    after = next_columns(before, version(("c", "long"), ("new", "long"), ("a", "long")))

    orders = [f.order for f in after.schema]
    assert orders == sorted(set(orders))
    assert ids(after) == {"c": 3, "new": 4, "a": 1}


def test_what_has_no_place_here_is_told():
    field = {
        "name": "a",
        "type": "long",
        "nullable": True,
        "metadata": {"delta.identity.start": 1, "CURRENT_DEFAULT": "7", "comment": "key"},
    }
    schema = json.dumps({"type": "struct", "fields": [field]})
    found = first_columns(Metadata("id", schema, (), {}, "the table"))

    assert notes_of([found]) == [
        "column 'a': it is an identity column in Delta, and counts no further here",
        "column 'a': its default '7' was not carried over",
    ]
    assert found.comments == {1: "key", None: "the table"}


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("a%20b/1.parquet", "/t/a b/1.parquet"),
        ("p=x%253Ay/1.parquet", "/t/p=x%3Ay/1.parquet"),
        ("file:///else/where%201.parquet", "/else/where 1.parquet"),
        ("/else/1.parquet", "/else/1.parquet"),
        ("s3://bucket/1.parquet", "s3://bucket/1.parquet"),
    ],
)
def test_paths_in_the_log_are_uris(path, place):
    assert absolute("/t", path) == place


def test_z85_is_that_of_zeromq():
    data = bytes.fromhex("864fd26fb559f75b")
    assert z85_text(data) == "HelloWorld"
    assert z85_bytes("HelloWorld") == data
    assert z85_text(b"\x00") == "00000"
    for wrong in ("Hell", "~~~~~", "#####"):
        with pytest.raises(ValueError, match="is not Z85 text"):
            z85_bytes(wrong)
