"""Calls of Spark that name a table but never reach a catalog, and what a lake does instead.

For tables outside of lakes, each call is Spark's own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from shelduck.spark.bridge.jvm import options_of, session_copy
from shelduck.spark.calls.lake_options import ReadOptions, read_options
from shelduck.spark.calls.lake_stream import to_table
from shelduck.spark.calls.lake_table import FindTable, LakeTable, read_as
from shelduck.spark.calls.lake_writer import LakeWriter, insert_into, save_as_table
from shelduck.spark.calls.merge_writer import LakeMerge
from shelduck.spark.calls.replacing import replace_method


def replace_calls(spark: SparkSession, find: FindTable) -> None:
    """Replace calls that name a lake's table, until the methods are restored."""
    frame = spark.range(0)
    calls: list[tuple[type, str, Callable[..., Any]]] = [
        (type(frame), "mergeInto", _merge_into),
        (type(frame), "writeTo", _write_to),
        (type(frame.write), "saveAsTable", save_as_table),
        (type(frame.write), "insertInto", insert_into),
        (type(spark.read), "table", _read_table),
        (DataStreamReader, "table", _stream_table),
        (DataStreamWriter, "toTable", to_table),
    ]
    for kind, method, instead in calls:
        replace_method(kind, method, partial(_replaced, instead, find))
    replace_method(type(spark.catalog), "listFunctions", _list_functions)


def _list_functions(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call that lists Spark's functions in a lake too: they are in every catalog."""

    def call(self: Any, dbName: Any = None, pattern: Any = None) -> Any:  # noqa: N803
        try:
            return original(self, dbName, pattern)
        except PySparkException as error:
            if error.getCondition() != "MISSING_CATALOG_ABILITY.FUNCTIONS":
                raise
        # Spark asks its current catalog, whatever the name says: a copy of the session has another.
        copied = session_copy(self._sparkSession)
        copied.catalog.setCurrentCatalog("spark_catalog")
        return original(copied.catalog, "default", pattern)

    return call


def _replaced(
    instead: Callable[..., Any], find: FindTable, original: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a call whose first argument is a table's name; ``instead`` also gets Spark's own."""
    _, named, *_ = signature(original).parameters

    def call(self: Any, *arguments: Any, **more: Any) -> Any:
        name = arguments[0] if arguments else more.get(named)
        session = self.sparkSession if hasattr(self, "sparkSession") else self._spark
        table = find(session, name) if isinstance(name, str) else None
        if table is None:
            return original(self, *arguments, **more)
        others = {key: value for key, value in more.items() if key != named}
        sparks = partial(original, self, name)
        return instead(sparks, self, table, *arguments[1:], **others)

    return call


def _read_table(
    sparks: Callable[..., DataFrame], reader: DataFrameReader, table: LakeTable
) -> DataFrame:
    """Return a table's rows: Spark does not pass the options of a reader to a catalog."""
    given = options_of(reader._jreader)  # noqa: SLF001 - nothing else tells them
    wanted = read_options(given, table.name)
    if wanted == ReadOptions():
        return sparks()
    return read_as(table, wanted)


def _stream_table(_: Any, reader: DataStreamReader, table: LakeTable) -> DataFrame:
    named = reader.format("shelduck").option("catalog", table.catalog)
    return named.option("table", table.name).load()


def _merge_into(_: Any, df: DataFrame, table: LakeTable, condition: Column) -> LakeMerge:
    return LakeMerge(df, condition, table.merge)


def _write_to(sparks: Any, df: DataFrame, table: LakeTable) -> LakeWriter:
    [name] = sparks.args[1:]
    return LakeWriter(df, name, table)
