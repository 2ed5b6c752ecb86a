"""The session that tests run in."""

from __future__ import annotations

import sys

import pytest


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("spark.master", "local[2]"),
        ("spark.sql.session.timeZone", "UTC"),
        ("spark.sql.shuffle.partitions", "2"),
        ("spark.ui.enabled", "false"),
    ],
)
def test_the_session_has_the_settings_that_tests_rely_on(spark, setting, value):
    assert spark.conf.get(setting) == value


def test_the_driver_has_the_memory_it_was_given(spark):
    heap = spark.sparkContext._jvm.java.lang.Runtime.getRuntime().maxMemory()

    assert 1.7 * 2**30 < heap <= 2**31


@pytest.mark.every_spark
def test_python_workers_run_the_python_of_the_tests(spark):
    workers = spark.sparkContext.parallelize([1], 1).map(lambda _: sys.version).collect()

    assert workers == [sys.version]
