"""What readers of Iceberg find in files of every make."""

from __future__ import annotations

import pytest

from shelduck.formats.iceberg.iceberg_survey import IcebergFindings
from shelduck.formats.report import column_of
from shelduck.model.files.data_file import DataFile, Layout, MappedName, NameMapping, PhysicalField
from shelduck.model.tables.schema import Field, Kind, with_paths
from shelduck.model.types.data_types import Primitive, ducklake_type

INT = ducklake_type("int32")
LIST = Field(2, "l", Kind.LIST, (Field(3, "element", INT),))
MAP = Field(4, "m", Kind.MAP, (Field(5, "key", INT), Field(6, "value", INT)))
STRUCT = Field(7, "s", Kind.STRUCT, (Field(8, "x", INT), Field(9, "y", INT, initial_default="1")))
TWICE = "two columns in the file have the field id 1 of column 'id'"
NO_LIST = (
    "column 'l' is list in the table but int32 (column 'l') in the file, and there is no correct"
    " conversion; rewrite the file with DuckDB (delete its rows and insert them again), or select"
    " other columns with columns=[...]"
)
NO_VALUES = (
    "column 'm' is a map whose keys and values have no field ids in the file, so they cannot be"
    " matched; add the file again with ducklake_add_data_files, which maps columns by name, or"
    " select other columns with columns=[...]"
)
COLUMNS = (Field(1, "id", INT), LIST, MAP, STRUCT)


def leaf(name, number):
    return PhysicalField(name, number, INT)


def listed(number=2, element=3, *, group="list", encoding=""):
    return PhysicalField("l", number, Kind.LIST, (leaf("element", element),), encoding, group)


def mapped(value=6, group="key_value"):
    parts = (leaf("key", 5), leaf("value", value))
    return PhysicalField("m", 4, Kind.MAP, parts, group=group)


def struct(*members, number=7):
    return PhysicalField("s", number, Kind.STRUCT, members)


def findings(*fields, names=None):
    mapping = None if names is None else NameMapping(1, names)
    file = DataFile(1, "/f.parquet", 1, 1, 0, 1, layout=Layout(fields))
    paths = {f.id: column_of(path) for path, f in with_paths(COLUMNS)}
    return IcebergFindings(paths).look(file, COLUMNS, COLUMNS, mapping)


def test_a_file_like_our_own_needs_nothing():
    found = findings(leaf("a", 1), listed(), mapped(), struct(leaf("p", 8), leaf("q", 9)))

    assert found.reasons == []
    assert sorted(found.held) == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert (found.defaults(), found.names) == ([], {})


def test_members_that_a_file_lacks_are_told_where_rows_have_a_default():
    found = findings(leaf("a", 1), struct(leaf("p", 8)))

    assert found.reasons == []
    assert [f.id for f in found.defaults()] == [9]


def test_members_of_a_struct_that_is_not_there_are_null_with_it():
    assert findings(leaf("a", 1)).defaults() == []


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ((leaf("a", None),), "its columns have no field ids and are found by position"),
        (
            (leaf("a", 1), listed(element=None)),
            "the element of column 'l' is another field in the file",
        ),
        (
            (leaf("a", 1), listed(element=77)),
            "the element of column 'l' is another field in the file",
        ),
        ((leaf("a", 1), mapped(value=77)), NO_VALUES),
        ((leaf("a", 1), leaf("b", 1)), TWICE),
        ((leaf("a", 1), leaf("l", 2)), NO_LIST),
        ((leaf("a", 1), struct(leaf("z", 99))), "no field of the struct column 's' is in the file"),
        ((leaf("a", 1), listed(group="bag")), "column 'l' is a list in the layout of old writers"),
        (
            (leaf("a", 1), listed(group="array", encoding="two-level")),
            "column 'l' is a list in the layout of old writers",
        ),
        ((leaf("a", 1), mapped(group="map")), "column 'm' is a map in the layout of old writers"),
        (
            (PhysicalField("a", 1, Primitive("unknown")),),
            "column 'id' has untyped NULLs in the file",
        ),
        (
            (leaf("a", 1), PhysicalField("v", 99, Primitive("variant"))),
            "the dropped column 'v' is a variant whose parts have no field ids",
        ),
    ],
)
def test_what_readers_would_misread_is_a_reason(fields, reason):
    assert reason in findings(*fields).reasons


def test_names_of_files_without_ids_are_learned_at_every_level():
    inside = (MappedName("element", 3, False),)
    names = (
        MappedName("A", 1, False),
        MappedName("l", 2, False, inside),
        MappedName("x", 77, False),
    )
    bare = PhysicalField("l", None, Kind.LIST, (leaf("item", None),), group="list")
    found = findings(leaf("a", None), bare, leaf("x", None), names=names)

    assert found.reasons == []
    # The column 77 was dropped: its name must not mean another one.
    assert found.names == {(None, "a"): 1, (None, "l"): 2, (2, "element"): 3, (None, "x"): 77}
    assert sorted(found.held) == [1, 2, 3]
