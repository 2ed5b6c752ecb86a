"""Files with so few rows that the catalog keeps them instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa

from shelduck.model.files.inlined import InlinedBatch
from shelduck.model.tables.schema import Field, Kind, Schema
from shelduck.model.types import temporal
from shelduck.spark.files.parquet_files import read_columns
from shelduck.spark.files.physical import ROW_ID_COLUMN
from shelduck.spark.write.small import leaf_text

Values = Callable[[Any], list[object]]


def rows_of_files(paths: Sequence[str], columns: Schema) -> InlinedBatch:
    """Return the rows of files that `write_files` just wrote, in their order.

    ``paths`` are absolute. The files hold ``columns`` in this order, and row ids behind them if
    their rows have some.
    """
    rows: list[tuple[object, ...]] = []
    row_ids: list[int | None] = []
    for path in paths:
        found = read_columns(path, None)
        parts = [
            _values(f, column.combine_chunks())
            for f, column in zip(columns, found.columns, strict=False)
        ]
        rows.extend(zip(*parts, strict=True))
        own = ROW_ID_COLUMN in found.column_names
        row_ids += found[ROW_ID_COLUMN].to_pylist() if own else [None] * len(found)
    return InlinedBatch(columns, tuple(rows), tuple(row_ids))


def _values(field: Field, array: Any) -> list[object]:
    """Return the values of an Arrow array in the form of `InlinedBatch.rows`."""
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    known = array.is_valid().to_pylist()
    if field.shape is Kind.STRUCT:
        members = [_values(c, array.field(n)) for n, c in enumerate(field.children)]
        names = [c.name for c in field.children]
        found: list[object] = [dict(zip(names, m, strict=True)) for m in zip(*members, strict=True)]
    elif field.shape is Kind.LIST:
        found = _cut(array, _values(field.children[0], array.values))
    elif field.shape is Kind.MAP:
        keys, items = (
            _values(f, part)
            for f, part in zip(field.children, (array.keys, array.items), strict=True)
        )
        found = _cut(array, list(zip(keys, items, strict=True)))
    else:
        text = leaf_text(field)
        found = [None if v is None else text(v) for v in _numbers(field, array).to_pylist()]
    return [value if is_known else None for value, is_known in zip(found, known, strict=True)]


def _cut(array: Any, values: Sequence[object]) -> list[object]:
    ends = array.offsets.to_pylist()
    return [list(values[a:b]) for a, b in pairwise(ends)]


def _numbers(field: Field, array: Any) -> Any:
    # As numbers: Python's dates end with the year 9999.
    if str(field.shape) == "date":
        return array.cast(pa.int32())
    if str(field.shape) in temporal.MICROSECONDS:
        return array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64())
    return array
