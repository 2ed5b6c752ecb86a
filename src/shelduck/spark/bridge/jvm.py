"""The private handles by which PySpark reaches its JVM, in one place."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


def has_jvm(spark: SparkSession) -> bool:
    """Whether this process holds the session's JVM; over Spark Connect it does not."""
    return getattr(spark, "_jsparkSession", None) is not None


def java_session(spark: SparkSession) -> Any:
    """The session in Java."""
    return spark._jsparkSession  # noqa: SLF001


def java_gateway(spark: SparkSession) -> Any:
    """The py4j gateway; its ``jvm`` names Java's packages."""
    return spark.sparkContext._gateway  # noqa: SLF001


def jvm(spark: SparkSession) -> Any:
    """Java's packages and classes, by name."""
    return java_gateway(spark).jvm


def current_thread(spark: SparkSession) -> Any:
    """The Java thread that serves the calling Python thread."""
    return jvm(spark).java.lang.Thread.currentThread()
