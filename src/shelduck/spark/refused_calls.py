"""Calls of Spark that no catalog can answer, refused with the call that can."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from shelduck.errors import Unsupported

IsLakes = Callable[[SparkSession, str], bool]
"""Tells whether a table's name is that of a lake attached to a session."""


def refuse_calls(spark: SparkSession, is_lakes: IsLakes) -> Callable[[], None]:
    """Have calls that name a lake's table, and cannot be done so, say what to call instead.

    All other tables are Spark's as before. Returns what takes it back.
    """
    calls: tuple[tuple[type, str, str], ...] = (
        (
            type(spark.readStream),
            "table",
            (
                "a stream out of a lake's table is followed: lake.table({table!r}).follow(handle,"
                " checkpoint), or its changes read: table_changes({table!r}, first)"
            ),
        ),
        (
            DataStreamWriter,
            "toTable",
            (
                "a stream goes into a lake's table by"
                " foreachBatch(lake.table({table!r}).sink()), each batch once"
            ),
        ),
        (
            type(spark.range(0)),
            "mergeInto",
            (
                "rows are merged into a lake's table by spark.sql('MERGE INTO {name} …'), or by"
                " lake.table({table!r}).merge(df, …)"
            ),
        ),
    )
    originals = [(kind, method, getattr(kind, method)) for kind, method, _ in calls]
    for (kind, method, original), (*_, told) in zip(originals, calls, strict=True):
        setattr(kind, method, _refusing(original, told, is_lakes))

    def undo() -> None:
        for kind, method, original in originals:
            setattr(kind, method, original)

    return undo


def _refusing(original: Callable[..., Any], told: str, is_lakes: IsLakes) -> Callable[..., Any]:
    @wraps(original)
    def call(self: Any, name: str, *arguments: Any, **more: Any) -> Any:
        session = self.sparkSession if hasattr(self, "sparkSession") else self._spark
        if is_lakes(session, name):
            raise Unsupported(told.format(name=name, table=name.partition(".")[2] or name))
        return original(self, name, *arguments, **more)

    return call
