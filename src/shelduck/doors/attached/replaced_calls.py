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

from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from shelduck.doors.attached.attached_table import CHECKPOINT, AttachedTable, require_stream
from shelduck.engine.bridge.jvm import field_of, format_of, options_of
from shelduck.engine.bridge.lake_catalog import follow_lakes
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.lake.spark_options import FOREIGN, option_value, refuse_format
from shelduck.model.text.names import backticked

Call = Callable[..., Any]
FORMAT = "shelduck"
ReadTable = Callable[[SparkSession, Mapping[str, str]], DataFrame | None]
"""Returns the rows that options name, None if the session has not registered the format."""
HasLakes = Callable[[SparkSession], bool]
FindTable = Callable[[SparkSession, str], AttachedTable | None]
"""Returns the lake's table for a name in a session, None if the name is not in a lake."""
_CHECKPOINT = f"spark.sql.streaming.{CHECKPOINT}"

_VIEW_METHODS = {
    "createTempView": False,
    "createOrReplaceTempView": False,
    "registerTempTable": False,
    "createGlobalTempView": True,
    "createOrReplaceGlobalTempView": True,
}


def replace_calls(find: FindTable) -> None:
    """Replace calls that name a lake's table, until the methods are restored."""
    calls: list[tuple[type, str, Call]] = [
        (DataFrameWriter, "saveAsTable", _save_as_table),
        (DataFrameReader, "load", _load_by_name),
        (DataStreamWriter, "toTable", _to_table),
    ]
    for kind, method, instead in calls:
        replace_method(kind, method, partial(_replaced, instead, find))


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


def _save_as_table(
    sparks: Call,
    writer: DataFrameWriter,
    table: AttachedTable,
    format: str | None = None,  # noqa: A002 - Spark's own name for it
    *more: Any,
    **named: Any,
) -> None:
    """Save rows as a table, also where the format is that of another system."""
    asked = format or format_of(writer._jwrite)  # noqa: SLF001 - nothing else tells it
    # Spark does not tell it where rows are appended, and looks for a data source of that name.
    refuse_format(asked, table.name)
    sparks("parquet" if asked is not None and asked.lower() in FOREIGN else format, *more, **named)


def _load_by_name(
    sparks: Call,
    reader: DataFrameReader,
    table: AttachedTable,
    format: str | None = None,  # noqa: A002 - Spark's own name for it
    schema: Any = None,
    **options: Any,
) -> DataFrame:
    """Return a table's rows where Iceberg or Delta loads a table by its name; else Spark's."""
    named = format or format_of(reader._jreader)  # noqa: SLF001 - nothing else tells it
    if named is None or named.lower() not in FOREIGN or schema is not None:
        found: DataFrame = sparks(format=format, schema=schema, **options)
        return found
    return reader.options(**options).table(f"{backticked(table.catalog)}.{table.name}")


def _to_table(
    sparks: Call, writer: DataStreamWriter, table: AttachedTable, *how: Any, **more: Any
) -> StreamingQuery:
    """Start a query that writes to a table, unless its options are wrong.

    Spark makes a table that is missing before it looks at them, and tells no rule.
    """
    names = ("format", "outputMode", "partitionBy", "queryName")
    given = dict(zip(names, how, strict=False)) | more
    # Options about Spark's own file format do not matter here.
    given.pop("format", None)
    for name in names[1:]:
        value = given.pop(name, None)
        if value is not None:
            getattr(writer, name)(value)
    java = writer.options(**given)._jwrite  # noqa: SLF001 - nothing else tells its options
    told = options_of(java)
    require_stream(table.name, str(field_of(java, "outputMode").get(java)).lower(), told)
    of_session = writer._spark.conf.get(_CHECKPOINT, None)  # noqa: SLF001
    if option_value(told, CHECKPOINT) is None and not of_session:
        raise InvalidRequest(
            f"a stream into {table.name} needs a directory for its checkpoint; set"
            ' .option("checkpointLocation", path)'
        )
    query: StreamingQuery = sparks()
    return query


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
