"""Rows that others replace: those of the same partitions, or those of a condition.

A restore asks for rows that a table had at an older snapshot, and that it did not have then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Protocol

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.engine.types import literal
from shelduck.model.files.data_file import NewDataFile
from shelduck.model.tables.partition import IDENTITY
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.read.scan.change_feed import CHANGE_TYPE, ROW_ID, VERSION, Feed, departures
from shelduck.read.scan.matching import Where, as_condition
from shelduck.read.scan.scan_frames import Origin
from shelduck.write.parquet.kept import parts_of_bytes
from shelduck.write.parquet.partition_keys import PartitionKey, directory_text, partition_keys

_KEY = "__shelduck_key_{}"
_MISFIT = "__shelduck_misfit"
_FEW_VALUES = 1000


@dataclass(frozen=True)
class InPartitions:
    """Rows in the partitions of ``new``: rows of the same table that were just written to files."""

    spark: SparkSession
    table: TableVersion
    new: DataFrame
    files: Sequence[NewDataFile]

    def rows(self, frame: DataFrame) -> DataFrame:
        """Return the rows of ``frame`` whose partition has a row in ``new``; origins only."""
        keys = partition_keys(self.table)
        names = [_KEY.format(n) for n in range(len(keys))]
        texts = [directory_text(self.spark, k).alias(n) for k, n in zip(keys, names, strict=True)]
        present = self.new.select(*texts).distinct()
        near = [found for n, k in enumerate(keys) if (found := self._values(n, k)) is not None]
        if near:
            frame = frame.where(reduce(and_, near))
        origins = [o for o in Origin if o in frame.columns]
        return frame.select(*texts, *origins).join(F.broadcast(present), names, "left_semi")

    def _values(self, place: int, key: PartitionKey) -> Column | None:
        """Return a condition by which files can be skipped; None if there is none."""
        values = {file.partition_values[place] for file in self.files}
        if key.transform.kind != IDENTITY or len(values) > _FEW_VALUES:
            return None
        column = F.col(backticked(key.field.name))
        known = [column == literal(v, key.leaf) for v in values if v is not None]
        return reduce(or_, known + ([column.isNull()] if None in values else []))


def counting_misfits(rows: DataFrame, where: Where) -> tuple[DataFrame, Callable[[], int]]:
    """Return rows, and a function that says after the write how many of them fail a condition."""
    named = rows if where.alias is None else rows.alias(where.alias)
    misfit = ~F.coalesce(as_condition(where.condition), F.lit(False))
    marked = named.select("*", misfit.alias(_MISFIT))
    seen = Observation()
    counted = marked.observe(seen, F.count(F.when(F.col(_MISFIT), 1)).alias("misfits"))
    return counted.drop(_MISFIT), lambda: int(seen.get.get("misfits", 0))


class Frame(Protocol):
    """Returns the rows of a table, followed by their origins."""

    def __call__(
        self, spark: SparkSession, columns: None = None, origins: tuple[Origin, ...] = ()
    ) -> DataFrame:
        """Return the rows."""


def lost_rows(spark: SparkSession, feed: Feed, seen_at: int, row_id: str) -> DataFrame:
    """Return the rows that existed at a snapshot and were deleted since, row ids last."""
    found = departures(spark, feed, "", seen_at).drop(CHANGE_TYPE, VERSION)
    names = [F.col(backticked(n)) for n in feed.table.columns.names]
    size = sum(f.file_size_bytes for f, _ in feed.plan.ended)
    size += sum(f.file_size_bytes for f in feed.plan.thinned)
    made = found.select(*names, F.col(ROW_ID).alias(row_id))
    return made.coalesce(parts_of_bytes(size))


def later_rows(spark: SparkSession, frame: Frame, seen_at: int) -> DataFrame:
    """Return file and position of the rows that were added after a snapshot."""
    rows = frame(spark, None, (Origin.FILE_ID, Origin.POSITION, Origin.SNAPSHOT_ID))
    later = rows.where(F.col(Origin.SNAPSHOT_ID) > seen_at)
    return later.select(Origin.FILE_ID, Origin.POSITION)
