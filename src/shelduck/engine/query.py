"""Spark SQL over DataFrames, small answers as DataFrames, and frames of plain rows."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it
from pyspark.sql.pandas.types import to_arrow_type

from shelduck.engine.bridge import engine_for
from shelduck.engine.bridge.lake_catalog import held_frames

_AT_ONCE = 10_000
_TYPES: Mapping[str, pa.DataType] = {
    "bigint": pa.int64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "map": pa.map_(pa.string(), pa.string()),
}
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


@contextmanager
def temporary_views(
    spark: SparkSession, frames: Mapping[str, DataFrame]
) -> Iterator[dict[str, str]]:
    """Give DataFrames temporary names in the session; yield the name of each by its key."""
    unique = uuid.uuid4().hex
    names = {word: f"{word}{unique}" for word in frames}
    made: list[str] = []
    try:
        for word, frame in frames.items():
            with held_frames():
                frame.createTempView(names[word])
            made.append(names[word])
        yield names
    finally:
        for name in made:
            spark.catalog.dropTempView(name)


def with_values(rows: DataFrame, values: Mapping[str, str]) -> DataFrame:
    """Return rows with additional columns, each with one value: SQL text by the column's name."""
    added = [F.expr(text).alias(name) for name, text in values.items()]
    return rows.select("*", *added) if added else rows


def replaces_partitions(spark: SparkSession) -> bool:
    """Return whether INSERT OVERWRITE of the session replaces only the partitions of new rows."""
    mode = spark.conf.get("spark.sql.sources.partitionOverwriteMode", "STATIC")
    return str(mode).upper() == "DYNAMIC"


def merges_schemas(spark: SparkSession) -> bool:
    """Return whether the session has Delta's setting by which writes add columns."""
    setting = "spark.databricks.delta.schema.autoMerge.enabled"
    return str(spark.conf.get(setting, "false")).lower() == "true"


def session_has(spark: SparkSession, name: str) -> bool:
    """Return whether the session knows a table or temporary view with that name."""
    try:
        return spark.catalog.tableExists(name)
    except AnalysisException:
        # A name that Spark's catalog cannot have, such as a name with three parts.
        return False


def function_exists(spark: SparkSession, name: str) -> bool:
    """Return whether Spark itself or the session has a function with that name."""
    try:
        return spark.catalog.functionExists(name)
    except AnalysisException:
        # The current catalog has no functions.
        return False


def constant(spark: SparkSession, text: str) -> Any:
    """Return the value of an expression without columns."""
    row = spark.sql(f"SELECT {text}").first()
    assert row is not None
    return row[0]


def answer(spark: SparkSession, columns: str, rows: Sequence[tuple[object, ...]]) -> DataFrame:
    """Return a small DataFrame: ``columns`` as in DDL (``"name string, id bigint"``)."""
    # Spark 4.0 pickles rows, and reads no class of its own, such as a name of SQLAlchemy.
    plain = [tuple(str.__str__(v) if isinstance(v, str) else v for v in row) for row in rows]
    return spark.createDataFrame(plain, columns)


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


def local_size(rows: DataFrame) -> int | None:
    """Return how many rows a plan holds itself, so that Spark returns them without a job.

    None if a job would have to compute them, and over Spark Connect, which shows no plans.
    """
    plan = engine_for(rows.sparkSession).optimized_plan(rows)
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
