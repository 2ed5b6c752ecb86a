"""Spark with its JVM at hand: Shelduck's Java classes do what Spark's public API does not."""

# ruff: noqa: D102 - `Engine` says what its methods return

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, cast

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge.classes import LoadedClasses, class_name, loaded, tell_lost
from shelduck.engine.bridge.codec import (
    FileWriter,
    Listing,
    check_settings,
    field_rows,
    relation_options,
    rows_of,
    texts,
)
from shelduck.engine.bridge.engine import READER_OPTIONS, ROW_INDEX, Engine, metadata_of
from shelduck.engine.bridge.jvm import (
    analyzed_plan,
    classic_column,
    java_class,
    java_column,
    java_frame,
    java_gateway,
    java_session,
    let_java_call,
    plan_lines,
)
from shelduck.engine.bridge.lake_catalog import Answer, has_source, put_catalog, put_source
from shelduck.engine.bridge.relation import Constant, FileEntry, FileRelation, Named, Sql, Wildcard
from shelduck.engine.stores.homes import spark_options
from shelduck.errors import InvalidRequest
from shelduck.model.files.place import key_of
from shelduck.model.tables.row_expressions import ROW
from shelduck.model.text.names import backticked
from shelduck.model.types.data_types import DataType

_CONSTANT_TYPES = (
    *(T.BinaryType, T.BooleanType, T.ByteType, T.DateType, T.IntegerType, T.LongType),
    *(T.ShortType, T.StringType),
)
# LakeParquet finds the deletes of a file by these names and this order.
_DELETES = T.StructType(
    [
        T.StructField("__shelduck_delete_file", T.StringType()),
        T.StructField("__shelduck_delete_bound", T.LongType()),
        T.StructField("__shelduck_deleted", T.BinaryType()),
    ]
)
_TABLE_NAME = re.compile(r"'UnresolvedRelation \[(.*?)\], \[")
_COUNTS = "shelduck counts"
_ENGINE = "_shelduck_engine"


def engine_for(spark: SparkSession) -> Engine:
    """Return the way into a session: through its JVM, which this process lacks over Spark Connect.

    It is chosen once, and kept with the session. The first use of a `ClassicEngine` in a Spark
    application adds the bridge's classes to it.
    """
    kept: dict[str, Engine] = vars(spark)
    if _ENGINE not in kept:
        has_jvm = getattr(spark, "_jsparkSession", None) is not None
        kept[_ENGINE] = ClassicEngine(spark) if has_jvm else Engine(spark)
    return kept[_ENGINE]


def select_named(rows: DataFrame, columns: Sequence[Named]) -> DataFrame:
    """Return these columns of the rows, by one call into the JVM if there is one."""
    return engine_for(rows.sparkSession).select(rows, columns)


def select_names(rows: DataFrame, names: Iterable[str]) -> DataFrame:
    """Return the columns with these unquoted names, by one call as well."""
    return select_named(rows, [Named(name, backticked(name)) for name in names])


def again(rows: DataFrame) -> DataFrame:
    """Return `Engine.kept` rows with columns of their own, which a join can tell from others."""
    spark = rows.sparkSession
    return DataFrame(loaded(spark).plans.again(java_frame(rows)), spark)


def held_with_numbers(rows: DataFrame, column: str, first: int, step: int) -> DataFrame:
    """Return `Engine.held` rows with a number where a BIGINT column is NULL: first, then on.

    A row whose column has a value has its turn as well, and leaves its number out.
    """
    spark = rows.sparkSession
    found = loaded(spark).plans.numbered(java_frame(rows), column, first, step)
    return DataFrame(found, spark)


def equal_columns(joined: DataFrame) -> list[tuple[str, str]]:
    """Return the pairs of columns of one type that a join compares with ``=``, left ones first."""
    found = loaded(joined.sparkSession).plans.equalColumns(java_frame(joined))
    return [(left, right) for left, right in field_rows(found)]


def chosen(found: DataFrame, columns: Iterable[Iterable[str]], reason: str) -> Any:
    """Return the answer of a chooser: what to read, which columns it has, and why."""
    answer = java_class(found.sparkSession, "java.util.ArrayList")()
    for part in (analyzed_plan(found), rows_of(columns), reason):
        answer.add(part)
    return answer


def listed_rows(
    spark: SparkSession,
    schema: T.StructType,
    files: Sequence[tuple[str, tuple[Constant, ...]]],
    constants: T.StructType | None = None,
) -> DataFrame:
    """Return columns of files by their names, and the constants of each file."""
    # The reader finds out how large files are.
    entries = [FileEntry(path, 1, values) for path, values in files]
    asked = FileRelation(
        schema,
        constants or T.StructType(),
        lambda _: entries,
        places=[path for path, _ in files],
        encrypted=any(key_of(path) is not None for path, _ in files),
    )
    return engine_for(spark).relation(asked)


def _columns(columns: Sequence[Named]) -> tuple[str, list[Any] | None]:
    """Return columns as ``LakePlans.select`` takes them: as rows of text, and made by Spark."""
    told = [
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
    return rows_of(told), made or None


class ClassicEngine(Engine):
    """A session of Spark whose JVM runs Shelduck's Java classes: what `Engine` lacks, and quicker.

    See `Engine` for what its methods return.
    """

    has_jvm = True

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self._installed: set[str] = set()

    @cached_property
    def _classes(self) -> LoadedClasses:
        return loaded(self.spark)

    @cached_property
    def session_id(self) -> str:
        return str(java_session(self.spark).sessionUUID())

    @property
    def parallelism(self) -> int:
        return int(self.spark.sparkContext.defaultParallelism)

    def prepare(self) -> None:
        _ = self._classes

    def select(self, rows: DataFrame, columns: Sequence[Named]) -> DataFrame:
        found = self._classes.plans.select(java_frame(rows), *_columns(columns))
        return DataFrame(found, self.spark)

    def select_bound(self, rows: DataFrame, columns: Sequence[Named], zone: str) -> DataFrame:
        given = (java_frame(rows), *_columns(columns), ROW, zone or "UTC")
        return DataFrame(self._classes.plans.selectBound(*given), self.spark)

    def query(self, text: str, relations: Mapping[str, DataFrame]) -> DataFrame:
        if not relations:
            return self.spark.sql(text)
        unique = uuid.uuid4().hex
        for word in relations:
            text = text.replace(word, f"{word}{unique}")
        names = rows_of((f"{word}{unique}",) for word in relations)
        frames = [java_frame(rows) for rows in relations.values()]
        # Spark knows the names only for this query.
        found = self._classes.plans.query(java_session(self.spark), text, names, frames)
        return DataFrame(found, self.spark)

    def tables_in(self, text: str) -> list[str]:
        plan = java_session(self.spark).sessionState().sqlParser().parsePlan(text)
        return _TABLE_NAME.findall(plan.toString())

    def is_temporary_view(self, name: str) -> bool:
        return bool(self._classes.plans.hasView(java_session(self.spark), name))

    def outcome(self, row: Mapping[str, int | str | None]) -> DataFrame:
        # Spark takes several times as long to parse and analyze a text.
        fields = rows_of(
            (name, "string" if isinstance(v, str) else "bigint", None if v is None else str(v))
            for name, v in row.items()
        )
        return DataFrame(self._classes.plans.row(java_session(self.spark), fields), self.spark)

    def optimized_plan(self, rows: DataFrame) -> Any:
        return java_frame(rows).queryExecution().optimizedPlan()

    def measured_plan(self, rows: DataFrame) -> str:
        execution = java_frame(rows).queryExecution()
        execution.toRdd().count()
        jvm: Any = self.spark._jvm  # noqa: SLF001
        as_java = jvm.scala.jdk.javaapi.CollectionConverters.asJava
        return "\n".join(plan_lines(execution.executedPlan(), as_java))

    def whole_condition(self, chosen: DataFrame) -> list[str] | None:
        found = self._classes.plans.wholeCondition(java_frame(chosen))
        return None if found is None else texts(found)

    def has_its_rows(self, rows: DataFrame) -> bool:
        return bool(self._classes.plans.hasItsRows(java_frame(rows)))

    def held(self, rows: DataFrame) -> DataFrame | None:
        found = self._classes.plans.held(java_frame(rows))
        return None if found is None else DataFrame(found, self.spark)

    def kept(self, rows: DataFrame) -> DataFrame:
        return self.held(rows) or rows

    def own(self, rows: DataFrame) -> DataFrame:
        return DataFrame(self._classes.plans.own(java_frame(rows)), self.spark)

    def unaliased(self, rows: DataFrame) -> DataFrame:
        return DataFrame(self._classes.plans.unaliased(java_frame(rows)), self.spark)

    def checkpoint(self, rows: DataFrame, counts: Sequence[Column]) -> tuple[DataFrame, list[int]]:
        observed = rows.observe(_COUNTS, *counts)
        found = DataFrame(self._classes.plans.computed(java_frame(observed)), self.spark)
        # An Observation waits for a message to a listener, and a busy Spark drops such messages.
        told = java_frame(observed).queryExecution().observedMetrics().apply(_COUNTS)
        return found, [int(told.getLong(n)) for n in range(len(counts))]

    def property_of(self, name: str) -> str | None:
        return self.spark.sparkContext.getLocalProperty(name)

    @contextmanager
    def with_property(self, name: str, value: str) -> Iterator[None]:
        context = self.spark.sparkContext
        # Spark passes the properties of the thread that plans to those in which it asks.
        before = context.getLocalProperty(name)
        context.setLocalProperty(name, value)
        try:
            yield
        finally:
            context.setLocalProperty(name, cast("str", before))

    def hadoop(self) -> Any:
        return java_session(self.spark).sessionState().newHadoopConf()

    def put_catalog(self, name: str, answer: Answer) -> str:
        return put_catalog(self.spark, name, answer)

    def put_source(self, answer: Answer) -> bool:
        if not has_source(self.spark):
            put_source(self.spark, answer)
        return True

    def require_current_catalog(self, name: str) -> None:
        pass

    def relation(self, asked: FileRelation) -> DataFrame:
        columns_read = _checked(self.spark, asked.read_schema, asked.constants)
        self._prepare_session(asked)
        hidden = _DELETES if asked.with_deletes else T.StructType()
        options = READER_OPTIONS | spark_options(asked.places) | relation_options(asked)
        found = self._classes.plans.relation(
            java_session(self.spark),
            T.StructType(asked.constants.fields + hidden.fields).json(),
            columns_read,
            rows_of(options.items()),
            rows_of([hidden.names] if asked.with_deletes else []),
            asked.root,
            -1 if asked.files is None else asked.files,
            asked.size_in_bytes,
            Listing(asked),
            asked.chooser,
        )
        return DataFrame(found, self.spark)

    def _prepare_session(self, asked: FileRelation) -> None:
        """Let the session call Python, ask measurers while it plans, and count files."""
        let_java_call(java_gateway(self.spark))
        if asked.measurer is not None:
            self._install("MetadataRule")
        if asked.statistics is not None:
            self._install("StatisticsRule")
        if asked.files is not None:
            self._install("LakeFilesStrategy")

    def compute_few_rows(self) -> None:
        self._install("LocalRule")

    def _install(self, rule: str) -> None:
        """Add a rule or strategy to the planner of the session, once."""
        if rule not in self._installed:
            self._installed.add(rule)
            # A Spark that cannot run it finds the same rows without it.
            self._added(rule)

    def _added(self, rule: str) -> bool:
        """Add a rule or strategy; False, and a warning, if this Spark cannot run it."""
        try:
            self._new(rule).install(java_session(self.spark))
        except (Py4JError, PySparkException) as error:
            tell_lost(rule, self.spark.version, error)
            return False
        return True

    def add_rule(self) -> bool:
        # The rule comes after the session's other rules, and is there once.
        return self._added("RollupRule")

    def row_index(self, found: DataFrame, names: Iterable[str] = ()) -> tuple[DataFrame, str]:
        if "_metadata" not in map(str.lower, names):
            return found, "_metadata.row_index"
        return found.withColumn(ROW_INDEX, metadata_of(found, "row_index")), ROW_INDEX

    def unpushed(self, source: str | Column, kind: DataType) -> str | Column:  # noqa: ARG002
        return source

    def require_vectors(self, path: str) -> None:
        pass

    def writer(self) -> FileWriter:
        return FileWriter(self.spark, *self._classes)

    def sealed_file(self, path: str, key: str | None, options: str) -> Any:
        return self._classes.plans.sealed(java_session(self.spark), path, key, options)

    def unbound_file(self, content: bytes, key: str) -> bytes:
        return bytes(self._classes.plans.unbound(content, key))

    def bucket_hash(self, value: Column) -> Column:
        return classic_column(self._new("BucketHash").of(java_column(value)))

    def _new(self, name: str) -> Any:
        found = self._classes.loader.loadClass(class_name(name))
        return found.getConstructors()[0].newInstance(None)


def _checked(spark: SparkSession, read_schema: T.StructType, constants: T.StructType) -> str:
    """Return the columns to read as JSON, or raise an error if Spark cannot read them."""
    for field in constants:
        if not isinstance(field.dataType, _CONSTANT_TYPES):
            message = f"constant {field.name!r} cannot be of type {field.dataType.simpleString()}"
            raise InvalidRequest(message)
    both = {n.lower() for n in read_schema.names} & {n.lower() for n in constants.names}
    if both:
        raise InvalidRequest(
            f"both a column and a constant have the name {', '.join(sorted(both))}"
        )
    schema = read_schema.json()
    check_settings(spark, schema)
    return schema
