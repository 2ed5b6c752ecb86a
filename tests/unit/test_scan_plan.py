"""How files are grouped, read and projected, without Spark."""

from __future__ import annotations

import sys

import pytest

from shelduck.errors import CorruptLake, NotFound, Unsupported
from shelduck.model.files.data_file import (
    ROW_ID_FIELD,
    SNAPSHOT_FIELD,
    DataFile,
    DeleteFile,
    Layout,
    MappedName,
    NameMapping,
    PhysicalField,
)
from shelduck.model.files.readable import How, StoredReading, reading
from shelduck.model.tables.schema import Kind
from shelduck.model.types.data_types import Primitive, ducklake_type
from shelduck.read.plan.scan import ReadColumn, plan_scan
from shelduck.read.plan.scan_groups import Column, Literal
from tests.support.scans import column, table


def stored(name, kind, number, *children, encoding=""):
    nested = kind in ("struct", "list", "map")
    if kind.startswith("parquet:"):
        shape = Primitive(kind)
    else:
        shape = Kind(kind) if nested else ducklake_type(kind)
    return PhysicalField(name, number, shape, children, encoding)


def file(number, *fields, **more):
    settings = {"row_id_start": 0, "begin_snapshot": 1} | more
    path = settings.pop("path", f"/lake/{number}.parquet")
    return DataFile(number, path, 100, 10, layout=Layout(fields), **settings)


def groups(version, *files, mappings=None, columns=None):
    plan = plan_scan(version, files, mappings or {}, columns)
    return [[f.id for f in g.files] for g in plan.groups]


A = column("a", "int32", 1)
B = column("b", "int32", 2)


def test_files_from_before_and_after_a_rename_a_widening_a_drop_and_an_add_are_one_group():
    now = table(
        column("renamed", "int32", 1),
        column("wide", "int64", 2),
        column("new", "int32", 4, default="5"),
    )
    old = file(1, stored("a", "int32", 1), stored("b", "int32", 2), stored("dropped", "int32", 3))
    new = file(2, stored("a", "int32", 1), stored("b", "int64", 2), stored("new", "int32", 4))

    [group] = plan_scan(now, [old, new], {}).groups

    assert group.read == (
        ReadColumn("a", Primitive("int32")),
        ReadColumn("b", Primitive("int64")),
        ReadColumn("new", Primitive("int32"), default="5"),
    )
    assert group.outputs == (Column("a"), Column("b"), Column("new"))


def test_a_name_that_means_another_field_in_a_file_gives_that_file_its_own_group():
    again = table(A, column("x", "int32", 9, default="5"))
    old = file(1, stored("a", "int32", 1), stored("X", "int32", 2))
    new = file(2, stored("a", "int32", 1), stored("x", "int32", 9))

    plan = plan_scan(again, [old, new], {})

    assert [[c.name for c in g.read] for g in plan.groups] == [["a"], ["a", "x"]]
    assert plan.groups[0].outputs[1] == Literal("5", Primitive("int32"))


def test_names_that_differ_by_case_are_not_read_by_one_schema():
    assert groups(table(A), file(1, stored("a", "int32", 1)), file(2, stored("A", "int32", 1))) == [
        [1],
        [2],
    ]


def test_swapped_names_are_two_groups_and_each_finds_its_ids():
    one = file(1, stored("a", "int32", 1), stored("b", "int32", 2))
    two = file(2, stored("b", "int32", 1), stored("a", "int32", 2))

    plan = plan_scan(table(A, B), [one, two], {})

    assert [[e.name for e in g.outputs] for g in plan.groups] == [["a", "b"], ["b", "a"]]


def test_a_type_that_must_be_cast_is_read_as_it_is_stored_in_its_own_group():
    now = table(column("a", "float64", 1))
    whole, wide, real = (
        file(n, stored("a", kind, 1)) for n, kind in ((1, "int32"), (2, "int64"), (3, "float64"))
    )

    plan = plan_scan(now, [whole, wide, real], {})

    assert [[f.id for f in g.files] for g in plan.groups] == [[1, 3], [2]]
    assert plan.groups[1].read == (ReadColumn("a", Primitive("int64")),)
    [made] = plan.groups[1].outputs
    assert (made.source, made.how, made.target) == (Column("a"), How.CAST, Primitive("float64"))


def test_defaults_that_spark_cannot_give_are_given_by_the_projection():
    added = table(
        A, column("b", "blob", 2, default="x"), column("d", "decimal(30,1)", 3, default="1.0")
    )
    full = stored("a", "int32", 1), stored("b", "blob", 2), stored("d", "decimal(30,1)", 3)

    assert groups(added, file(1, full[0]), file(2, *full)) == [[1], [2]]


def test_a_struct_field_added_without_default_is_in_the_group_of_files_that_have_it():
    plain = table(column("s", "struct", 1, column("x", "int32", 2), column("n", "int32", 3)))
    old = file(1, stored("s", "struct", 1, stored("x", "int32", 2)))
    new = file(2, stored("s", "struct", 1, stored("x", "int32", 2), stored("n", "int32", 3)))
    with_default = table(
        column("s", "struct", 1, column("x", "int32", 2), column("n", "int32", 3, default="1"))
    )

    assert groups(plain, old, new) == [[1, 2]]
    assert groups(with_default, old, new) == [[1], [2]]


def test_only_files_with_later_rows_are_apart():
    columns = stored("a", "int32", 1), stored("s", "int64", SNAPSHOT_FIELD)
    files = [
        file(1, stored("a", "int32", 1)),
        file(2, stored("a", "int32", 1), delete_file=DeleteFile("/d.parquet", "parquet", 1)),
        file(3, stored("a", "int32", 1), inlined_deletes=(4,)),
        file(4, *columns, partial_max=10),
        file(5, *columns, partial_max=11),
        file(6, *columns),
    ]

    plan = plan_scan(table(A), files, {})

    assert [([f.id for f in g.files], g.with_deletes, g.snapshot_column) for g in plan.groups] == [
        ([1, 2, 3, 4], True, None),
        ([5, 6], False, "s"),
    ]


def test_embedded_row_ids_are_read_beside_files_without():
    one = file(1, stored("a", "int32", 1))
    two = file(2, stored("a", "int32", 1), stored("r", "int64", ROW_ID_FIELD))
    other = file(3, stored("a", "int32", 1), stored("r", "int64", 77))

    plan = plan_scan(table(A), [one, two, other], {})

    assert [([f.id for f in g.files], g.row_id_column) for g in plan.groups] == [
        ([1, 2], "r"),
        ([3], None),
    ]


def test_later_rows_that_nothing_tells_apart_are_an_error():
    with pytest.raises(CorruptLake, match=r"1\.parquet.*later snapshots"):
        plan_scan(table(A), [file(1, stored("a", "int32", 1), partial_max=11)], {})


def test_one_column_without_id_makes_the_whole_file_match_by_position():
    by_position = file(1, stored("x", "int32", 2), stored("y", "int32", None))

    [group] = plan_scan(table(A, B), [by_position], {}, ["b"]).groups

    assert group.outputs[0] == Column("y")


def test_a_mapping_matches_names_without_case_and_what_it_lacks_reads_the_default():
    mapping = NameMapping(1, (MappedName("Old", 1, is_partition=False),))
    now = table(A, column("b", "int32", 2, default="3"))
    adopted = file(1, stored("OLD", "int32", None), stored("b", "int32", None), mapping_id=1)

    [group] = plan_scan(now, [adopted], {1: mapping}).groups

    assert group.outputs == (Column("OLD"), Literal("3", Primitive("int32")))


def test_a_mapping_that_is_not_there_is_an_error():
    with pytest.raises(CorruptLake, match="mapping 4"):
        plan_scan(table(A), [file(1, stored("a", "int32", None), mapping_id=4)], {})


def test_chosen_columns_are_planned_alone():
    hidden = table(A, column("i", "interval", 2))

    assert [f.name for f in plan_scan(hidden, [], {}, ["A"]).columns] == ["a"]
    with pytest.raises(Unsupported, match=r"column 'i' is interval.*columns=\["):
        plan_scan(hidden, [], {})
    with pytest.raises(NotFound, match="'z'"):
        plan_scan(hidden, [], {}, ["z"])


@pytest.mark.parametrize(
    ("fields", "kind", "message"),
    [
        ([stored("a", "varchar", 1)], "int32", "'a' is int32 in the table but varchar"),
        ([stored("a", "blob", 1)], "varchar", "'a' is varchar in the table but blob"),
        ([stored("a", "int64", 1)], "json", "'a' is json in the table but int64"),
        ([stored("a", "parquet:float16", 1)], "float32", "parquet:float16"),
        (
            [stored("a", "struct", 1, stored("x", "int32", 2))],
            "int32",
            "'a' is int32 in the table but",
        ),
        ([stored("a", "int32", 1), stored("b", "int32", 1)], "int32", "two columns in the file"),
        ([stored("a", "int32", 1), stored("A", "int32", 5)], "int32", "if case is ignored"),
    ],
)
def test_what_has_no_right_reading_is_refused_with_the_file_and_both_types(fields, kind, message):
    with pytest.raises((Unsupported, CorruptLake), match=message) as refused:
        plan_scan(table(column("a", kind, 1)), [file(1, *fields)], {})

    assert "/lake/1.parquet" in str(refused.value)


def test_a_map_without_ids_inside_is_refused():
    inside = stored("key", "varchar", None), stored("value", "int32", None)
    now = table(column("m", "map", 1, column("key", "varchar", 2), column("value", "int32", 3)))

    with pytest.raises(CorruptLake, match="keys and values"):
        plan_scan(now, [file(1, stored("m", "map", 1, *inside))], {})


@pytest.mark.parametrize(
    ("kind", "encoding", "target", "expected"),
    [
        ("int8", "", "int64", StoredReading(ducklake_type("int64"))),
        ("int32", "", "decimal(10,0)", StoredReading(ducklake_type("decimal(10,0)"))),
        ("int32", "", "decimal(11,2)", StoredReading(ducklake_type("int32"), How.CHECKED_CAST)),
        ("int64", "", "decimal(20,0)", StoredReading(ducklake_type("decimal(20,0)"))),
        ("int64", "", "decimal(19,0)", StoredReading(ducklake_type("int64"), How.CAST)),
        ("int64", "", "float64", StoredReading(ducklake_type("int64"), How.CAST)),
        ("uint32", "", "float64", StoredReading(ducklake_type("uint32"), How.CAST)),
        ("uint32", "", "int64", StoredReading(ducklake_type("int64"))),
        ("uint32", "", "int32", StoredReading(ducklake_type("uint32"), How.CHECKED_CAST)),
        ("uint8", "", "decimal(10,0)", StoredReading(ducklake_type("uint8"), How.CAST)),
        ("uint64", "", "int128", StoredReading(ducklake_type("uint64"), How.CAST)),
        ("int64", "", "uint64", StoredReading(ducklake_type("int64"), How.CHECKED_CAST)),
        ("int64", "", "int32", StoredReading(ducklake_type("int64"), How.CHECKED_CAST)),
        ("decimal(9,2)", "", "decimal(12,4)", StoredReading(ducklake_type("decimal(12,4)"))),
        ("decimal(9,2)", "", "decimal(9,1)",
         StoredReading(ducklake_type("decimal(9,2)"), How.CHECKED_CAST)),
        ("decimal(9,2)", "", "int32", None),
        ("decimal(9,2)", "bytes", "decimal(9,2)", None),
        ("float64", "", "float32", None),
        ("date", "", "timestamp", StoredReading(ducklake_type("timestamp"))),
        ("date", "", "int32", None),
        ("timestamp", "int96", "timestamptz", StoredReading(ducklake_type("timestamptz"))),
        (
            *("timestamptz", "ns", "timestamptz"),
            StoredReading(ducklake_type("int64"), How.INSTANT_OF_NANOS),
        ),
        ("time", "", "time", StoredReading(ducklake_type("int64"), How.TIME)),
        ("time", "ms", "time", None),
        ("uuid", "fixed", "uuid", StoredReading(ducklake_type("blob"), How.UUID_BYTES)),
        ("blob", "fixed", "uuid", StoredReading(ducklake_type("blob"), How.UUID_BYTES)),
        ("uuid", "utf8", "uuid", StoredReading(ducklake_type("uuid"))),
        ("json", "", "varchar", StoredReading(ducklake_type("varchar"))),
    ],
)  # fmt: skip
def test_a_stored_type_is_read_in_a_way_that_spark_was_seen_to_get_right(
    kind, encoding, target, expected
):
    assert reading(stored("a", kind, 1, encoding=encoding), ducklake_type(target)) == expected


@pytest.mark.parametrize("by_name", [False, True])
def test_a_plan_of_twice_the_columns_takes_twice_the_steps(by_name):
    steps = [steps_of_plan(count, by_name) for count in (100, 200, 400)]

    assert steps[2] - steps[1] < 2.2 * (steps[1] - steps[0])


def steps_of_plan(count, by_name):
    """The functions that a plan of so many columns calls, Python's own ones too."""
    version = table(*(column(f"c{n}", "int32", n) for n in range(1, count + 1)))
    fields = [stored(f"c{n}", "int32", None if by_name else n) for n in range(1, count + 1)]
    names = tuple(MappedName(f"c{n}", n, is_partition=False) for n in range(1, count + 1))
    mappings = {7: NameMapping(7, names)} if by_name else {}
    one = file(1, *fields, mapping_id=7) if by_name else file(1, *fields)
    seen = [0]

    def look(frame, event, _):
        seen[0] += event in ("call", "c_call")

    sys.setprofile(look)
    try:
        plan_scan(version, [one], mappings)
    finally:
        sys.setprofile(None)
    return seen[0]
