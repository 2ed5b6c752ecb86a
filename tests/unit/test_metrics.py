"""Metrics reach callbacks, the log and OpenTelemetry."""

from __future__ import annotations

import logging
import sys

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from shelduck import metrics
from shelduck.errors import Conflict
from shelduck.metrics import COMMIT_DURATION, METRICS, RETRIES, ROWS_WRITTEN, record, timed


@pytest.fixture
def seen():
    found = []
    stop = metrics.subscribe(found.append)
    yield found
    stop()


def test_a_callback_gets_name_value_unit_and_attributes(seen):
    record(ROWS_WRITTEN, 7, {"shelduck.table": "main.t"})

    [told] = seen
    assert (told.name, told.value, told.unit) == ("shelduck.write.rows", 7, "{row}")
    assert told.attributes == {"shelduck.table": "main.t"}


def test_it_gets_nothing_after_it_has_stopped():
    found = []
    stop = metrics.subscribe(found.append)
    stop()
    stop()
    record(ROWS_WRITTEN, 7)

    assert found == []


def test_a_block_that_fails_is_timed_with_the_kind_of_its_error(seen):
    with timed(COMMIT_DURATION):
        pass
    with pytest.raises(Conflict), timed(COMMIT_DURATION):
        raise Conflict("another commit came first")

    assert [dict(told.attributes) for told in seen] == [{}, {"error.type": "Conflict"}]
    assert all(0 <= told.value < 60 for told in seen)


def test_a_callback_that_fails_stops_neither_the_work_nor_the_others(seen, caplog):
    def broken(_):
        raise ValueError("no place to put it")

    stop = metrics.subscribe(broken)
    try:
        record(RETRIES, 1)
        record(RETRIES, 1)
    finally:
        stop()

    assert len(seen) == 2
    assert "a callback failed at shelduck.retries" in caplog.text
    assert "no place to put it" in caplog.text


def test_the_log_has_them_when_it_is_asked(caplog):
    record(RETRIES, 1)
    assert caplog.text == ""

    with caplog.at_level(logging.DEBUG, "shelduck.metrics"):
        record(RETRIES, 1, {"error.type": "Conflict"})

    assert caplog.messages == ["shelduck.retries 1 {retry} {'error.type': 'Conflict'}"]


@pytest.fixture
def collected(monkeypatch):
    """What OpenTelemetry collects, by the names of metrics; the program has imported its API."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr(sys.modules["opentelemetry.metrics"], "get_meter", provider.get_meter)
    metrics._instrument.cache_clear()

    def points():
        [resource] = reader.get_metrics_data().resource_metrics
        [scope] = resource.scope_metrics
        assert scope.scope.name == "shelduck"
        return {each.name: (each.unit, each.data.data_points) for each in scope.metrics}

    yield points
    metrics._instrument.cache_clear()
    provider.shutdown()


def test_opentelemetry_adds_counts_up_and_keeps_distributions_of_seconds(collected):
    of_table = {"shelduck.table": "main.t"}
    record(ROWS_WRITTEN, 7, of_table)
    record(ROWS_WRITTEN, 5, of_table)
    record(COMMIT_DURATION, 0.25)
    record(COMMIT_DURATION, 0.5)

    found = collected()
    unit, [rows] = found["shelduck.write.rows"]
    assert (unit, rows.value, dict(rows.attributes)) == ("{row}", 12, of_table)
    unit, [seconds] = found["shelduck.commit.duration"]
    assert (unit, seconds.count, seconds.sum) == ("s", 2, 0.75)


def test_every_metric_has_a_name_of_its_own_and_a_unit():
    assert len(METRICS) == 11
    assert all(name.startswith("shelduck.") and m.description for name, m in METRICS.items())
    assert {m.unit for m in METRICS.values()} <= {"s", "By"} | {
        f"{{{thing}}}" for thing in ("retry", "row", "file", "lookup")
    }
