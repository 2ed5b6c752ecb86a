"""What Spark says about the streaming query that runs a function."""

from __future__ import annotations

from pyspark.sql import DataFrame

from shelduck.spark.bridge.jvm import has_jvm

_QUERY_ID = "sql.streaming.queryId"
# Spark tags the jobs of a run with its id.
_RUN_ID = "spark.jobGroup.id"


def run_id_of(batch: DataFrame) -> str | None:
    """Return the id of the run of the query that passes a batch, None outside of foreachBatch.

    If a query is started again with its checkpoint, this is another run.
    """
    if query_id_of(batch) is None:
        return None
    found = batch.sparkSession.sparkContext.getLocalProperty(_RUN_ID)
    return None if found is None else str(found)


def query_id_of(batch: DataFrame) -> str | None:
    """Return the id of the query that passes a batch, None outside of foreachBatch.

    It belongs to the checkpoint: if a query is started again with it, the id stays.
    """
    spark = batch.sparkSession
    if not has_jvm(spark):
        return None
    found = spark.sparkContext.getLocalProperty(_QUERY_ID)
    return None if found is None else str(found)
