"""What a transaction sees of its own changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shelduck.errors import Conflict, CorruptLake, Unsupported
from shelduck.model.changes.change import DeleteRows, FileDeletes, InlineRows
from shelduck.model.changes.staged_rows import StagedRows
from shelduck.model.files.data_file import DataFile, DeletesSeen, InlinedRows
from shelduck.model.files.fitted import InlinedBatch, fitted_batch, fitted_values
from shelduck.model.tables.schema import Schema, new_schema
from shelduck.model.types.data_types import List, Map, Member, Primitive, Struct
from tests.support.scans import column, table

INT = Primitive("int32")
_KEPT = DataFile(5, "/lake/t/5.parquet", 100, 3, 0, 1)


def test_a_file_whose_rows_are_all_deleted_is_gone():
    staged = StagedRows(deletes={6: FileDeletes(6, DeletesSeen())})

    assert staged.over(table(column("a", "int32", 1)), [_KEPT, _KEPT._replace(id=6)]) == [_KEPT]


def test_deletes_of_a_file_that_the_snapshot_lost_are_a_conflict():
    staged = StagedRows(deletes={6: FileDeletes(6, DeletesSeen())})

    with pytest.raises(Conflict, match=r"moved rows of main.t .*run the statement again"):
        staged.over(table(column("a", "int32", 1)), [_KEPT])


def test_rows_that_a_transaction_replaces_hide_those_that_are_deleted():
    columns = Schema((column("a", "int32", 1),))
    staged, version = StagedRows(), table(*columns.fields)
    base = [InlinedRows(columns, (("1",), ("2",)), (7, 8), (3, 3))]
    staged.stage(InlineRows(version.id, InlinedBatch(columns, (("5",), ("6",)))))
    before = staged.copied()
    staged.stage(DeleteRows(version, inlined=(7, -1)))
    staged.stage(InlineRows(version.id, InlinedBatch(columns, (("55",), ("11",)), (-1, 7))))
    staged.stage(DeleteRows(version, inlined=(7,)))
    staged.stage(InlineRows(version.id, InlinedBatch(columns, (("111",),), (7,))))

    def told(rows: StagedRows) -> list[tuple[int, object]]:
        parts = rows.over_inlined(version, base)
        return [(n, row[0]) for p in parts for n, row in zip(p.row_ids, p.rows, strict=True)]

    assert told(before) == [(7, "1"), (8, "2"), (-1, "5"), (-2, "6")]
    assert told(staged) == [(8, "2"), (-2, "6"), (-3, "55"), (7, "111")]
    deleted, added = staged.changes(version.id, columns)
    assert isinstance(deleted, DeleteRows)
    assert isinstance(added, InlineRows)
    assert deleted.inlined == (7,)
    assert (added.rows.row_ids, added.rows.new_rows) == ((-2, -3, 7), 2)


@pytest.mark.parametrize(
    ("old", "new", "value", "wanted"),
    [
        ("int8", "int128", "-5", "-5"),
        ("uint8", "float32", "200", "200.0"),
        ("int32", "float64", "7", "7.0"),
        ("float32", "float64", "1.1", "1.100000023841858"),
        ("float32", "float64", "nan", "nan"),
        ("float32", "float64", "-inf", "-inf"),
        ("date", "timestamp", "2024-01-02", "2024-01-02 00:00:00"),
        ("timestamp_s", "timestamp", "2024-01-02 03:04:05", "2024-01-02 03:04:05"),
        ("decimal(3,1)", "decimal(6,2)", "1.5", "1.50"),
        ("decimal(5,3)", "decimal(6,2)", "1.235", "1.24"),
        ("date", "timestamp", "infinity", "infinity"),
        ("date", "timestamp_ns", "2024-01-02", "2024-01-02 00:00:00"),
        ("timestamptz", "timestamp", "2024-01-02 03:04:05+00", "2024-01-02 03:04:05"),
        ("json", "varchar", "{}", "{}"),
        ("blob", "blob", b"\0a", b"\0a"),
        ("varchar", "varchar", "x", "x"),
        ("int32", "int64", None, None),
    ],
)
def test_rows_of_a_transaction_get_the_wider_types_that_it_makes(old, new, value, wanted):
    added = column("b", "int32", 2, default="9")
    batch = InlinedBatch(Schema((column("x", "int32", 3), column("a", old, 1))), (("0", value),))
    found = fitted_batch(batch, Schema((added, column("a", new, 1))))
    assert found.rows == (("9", wanted),)


def test_fields_of_nested_rows_are_found_by_their_ids():
    def of(*members: Member) -> Schema:
        return new_schema(
            [Member("l", List(Struct(members))), Member("m", Map(INT, Struct(members)))]
        )

    old = of(Member("a", INT))
    row = ([{"a": "1"}, None], [("5", {"a": "2"})])
    [items, pairs] = old.fields
    [element] = items.children
    renamed = replace(element, children=(replace(element.children[0], name="z"),))
    new = Schema((replace(items, children=(renamed,)), pairs))
    found = fitted_batch(InlinedBatch(old, (row,)), new)
    assert found.rows == (([{"z": "1"}, None], [("5", {"a": "2"})]),)


@pytest.mark.parametrize(
    ("old", "new", "value", "error"),
    [
        ("int32", "varchar", "1", Unsupported),
        ("varchar", "int32", "1", Unsupported),
        ("timestamp_ns", "timestamp", "2024-01-02 03:04:05", Unsupported),
        ("date", "timestamp", "tomorrow", CorruptLake),
        ("int64", "int8", "1000", CorruptLake),
        ("float32", "float64", "much", CorruptLake),
    ],
)
def test_rows_that_have_no_value_in_a_later_type_are_refused(old, new, value, error):
    columns = Schema((column("a", old, 1),))
    rows = ((value,),)
    assert fitted_values(columns, rows, column("a", old, 1)) == [value]
    with pytest.raises(error):
        fitted_values(columns, rows, column("a", new, 1))


def test_a_default_that_is_no_value_of_its_column_is_told():
    with pytest.raises(CorruptLake, match="the default of column 'b' holds 'x'"):
        fitted_values(Schema(()), ((),), column("b", "int32", 2, default="x"))
