"""``spark.read.table`` of a lake's table with options, which Spark asks no catalog about."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, DataFrameReader

from shelduck.spark.bridge.jvm import options_of
from shelduck.spark.lake_options import ReadOptions, read_options
from shelduck.spark.lake_table import LakeTable


def read_table(
    sparks: Callable[..., DataFrame], reader: DataFrameReader, table: LakeTable
) -> DataFrame:
    """Return the rows of a table: Spark's way without options, else as they ask for."""
    given = options_of(reader._jreader)  # noqa: SLF001 - nothing else tells them
    wanted = read_options(given, table.name)
    if wanted == ReadOptions():
        return sparks()
    if wanted.changes is not None:
        return table.changes(*wanted.changes)
    return table.read(wanted.version, wanted.timestamp)
