"""Undoing jobs without rows: ids that come back, and columns that follow each other in a circle."""

from __future__ import annotations

from shelduck.model.changes.job import successors
from shelduck.model.shadows.shadows import known_shadow
from shelduck.model.tables.schema import Field, Kind, new_field
from shelduck.model.tables.table_version import Conversion
from shelduck.model.types.data_types import Primitive, parse_type


def test_columns_are_followed_to_the_ones_that_have_their_places_now():
    there, back = Conversion(2, 7, "varchar", "INT"), Conversion(7, 2, "int32", "STRING")
    again = Conversion(2, 8, "varchar", "DATE")
    assert successors([there]) == {2: 7}
    assert successors([there, back]) == {7: 2}
    assert successors([there, back, again]) == {2: 8, 7: 8}
    assert successors([there, back, there, back]) == {7: 2}


def test_a_column_gets_the_ids_back_that_it_and_its_parts_had():
    now = new_field("s", parse_type("struct<y: string, x: int, l: array<string>>"), 7)
    conversion = Conversion(
        *(7, 2, str(now.type), "STRUCT<y: STRING, x: STRING, l: ARRAY<STRING>>"),
        parts=(7, 8, 9, 10, 11),
        shadow_parts=(2, 6, 3, 4, 5),
    )
    made = known_shadow(now, conversion, "t").field
    assert [(f.id, f.name) for f in made.walk()] == [
        *((2, "s"), (6, "y"), (3, "x"), (4, "l"), (5, "element"))
    ]
    orders = [child.order for child in made.children]
    assert orders == sorted(set(orders))
    assert made.order == now.order
    assert made.children[2] == Field(
        *(4, "l", Kind.LIST), (Field(5, "element", Primitive("varchar"), order=5),), order=4
    )
