"""How long Spark has jobs, as its own store of what it shows says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def jobs_of(spark: SparkSession) -> int:
    """The number of the newest job, -1 before the first."""
    jobs = _listed(spark)
    return int(jobs.apply(0).jobId()) if jobs.size() else -1


def seconds_in_jobs(spark: SparkSession, after: int) -> float:
    """The seconds in which a job ran that began after one of that number."""
    spark._jsc.sc().listenerBus().waitUntilEmpty()  # noqa: SLF001 - no other way
    jobs, spans = _listed(spark), []
    for at in range(jobs.size()):
        job = jobs.apply(at)
        if job.jobId() <= after:
            break
        spans.append((job.submissionTime().get().getTime(), job.completionTime().get().getTime()))
    seconds, end = 0.0, 0
    for began, ended in sorted(spans):
        seconds += max(0, ended - max(began, end)) / 1000
        end = max(end, ended)
    return seconds


def _listed(spark: SparkSession) -> Any:
    """The jobs that the store keeps, newest first."""
    return spark._jsc.sc().statusStore().jobsList(None)  # noqa: SLF001 - no other way
