"""Which errors end a job, and which may be temporary."""

from __future__ import annotations

from shelduck.errors import OutcomeUnknown, ShelduckError
from shelduck.model.changes.job import Job
from shelduck.spark.named_errors import data_fault, first_line
from shelduck.spark.session import AnalysisException


def ending(error: Exception, job: Job) -> str | None:
    """Return why an error ends a job, None if the error may be temporary."""
    if isinstance(error, OutcomeUnknown):
        return None
    if isinstance(error, ShelduckError):
        return str(error)
    if isinstance(error, AnalysisException):
        combines = job.work.rollups or job.work.remakes
        what = "rows cannot be combined" if combines else "an expression cannot be evaluated"
        return f"{what}: {first_line(error)}"
    return data_fault(error)
