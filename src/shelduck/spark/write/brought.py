"""Few rows that were computed once and are in the driver: no job reads them again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.spark.bridge.named import has_its_rows
from shelduck.spark.local_rows import arrow_frame, local_size
from shelduck.spark.rows.assign import telling_failures
from shelduck.spark.write.kept import FEW

NUMBER = "__shelduck_number"
"""The place of a row among those that were brought."""

# Arrow and Spark hold them in the same form, so they come back as they were. A TIMESTAMP is an
# instant in both, whatever the session's time zone.
_SAME_IN_ARROW = (
    T.BooleanType,
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.FloatType,
    T.DoubleType,
    T.DecimalType,
    T.StringType,
    T.BinaryType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
)


@dataclass(frozen=True, slots=True)
class Brought:
    """Rows in the driver."""

    spark: SparkSession
    shape: T.StructType
    table: pa.Table

    @property
    def count(self) -> int:
        """Return how many rows there are."""
        return int(self.table.num_rows)

    @property
    def rows(self) -> DataFrame:
        """Return the rows as a DataFrame whose plan holds them."""
        return arrow_frame(self.spark, self.table, self.shape)

    def values(self, name: str) -> list[object]:
        """Return the values of a column."""
        return list(self.table[name].to_pylist())

    @property
    def numbered(self) -> Brought:
        """Return the rows followed by `NUMBER`."""
        numbers = pa.array(range(self.count), pa.int64())
        shape = T.StructType([*self.shape.fields, T.StructField(NUMBER, T.LongType())])
        return Brought(self.spark, shape, self.table.append_column(NUMBER, numbers))

    def without(self, name: str, values: Iterable[object]) -> Brought:
        """Return the rows that have none of these values in a column."""
        gone = set(values)
        left = pa.array([value not in gone for value in self.values(name)], pa.bool_())
        return Brought(self.spark, self.shape, self.table.filter(left))


def can_bring(rows: DataFrame) -> bool:
    """Return whether a plan holds all of its rows, they are few, and they come back unchanged.

    A value that does not fit its column is InvalidRequest.
    """
    if not has_its_rows(rows):
        return False
    if not all(isinstance(f.dataType, _SAME_IN_ARROW) for f in rows.schema):
        return False
    with telling_failures():
        size = local_size(rows)
    return size is not None and size <= FEW


def bring(rows: DataFrame) -> Brought:
    """Compute few rows only once, and bring them here by one job.

    A value that does not fit its column is InvalidRequest.
    """
    with telling_failures():
        return Brought(rows.sparkSession, rows.schema, rows.toArrow())
