"""How the work on a job ends: why an error ends the job, and what Ctrl-C leaves behind."""

from __future__ import annotations

from shelduck import clock
from shelduck.errors import CorruptLake, InvalidRequest, OutcomeUnknown, ShelduckError, SparkFailed
from shelduck.model.changes.job import Job
from shelduck.spark.named_errors import SparkError, data_fault, first_line
from shelduck.spark.session import AnalysisException


def ending(error: Exception, job: Job) -> str | None:
    """Return why an error ends a job, None if the error may be temporary."""
    if isinstance(error, OutcomeUnknown | SparkFailed):
        return None
    if isinstance(error, ShelduckError):
        return str(error)
    if isinstance(error, AnalysisException):
        combines = job.work.rollups or job.work.remakes
        what = "rows cannot be combined" if combines else "an expression cannot be evaluated"
        return f"{what}: {first_line(error)}"
    return data_fault(error)


def why_cancelled(error: BaseException, job: Job) -> ShelduckError:
    """Return the error of a job that was cancelled; ``error`` is what its worker met."""
    told = f"job {job.id} was cancelled: {job.message}"
    if isinstance(error, CorruptLake):
        return CorruptLake(told)
    if isinstance(error, AnalysisException):
        return InvalidRequest(told)
    if isinstance(error, (SparkFailed, *SparkError)) and data_fault(error) is None:
        return SparkFailed(f"{told}; when Spark works again, submit the change again")
    return InvalidRequest(told)


def left_open(job: Job, worker: str) -> str:
    """Return what becomes of an open job when its worker stops, or no longer waits for another."""
    if job.is_held(clock.now()) and job.worker != worker:
        return f"job {job.id} goes on: another process runs it"
    return (
        f"job {job.id} is not finished; continue with lake.job({job.id}).wait() or shelduck jobs"
        " run"
    )
