"""``df.writeStream.toTable`` of a lake's table: ``foreachBatch`` with the table's own sink."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.spark.bridge.jvm import field_of, java_class, options_of
from shelduck.spark.calls.lake_options import EVOLUTION, evolution_asked, refuse_others
from shelduck.spark.calls.lake_table import LakeTable
from shelduck.spark.calls.lake_writer import given_by_name

_LOCATION = "checkpointLocation"
# Spark stores the argument of queryName() as an option.
_NAME = "queryName"
_CHECKPOINT = "spark.sql.streaming.checkpointLocation"


def to_table(
    _sparks: Callable[..., Any], writer: DataStreamWriter, table: LakeTable, *how: Any, **more: Any
) -> StreamingQuery:
    """Start a query that writes each batch to the table once; create the table if it is missing."""
    names = ("format", "outputMode", "partitionBy", "queryName")
    given = given_by_name(names, how, more)
    # Options about Spark's own file format do not matter here.
    given.pop("format", None)
    for name in names[1:]:
        value = given.pop(name, None)
        if value is not None:
            getattr(writer, name)(value)
    writer.options(**given)
    mode = str(_field(writer, "outputMode")[0]).lower()
    options = {n.lower(): v for n, v in options_of(writer._jwrite).items()}  # noqa: SLF001
    refuse_others(
        options_of(writer._jwrite),  # noqa: SLF001
        (_LOCATION, *EVOLUTION, _NAME),
        f"a stream into {table.name}",
    )
    _check(writer, table, mode, options)
    evolution = evolution_asked(options)
    if mode == "complete" and not evolution.is_none:
        raise InvalidRequest(
            f"a stream into {table.name} with output mode 'complete' replaces all rows and keeps"
            f" the columns; leave out {', '.join(EVOLUTION)}",
            about="option",
        )
    keys = _taken_keys(writer)
    if not table.is_there:
        table.create(writer._df.schema, keys)  # noqa: SLF001
    function = table.sink(replaces=mode == "complete", evolution=evolution)
    return writer.foreachBatch(function).start()


def _check(
    writer: DataStreamWriter, table: LakeTable, mode: str, options: Mapping[str, str]
) -> None:
    if mode not in ("append", "complete"):
        raise Unsupported(
            f"toTable does not support output mode {mode!r} for {table.name}; use foreachBatch"
            " with a function that merges each batch, such as batch.mergeInto"
        )
    of_session = writer._spark.conf.get(_CHECKPOINT, None)  # noqa: SLF001
    if _LOCATION.lower() not in options and not of_session:
        raise InvalidRequest(
            f"a stream into {table.name} needs a directory for its checkpoint; set"
            ' .option("checkpointLocation", path)'
        )


def _taken_keys(writer: DataStreamWriter) -> list[str]:
    """Return the arguments of partitionBy, and remove them: foreachBatch refuses them."""
    found, put = _field(writer, "partitioningColumns")
    if found.isEmpty():
        return []
    names = found.get()
    put(java_class(writer._spark, "scala.Option").empty())  # noqa: SLF001
    return [str(names.apply(n)) for n in range(names.size())]


def _field(writer: DataStreamWriter, name: str) -> tuple[Any, Callable[[Any], None]]:
    """Return a writer's settings, which it does not expose otherwise, and how to change them."""
    java = writer._jwrite  # noqa: SLF001
    field = field_of(java, name)
    return field.get(java), lambda value: field.set(java, value)
