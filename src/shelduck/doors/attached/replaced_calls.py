"""Calls of Spark that never tell a catalog what they do, and what a lake does instead.

They name a table, or make a temporary view of a frame. For tables outside of lakes, each call is
Spark's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from inspect import signature
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from shelduck.doors.attached.lake_table import FindTable, LakeTable, read_as
from shelduck.doors.attached.lake_writer import (
    LakeMerge,
    LakeWriter,
    insert_into,
    save_as_table,
    to_table,
)
from shelduck.engine.bridge.jvm import format_of, options_of, session_copy
from shelduck.engine.bridge.lake_catalog import follow_lakes
from shelduck.engine.named_errors import newest_condition
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.lake.spark_options import FOREIGN, ReadOptions, read_options

Call = Callable[..., Any]
FORMAT = "shelduck"
ReadTable = Callable[[SparkSession, Mapping[str, str]], DataFrame | None]
"""Returns the rows that options name, None if the session has not registered the format."""
HasLakes = Callable[[SparkSession], bool]

_VIEW_METHODS = {
    "createTempView": False,
    "createOrReplaceTempView": False,
    "registerTempTable": False,
    "createGlobalTempView": True,
    "createOrReplaceGlobalTempView": True,
}


def replace_calls(spark: SparkSession, find: FindTable) -> None:
    """Replace calls that name a lake's table, until the methods are restored."""
    frame = spark.range(0)
    calls: list[tuple[type, str, Callable[..., Any]]] = [
        (type(frame), "mergeInto", _merge_into),
        (type(frame), "writeTo", _write_to),
        (type(frame.write), "saveAsTable", save_as_table),
        (type(frame.write), "insertInto", insert_into),
        (type(spark.read), "table", _read_table),
        (type(spark.read), "load", _load_by_name),
        (DataStreamReader, "table", _stream_table),
        (DataStreamWriter, "toTable", to_table),
    ]
    for kind, method, instead in calls:
        replace_method(kind, method, partial(_replaced, instead, find))
    replace_method(type(spark.catalog), "listFunctions", _list_functions)


def replace_views(has_lakes: HasLakes) -> None:
    """Replace the methods that make views of frames, until the methods are restored.

    A frame itself holds the snapshot that it was made from. Spark would hold it in a view, too.
    """
    for method, is_global in _VIEW_METHODS.items():
        if hasattr(ClassicDataFrame, method):
            replace_method(ClassicDataFrame, method, partial(_followed, has_lakes, is_global))


def _followed(
    has_lakes: HasLakes, is_global: bool, original: Callable[..., None]
) -> Callable[..., None]:
    def call(self: Any, name: str) -> None:
        original(self, name)
        if has_lakes(self.sparkSession):
            follow_lakes(self.sparkSession, name, is_global=is_global)

    return call


def _list_functions(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call that lists Spark's functions in a lake too: they are in every catalog."""

    def call(self: Any, dbName: Any = None, pattern: Any = None) -> Any:  # noqa: N803
        try:
            return original(self, dbName, pattern)
        except PySparkException as error:
            if newest_condition(error) != "MISSING_CATALOG_ABILITY.FUNCTIONS":
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


def _load_by_name(
    sparks: Any,
    reader: DataFrameReader,
    table: LakeTable,
    format: str | None = None,  # noqa: A002 - Spark's own name for it
    schema: Any = None,
    **options: Any,
) -> DataFrame:
    """Return a table's rows where Iceberg or Delta loads a table by its name; else Spark's."""
    [name] = sparks.args[1:]
    named = format or format_of(reader._jreader)  # noqa: SLF001 - nothing else tells it
    if named is None or named.lower() not in FOREIGN or schema is not None:
        found: DataFrame = sparks(format=format, schema=schema, **options)
        return found
    given = options_of(reader._jreader) | {k: str(v) for k, v in options.items()}  # noqa: SLF001
    wanted = read_options(given, table.name)
    if wanted == ReadOptions():
        return reader._spark.table(name)  # noqa: SLF001
    return read_as(table, wanted)


def _stream_table(_: Any, reader: DataStreamReader, table: LakeTable) -> DataFrame:
    named = reader.format("shelduck").option("catalog", table.catalog)
    return named.option("table", table.name).load()


def _merge_into(_: Any, df: DataFrame, table: LakeTable, condition: Column) -> LakeMerge:
    return LakeMerge(df, condition, table.merge)


def _write_to(sparks: Any, df: DataFrame, table: LakeTable) -> LakeWriter:
    [name] = sparks.args[1:]
    return LakeWriter(df, name, table)


@dataclass(slots=True)
class _Replacement:
    """A method of a class that does something else while ``is_on``."""

    kind: type
    method: str
    original: Call
    is_inherited: bool
    is_on: bool = True
    call: Call | None = None

    @property
    def is_on_top(self) -> bool:
        """True unless others have replaced the method again since."""
        return getattr(self.kind, self.method) is self.call

    def give_back(self) -> None:
        """Restore the original method, unless others have replaced ours since."""
        self.is_on = False
        if not self.is_on_top:
            return
        if self.is_inherited:
            delattr(self.kind, self.method)
        else:
            setattr(self.kind, self.method, self.original)


_replacements: dict[tuple[type, str], _Replacement] = {}


def replace_method(kind: type, method: str, instead: Callable[[Call], Call]) -> None:
    """Replace a method by the result of ``instead``, which gets the original; once until restored.

    If others have replaced the method since, theirs becomes the original.
    """
    known = _replacements.get((kind, method))
    if known is not None:
        if known.is_on_top:
            return
        known.give_back()
    original = getattr(kind, method)
    made = _Replacement(kind, method, original, method not in vars(kind))
    ours = instead(original)

    @wraps(original)
    def call(*arguments: Any, **more: Any) -> Any:
        return (ours if made.is_on else original)(*arguments, **more)

    made.call = call
    setattr(kind, method, call)
    _replacements[kind, method] = made


def give_methods_back() -> None:
    """Restore all methods to Spark's own, or to those of others."""
    while _replacements:
        _replacements.popitem()[1].give_back()


def replace_load(spark: SparkSession, read: ReadTable) -> None:
    """Replace ``load`` of the readers of a Connect session, until the methods are restored."""
    replace_method(type(spark.read), "load", _loading(read))
    replace_method(type(spark.readStream), "load", _loading(_refuse))


def _refuse(_spark: SparkSession, _options: Mapping[str, str]) -> DataFrame | None:
    raise Unsupported(
        "a stream of a lake's table needs a classic Spark session; over Spark Connect, use"
        " lake.table(name).follow(handle, checkpoint)"
    )


def _loading(read: ReadTable) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def replaced(original: Callable[..., Any]) -> Callable[..., Any]:
        def load(
            self: Any,
            path: Any = None,
            format: Any = None,  # noqa: A002 - Spark's own name for it
            schema: Any = None,
            **options: Any,
        ) -> Any:
            if (format or self._format or "").lower() == FORMAT:
                if schema or self._schema:
                    raise InvalidRequest(
                        "a table of a lake has a schema of its own; leave out .schema(...)"
                    )
                self.options(**options)
                given = dict(self._options) | ({} if path is None else {"path": path})
                found = read(self._client, given)
                if found is not None:
                    return found
            return original(self, path, format, schema, **options)

        return load

    return replaced
