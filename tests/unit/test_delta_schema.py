"""Columns of a Delta table from version to version."""

from __future__ import annotations

import json
import struct
import zlib

import pytest

from shelduck.errors import CorruptLake, Unsupported
from shelduck.formats.delta.delta_columns import NO_COLUMNS, next_columns
from shelduck.formats.delta.delta_schema import delta_schema, told_changes, words_of
from shelduck.formats.delta.import_plan import notes_of_columns, notes_of_settings
from shelduck.formats.delta.log import (
    Added,
    DeltaCommit,
    DeltaLog,
    LoggedVector,
    Metadata,
    Protocol,
    absolute,
    read_log,
)
from shelduck.formats.delta.vectors import bitmap, inline_vector, read_vector, z85_bytes, z85_text
from shelduck.model.tables.lengths import LENGTHS
from shelduck.model.tables.schema import Default
from shelduck.model.types.data_types import ducklake_type, type_text


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
    found = next_columns(NO_COLUMNS, version(("l", listed), ("a", "string")))

    first, last = found.schema.fields
    [element] = first.children
    assert [(f.id, f.name) for f in (first, element, *element.children, last)] == [
        (1, "l"),
        (2, "element"),
        (3, "x"),
        (4, "a"),
    ]
    assert found.next_id == 5


def test_a_renamed_column_keeps_its_id_and_a_new_one_of_its_name_gets_another():
    before = next_columns(NO_COLUMNS, version(("a", "long", 1), ("b", "long", 2), mode="name"))
    after = next_columns(
        before, version(("c", "long", 1, "a"), ("a", "long", 3, "col-3"), mode="name")
    )

    assert (ids(before), ids(after)) == ({"a": 1, "b": 2}, {"c": 1, "a": 3})


def test_columns_that_get_mapped_later_stay_what_they_are():
    before = next_columns(NO_COLUMNS, version(("a", "long"), ("b", "long")))
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
    before = next_columns(NO_COLUMNS, version(("a", old)))
    after = next_columns(before, version(("a", new)))

    assert (ids(after) == ids(before)) is stays
    assert (not after.unsafe_bounds) is bounds_hold


def test_orders_grow_along_the_columns_that_were_moved():
    before = next_columns(NO_COLUMNS, version(("a", "long"), ("b", "long"), ("c", "long")))
    after = next_columns(before, version(("c", "long"), ("new", "long"), ("a", "long")))

    orders = [f.order for f in after.schema]
    assert orders == sorted(set(orders))
    assert ids(after) == {"c": 3, "new": 4, "a": 1}


def test_what_has_no_place_here_is_told():
    field = {
        "name": "a",
        "type": "long",
        "nullable": True,
        "metadata": {"somebody.else": 1, "CURRENT_DEFAULT": "f(7)", "comment": "key"},
    }
    schema = json.dumps({"type": "struct", "fields": [field]})
    found = next_columns(NO_COLUMNS, Metadata("id", schema, (), {}, "the table"))

    assert notes_of_columns([found]) == [
        "column 'a': its default 'f(7)' was not carried over",
        "column 'a': its setting 'somebody.else' was not carried over",
    ]
    assert found.comments == {1: "key", None: "the table"}


def field(kind, **told):
    return {"name": "a", "type": kind, "nullable": True, "metadata": told}


def read(*fields, mode="none", **settings):
    """The schema of a version, and what is said of what it does not carry over."""
    text = json.dumps({"type": "struct", "fields": list(fields)})
    configuration = {"delta.columnMapping.mode": mode, **settings}
    return Metadata("id", text, (), configuration)


def changed(*changes):
    keys = ("fromType", "toType", "fieldPath")
    return {"delta.typeChanges": [dict(zip(keys, c, strict=False)) for c in changes]}


LONGS = {"type": "array", "elementType": "long", "containsNull": True}
NESTED = {"type": "map", "keyType": "string", "valueType": LONGS, "valueContainsNull": True}


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("long", [("short", "integer"), ("integer", "long")]),
        ("long", [("byte", "int"), ("int", "long")]),
        ("double", [("integer", "double")]),
        ("decimal(12,2)", [("decimal(10,2)", "decimal(12,2)")]),
        ("timestamp_ntz", [("date", "timestamp_ntz")]),
        (LONGS, [("integer", "long", "element")]),
        (NESTED, [("integer", "long", "value.element"), ("varchar(3)", "string", "key")]),
        ("string", [("varchar(5)", "string"), ("string", "string collate UNICODE")]),
        ("long", []),
    ],
)
def test_changes_of_types_that_delta_has_are_read(kind, changes):
    assert delta_schema(read(field(kind, **changed(*changes)))).fields[0].name == "a"


@pytest.mark.parametrize(
    ("kind", "changes", "error", "told"),
    [
        ("integer", [("string", "integer")], Unsupported, "changed from string to integer"),
        ("string", [("double", "string")], Unsupported, "changed from double to string"),
        ("long", [("foo", "long")], Unsupported, "changed from foo to long"),
        ("long", [("integer", "long"), ("long", "integer")], Unsupported, "from long to integer"),
        ("double", [("long", "double")], Unsupported, "changed from long to double"),
        ("timestamp", [("date", "timestamp")], Unsupported, "from date to timestamp"),
        ("decimal(12,4)", [("decimal(12,2)", "decimal(12,4)")], Unsupported, "decimal"),
        ("long", [("integer", "long", "nope")], CorruptLake, "at 'nope'"),
        (LONGS, [("integer", "long")], CorruptLake, "where it has no value"),
        (LONGS, [("integer", "long", "element.key")], CorruptLake, "at 'element.key'"),
        ("long", [("integer",)], CorruptLake, "cannot read the type changes"),
    ],
)
def test_changes_of_types_that_delta_does_not_have_are_refused(kind, changes, error, told):
    inside = {"type": "struct", "fields": [field(kind, **changed(*changes))]}
    for one in (field(kind, **changed(*changes)), field(inside)):
        with pytest.raises(error, match=r"delta\.typeChanges") as caught:
            delta_schema(read(one))
        assert told in str(caught.value)


@pytest.mark.parametrize(
    ("narrow", "shown", "told"),
    [
        (["integer", "short"], "long", [("short", "integer"), ("integer", "long")]),
        (["short"], "long", [("short", "long")]),
        (["float", "short"], "double", [("float", "double"), ("short", "double")]),
        (
            ["decimal(9,2)", "decimal(10,2)", "byte"],
            "decimal(14,4)",
            [
                ("byte", "decimal(14,4)"),
                ("decimal(9,2)", "decimal(10,2)"),
                ("decimal(10,2)", "decimal(14,4)"),
            ],
        ),
    ],
)
def test_the_types_of_files_are_told_from_the_oldest_on(narrow, shown, told):
    assert told_changes(narrow, shown) == told


@pytest.mark.parametrize("missing", ["delta.columnMapping.id", "delta.columnMapping.physicalName"])
def test_a_mapped_column_without_its_mapping_is_refused(missing):
    told = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
    del told[missing]
    with pytest.raises(CorruptLake, match=f"column 's.a' of the Delta table has no .*{missing}"):
        delta_schema(
            read(
                {
                    **field({"type": "struct", "fields": [field("long", **told)]}),
                    "name": "s",
                    "metadata": {
                        "delta.columnMapping.id": 2,
                        "delta.columnMapping.physicalName": "s",
                    },
                },
                mode="name",
            )
        )


@pytest.mark.parametrize(
    ("kind", "told", "notes"),
    [
        (
            "string",
            {"__COLLATIONS": {"a": "spark.UTF8_LCASE"}},
            ["its collation spark.UTF8_LCASE was not carried over: text is compared by its"],
        ),
        ("string", {"__COLLATIONS": {"a": "spark.UTF8_BINARY"}}, []),
        ("string collate UNICODE_CI", {}, ["its collation UNICODE_CI was not carried over"]),
        ("string", {"__CHAR_VARCHAR_TYPE_STRING": "varchar(9)"}, []),
        ("char(3)", {}, []),
        ("long", {"CURRENT_DEFAULT": "NULL"}, []),
        ("long", {"CURRENT_DEFAULT": "'x'"}, ["its default \"'x'\" was not carried over"]),
        ("long", {"delta.generationExpression": "b + 1"}, ["Delta generates it as b + 1, and it"]),
        ("long", {"delta.invariants": "{}"}, ["its invariant was not carried over"]),
        ("long", {"delta.typeChanges": [], "comment": "x"}, []),
        ("long", {"somebody.else": 1}, ["its setting 'somebody.else' was not carried over"]),
    ],
)
def test_what_a_column_loses_is_told(kind, told, notes):
    found = notes_of_columns([next_columns(NO_COLUMNS, read(field(kind, **told)))])

    assert len(found) == len(notes)
    for note, wanted in zip(found, notes, strict=True):
        assert note.startswith(f"column 'a': {wanted}")


@pytest.mark.parametrize(
    ("kind", "told", "default", "shown"),
    [
        ("long", {"CURRENT_DEFAULT": "7"}, Default("7"), "BIGINT"),
        ("string", {"CURRENT_DEFAULT": "'it''s'"}, Default("it's"), "STRING"),
        ("date", {"CURRENT_DEFAULT": "DATE '2024-02-29'"}, Default("2024-02-29"), "DATE"),
        ("timestamp", {"CURRENT_DEFAULT": "now()"}, Default("NOW()", literal=False), "TIMESTAMP"),
        ("string", {"__CHAR_VARCHAR_TYPE_STRING": "varchar(9)"}, None, "VARCHAR(9)"),
        ("char(3)", {"CURRENT_DEFAULT": "'abc'"}, Default("abc"), "VARCHAR(3)"),
    ],
)
def test_defaults_and_lengths_come_along(kind, told, default, shown):
    made = next_columns(NO_COLUMNS, read(field(kind, **told)))
    [found] = made.schema
    # Rows that exist have their values: only new rows get the default.
    assert (found.default, found.initial_default, type_text(found.type)) == (default, None, shown)
    assert (LENGTHS in made.properties) == shown.startswith("VARCHAR")
    assert notes_of_columns([made]) == []


def test_parts_of_columns_that_lose_something_are_told_by_their_path():
    texts = {"type": "array", "elementType": "string collate UNICODE", "containsNull": False}
    inside = {"type": "struct", "fields": [{**field(texts), "name": "l", "nullable": False}]}

    assert notes_of_columns([next_columns(NO_COLUMNS, read(field(inside)))]) == [
        "column 'a.l': NOT NULL inside a nested column was not carried over",
        "column 'a.l.element': NOT NULL inside a nested column was not carried over",
        (
            "column 'a.l.element': its collation UNICODE was not carried over: text is compared"
            " by its bytes here"
        ),
    ]


def test_what_a_table_loses_is_told():
    settings = {
        "delta.constraints.c": "a > 1",
        "delta.appendOnly": "true",
        "delta.enableTypeWidening": "true",
        "delta.logRetentionDuration": "interval 1 day",
        "delta.checkpointInterval": "10",
        "owner": "me",
    }
    features = ("clustering", "domainMetadata", "icebergCompatV2", "invariants", "redirect")
    protocol = Protocol(3, frozenset(), frozenset(features))
    log = DeltaLog("/t", (DeltaCommit(0, (), (), read(field("long"), **settings), protocol),))

    assert list(notes_of_settings(log)) == [
        "appendOnly was not carried over: rows can be changed and deleted",
        "table properties were not carried over: delta.logRetentionDuration, owner",
        "clustering was not carried over: ALTER TABLE … SET SORTED BY sorts files here",
        "features that Delta requires of writers were left out: icebergCompatV2, redirect",
    ]


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
        with pytest.raises(ValueError, match="is not valid Z85 text"):
            z85_bytes(wrong)


@pytest.mark.parametrize(
    ("had", "shown", "words"),
    [
        (("int8", "int16"), "integer", ("byte", "short")),
        # Delta has no unsigned integers, and shows these as the next wider type.
        (("uint8",), "short", ()),
        (("uint8", "int32"), "long", ("short", "integer")),
        (("int32",), "string", ()),
        (("date", "timestamp_s"), "timestamp_ntz", ("date",)),
        (("decimal(9,2)", "time"), "decimal(11,2)", ("decimal(9,2)",)),
    ],
)
def test_earlier_types_are_deltas_own_words(had, shown, words):
    assert words_of([ducklake_type(text) for text in had], shown) == words


def _vector_file(folder, *, length=None, checksum=None, cut=0):
    """A file with one deletion vector behind its version byte, and what the log says of it."""
    made = inline_vector(bitmap()([1, 5]))
    data = z85_bytes(made.place)[: made.size]
    parts = (
        b"\1",
        struct.pack(">i", made.size if length is None else length),
        data,
        struct.pack(">I", zlib.crc32(data) if checksum is None else checksum),
    )
    path = folder / "vector.bin"
    path.write_bytes(b"".join(parts)[: -cut or None])
    vector = LoggedVector("p", path.as_uri(), made.size, 2, offset=1)
    return Added(f"{folder}/data.parquet", 1, {}, vector)


def test_a_stored_deletion_vector_is_read(tmp_path):
    assert list(read_vector(str(tmp_path), _vector_file(tmp_path))) == [1, 5]


@pytest.mark.parametrize("wrong", [{"length": 3}, {"checksum": 7}, {"cut": 1}])
def test_a_damaged_deletion_vector_is_never_read(tmp_path, wrong):
    with pytest.raises(CorruptLake, match=r"data\.parquet"):
        read_vector(str(tmp_path), _vector_file(tmp_path, **wrong))


@pytest.mark.parametrize(("told", "is_whole"), [(1, True), (2, False)])
def test_a_log_that_names_a_newer_checkpoint_than_it_has_lacks_files(tmp_path, told, is_whole):
    log = tmp_path / "_delta_log"
    log.mkdir()
    for version in (0, 1):
        (log / f"{version:020}.json").write_text(json.dumps({"commitInfo": {}}))
    (log / "_last_checkpoint").write_text(json.dumps({"version": told, "size": 1}))

    if is_whole:
        assert [step.version for step in read_log(str(tmp_path)).steps] == [0, 1]
        return
    with pytest.raises(CorruptLake, match="a checkpoint of version 2, but its newest version is 1"):
        read_log(str(tmp_path))
