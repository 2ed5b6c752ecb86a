"""Rows in the catalog itself, as a DataFrame with a table's current columns."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal as Number
from typing import cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import engine_for
from shelduck.engine.query import local_columns
from shelduck.engine.values import carrier, carrier_type, decoded
from shelduck.errors import Unsupported
from shelduck.model.files.data_file import InlinedRows
from shelduck.model.files.fitted import fitted_values
from shelduck.model.tables.schema import Field, Kind
from shelduck.model.types.data_types import SIGNED

_BEYOND = 10**38


def inlined_frame(
    spark: SparkSession,
    columns: Sequence[Field],
    inlined: Sequence[InlinedRows],
    row_id: str,
    snapshot_id: str,
) -> DataFrame:
    """Return inlined rows with the current ``columns``, their row ids and first snapshots.

    Raises CorruptLake for invalid texts of values, and Unsupported for a promotion whose values
    Shelduck cannot convert.
    """
    values = [[v for part in inlined for v in _column_values(f, part)] for f in columns]
    values.append([number for part in inlined for number in part.row_ids])
    values.append([begin for part in inlined for begin in part.begin_snapshots])
    names = [f"c{n}" for n in range(len(columns))]
    fields = [T.StructField(n, carrier_type(f.type)) for n, f in zip(names, columns, strict=True)]
    origins = [T.StructField(n, T.LongType()) for n in ("id", "begin")]
    shape = T.StructType([*fields, *origins])
    frame = engine_for(spark).own(local_columns(spark, values, shape))
    made = [decoded(F.col(n), f.type).alias(f.name) for n, f in zip(names, columns, strict=True)]
    return frame.select(*made, F.col("id").alias(row_id), F.col("begin").alias(snapshot_id))


def _column_values(field: Field, part: InlinedRows) -> list[object]:
    found = fitted_values(part.columns, part.rows, field)
    name = str(field.shape)
    if name in ("varchar", "json"):
        return found
    if name in SIGNED and name != "int128":
        # Whoever read them has checked that they are integers of their type.
        return [None if v is None else int(cast("str", v)) for v in found]
    return [_carried(field, v) for v in found]


def _carried(field: Field, value: object) -> object:
    """Return a value as Spark gets it, by the text of each of its leaves."""
    if value is None:
        return None
    if field.shape is Kind.LIST:
        return [_carried(field.children[0], v) for v in cast("list[object]", value)]
    if field.shape is Kind.MAP:
        key, content = field.children
        pairs = cast("list[tuple[object, object]]", value)
        return {_carried(key, k): _carried(content, v) for k, v in pairs}
    if isinstance(field.shape, Kind):
        members = cast("dict[str, object]", value)
        return tuple(_carried(c, members.get(c.name)) for c in field.children)
    found = carrier(field.shape, value, f"inlined column {field.name!r}")
    if str(field.shape) in ("uint64", "int128", "uint128") and found is not None:
        # Spark holds them in decimals.
        if abs(number := cast("int", found)) >= _BEYOND:
            raise Unsupported(
                f"column {field.name!r} has the value {number} in a row that the catalog keeps,"
                " and Spark has no numbers of 39 digits; delete or change it in DuckDB"
            )
        return Number(number)
    return found
