"""Calls of Spark that name a table and get to no catalog: what a lake does in their place.

Each is Spark's own for all tables that are no lake's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from inspect import signature
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from shelduck.errors import Unsupported
from shelduck.spark.lake_reader import read_table
from shelduck.spark.lake_stream import to_table
from shelduck.spark.lake_table import FindTable, LakeTable
from shelduck.spark.lake_writer import LakeWriter, insert_into, save_as_table
from shelduck.spark.merge_writer import LakeMerge

_FOLLOW = (
    "a stream out of a lake's table is followed: lake.table({0!r}).follow(handle, checkpoint), or"
    " its changes read: table_changes({0!r}, first)"
)


def replace_calls(spark: SparkSession, find: FindTable) -> Callable[[], None]:
    """Have calls that name a lake's table do what Spark would; return what takes it back."""
    frame = spark.range(0)
    calls: list[tuple[type, str, Callable[..., Any]]] = [
        (type(frame), "mergeInto", _merge_into),
        (type(frame), "writeTo", _write_to),
        (type(frame.write), "saveAsTable", save_as_table),
        (type(frame.write), "insertInto", insert_into),
        (type(spark.read), "table", read_table),
        (type(spark.readStream), "table", _refusing(_FOLLOW)),
        (DataStreamWriter, "toTable", to_table),
    ]
    originals = [(kind, method, getattr(kind, method)) for kind, method, _ in calls]
    for kind, method, instead in calls:
        setattr(kind, method, _replaced(getattr(kind, method), instead, find))

    def undo() -> None:
        for kind, method, original in originals:
            setattr(kind, method, original)

    return undo


def _replaced(
    original: Callable[..., Any], instead: Callable[..., Any], find: FindTable
) -> Callable[..., Any]:
    """Return a call whose first argument is a table's name; ``instead`` gets Spark's own too."""
    _, named, *_ = signature(original).parameters

    @wraps(original)
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


def _merge_into(_: Any, df: DataFrame, table: LakeTable, condition: Column) -> LakeMerge:
    return LakeMerge(df, condition, table.merge)


def _write_to(sparks: Any, df: DataFrame, table: LakeTable) -> LakeWriter:
    [name] = sparks.args[1:]
    return LakeWriter(df, name, table)


def _refusing(told: str) -> Callable[..., Any]:
    def refuse(_sparks: Any, _self: Any, table: LakeTable, *_arguments: Any, **_more: Any) -> Any:
        raise Unsupported(told.format(table.name))

    return refuse
