"""What Spark says of the streaming query that runs a function."""

from __future__ import annotations

from pyspark.sql import DataFrame

from shelduck.spark.bridge.jvm import has_jvm

_QUERY_ID = "sql.streaming.queryId"


def query_id_of(batch: DataFrame) -> str | None:
    """Return the id of the query that hands out a batch, None outside of foreachBatch.

    It belongs to the checkpoint: a query that is started again with it keeps the id.
    """
    spark = batch.sparkSession
    if not has_jvm(spark):
        return None
    found = spark.sparkContext.getLocalProperty(_QUERY_ID)
    return None if found is None else str(found)
