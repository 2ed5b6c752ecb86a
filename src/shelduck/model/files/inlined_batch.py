"""Rows that a commit puts into the catalog instead of a file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from shelduck.model.files.data_file import ColumnStats
from shelduck.model.files.duckdb_text import survives
from shelduck.model.tables.schema import Field, Kind, Schema
from shelduck.model.types.bounds import Ends, bound, ends
from shelduck.model.types.data_types import FLOATS, Leaf


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
    elif field.shape is Kind.STRUCT:
        members = cast("dict[str, object]", value)
        for child in field.children:
            yield from _leaves(child, members.get(child.name))
    elif field.shape is Kind.LIST:
        for item in cast("list[object]", value):
            yield from _leaves(field.children[0], item)
    else:
        for pair in cast("list[tuple[object, object]]", value):
            for child, part in zip(field.children, pair, strict=True):
                yield from _leaves(child, part)


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
