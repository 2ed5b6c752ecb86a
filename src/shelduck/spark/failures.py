"""Failures of Spark inside of a verb, as one error: the verb, what Spark said, and what to do.

Whoever derives from `TellsOfSpark` needs nothing else: each public method tells.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from shelduck.errors import ShelduckError
from shelduck.spark.named_errors import (
    AnalysisException,
    FailedWork,
    InvalidValue,
    ParseException,
    data_fault,
    first_line,
)
from shelduck.spark.rows.assign import failure_of

# What Spark says, and what to do about it; the first that matches counts.
_ADVICE = {
    (
        r"ExecutorLost|executor \S+ exited|OutOfMemory|Java heap space|GC overhead|memory limits|"
        r"FetchFailed|MetadataFetchFailed|exit code 137|UNABLE_TO_ACQUIRE_MEMORY"
    ): "give executors more memory (spark.executor.memory) if they ran out of it, and run it again",
    r"SparkContext was shut down|stopped SparkContext|Answer from Java|Py4JNetwork|JVM": (
        "start a Spark session, connect again, and run it again"
    ),
}
_OTHERWISE = "fix the cause that Spark names, and run it again"


@contextmanager
def telling_spark(what: Callable[[], str], *, in_parts: bool = False) -> Iterator[None]:
    """Raise a failure of Spark that no other rule names as SparkFailed; ``what`` is the work.

    A value with which Spark cannot compute is InvalidRequest, as in a statement. What Spark finds
    before any work stays as it is. Work ``in_parts`` commits more than once.
    """
    try:
        yield
    except (ShelduckError, AnalysisException, ParseException):
        raise
    except (PySparkException, Py4JError) as error:
        raise _told(error, what(), in_parts=in_parts) from error


def _told(error: Exception, what: str, *, in_parts: bool) -> ShelduckError:
    try:
        named, fault = failure_of(error), data_fault(error)
    except (Py4JError, OSError):
        named = fault = None
    if named is not None:
        return named
    if fault is not None:
        return InvalidValue(fault)
    said = first_line(error).rstrip(". ")
    found = f"{type(error).__name__}: {said}"
    advice = next((do for sign, do in _ADVICE.items() if re.search(sign, found)), _OTHERWISE)
    left = "what it has committed before stays" if in_parts else "nothing was committed"
    return FailedWork(f"{what} failed in Spark: {said}; {advice}: {left}")


class TellsOfSpark:
    """Provides verbs, which are public methods, with the telling of Spark's failures."""

    def __init_subclass__(cls, *, in_parts: bool = False, **more: Any) -> None:
        """Let each verb that a class adds tell; those ``in_parts`` commit more than once."""
        super().__init_subclass__(**more)
        for name, verb in list(vars(cls).items()):
            if isinstance(verb, FunctionType) and not name.startswith("_"):
                setattr(cls, name, _telling(verb, in_parts=in_parts))

    def _subject(self) -> str:
        """Return the name of what the verbs work on."""
        return "the lake"


def _telling(verb: Callable[..., Any], *, in_parts: bool) -> Callable[..., Any]:
    @functools.wraps(verb)
    def telling(self: TellsOfSpark, *args: Any, **kwargs: Any) -> Any:
        told = f"{verb.__name__}() of "
        with telling_spark(lambda: told + self._subject(), in_parts=in_parts):
            return verb(self, *args, **kwargs)

    return telling
