"""Few rows as a DataFrame that Spark's plan holds itself: no job reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it
from pyspark.sql.pandas.types import to_arrow_type

from shelduck.spark.bridge.jvm import optimized_plan

_PLAIN = (
    T.BooleanType,
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.DoubleType,
    T.StringType,
    T.BinaryType,
    T.DecimalType,
)


_LOCAL = "org.apache.spark.sql.catalyst.plans.logical.LocalRelation"


def local_size(rows: DataFrame) -> int | None:
    """Return how many rows a plan holds itself, so that Spark returns them without a job.

    None if a job would have to compute them, and over Spark Connect, which shows no plans.
    """
    plan = optimized_plan(rows)
    if plan is None or plan.getClass().getName() != _LOCAL:
        return None
    return int(plan.data().size())


def is_local(rows: DataFrame) -> bool:
    """Return whether Spark returns rows without a job."""
    return local_size(rows) is not None


def local_frame(
    spark: SparkSession, rows: Sequence[Sequence[Any]], shape: T.StructType
) -> DataFrame:
    """Return rows as a DataFrame.

    Rows of numbers and texts go through Arrow, which PySpark passes on without an RDD. For
    other types Arrow has other rules than Spark, so a job reads them.
    """
    columns = [*zip(*rows, strict=True)] if rows else [()] * len(shape.fields)
    return local_columns(spark, columns, shape)


def local_columns(
    spark: SparkSession, columns: Sequence[Sequence[Any]], shape: T.StructType
) -> DataFrame:
    """Return rows, given as the values of each column, as `local_frame` does."""
    if not all(isinstance(f.dataType, _PLAIN) for f in shape.fields):
        return spark.createDataFrame([*zip(*columns, strict=True)], shape)
    arrays = [
        pa.array(values, to_arrow_type(f.dataType))
        for values, f in zip(columns, shape.fields, strict=True)
    ]
    return arrow_frame(spark, pa.Table.from_arrays(arrays, names=shape.names), shape)


def arrow_frame(
    spark: SparkSession, rows: pa.Table, shape: T.StructType | None = None
) -> DataFrame:
    """Return an Arrow table of plain numbers and texts as a DataFrame."""
    return spark.createDataFrame(rows, shape)
