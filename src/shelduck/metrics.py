"""Shelduck's work in numbers: for your callbacks, the log and OpenTelemetry.

from shelduck import metrics
stop = metrics.subscribe(lambda m: print(m.name, m.value, m.unit, m.attributes))

The log is that of the logger ``shelduck.metrics``, at the level DEBUG. OpenTelemetry gets the
measurements as soon as the program has imported its API. Names, units and ``error.type`` follow
OpenTelemetry's conventions. Without any of them, nothing is recorded.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

_log = logging.getLogger("shelduck.metrics")


@dataclass(frozen=True, slots=True)
class Metric:
    """One kind of measurement: a count to be added up, or seconds whose distribution matters."""

    name: str
    unit: str
    description: str

    @property
    def is_duration(self) -> bool:
        """True for seconds, False for a count."""
        return self.unit == "s"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One value of a metric; ``attributes`` say of what."""

    metric: Metric
    value: float
    attributes: Mapping[str, str]

    @property
    def name(self) -> str:
        """The name of the metric."""
        return self.metric.name

    @property
    def unit(self) -> str:
        """The unit of the metric: ``s``, ``By`` or a word in braces."""
        return self.metric.unit


COMMIT_DURATION = Metric(
    "shelduck.commit.duration", "s", "Commits, with the time that they waited for others"
)
RETRIES = Metric("shelduck.retries", "{retry}", "Attempts that ran again as others came first")
WRITE_DURATION = Metric("shelduck.write.duration", "s", "Writes of data files by Spark")
ROWS_WRITTEN = Metric("shelduck.write.rows", "{row}", "Rows in new data files")
FILES_WRITTEN = Metric("shelduck.write.files", "{file}", "New data files")
BYTES_WRITTEN = Metric("shelduck.write.bytes", "By", "Bytes of new data files")
FILES_PLANNED = Metric("shelduck.scan.files", "{file}", "Data files that a query has to read")
FILES_SKIPPED = Metric(
    "shelduck.scan.skipped_files", "{file}", "Data files that cannot have matching rows"
)
BYTES_PLANNED = Metric("shelduck.scan.bytes", "By", "Bytes of the data files to read")
JOB_DURATION = Metric("shelduck.job.duration", "s", "Waits for the end of a job, with its work")
TABLE_LOOKUPS = Metric(
    "shelduck.table.lookups", "{lookup}", "Table versions that the process knew, or did not know"
)

METRICS: Mapping[str, Metric] = MappingProxyType(
    {each.name: each for each in list(globals().values()) if isinstance(each, Metric)}
)
"""Every metric by its name."""

Callback = Callable[[Measurement], None]
_callbacks: list[Callback] = []


def subscribe(callback: Callback) -> Callable[[], None]:
    """Call ``callback`` with every measurement; return a function that ends this.

    It is called in the thread that does the work, which waits for it: be quick. An error in it
    goes to the log, and does not stop the work.
    """
    _callbacks.append(callback)

    def stop() -> None:
        if callback in _callbacks:
            _callbacks.remove(callback)

    return stop


def is_wanted() -> bool:
    """Return whether somebody gets measurements; otherwise nobody needs to make them."""
    return bool(_callbacks) or _log.isEnabledFor(logging.DEBUG) or _api() is not None


def record(metric: Metric, value: float, attributes: Mapping[str, str] | None = None) -> None:
    """Give a value to everybody who wants it."""
    if not is_wanted():
        return
    told = Measurement(metric, value, MappingProxyType(dict(attributes or {})))
    for callback in [*_callbacks]:
        try:
            callback(told)
        except Exception:  # noqa: BLE001 - who looks at work must not stop it
            _log.exception("a callback failed at %s", metric.name)
    _log.debug("%s %s %s %s", metric.name, value, metric.unit, dict(told.attributes))
    if (api := _api()) is not None:
        instrument = _instrument(api, metric)
        (instrument.record if metric.is_duration else instrument.add)(value, dict(told.attributes))


@contextmanager
def timed(metric: Metric, attributes: Mapping[str, str] | None = None) -> Iterator[None]:
    """Measure how long the block takes; ``error.type`` names the error if it fails."""
    begun = time.perf_counter()
    error: dict[str, str] = {}
    try:
        yield
    except BaseException as failed:
        error = {"error.type": type(failed).__name__}
        raise
    finally:
        record(metric, time.perf_counter() - begun, {**(attributes or {}), **error})


def _api() -> Any:
    """Return OpenTelemetry's module for metrics if the program has imported it."""
    return sys.modules.get("opentelemetry.metrics")


@cache
def _instrument(api: Any, metric: Metric) -> Any:
    meter = api.get_meter("shelduck")
    make = meter.create_histogram if metric.is_duration else meter.create_counter
    return make(metric.name, unit=metric.unit, description=metric.description)
