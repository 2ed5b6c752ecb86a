"""Few rows, of a DataFrame or of files just written, as values that the catalog can hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import Named, engine_for, select_named
from shelduck.engine.files.footers import read_columns
from shelduck.engine.rows.assign import telling_failures
from shelduck.engine.rows.unheld import require_held
from shelduck.engine.session import is_local, local_size
from shelduck.model.files.data_file import ROW_ID_COLUMN
from shelduck.model.files.fitted import InlinedBatch
from shelduck.model.tables.held import is_moment, may_be_unheld
from shelduck.model.tables.schema import Field, Kind, Schema
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.model.types import temporal
from shelduck.model.types.data_types import FLOATS, Decimal
from shelduck.model.types.literals import float_text

_MICROSECOND = timedelta(microseconds=1)


def small_rows(df: DataFrame, table: TableVersion, limit: int) -> InlinedBatch | None:
    """Return the rows of ``df`` if Spark's plan already has them and they are within ``limit``.

    ``df`` has the columns of ``table``, as `shelduck.engine.rows.assign.assign` returns them. None
    if a job would have to compute the rows, which does not run, or if there are too many. A value
    that does not fit its column, or that other readers do not hold, is InvalidRequest.
    """
    if not engine_for(df.sparkSession).has_its_rows(df):
        return None
    columns = table.columns
    carried = select_named(df, _carried_all(columns))
    with telling_failures():
        size = local_size(carried)
    if size is None or size > limit:
        return None
    # Spark returns the rows of a local relation without a job.
    rows = _rows(columns, carried.collect())
    if may_be_unheld(rows):
        require_held(df, table)
    return InlinedBatch(columns, rows)


def collected_rows(parts: Sequence[DataFrame], table: TableVersion, row_id: str) -> InlinedBatch:
    """Return rows that were computed before; unless their plans hold them, one job brings them.

    A value that other readers do not hold is InvalidRequest. Each part has the columns of
    ``table``, and behind them the row ids, NULL for rows that have none yet.
    """
    columns = table.columns
    named = [*_carried_all(columns), Named(row_id, row_id)]
    carried = [select_named(part, named) for part in parts]
    if not all(map(is_local, carried)):
        carried = [reduce(DataFrame.unionAll, carried)]
    try:
        found = [row for part in carried for row in part.collect()]
    except UnicodeDecodeError:
        # Over Spark Connect, texts come as bytes.
        _require_held(parts, table)
        raise
    rows = _rows(columns, [row[:-1] for row in found])
    if may_be_unheld(rows):
        _require_held(parts, table)
    return InlinedBatch(columns, rows, tuple(row[-1] for row in found))


def _require_held(parts: Sequence[DataFrame], table: TableVersion) -> None:
    for part in parts:
        require_held(part, table)


def _carried_all(columns: Schema) -> list[Named]:
    """Return all columns in forms that Python holds, under names that mean nothing."""
    return [Named(f"c{n}", _carried_as(f)) for n, f in enumerate(columns)]


def _carried_as(field: Field) -> str | SparkColumn:
    name = backticked(field.name)
    return _carried(F.col(name), field) if _has_moment(field) else name


def _rows(columns: Schema, found: Sequence[Sequence[Any]]) -> tuple[tuple[object, ...], ...]:
    """Return collected rows as `InlinedBatch.rows` holds them."""
    texts = [_optional(f) for f in columns]
    return tuple(
        tuple(text(value) for text, value in zip(texts, row, strict=True)) for row in found
    )


def _carried(value: SparkColumn, field: Field) -> SparkColumn:
    """Return the value in a form that Python can hold at any size: timestamps as numbers."""
    if not _has_moment(field):
        return value
    if field.shape is Kind.STRUCT:
        members = [_carried(value.getField(c.name), c).alias(c.name) for c in field.children]
        return F.when(value.isNotNull(), F.struct(*members))
    if field.shape is Kind.LIST:
        return F.transform(value, lambda x: _carried(x, field.children[0]))
    if field.shape is Kind.MAP:
        key, item = field.children
        return F.transform(
            F.map_entries(value),
            lambda e: F.struct(
                _carried(e.getField("key"), key).alias("key"),
                _carried(e.getField("value"), item).alias("value"),
            ),
        )
    name = str(field.shape)
    if name == "date":
        return F.unix_date(value)
    if name == "timestamptz":
        return F.unix_micros(value)
    # The difference of two local times does not depend on a time zone, unlike functions for it.
    return value - F.lit("1970-01-01 00:00:00").cast(T.TimestampNTZType())


def _has_moment(field: Field) -> bool:
    return any(not isinstance(f.shape, Kind) and is_moment(f.shape) for f in field.leaves())


def _texts(field: Field) -> Callable[[Any], object]:
    """Return a function that converts a Python value of a row to one of `InlinedBatch.rows`."""
    if field.shape is Kind.STRUCT:
        members = [(c.name, _optional(c)) for c in field.children]
        return lambda row: {
            name: text(v)
            for (name, text), v in zip(
                members, row.values() if isinstance(row, dict) else row, strict=True
            )
        }
    if field.shape is Kind.LIST:
        element = _optional(field.children[0])
        return lambda items: [element(v) for v in items]
    if field.shape is Kind.MAP:
        key, item = (_optional(c) for c in field.children)
        return lambda pairs: [
            (key(k), item(v)) for k, v in (pairs.items() if isinstance(pairs, dict) else pairs)
        ]
    return leaf_text(field)


def _optional(field: Field) -> Callable[[Any], object]:
    text = _texts(field)
    return lambda value: None if value is None else text(value)


def leaf_text(field: Field) -> Callable[[Any], object]:
    """Return a function from a leaf's value to DuckDB text; dates are days, timestamps micros."""
    leaf = field.shape
    assert not isinstance(leaf, Kind)
    name = str(leaf)
    if name == "boolean":
        return lambda value: "true" if value else "false"
    if name == "blob":
        return bytes
    if name in FLOATS:
        return lambda value: float_text(leaf, value)
    if isinstance(leaf, Decimal):
        return lambda value: f"{value:.{leaf.scale}f}"
    if name == "date":
        return temporal.date_text
    if name in temporal.MICROSECONDS:
        return lambda value: temporal.timestamp_text(_micros(value), leaf)
    if name in ("uint64", "int128", "uint128"):
        return lambda value: f"{value:f}" if not isinstance(value, int) else str(value)
    return str


def _micros(value: int | timedelta) -> int:
    return value // _MICROSECOND if isinstance(value, timedelta) else value


def rows_of_files(paths: Sequence[str], columns: Schema) -> InlinedBatch:
    """Return the rows of files that `write_files` just wrote, in their order.

    ``paths`` are absolute. The files hold ``columns`` in this order, and row ids behind them if
    their rows have some.
    """
    rows: list[tuple[object, ...]] = []
    row_ids: list[int | None] = []
    for path in paths:
        found = read_columns(path, None)
        stored = found.columns[: len(columns.fields)]
        parts = [part.cast(_numbers(part.type)).to_pylist() for part in stored]
        rows += _rows(columns, [*zip(*parts, strict=True)])
        own = ROW_ID_COLUMN in found.column_names
        row_ids += found[ROW_ID_COLUMN].to_pylist() if own else [None] * len(found)
    return InlinedBatch(columns, tuple(rows), tuple(row_ids))


def _numbers(kind: pa.DataType) -> pa.DataType:
    """Return a type with numbers for moments: Python's dates end with the year 9999."""
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_numbers(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(_numbers(kind.key_type), _numbers(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_numbers(kind.value_type)))
    if pa.types.is_date32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(kind) else kind
