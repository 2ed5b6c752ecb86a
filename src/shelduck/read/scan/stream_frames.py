"""Rows of a streaming query's batch as DataFrames, and which query and run pass a batch."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import engine_for
from shelduck.model.changes.stream import StreamPart
from shelduck.model.text.names import backticked
from shelduck.read.scan.change_feed import ROW_ID, VERSION, Feed, arrivals


def with_ids_of(rows: DataFrame, part: StreamPart) -> DataFrame:
    """Return the rows that the table held whose row ids are in a part."""
    row_id = F.col(ROW_ID)
    if part.low:
        rows = rows.where(row_id >= part.low)
    return rows if part.high is None else rows.where(row_id < part.high)


def added_frame(
    spark: SparkSession, feed: Feed, part: StreamPart, skipped: Collection[int]
) -> DataFrame:
    """Return the rows of a part that snapshots added, without those of ``skipped``."""
    rows = arrivals(spark, feed, "")
    version, row_id = F.col(VERSION), F.col(ROW_ID)
    unwanted = feed.plan.snapshots.moved | set(skipped)
    if unwanted:
        rows = rows.where(~version.isin(sorted(unwanted)))
    if part.low:
        rows = rows.where((version > part.first) | (row_id >= part.low))
    if part.high is not None:
        rows = rows.where((version < part.last) | (row_id < part.high))
    return rows.select(*[backticked(n) for n in feed.table.columns.names])


_QUERY_ID = "sql.streaming.queryId"
# Spark tags the jobs of a run with its id.
_RUN_ID = "spark.jobGroup.id"


def run_id_of(batch: DataFrame) -> str | None:
    """Return the id of the run of the query that passes a batch, None outside of foreachBatch.

    If a query is started again with its checkpoint, this is another run.
    """
    return engine_for(batch.sparkSession).property_of(_RUN_ID) if query_id_of(batch) else None


def query_id_of(batch: DataFrame) -> str | None:
    """Return the id of the query that passes a batch, None outside of foreachBatch.

    It belongs to the checkpoint: if a query is started again with it, the id stays.
    """
    return engine_for(batch.sparkSession).property_of(_QUERY_ID)
