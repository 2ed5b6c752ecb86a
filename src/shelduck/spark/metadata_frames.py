"""Rows of the catalog as DataFrames, through Arrow: a table may have a hundred thousand files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

_AT_ONCE = 10_000
_TYPES: Mapping[str, pa.DataType] = {
    "bigint": pa.int64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "map": pa.map_(pa.string(), pa.string()),
}


def metadata_frame(
    spark: SparkSession, columns: Mapping[str, str], rows: Iterable[Sequence[Any]]
) -> DataFrame:
    """Return rows as a DataFrame; only a few thousand of them are Python values at a time.

    ``columns`` are names with ``bigint``, ``string``, ``boolean``, ``timestamp``, or ``map`` for
    pairs of texts.
    """
    schema = pa.schema([pa.field(name, _TYPES[kind]) for name, kind in columns.items()])
    left, batches = iter(rows), []
    while some := list(islice(left, _AT_ONCE)):
        values = zip(*some, strict=True)
        arrays = [pa.array(list(v), f.type) for v, f in zip(values, schema, strict=True)]
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    # Spark needs a batch even without rows.
    table = pa.Table.from_batches(batches or [pa.RecordBatch.from_pylist([], schema)], schema)
    return spark.createDataFrame(table)
