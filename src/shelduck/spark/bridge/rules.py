"""Rules in the optimizers of sessions that answer queries without a job."""

from __future__ import annotations

import contextlib
from weakref import WeakSet

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from shelduck.spark.bridge.classes import PACKAGE, loader_of
from shelduck.spark.bridge.jvm import has_jvm, java_session

# Sessions that have a rule, by the rule's class.
_answering: dict[str, WeakSet[SparkSession]] = {}


def answer_by_metadata(spark: SparkSession, measurer: object | None) -> None:
    """Make the session ask measurers of relations for COUNT, MIN and MAX, if there is one."""
    if measurer is not None:
        _install(spark, "MetadataRule")


def compute_few_rows(spark: SparkSession) -> None:
    """Make the session group and sort few rows that a plan holds itself while it optimizes."""
    _install(spark, "LocalRule")


def _install(spark: SparkSession, rule: str) -> None:
    """Add a rule to a session that has a JVM, once."""
    known = _answering.setdefault(rule, WeakSet())
    if spark in known or not has_jvm(spark):
        return
    known.add(spark)
    # A Spark that cannot run the rule runs a job.
    with contextlib.suppress(Py4JError):
        made = loader_of(spark).loadClass(f"{PACKAGE}.{rule}").getConstructors()[0]
        made.newInstance(None).install(java_session(spark))
