"""Columns of a DataFrame with new names, and plans that Spark analyzed, in one call each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge.classes import loaded
from shelduck.engine.bridge.codec import field_rows, rows_of
from shelduck.engine.bridge.codec import texts as texts_of
from shelduck.engine.bridge.jvm import has_jvm, java_column, java_frame, java_session
from shelduck.errors import Unsupported
from shelduck.model.text.quoting import backticked

_COUNTS = "shelduck counts"
_MOST_FIELDS = 25
_UNITS = {"size": " B", "timing": " ms", "nsTiming": " ns"}


class Sql(str):
    """An expression as SQL that Shelduck has made: no text of a user, whose quotes may be open.

    ``what`` names it in Spark's errors, see `select_named`.
    """

    __slots__ = ("what",)
    what: str

    def __new__(cls, text: object, what: str = "sql") -> Self:
        """Return a text with its name."""
        made = super().__new__(cls, text)
        made.what = what
        return made


class Wildcard(str):
    """``*`` or ``alias.*``, which stands for many columns; a column may have such a name itself."""

    __slots__ = ()
    what = "star"


class Named(NamedTuple):
    """A column to select under a name.

    ``source`` is an expression, `Sql`, or the name of a column as in `F.col`. ``kind`` is the type
    of a cast; None does not cast. If ``metadata`` is None, the source's metadata stays. If the
    source is a `Wildcard`, columns keep their names; see `ALL`.
    """

    name: str
    source: str | Column
    kind: T.DataType | None = None
    metadata: Mapping[str, Any] | None = None

    @property
    def column(self) -> Column:
        """Return the column, built one call at a time."""
        found = column_of(self.source)
        if isinstance(self.source, Wildcard):
            return found
        found = found if self.kind is None else found.cast(self.kind)
        if self.metadata is None:
            return found.alias(self.name)
        return found.alias(self.name, metadata=dict(self.metadata))


ALL = Named("", Wildcard("*"))
"""All columns."""


def column_of(source: str | Column) -> Column:
    """Return the source of a `Named` column as a column."""
    if isinstance(source, Sql):
        return F.expr(source)
    return F.col(source) if isinstance(source, str) else source


def select_named(
    rows: DataFrame, columns: Sequence[Named], *, row: str = "", zone: str = ""
) -> DataFrame:
    """Return these columns of the rows, by one call into the JVM if there is one.

    With a ``zone``, for which a JVM must be there, Spark analyzes texts in that time zone, with
    ANSI mode, knows the rows as ``row``, and names what fails.
    """
    spark = rows.sparkSession
    if not has_jvm(spark):
        return rows.select(*[c.column for c in columns])
    texts = [
        (
            c.name,
            c.source if isinstance(c.source, str) else None,
            None if c.kind is None else c.kind.json(),
            None if c.metadata is None else json.dumps(c.metadata),
            c.source.what if isinstance(c.source, Sql | Wildcard) else None,
        )
        for c in columns
    ]
    made = [java_column(c.source) for c in columns if not isinstance(c.source, str)]
    given = java_frame(rows), rows_of(texts), made or None
    plans = loaded(spark).plans
    found = plans.selectBound(*given, row, zone) if zone else plans.select(*given)
    return DataFrame(found, spark)


def row_of(spark: SparkSession, fields: Iterable[tuple[str, str, str | None]]) -> DataFrame:
    """Return one row, given by name, type and text of each value: ``bigint`` or ``string``."""
    return DataFrame(loaded(spark).plans.row(java_session(spark), rows_of(fields)), spark)


def held(rows: DataFrame) -> DataFrame | None:
    """Return rows as Spark's plan holds them, computed once; None if it cannot, or over Connect."""
    spark = rows.sparkSession
    found = loaded(spark).plans.held(java_frame(rows)) if has_jvm(spark) else None
    return None if found is None else DataFrame(found, spark)


def held_with_numbers(rows: DataFrame, column: str, first: int, step: int) -> DataFrame:
    """Return rows of `held` with a number where a BIGINT column is NULL: the first row's, and on.

    A row whose column has a value has its turn as well, and leaves its number out.
    """
    spark = rows.sparkSession
    found = loaded(spark).plans.numbered(java_frame(rows), column, first, step)
    return DataFrame(found, spark)


def checkpoint(rows: DataFrame, counts: Sequence[Column]) -> tuple[DataFrame, list[int]]:
    """Return rows that are computed now and kept in the executors, and named counts of them.

    Spark counts while it computes. Over Spark Connect, which does not return the counts, a second
    job counts.
    """
    if not has_jvm(rows.sparkSession):
        found = rows.localCheckpoint(eager=True)
        # One row of numbers.
        return found, list(found.agg(*counts).collect()[0])
    observed = rows.observe(_COUNTS, *counts)
    found = loaded(rows.sparkSession).plans.computed(java_frame(observed))
    # An Observation waits for a message to a listener, and a busy Spark drops such messages.
    told = java_frame(observed).queryExecution().observedMetrics().apply(_COUNTS)
    return DataFrame(found, rows.sparkSession), [int(told.getLong(n)) for n in range(len(counts))]


def own(rows: DataFrame) -> DataFrame:
    """Return rows that their plan holds as rows of a lake, which the optimizer may compute.

    Rows that a job has to read stay as they are; so do all over Spark Connect.
    """
    spark = rows.sparkSession
    if not has_jvm(spark):
        return rows
    return DataFrame(loaded(spark).plans.own(java_frame(rows)), spark)


def unaliased(rows: DataFrame) -> DataFrame:
    """Return the same rows by a plan that renames no column to its own name."""
    spark = rows.sparkSession
    if not has_jvm(spark):
        return rows
    return DataFrame(loaded(spark).plans.unaliased(java_frame(rows)), spark)


def again(rows: DataFrame) -> DataFrame:
    """Return the same rows with columns of their own, which a join can tell from the others."""
    spark = rows.sparkSession
    return DataFrame(loaded(spark).plans.again(java_frame(rows)), spark)


def query_of_views(spark: SparkSession, text: str, views: Mapping[str, DataFrame]) -> DataFrame:
    """Return the DataFrame of a query that reads rows by names, which Spark knows only for it."""
    frames = [java_frame(rows) for rows in views.values()]
    found = loaded(spark).plans.query(
        java_session(spark), text, rows_of((name,) for name in views), frames
    )
    return DataFrame(found, spark)


def equal_columns(joined: DataFrame) -> list[tuple[str, str]]:
    """Return the pairs of columns of one type that a join compares with ``=``, left ones first."""
    found = loaded(joined.sparkSession).plans.equalColumns(java_frame(joined))
    return [(left, right) for left, right in field_rows(found)]


def has_its_rows(rows: DataFrame) -> bool:
    """Return whether all rows that a plan reads are in the plan itself; False over Connect."""
    spark = rows.sparkSession
    return has_jvm(spark) and bool(loaded(spark).plans.hasItsRows(java_frame(rows)))


def whole_condition(chosen: DataFrame) -> list[str] | None:
    """Return the filters that choose rows from one scan of a lake, as SQL.

    None if something else chooses them too, or over Spark Connect, which shows no plans.
    """
    spark = chosen.sparkSession
    if not has_jvm(spark):
        return None
    found = loaded(spark).plans.wholeCondition(java_frame(chosen))
    return None if found is None else texts_of(found)


def select_names(rows: DataFrame, names: Iterable[str]) -> DataFrame:
    """Return the columns with these unquoted names, by one call as well."""
    return select_named(rows, [Named(name, backticked(name)) for name in names])


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
