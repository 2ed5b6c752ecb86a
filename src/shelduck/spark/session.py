"""The Spark session: the user's own, or a local one if there is none."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from shelduck.spark.bridge.jvm import has_jvm
from shelduck.spark.start import start_session

__all__ = [
    "AnalysisException",
    "DataFrame",
    "PySparkException",
    "SparkSession",
    "StructType",
    "has_jvm",
    "is_catalog",
    "is_stopped",
    "session_for",
    "time_zone",
]


TIME_ZONE = "spark.sql.session.timeZone"


def time_zone(given: SparkSession | None, config: Mapping[str, str]) -> str | None:
    """Return the time zone of ``given`` or the active session, or else what ``config`` sets.

    None means that a session would have the time zone of the machine. Starts no session.
    """
    spark = given if given is not None else SparkSession.getActiveSession()
    if spark is None or is_stopped(spark):
        return config.get(TIME_ZONE)
    return spark.conf.get(TIME_ZONE)


def is_ntz(spark: SparkSession) -> bool:
    """Return whether TIMESTAMP means a time without a time zone in the session."""
    return spark.conf.get("spark.sql.timestampType", "TIMESTAMP_LTZ") == "TIMESTAMP_NTZ"


def is_catalog(spark: SparkSession, name: str) -> bool:
    """Return whether a session has a catalog of that name."""
    is_sparks = name.lower() == "spark_catalog"
    return is_sparks or spark.conf.get(f"spark.sql.catalog.{name}", None) is not None


def is_stopped(spark: SparkSession) -> bool:
    """Return whether a session was stopped, so that it answers no calls."""
    context = getattr(spark, "_sc", None)
    if context is None:
        return bool(getattr(spark, "is_stopped", False))
    return context._jsc is None  # noqa: SLF001


def session_for(
    given: SparkSession | None, config: Mapping[str, str] | None = None
) -> SparkSession:
    """Return ``given``, or the active session, or else a new quiet local one with ``config``.

    An existing session is used as it is: Shelduck passes its settings with each read and write.
    """
    if given is not None:
        return given
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if "SPARK_REMOTE" not in os.environ:
        # Python workers must be the interpreter that has pyarrow, not the machine's python3.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return start_session(config or {})
