"""INSERT of plain literals: store assignment without Spark, for simple cases.

If it is not certain that Spark would give the same result, Spark does the work, errors included.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal as Number

from shelduck.errors import InvalidRequest
from shelduck.model.files.inlined import InlinedBatch
from shelduck.model.tables.schema import Field, Kind, Schema
from shelduck.model.tables.writable import is_writable
from shelduck.model.types.data_types import FLOATS, Decimal, Leaf, Text
from shelduck.model.types.literals import as_float32, canonical_text, float_text, integer_range
from shelduck.sql.tokens.literal_rows import Cell

_LOCAL = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?"
_MOMENTS = {
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "timestamp": re.compile(_LOCAL),
    # Without an offset, the time zone of the session decides.
    "timestamptz": re.compile(_LOCAL + r"(Z|[+-](0\d|1[0-7]):[0-5]\d)"),
}
_WANTED = {
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ltz": "timestamptz",
    "timestamp_ntz": "timestamp",
}
_EXACT = {"float32": 2**24, "float64": 2**53}
_NULL = Cell("null", "null")


def literal_batch(
    columns: Schema, names: Sequence[str] | None, rows: Sequence[Sequence[Cell]]
) -> InlinedBatch | None:
    """Return the rows in the table's form, None if Spark must read them.

    ``names`` are the given columns, None for all in their order.
    """
    if any(not _is_simple(leaf) for leaf in columns.leaves()):
        return None
    given = columns.names if names is None else list(names)
    places = {name.lower(): n for n, name in enumerate(given)}
    known = {f.name.lower() for f in columns}
    if len(places) != len(given) or not places.keys() <= known:
        return None
    if any(len(row) != len(given) for row in rows):
        return None
    made = []
    for row in rows:
        values = [_stored(f, row, places.get(f.name.lower())) for f in columns]
        if any(not fits for fits, _ in values):
            return None
        made.append(tuple(text for _, text in values))
    return InlinedBatch(columns, tuple(made))


def _is_simple(leaf: Field) -> bool:
    return not isinstance(leaf.shape, Kind) and is_writable(leaf.shape)


def _stored(field: Field, row: Sequence[Cell], place: int | None) -> tuple[bool, str | None]:
    """Return whether the value is certain, and the value."""
    if place is None:
        default = field.default
        if default is not None:
            return False, None
        return field.nullable, None
    cell = row[place]
    if cell == _NULL:
        return field.nullable, None
    if isinstance(field.shape, Kind):
        return False, None
    text = _text(field.shape, cell)
    return text is not None, text


def _text(leaf: Leaf, cell: Cell) -> str | None:
    name = str(leaf)
    try:
        if cell.kind == "integer":
            return _whole(leaf, int(cell.text))
        if cell.kind == "fraction":
            is_exact = name in FLOATS and Number(float(cell.text)) == Number(cell.text)
            is_taken = isinstance(leaf, Decimal) or name == "float64" or is_exact
            # A zero has no sign in Spark's decimals, and such a literal is a decimal.
            return canonical_text(leaf, _unsigned_zero(cell.text)) if is_taken else None
        if cell.kind in ("double", "float"):
            return _binary(leaf, cell)
    except InvalidRequest:
        return None
    if cell.kind == "string" and name not in _MOMENTS:
        is_long = isinstance(leaf, Text) and len(cell.text) > leaf.length
        return cell.text if name == "varchar" and not is_long else None
    if cell.kind == "boolean":
        return cell.text if name == "boolean" else None
    # As in DuckDB, a text is accepted as a date or a time.
    wanted = _WANTED.get(cell.kind, name)
    if name != wanted or not _MOMENTS[name].fullmatch(cell.text):
        return None
    try:
        return canonical_text(leaf, cell.text)
    except InvalidRequest:
        return None


def _binary(leaf: Leaf, cell: Cell) -> str | None:
    """Return the text of a float; None if 32 bits round it, and for a double in 32 bits."""
    number, name = float(cell.text), str(leaf)
    if cell.kind == "float":
        exact = as_float32(number)
        is_taken = name in FLOATS and exact == number and Number(exact) == Number(cell.text)
    else:
        is_taken = name == "float64" and abs(number) != float("inf")
    return float_text(leaf, number) if is_taken else None


def _whole(leaf: Leaf, number: int) -> str | None:
    name = str(leaf)
    is_exact = name in _EXACT and abs(number) <= _EXACT[name]
    if is_exact or integer_range(leaf) is not None or isinstance(leaf, Decimal):
        return canonical_text(leaf, str(number))
    return None


def _unsigned_zero(text: str) -> str:
    return text if Number(text) else text.lstrip("-")
