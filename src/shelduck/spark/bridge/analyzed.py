"""The work of a query that ran: Spark's final plan with the metrics of each of its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from shelduck.errors import Unsupported
from shelduck.spark.bridge.jvm import has_jvm

_MOST_FIELDS = 25
_UNITS = {"size": " B", "timing": " ms", "nsTiming": " ns"}


def analyzed_plan(frame: DataFrame) -> str:
    """Run a query and return its plan, one node a line, with what Spark counted and timed.

    Raises Unsupported over Spark Connect, which shows no metrics.
    """
    spark = frame.sparkSession
    if not has_jvm(spark):
        raise Unsupported(
            "EXPLAIN ANALYZE is not supported over Spark Connect; use EXPLAIN FORMATTED"
        )
    execution = frame._jdf.queryExecution()  # noqa: SLF001 - nothing else tells it
    execution.toRdd().count()
    jvm: Any = spark._jvm  # noqa: SLF001
    as_java = jvm.scala.jdk.javaapi.CollectionConverters.asJava
    return "\n".join(_lines(execution.executedPlan(), as_java, 0))


def _lines(node: Any, as_java: Any, depth: int) -> Iterator[str]:
    name = str(node.nodeName())
    if name == "AdaptiveSparkPlan":
        yield from _lines(node.executedPlan(), as_java, depth)
        return
    if name.endswith("QueryStage"):
        yield from _lines(node.plan(), as_java, depth)
        return
    metrics = dict(as_java(node.metrics()))
    shown = [
        f"{m.name().get()}: {m.value()}{_UNITS.get(m.metricType(), '')}"
        for key, m in metrics.items()
        if m.value() or key == "numOutputRows"
    ]
    yield f"{'  ' * depth}{node.simpleString(_MOST_FIELDS)}"
    if shown:
        yield f"{'  ' * depth}    [{', '.join(sorted(shown))}]"
    for child in as_java(node.children()):
        yield from _lines(child, as_java, depth + 1)
