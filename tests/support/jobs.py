"""How many jobs Spark runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession


def jobs_of(spark: SparkSession, act: Callable[[], object]) -> int:
    """The number of jobs that `act` runs; each part of a broadcast or a shuffle is one."""
    # The scheduler counts jobs when they are submitted: nothing here waits for a listener.
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    before = scheduler.numTotalJobs()
    act()
    return scheduler.numTotalJobs() - before
