"""A lake's table for Spark's calls that never reach a catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from shelduck.lake.spark_options import ReadOptions
from shelduck.model.changes.evolution import Evolution
from shelduck.write.merge.merge_clauses import MergeClause

RowVerb = Callable[..., object]
"""A verb of `shelduck.objects.table.Table` that writes a frame of rows."""


class LakeTable(Protocol):
    """A table of a lake, by the name in a call; its errors are Spark's too."""

    @property
    def catalog(self) -> str:
        """Return what the session calls the lake."""

    @property
    def name(self) -> str:
        """Return its name in the lake."""

    @property
    def is_there(self) -> bool:
        """Return whether the lake has such a table."""

    @property
    def is_partitioned(self) -> bool:
        """Return whether it exists and has partitions."""

    def create(self, columns: StructType, partitioned_by: Sequence[str]) -> None:
        """Create it; each file has one value of each of these columns."""

    def sink(self, *, replaces: bool, evolution: Evolution) -> Callable[[DataFrame, int], None]:
        """Return a function for ``foreachBatch`` that writes each batch to it once.

        ``replaces`` says that a batch replaces all rows, ``evolution`` what it may do to columns.
        """

    def read(self, version: int | None, timestamp: str | None) -> DataFrame:
        """Return its rows as of a snapshot."""

    def changes(self, start: int | str, end: int | str | None) -> DataFrame:
        """Return what happened to its rows from a snapshot or time to another."""

    def write(self, verb: RowVerb, rows: DataFrame, evolution: Evolution, **how: object) -> None:
        """Write rows, which may change columns as ``evolution`` says; ``how`` is for the verb."""

    def merge(
        self, source: DataFrame, on: Column, clauses: Sequence[MergeClause], evolves: bool
    ) -> None:
        """Merge a source into it, as one commit."""


def read_as(table: LakeTable, wanted: ReadOptions) -> DataFrame:
    """Return the rows of a table that the options of a reader ask for."""
    if wanted.changes is not None:
        return table.changes(*wanted.changes)
    return table.read(wanted.version, wanted.timestamp)


FindTable = Callable[[SparkSession, str], LakeTable | None]
"""Returns the lake's table for a name in a session, None if the name is not in a lake."""
