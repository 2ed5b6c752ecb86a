"""Watching a write while Spark runs it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from shelduck.spark.bridge import bridge_for

_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Written:
    """What the tasks of a write have written so far."""

    rows: int
    bytes: int


@contextmanager
def watching_writes(spark: SparkSession, tell: Callable[[Written], None]) -> Iterator[None]:
    """Call ``tell`` twice a second with what the jobs of this thread have written.

    It reads Spark's own counters, by a job tag that no other thread has. Over Spark Connect there
    are none, and nothing is reported.
    """
    if bridge_for(spark) is None:
        yield
        return
    context = spark.sparkContext
    tag = f"shelduck-{uuid.uuid4()}"
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_SECONDS):
            try:
                tell(_written(context, tag))
            except Py4JError:
                return

    thread = threading.Thread(target=watch, name="shelduck-progress", daemon=True)
    context.addJobTag(tag)
    thread.start()
    try:
        yield
    finally:
        context.removeJobTag(tag)
        done.set()
        thread.join()


def _written(context: Any, tag: str) -> Written:
    tracker = context.statusTracker()
    store = context._jsc.sc().statusStore()  # noqa: SLF001 - Python has no way to Spark's counters
    rows = size = 0
    for job in tracker.getJobIdsForTag(tag):
        for stage in tracker.getJobInfo(job).stageIds:
            data = store.lastStageAttempt(stage)
            rows += data.outputRecords()
            size += data.outputBytes()
    return Written(rows, size)
