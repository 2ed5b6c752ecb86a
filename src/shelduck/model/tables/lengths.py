"""How long texts of VARCHAR(n) and CHAR(n) may be: kept in a property, by column ids.

DuckLake's VARCHAR has no length, so other writers are not held to it. The rows of a rollup are
those of its table, and have no lengths of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from shelduck.model.tables.rollup import ROLLUP
from shelduck.model.tables.schema import Field, FieldId, Schema
from shelduck.model.text.stored import Stored, record
from shelduck.model.types.data_types import (
    DataType,
    Decimal,
    List,
    Map,
    Primitive,
    Struct,
    Text,
    type_text,
)

LENGTHS = "shelduck.lengths"
"""The property that holds the lengths."""

# The most characters that a value of a type has as text.
_WIDEST = {
    "boolean": 5,
    "int8": 4,
    "uint8": 3,
    "int16": 6,
    "uint16": 5,
    "int32": 11,
    "uint32": 10,
    "int64": 20,
    "uint64": 20,
    "uuid": 36,
}


@dataclass(frozen=True, slots=True)
class Lengths:
    """Pairs of a field's id and how many characters its texts may have."""

    fields: tuple[tuple[FieldId, int], ...] = ()


_STORED: Stored[Lengths] = Stored("text lengths", record(Lengths))


def with_lengths(properties: Mapping[str, str], columns: Schema) -> dict[str, str]:
    """Return the properties of a table with the lengths that its columns have."""
    if not columns.index.limited or ROLLUP in properties:
        return {k: v for k, v in properties.items() if k != LENGTHS}
    found = tuple((f.id, f.shape.length) for f in columns.leaves() if isinstance(f.shape, Text))
    return _STORED.put(properties, LENGTHS, Lengths(found))


def limited(columns: Schema, properties: Mapping[str, str], table: str) -> Schema:
    """Return the columns of a table with the lengths that its properties hold."""
    if LENGTHS not in properties:
        return columns
    known = dict(_STORED.known(properties[LENGTHS], table).fields)
    return Schema(tuple(_limited(field, known) for field in columns))


def _limited(field: Field, known: Mapping[FieldId, int]) -> Field:
    if field.is_leaf:
        is_text = field.shape == Primitive("varchar") and field.id in known
        return replace(field, shape=Text(length=known[field.id])) if is_text else field
    return replace(field, children=tuple(_limited(child, known) for child in field.children))


def is_longer(old: DataType, new: DataType) -> str | None:
    """Return why texts of a column may be longer than its new type takes, None if they fit."""
    match old, new:
        case (Struct(before), Struct(after)):
            types = {m.name.lower(): m.type for m in after}
            pairs = [(m.type, types[m.name.lower()]) for m in before if m.name.lower() in types]
        case (List(before), List(after)):
            pairs = [(before, after)]
        case (Map(key, value), Map(new_key, new_value)):
            pairs = [(key, new_key), (value, new_value)]
        case (Primitive() | Decimal(), Text(length=most)):
            widest = _widest(old)
            if widest is not None and widest <= most:
                return None
            held = "any length" if widest is None else f"up to {widest} characters"
            return f"texts of {type_text(old)} have {held}, and {type_text(new)} takes {most}"
        case _:
            return None
    return next((why for pair in pairs if (why := is_longer(*pair)) is not None), None)


def _widest(leaf: Primitive | Decimal) -> int | None:
    if isinstance(leaf, Text):
        return leaf.length
    return leaf.precision + 3 if isinstance(leaf, Decimal) else _WIDEST.get(leaf.name)
