"""Calls of Spark that name a table and get to no catalog: what a lake does in their place.

Each is Spark's own for all tables that are no lake's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from shelduck.errors import Unsupported
from shelduck.spark.merge_clauses import MergeClause
from shelduck.spark.merge_writer import LakeMerge


class LakeTable(Protocol):
    """A table of a lake, by the name that a call gave it; its errors are Spark's too."""

    @property
    def name(self) -> str:
        """Its name in the lake."""

    def merge(
        self, source: DataFrame, on: Column, clauses: Sequence[MergeClause], evolves: bool
    ) -> None:
        """Merge a source into it, as one commit."""


FindTable = Callable[[SparkSession, str], LakeTable | None]
"""Returns the lake's table that a name means in a session, None when it means none of a lake."""

_FOLLOW = (
    "a stream out of a lake's table is followed: lake.table({0!r}).follow(handle, checkpoint), or"
    " its changes read: table_changes({0!r}, first)"
)
_SINK = (
    "a stream goes into a lake's table by foreachBatch(lake.table({0!r}).sink()), each batch once"
)


def replace_calls(spark: SparkSession, find: FindTable) -> Callable[[], None]:
    """Have calls that name a lake's table do what Spark would; return what takes it back."""
    frame, reader = type(spark.range(0)), type(spark.readStream)
    calls: list[tuple[type, str, Callable[..., Any]]] = [
        (frame, "mergeInto", _merge_into),
        (reader, "table", _refusing(_FOLLOW)),
        (DataStreamWriter, "toTable", _refusing(_SINK)),
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
    @wraps(original)
    def call(self: Any, name: str, *arguments: Any, **more: Any) -> Any:
        session = self.sparkSession if hasattr(self, "sparkSession") else self._spark
        table = find(session, name)
        if table is None:
            return original(self, name, *arguments, **more)
        return instead(self, table, *arguments, **more)

    return call


def _merge_into(df: DataFrame, table: LakeTable, condition: Column) -> LakeMerge:
    return LakeMerge(df, condition, table.merge)


def _refusing(told: str) -> Callable[..., Any]:
    def refuse(_self: Any, table: LakeTable, *_arguments: Any, **_more: Any) -> Any:
        raise Unsupported(told.format(table.name))

    return refuse
