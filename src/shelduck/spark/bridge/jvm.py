"""The private handles by which PySpark reaches its JVM, in one place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.classic.column import Column as ClassicColumn


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


def java_column(column: Column) -> Any:
    """The column in Java."""
    return column._jc  # noqa: SLF001


def classic_column(column: Any) -> Column:
    """The Python column of one in Java."""
    return ClassicColumn(column)


def qualified(df: DataFrame, names: Sequence[str]) -> DataFrame:
    """The rows under a name of several parts, as those of a table that Spark finds by it."""
    java = jvm(df.sparkSession)
    *qualifier, name = names
    identifier = java.org.apache.spark.sql.catalyst.AliasIdentifier(
        name, java.org.apache.spark.api.python.PythonUtils.toSeq(qualifier)
    )
    plan = java.org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias(
        identifier, analyzed_plan(df)
    )
    made = java.org.apache.spark.sql.classic.Dataset.ofRows(java_session(df.sparkSession), plan)
    return DataFrame(made, df.sparkSession)


def analyzed_plan(df: DataFrame) -> Any:
    """The logical plan of a DataFrame in Java, with all names found."""
    return df._jdf.queryExecution().analyzed()  # noqa: SLF001


def current_thread(spark: SparkSession) -> Any:
    """The Java thread that serves the calling Python thread."""
    return jvm(spark).java.lang.Thread.currentThread()


def field_of(java: Any, name: str) -> Any:
    """The field of a Java object, or of a class above its own; it tells nobody else its value."""
    kind = java.getClass()
    while True:
        if name in [field.getName() for field in kind.getDeclaredFields()]:
            found = kind.getDeclaredField(name)
            found.setAccessible(True)
            return found
        kind = kind.getSuperclass()


def options_of(java: Any) -> dict[str, str]:
    """The options that a reader or writer in Java was given, by name as they were written."""
    pairs = field_of(java, "extraOptions").get(java).originalMap().iterator()
    found: dict[str, str] = {}
    while pairs.hasNext():
        pair = pairs.next()
        found[str(pair._1())] = str(pair._2())  # noqa: SLF001 - the name that Scala gives it
    return found


def optimized_plan(df: DataFrame) -> Any:
    """The logical plan of a DataFrame as Spark would run it; None where there is no JVM."""
    if not hasattr(df, "_jdf"):
        return None
    return df._jdf.queryExecution().optimizedPlan()  # noqa: SLF001
