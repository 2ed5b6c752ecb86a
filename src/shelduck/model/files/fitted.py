"""Rows for the catalog under later columns of their table, as a reader would see them."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from shelduck.model.files.inlined import InlinedBatch
from shelduck.model.tables.schema import Field, Kind, Schema
from shelduck.model.types.data_types import FLOATS, Leaf
from shelduck.model.types.literals import as_float32, blob_bytes, canonical_text, float_text


def fitted_batch(batch: InlinedBatch, columns: Schema) -> InlinedBatch:
    """Return rows in columns to which light changes led: by id, in the wider types.

    A column or field that the rows lack has its initial default, as it has for rows in files.
    """
    if batch.columns == columns:
        return batch
    places = {f.id: n for n, f in enumerate(batch.columns)}

    def value(field: Field, row: tuple[object, ...]) -> object:
        at = places.get(field.id)
        return _absent(field) if at is None else _value(batch.columns.fields[at], field, row[at])

    rows = tuple(tuple(value(field, row) for field in columns) for row in batch.rows)
    return replace(batch, columns=columns, rows=rows)


def _absent(field: Field) -> object:
    text = field.initial_default
    if text is None or isinstance(field.shape, Kind):
        return None
    return blob_bytes(text) if str(field.shape) == "blob" else canonical_text(field.shape, text)


def _value(old: Field, new: Field, value: object) -> object:
    if value is None or isinstance(value, bytes):
        return value
    if new.shape is Kind.LIST:
        return [_value(old.children[0], new.children[0], v) for v in cast("list[object]", value)]
    if new.shape is Kind.MAP:
        key, item = zip(old.children, new.children, strict=True)
        pairs = cast("list[tuple[object, object]]", value)
        return [(_value(*key, k), _value(*item, v)) for k, v in pairs]
    if new.shape is Kind.STRUCT:
        members = cast("dict[str, object]", value)
        before = {c.id: c for c in old.children}
        return {
            c.name: _value(before[c.id], c, members.get(before[c.id].name))
            if c.id in before
            else _absent(c)
            for c in new.children
        }
    assert not isinstance(old.shape, Kind)
    return _text(old.shape, new.shape, str(value))


def _text(old: Leaf, new: Leaf, text: str) -> str:
    if old == new or str(new) in ("varchar", "json"):
        return text
    if str(new) in FLOATS:
        number = float(text)
        # The nearest number of 32 bits has other digits in 64.
        exact = as_float32(number) if str(old) == "float32" else number
        return float_text(new, number if exact is None else exact)
    return canonical_text(new, text)
