"""Rows that a table had at an older snapshot, and rows that it did not have then."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.model.text.quoting import backticked
from shelduck.spark.scan.change_feed import CHANGE_TYPE, ROW_ID, VERSION, Feed, departures
from shelduck.spark.scan.scan_frames import Origin
from shelduck.spark.write.kept import parts_of_bytes


class Frame(Protocol):
    """Returns the rows of a table, followed by their origins."""

    def __call__(
        self, spark: SparkSession, columns: None = None, origins: tuple[Origin, ...] = ()
    ) -> DataFrame:
        """Return the rows."""


def lost_rows(spark: SparkSession, feed: Feed, seen_at: int, row_id: str) -> DataFrame:
    """Return the rows that existed at a snapshot and were deleted since, row ids last."""
    found = departures(spark, feed, "", seen_at).drop(CHANGE_TYPE, VERSION)
    names = [F.col(backticked(n)) for n in feed.table.columns.names]
    size = sum(f.file_size_bytes for f, _ in feed.plan.ended)
    size += sum(f.file_size_bytes for f in feed.plan.thinned)
    made = found.select(*names, F.col(ROW_ID).alias(row_id))
    return made.coalesce(parts_of_bytes(size))


def later_rows(spark: SparkSession, frame: Frame, seen_at: int) -> DataFrame:
    """Return file and position of the rows that were added after a snapshot."""
    rows = frame(spark, None, (Origin.FILE_ID, Origin.POSITION, Origin.SNAPSHOT_ID))
    later = rows.where(F.col(Origin.SNAPSHOT_ID) > seen_at)
    return later.select(Origin.FILE_ID, Origin.POSITION)
