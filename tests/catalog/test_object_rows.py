"""What the rows of an object say is the object itself; no database."""

from __future__ import annotations

from types import SimpleNamespace

from shelduck.ducklake import tables
from shelduck.ducklake.descriptions import (
    bodies_of,
    comment_rows,
    definition_of,
    description_of,
    macro_rows,
    partition_rows,
    rows_of,
    schema_of,
    sort_rows,
    tag_rows,
    view_rows,
)
from shelduck.model.tables.schema import FieldId, SchemaId, SnapshotId, flattened, new_schema
from shelduck.model.tables.table_version import PartitionColumn, SchemaInfo
from shelduck.model.tables.view import (
    MacroBody,
    MacroKind,
    MacroParameter,
    MacroVersion,
    ViewDefinition,
)
from shelduck.model.types.data_types import List, Map, Member, Primitive, Struct

INT, TEXT = Primitive("int32"), Primitive("varchar")


def found_in(rows, table):
    return [SimpleNamespace(**row) for source, row in rows if source is table]


def test_rows_of_nested_columns_are_read_as_the_columns():
    inner = Struct((Member("a", INT), Member("b", List(Map(TEXT, INT)))))
    columns = new_schema([Member("id", INT, nullable=False), Member("s", inner)])

    rows = [SimpleNamespace(**row) for row in rows_of(1, flattened(columns))]

    assert [(row.column_id, row.parent_column) for row in rows] == [
        *((1, None), (2, None), (3, 2), (4, 2), (5, 4), (6, 5), (7, 5))
    ]
    assert schema_of(rows, "main.t") == columns


def test_rows_of_tags_and_keys_are_read_as_those_of_the_table():
    key, sort = PartitionColumn(FieldId(2), "year"), ("id DESC NULLS FIRST",)
    rows = [
        *tag_rows(1, {"comment": "mine", "k": "v"}),
        *comment_rows(1, {FieldId(2): "a column"}),
        *partition_rows(1, 7, [key]),
        *sort_rows(1, 8, sort),
    ]
    asked = {
        "tags": found_in(rows, tables.tag),
        "comments": found_in(rows, tables.column_tag),
        "partition": found_in(rows, tables.partition_column),
        "sort": found_in(rows, tables.sort_expression),
        **{name: [] for name in ("table", "schema", "options")},
    }

    found = description_of(asked, 3, "main.t")

    assert found.comments == {None: "mine", 2: "a column"}
    assert found.properties == {"k": "v"}
    assert (found.partition_id, found.partition, found.sort) == (7, (key,), sort)


def test_rows_of_a_view_are_read_as_its_definition():
    made = ViewDefinition("SELECT 1", ('say "x"', "y"), "select 1", "of the view")
    rows = list(view_rows(5, SchemaId(0), "v", "018f", made))
    tags = [SimpleNamespace(**vars(t), column_name=None) for t in found_in(rows, tables.tag)]

    [row] = found_in(rows, tables.view)

    assert definition_of(row, tags) == made


def test_rows_of_a_macro_are_read_as_its_bodies():
    parameters = (MacroParameter("a"), MacroParameter("b", default="1", default_type="int32"))
    bodies = (MacroBody(parameters, "a + b", "a + b + 0"), MacroBody((), "1"))
    home = SchemaInfo(SchemaId(0), "main", "/lake/main/")
    macro = MacroVersion(-1, home, "m", MacroKind.SCALAR, bodies, SnapshotId(3))
    rows = list(macro_rows(9, SchemaId(0), macro))
    given = found_in(rows, tables.macro_parameters)
    none = SimpleNamespace(parameter_name=None)
    joined = [
        SimpleNamespace(**{**vars(parameter), **vars(body)})
        for body in found_in(rows, tables.macro_impl)
        for parameter in [p for p in given if p.impl_id == body.impl_id] or [none]
    ]
    tags = {(t.object_id, t.key): t.value for t in found_in(rows, tables.tag)}

    assert bodies_of(joined, tags) == bodies
