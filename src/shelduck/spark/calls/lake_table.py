"""What the calls of Spark that get to no catalog ask of a lake's table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from shelduck.spark.merge.merge_clauses import MergeClause


class LakeTable(Protocol):
    """A table of a lake, by the name that a call gave it; its errors are Spark's too."""

    @property
    def name(self) -> str:
        """Its name in the lake."""

    @property
    def is_there(self) -> bool:
        """Whether the lake has such a table."""

    @property
    def is_partitioned(self) -> bool:
        """Whether it is there and has partitions."""

    def create(self, columns: StructType, partitioned_by: Sequence[str]) -> None:
        """Create it; files hold rows of one value of each of these columns."""

    def sink(self, *, replaces: bool, merge_schema: bool) -> Callable[[DataFrame, int], None]:
        """Return a function for ``foreachBatch`` that brings each batch into it once.

        ``replaces`` says that a batch takes the place of all rows.
        """

    def read(self, version: int | None, timestamp: str | None) -> DataFrame:
        """Return its rows as of a snapshot."""

    def changes(self, start: int | str, end: int | str | None) -> DataFrame:
        """Return what happened to its rows from a snapshot or time to another."""

    def overwrite(self, rows: DataFrame, where: str) -> None:
        """Put rows in the place of those for which a condition is true."""

    def append(self, rows: DataFrame) -> None:
        """Append rows by the names of their columns, and add those that it lacks."""

    def overwrite_partitions(self, rows: DataFrame, *, by_position: bool) -> None:
        """Replace the partitions that rows are in."""

    def merge(
        self, source: DataFrame, on: Column, clauses: Sequence[MergeClause], evolves: bool
    ) -> None:
        """Merge a source into it, as one commit."""


FindTable = Callable[[SparkSession, str], LakeTable | None]
"""Returns the lake's table that a name means in a session, None when it means none of a lake."""
