"""Rows of the catalog under later columns of their table, as a reader sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from shelduck.errors import CorruptLake, InvalidRequest, Unsupported
from shelduck.model.files.inlined_batch import InlinedBatch
from shelduck.model.tables.schema import Field, Kind, Schema
from shelduck.model.types.data_types import FLOATS, SIGNED, UNSIGNED, Decimal, Leaf
from shelduck.model.types.literals import as_float32, blob_bytes, canonical_text, fitted, float_text
from shelduck.model.types.temporal import MICROSECONDS, TIMESTAMP_NAMES

_TEXTS = ("varchar", "json")
_FLAGS = {"true": "1", "false": "0"}


def fitted_batch(batch: InlinedBatch, columns: Schema) -> InlinedBatch:
    """Return rows in columns to which light changes led: by id, in the wider types.

    A column or field that the rows lack has its initial default, as it has for rows in files.
    Raises what `fitted_values` raises.
    """
    if batch.columns == columns:
        return batch
    values = [fitted_values(batch.columns, batch.rows, field) for field in columns]
    return replace(batch, columns=columns, rows=tuple(zip(*values, strict=True)))


def fitted_values(
    columns: Schema, rows: Sequence[tuple[object, ...]], field: Field
) -> list[object]:
    """Return the values of rows with these columns in a later column, as `InlinedRows` has them.

    Raises CorruptLake for a text that is not a value of its column, and Unsupported for a change
    of type after which the values cannot be read.
    """
    place = next((n for n, old in enumerate(columns) if old.id == field.id), None)
    if place is None:
        return [_absent(field)] * len(rows)
    old = columns.fields[place]
    found = [row[place] for row in rows]
    return found if _is_same(old, field) else [_value(old, field, v) for v in found]


def _is_same(old: Field, new: Field) -> bool:
    if isinstance(old.shape, Kind) or isinstance(new.shape, Kind):
        return old.shape is new.shape and old.children == new.children
    # The text of an integer is the same in a wider type.
    bits, wanted = SIGNED.get(str(old.shape)), SIGNED.get(str(new.shape))
    return old.shape == new.shape or (bits is not None and wanted is not None and bits <= wanted)


def _absent(field: Field) -> object:
    text = field.initial_default
    if text is None or isinstance(field.shape, Kind):
        return None
    try:
        found = blob_bytes(text) if str(field.shape) == "blob" else _default(field.shape, text)
    except InvalidRequest:
        found = None
    if found is None:
        raise _corrupt(f"the default of column {field.name!r}", text, field)
    return found


def _default(shape: Leaf, text: str) -> str:
    return text if str(shape) in _TEXTS else canonical_text(shape, text)


def _value(old: Field, new: Field, value: object) -> object:
    if value is None:
        return value
    if isinstance(new.shape, Kind) or isinstance(old.shape, Kind):
        if old.shape is not new.shape:
            raise _no_way(old, new)
        return _nested(old, new, value)
    if old.shape == new.shape:
        return value
    try:
        found = _text(old.shape, new.shape, str(value))
    except (InvalidRequest, ValueError) as error:
        raise _corrupt(f"inlined column {old.name!r}", value, old) from error
    if found is None:
        raise _no_way(old, new)
    return found


def _nested(old: Field, new: Field, value: object) -> object:
    if new.shape is Kind.LIST:
        return [_value(old.children[0], new.children[0], v) for v in cast("list[object]", value)]
    if new.shape is Kind.MAP:
        key, item = zip(old.children, new.children, strict=True)
        pairs = cast("list[tuple[object, object]]", value)
        return [(_value(*key, k), _value(*item, v)) for k, v in pairs]
    members = cast("dict[str, object]", value)
    before = {c.id: c for c in old.children}
    return {
        c.name: _value(before[c.id], c, members.get(before[c.id].name))
        if c.id in before
        else _absent(c)
        for c in new.children
    }


def _text(old: Leaf, new: Leaf, text: str) -> str | None:
    """Return the text of a value in another type; None if the type has no such value."""
    source, target = str(old), str(new)
    if source in _TEXTS:
        return text if target in _TEXTS else None
    whole = source in SIGNED or source in UNSIGNED or source == "boolean"
    text = _FLAGS.get(text, text) if source == "boolean" else text
    if whole and (target in SIGNED or target in UNSIGNED):
        return canonical_text(new, text)
    if target in FLOATS and (whole or source in FLOATS or isinstance(old, Decimal)):
        number = float(text)
        # The nearest number of 32 bits has other digits in 64.
        exact = as_float32(number) if source == "float32" else number
        return float_text(new, number if exact is None else exact)
    if isinstance(new, Decimal) and (whole or isinstance(old, Decimal)):
        # Files and DuckDB round digits that the type does not have.
        return canonical_text(new, fitted(new, text))
    if source != "date" and source not in MICROSECONDS:
        return None
    if target in TIMESTAMP_NAMES:
        # A text without an offset is in UTC, too.
        return canonical_text(new, text.removesuffix("+00"))
    return None


def _corrupt(where: str, value: object, field: Field) -> CorruptLake:
    return CorruptLake(f"{where} holds {value!r}, which is not a value of type {field.type}")


def _no_way(old: Field, new: Field) -> Unsupported:
    return Unsupported(
        f"column {new.name!r} is {new.type}, but rows inlined in the catalog store it as"
        f" {old.type}; flush them with DuckDB (CALL ducklake_flush_inlined_data), or select other"
        " columns with columns=[...]"
    )
