"""The private handles through which PySpark reaches its JVM, in one place."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from py4j.java_gateway import JavaClass
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.classic.column import Column as ClassicColumn

_CATALYST = "org.apache.spark.sql.catalyst"
_MOST_FIELDS = 25
_UNITS = {"size": " B", "timing": " ms", "nsTiming": " ns"}
_starting = threading.Lock()


def java_session(spark: SparkSession) -> Any:
    """Return the session in Java."""
    return spark._jsparkSession  # noqa: SLF001


def java_gateway(spark: SparkSession) -> Any:
    """Return the py4j gateway."""
    return spark.sparkContext._gateway  # noqa: SLF001


def let_java_call(gateway: Any) -> None:
    """Let Java call Python objects; calling this again changes nothing."""
    with _starting:
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]


def java_class(spark: SparkSession, name: str) -> Any:
    """Return the class with this full name.

    `gateway.jvm.org.apache.…` asks the JVM at each dot, which looks for a class `org`, then
    `org.apache` and so on in every JAR.
    """
    return JavaClass(name, java_gateway(spark)._gateway_client)  # noqa: SLF001


def java_column(column: Column) -> Any:
    """Return the column in Java."""
    return column._jc  # noqa: SLF001


def java_frame(df: DataFrame) -> Any:
    """Return the DataFrame in Java."""
    return df._jdf  # noqa: SLF001


def classic_column(column: Any) -> Column:
    """Return the Python column of a Java column."""
    return ClassicColumn(column)


def qualified(df: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return rows under a name of several parts, like those of a table that Spark finds by name."""
    spark = df.sparkSession
    *qualifier, name = names
    above = java_class(spark, "org.apache.spark.api.python.PythonUtils").toSeq(qualifier)
    identifier = java_class(spark, f"{_CATALYST}.AliasIdentifier")(name, above)
    alias = java_class(spark, f"{_CATALYST}.plans.logical.SubqueryAlias")
    datasets = java_class(spark, "org.apache.spark.sql.classic.Dataset")
    plan = alias(identifier, analyzed_plan(df))
    return DataFrame(datasets.ofRows(java_session(spark), plan), spark)


def analyzed_plan(df: DataFrame) -> Any:
    """Return the logical plan of a DataFrame in Java, with all names resolved."""
    return df._jdf.queryExecution().analyzed()  # noqa: SLF001


def columns_used(df: DataFrame) -> list[str] | None:
    """Return the columns that the last step of a DataFrame reads; None if it is random."""
    plan = analyzed_plan(df)
    if not plan.deterministic():
        return None
    used = plan.references().toSeq()
    return [str(used.apply(n).name()) for n in range(used.size())]


def current_thread(spark: SparkSession) -> Any:
    """Return the Java thread that serves the calling Python thread."""
    return java_class(spark, "java.lang.Thread").currentThread()


def stages_of(spark: SparkSession, tag: str) -> list[Any]:
    """Return Spark's counters of the stages that jobs with this tag have begun."""
    context = spark.sparkContext
    tracker, store = context.statusTracker(), context._jsc.sc().statusStore()  # noqa: SLF001
    # Python has no way to jobs by their tag, and to the counters of a stage.
    numbers = context._jsc.sc().statusTracker().getJobIdsForTag(tag)  # noqa: SLF001
    jobs = [tracker.getJobInfo(number) for number in numbers]
    stages = [stage for job in jobs if job is not None for stage in job.stageIds]
    return [store.lastStageAttempt(s) for s in stages if tracker.getStageInfo(s) is not None]


def field_of(java: Any, name: str) -> Any:
    """Return a field of a Java object or of a superclass; it has no public getter."""
    kind = java.getClass()
    while True:
        if name in [field.getName() for field in kind.getDeclaredFields()]:
            found = kind.getDeclaredField(name)
            found.setAccessible(True)
            return found
        kind = kind.getSuperclass()


def options_of(java: Any) -> dict[str, str]:
    """Return the options of a reader or writer in Java, with names as they were written."""
    pairs = field_of(java, "extraOptions").get(java).originalMap().iterator()
    found: dict[str, str] = {}
    while pairs.hasNext():
        pair = pairs.next()
        found[str(pair._1())] = str(pair._2())  # noqa: SLF001 - the name that Scala gives it
    return found


def format_of(java: Any) -> str | None:
    """Return the format that was set for a writer in Java, None if none was."""
    found = field_of(java, "source").get(java)
    return None if found is None else str(found)


def plan_lines(node: Any, as_java: Any, depth: int = 0) -> Iterator[str]:
    """Yield a physical plan that has run, one node a line, with its metrics."""
    name = str(node.nodeName())
    if name == "AdaptiveSparkPlan":
        yield from plan_lines(node.executedPlan(), as_java, depth)
        return
    if name.endswith("QueryStage"):
        yield from plan_lines(node.plan(), as_java, depth)
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
        yield from plan_lines(child, as_java, depth + 1)
