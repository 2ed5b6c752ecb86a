"""Rows of the catalog as DataFrames, through Arrow: a table may have a hundred thousand files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

_TYPES: Mapping[str, pa.DataType] = {
    "bigint": pa.int64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "map": pa.map_(pa.string(), pa.string()),
}


def metadata_frame(
    spark: SparkSession, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]
) -> DataFrame:
    """Return rows as a DataFrame.

    ``columns`` are names with ``bigint``, ``string``, ``boolean``, ``timestamp``, or ``map`` for
    pairs of texts.
    """
    fields = [pa.field(name, _TYPES[kind]) for name, kind in columns.items()]
    values = zip(*rows, strict=True) if rows else ((),) * len(fields)
    arrays = [pa.array(list(v), f.type) for v, f in zip(values, fields, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=pa.schema(fields)))
