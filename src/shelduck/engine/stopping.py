"""Spark jobs that end with the call that started them, also if Ctrl-C ends the call."""

from __future__ import annotations

import signal
import sys
import threading
import time
import uuid
from collections.abc import Collection, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from shelduck.engine.bridge import engine_for
from shelduck.engine.bridge.jvm import current_thread, stages_of
from shelduck.engine.session import is_stopped

_SECONDS, _PAUSE = 15.0, 0.1
# Among the outermost frames of a thread of the JVM that carries out a call from Python.
_CALL, _OUTERMOST = "py4j.commands.", 6


class SparkJobs:
    """The Spark jobs of one call: those of its own thread, and of threads inside `joined`."""

    def __init__(self, spark: SparkSession | None) -> None:
        is_usable = spark is not None and engine_for(spark).has_jvm and not is_stopped(spark)
        self._spark = spark if is_usable else None
        self._tag = f"shelduck-{uuid.uuid4()}"
        self._threads: list[Any] = []
        self.ended = threading.Event()

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Make the Spark jobs of this thread part of the call, inside a ``with`` block."""
        if self._spark is None:
            yield
            return
        context = self._spark.sparkContext
        before = getattr(_of_thread, "jobs", None)
        self._threads.append(current_thread(self._spark))
        context.addJobTag(self._tag)
        _of_thread.jobs = self
        try:
            yield
        finally:
            _of_thread.jobs = before
            # A stopped session has no tags, and neither has the thread that follows Ctrl-C.
            with suppress(Py4JError, AttributeError):
                context.removeJobTag(self._tag)

    def stop(self, running: Collection[Future[Any]] = ()) -> None:
        """Cancel the jobs, and wait until their tasks write nothing more.

        ``running`` are the threads of the call to wait for, besides that of the caller. If tasks
        do not end in time, it gives up: `remove_orphans` then finds what they write.
        """
        deadline = time.monotonic() + _SECONDS
        with suppress(Py4JError, AttributeError):
            while self._cancel() and time.monotonic() < deadline:
                time.sleep(_PAUSE)
        wait(running)

    def cancel(self) -> None:
        """Cancel the jobs, also those that begin soon, until the call has ended."""
        deadline = time.monotonic() + _SECONDS
        with suppress(Py4JError, AttributeError):
            while self._spark is not None and time.monotonic() < deadline:
                self._spark.sparkContext.cancelJobsWithTag(self._tag)
                if self.ended.wait(_PAUSE):
                    return

    def _cancel(self) -> bool:
        """Cancel what runs now; return whether anything still did."""
        if self._spark is None:
            return False
        self._spark.sparkContext.cancelJobsWithTag(self._tag)
        if any(_is_at_work(self._spark, thread) for thread in self._threads):
            # A call that still plans will start a job.
            return True
        return any(stage.numActiveTasks() for stage in stages_of(self._spark, self._tag))

    def written(self) -> tuple[int, int]:
        """Return the rows and bytes that the tasks of the jobs have written so far."""
        if self._spark is None:
            return 0, 0
        stages = stages_of(self._spark, self._tag)
        return sum(s.outputRecords() for s in stages), sum(s.outputBytes() for s in stages)


_of_thread = threading.local()


@contextmanager
def stopped_on_error(spark: SparkSession | None) -> Iterator[SparkJobs]:
    """Yield the Spark jobs of a call; if it fails or Ctrl-C ends it, they are stopped.

    PySpark's own handler of Ctrl-C asks the JVM through the connection that waits for the answer
    of the interrupted call, which fails; here another thread asks. Over Spark Connect, PySpark
    interrupts the call itself. A call inside of another one shares its jobs.
    """
    outer: SparkJobs | None = getattr(_of_thread, "jobs", None)
    if outer is not None or spark is None:
        yield outer or SparkJobs(None)
        return
    jobs, handled = SparkJobs(spark), sys.exc_info()[1]
    with jobs.joined(), _told_of_interrupts(jobs):
        try:
            yield jobs
        except BaseException as error:
            jobs.stop()
            if _hides_interrupt(error, handled):
                raise KeyboardInterrupt from error
            raise
        finally:
            jobs.ended.set()


def _hides_interrupt(error: BaseException | None, handled: BaseException | None) -> bool:
    """Return whether Ctrl-C came first: PySpark's own cleaning up may fail after it.

    ``handled`` is an earlier error, in whose handler the call was made.
    """
    while error is not None and error is not handled:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def _told_of_interrupts(jobs: SparkJobs) -> Iterator[None]:
    """Let Ctrl-C cancel the jobs from another thread, and raise KeyboardInterrupt in this one.

    PySpark's cleaning up may wait for its job before anybody else learns of the interrupt. A
    handler of the user's own stays.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if is_main else None
    is_pysparks = getattr(before, "__module__", "").startswith("pyspark.")
    if before is not signal.default_int_handler and not is_pysparks:
        yield
        return

    def interrupt(*_: object) -> NoReturn:
        threading.Thread(target=jobs.cancel, name="shelduck-cancel", daemon=True).start()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _is_at_work(spark: SparkSession, thread: Any) -> bool:
    """Return whether a thread of the JVM, other than that which answers, carries out a call."""
    if current_thread(spark).equals(thread):
        return False
    trace = thread.getStackTrace()
    outer = range(max(0, len(trace) - _OUTERMOST), len(trace))
    return any(trace[n].getClassName().startswith(_CALL) for n in outer)
