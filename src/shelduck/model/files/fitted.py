"""Rows that the catalog keeps instead of a file: new ones, and their values as others see them.

A reader sees them under later columns of their table, and files have their partition values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from shelduck.errors import CorruptLake, InvalidRequest, Unsupported
from shelduck.model.files.data_file import ColumnStats, InlinedRows
from shelduck.model.files.duckdb_text import parts_of, survives
from shelduck.model.tables.partition import BUCKET, IDENTITY, Transform, parse_transform
from shelduck.model.tables.schema import Field, FieldId, Kind, Schema
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import quote_name
from shelduck.model.types.buckets import bucket_of_text
from shelduck.model.types.data_types import FLOATS, SIGNED, UNSIGNED, Decimal, Leaf
from shelduck.model.types.literals import (
    Ends,
    as_float32,
    blob_bytes,
    bound,
    canonical_text,
    ends,
    fitted,
    float_text,
)
from shelduck.model.types.temporal import MICROSECONDS, TIMESTAMP_NAMES, calendar_field, is_infinite


@dataclass(frozen=True, slots=True)
class InlinedBatch:
    """Rows in the columns of a table, with values as in `InlinedRows`.

    ``row_ids`` are for rows that keep their id (updated rows). A row for which it has None or a
    negative number, and every row if it is empty, gets the next id.
    """

    columns: Schema
    rows: tuple[tuple[object, ...], ...]
    row_ids: tuple[int | None, ...] = ()

    def without(self, row_ids: Collection[int]) -> InlinedBatch:
        """Return the other rows."""
        kept = [n for n, number in enumerate(self.row_ids) if number not in row_ids]
        return replace(
            self,
            rows=tuple(self.rows[n] for n in kept),
            row_ids=tuple(self.row_ids[n] for n in kept),
        )

    @property
    def new_rows(self) -> int:
        """How many rows get a new id."""
        return len(self.rows) - sum(1 for i in self.row_ids if i is not None and i >= 0)

    @property
    def can_be_kept(self) -> bool:
        """Return whether every reader reads the values correctly, in any database."""
        nested = [(n, f) for n, f in enumerate(self.columns) if not f.is_leaf]
        return all(survives(f, row[n]) for n, f in nested for row in self.rows)


def joined_batch(batches: Sequence[InlinedBatch]) -> InlinedBatch:
    """Return the rows of batches with the same columns as one batch."""
    rows = tuple(row for b in batches for row in b.rows)
    ids = tuple(i for b in batches for i in b.row_ids or (None,) * len(b.rows))
    return InlinedBatch(batches[0].columns, rows, ids)


def batch_stats(batch: InlinedBatch) -> tuple[ColumnStats, ...]:
    """Return the statistics of every leaf, as for a file with these rows.

    Bounds are in the text form of files, which readers of both encodings understand. DuckDB's text
    for an inlined ``true`` would break the table once the column is promoted to a number.
    """
    found = []
    for place, column in enumerate(batch.columns):
        values: dict[int, list[object]] = {leaf.id: [] for leaf in column.leaves()}
        for row in batch.rows:
            for leaf, value in _leaves(column, row[place]):
                values[leaf.id].append(value)
        found += [_stats(leaf, values[leaf.id]) for leaf in column.leaves()]
    return tuple(found)


def _leaves(field: Field, value: object) -> Iterator[tuple[Field, object]]:
    if field.is_leaf:
        yield field, value
    elif value is None:
        yield from ((leaf, None) for leaf in field.leaves())
    else:
        for part, inside in parts_of(field, value):
            yield from _leaves(part, inside)


def _stats(field: Field, values: list[object]) -> ColumnStats:
    known = [v for v in values if v is not None]
    found, has_nan = _bounds(field.leaf, known)
    return ColumnStats(
        column_id=field.id,
        column_size_bytes=0,
        value_count=len(known),
        null_count=len(values) - len(known),
        contains_nan=has_nan if str(field.leaf) in FLOATS else None,
        **found._asdict(),
    )


def _bounds(leaf: Leaf, values: list[object]) -> tuple[Ends, bool]:
    nans = str(leaf) in FLOATS and "nan" in values
    # Any: all values have one type, and a bool compares with a bool.
    found: list[Any] = [
        v if isinstance(v, bytes) else bound(leaf, str(v)) for v in values if not nans or v != "nan"
    ]
    if not found or any(v is None for v in found):
        return Ends(), nans
    return ends(leaf, min(found), max(found)), nans


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


Values = tuple[str | None, ...]


def partition_values(table: TableVersion, part: InlinedRows) -> list[Values]:
    """Return the value of each partition key of the table, for each row.

    Raises Unsupported for an unknown transform, and what `fitted_values` raises.
    """
    found = [_key_values(table, part, k.column_id, k.transform) for k in table.partition]
    return list(zip(*found, strict=True)) if found else [()] * len(part.rows)


def _key_values(
    table: TableVersion, part: InlinedRows, column_id: FieldId, transform: str
) -> list[str | None]:
    field = table.columns.by_id(column_id)
    if field is None or isinstance(field.shape, Kind):
        raise CorruptLake(f"{table.full_name} is partitioned by column id {column_id}, not a value")
    made = _maker(field, parse_transform(transform))
    return [None if v is None else made(v) for v in fitted_values(part.columns, part.rows, field)]


def _maker(field: Field, transform: Transform) -> Callable[[object], str | None]:
    leaf = field.leaf
    if transform.kind == IDENTITY:
        return partial(_identity, leaf)

    def made(value: object) -> str | None:
        known = value if isinstance(value, bytes) else str(value)
        if transform.kind == BUCKET:
            number = bucket_of_text(leaf, known, transform.buckets)
        elif is_infinite(str(value)):
            return None
        else:
            number = calendar_field(leaf, str(value), transform.kind)
        if number is None:
            raise CorruptLake(
                f"inlined column {quote_name(field.name)} holds {value!r}, which has no"
                f" {transform.kind}"
            )
        return str(number)

    return made


def _identity(leaf: Leaf, value: object) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value_text(leaf, str(value))


def value_text(leaf: Leaf, text: str) -> str:
    """Return the text of a value as it is stored for a partition of one."""
    if str(leaf) in _TEXTS:
        return text
    found = canonical_text(leaf, text)
    if isinstance(leaf, Decimal) and leaf.precision == leaf.scale:
        return re.sub(r"^(-?)0\.", r"\1.", found)
    # Zero has no sign there.
    return "0.0" if found == "-0.0" else found
