"""Failures of Spark inside of a verb, as one error: the verb, what Spark said, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from shelduck.engine import named_errors
from shelduck.engine.rows.assign import failure_of
from shelduck.errors import ShelduckError

# What Spark says, and what to do about it; the first that matches counts.
_ADVICE = {
    (
        r"ExecutorLost|executor \S+ exited|OutOfMemory|Java heap space|GC overhead|memory limits|"
        r"FetchFailed|CHECKPOINT_RDD_BLOCK|exit code 137|UNABLE_TO_ACQUIRE_MEMORY"
    ): "give executors more memory (spark.executor.memory) if they ran out of it, and run it again",
    r"SparkContext was shut down|stopped SparkContext|Answer from Java|Py4JNetwork|JVM": (
        "start a Spark session, connect again, and run it again"
    ),
}
_OTHERWISE = "fix the cause that Spark names, and run it again"

SparkFailure = (PySparkException, Py4JError)


@contextmanager
def telling_spark(what: Callable[[], str]) -> Iterator[None]:
    """Raise a failure of Spark in ``what`` as `told_of_spark` tells it."""
    try:
        yield
    except SparkFailure as error:
        told = told_of_spark(error, what)
        if told is None:
            raise
        raise told from error


def told_of_spark(
    error: Exception, what: Callable[[], str], *, in_parts: bool = False
) -> ShelduckError | None:
    """Return a failure of Spark that no other rule names as SparkFailed; ``what`` is the work.

    A value with which Spark cannot compute is InvalidRequest, as in a statement. What Spark finds
    before any work stays as it is: None. Work ``in_parts`` commits more than once.
    """
    if isinstance(
        error, ShelduckError | named_errors.AnalysisException | named_errors.ParseException
    ):
        return None
    return _told(error, what(), in_parts=in_parts)


def _told(error: Exception, what: str, *, in_parts: bool) -> ShelduckError:
    try:
        named, fault = failure_of(error), named_errors.data_fault(error)
    except (Py4JError, OSError):
        named = fault = None
    if named is not None:
        return named
    if fault is not None:
        return named_errors.InvalidValue(fault)
    said = named_errors.first_line(error).rstrip(". ")
    found = f"{type(error).__name__}: {said}"
    advice = next((do for sign, do in _ADVICE.items() if re.search(sign, found)), _OTHERWISE)
    left = "what it has committed before stays" if in_parts else "nothing was committed"
    return named_errors.FailedWork(f"{what} failed in Spark: {said}; {advice}: {left}")
