"""Writing rows of several files into one, with their row ids and snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import engine_for
from shelduck.errors import Unsupported
from shelduck.model.files.data_file import ROW_ID_COLUMN, SNAPSHOT_COLUMN, NewDataFile
from shelduck.model.shadows.copied import CopiedFile
from shelduck.model.tables.schema import FieldId
from shelduck.model.tables.table_version import TableVersion, is_shadow
from shelduck.model.text.names import backticked
from shelduck.read.scan.scan_frames import Origin
from shelduck.write.parquet.clustering import clustering_of
from shelduck.write.parquet.kept import versions
from shelduck.write.parquet.write import PLACE, Writing, WrittenFiles, task_of, write_files

_MOST_AT_ONCE = 16


def write_together(
    spark: SparkSession, parts: Sequence[DataFrame], table: TableVersion, *, snapshots: bool
) -> list[tuple[NewDataFile, ...]]:
    """Write the rows of each part into one file, by one task of one job; return the files of each.

    ``parts`` are rows of `shelduck.read.scan.scan_frames.read_rows` with the origin ROW_ID, and
    SNAPSHOT_ID if ``snapshots`` are kept. They are sorted by the table's sort order; without one,
    they stay in the order in which they are read. A part without rows has no file.
    """
    columns = [F.col(backticked(f.name)) for f in table.columns]
    kept = {ROW_ID_COLUMN: Origin.ROW_ID}
    if snapshots:
        kept[SNAPSHOT_COLUMN] = Origin.SNAPSHOT_ID
    columns += [F.col(origin).alias(name) for name, origin in kept.items()]
    order = _order(table)
    alone = [rows.select(*columns).coalesce(1) for rows in parts]
    alone = [rows.sortWithinPartitions(*order) for rows in alone] if order else alone
    how = Writing(lineage=tuple(kept), arranges=False, moved=_moved(table))
    return _written(spark, alone, table, how)


def write_copied(
    spark: SparkSession,
    parts: Sequence[DataFrame],
    table: TableVersion,
    copied: Sequence[CopiedFile],
) -> list[tuple[NewDataFile, ...]]:
    """Write the new columns of each part beside a copy of its file; return the file of each.

    ``parts`` are the rows of one file each, with the origins `PLACE`, and the columns of ``table``.
    The same columns of all files are renewed.
    """
    how = Writing(arranges=False, copied=tuple(copied), moved=_moved(table))
    made = [F.col(backticked(f.name)) for f in table.columns if how.makes(f)]
    alone = [rows.select(*made, *map(F.col, PLACE)).coalesce(1) for rows in parts]
    return _written(spark, alone, table, how)


def _written(
    spark: SparkSession, alone: Sequence[DataFrame], table: TableVersion, how: Writing
) -> list[tuple[NewDataFile, ...]]:
    """Write rows of one partition each by one task each of one job; return the files of each."""
    together = reduce(DataFrame.unionAll, alone)
    if len(alone) > 1:
        # If every part has one partition, Spark's union combines them into one partition, unless it
        # does not know the partitions of some part. This part has none, and no task.
        nothing = spark.range(0).select(
            *[F.lit(None).cast(f.dataType).alias(f.name) for f in together.schema]
        )
        together = together.unionAll(nothing)
    written = write_files(spark, together, table, how)
    if len(alone) == 1:
        return [written.files]
    return [tuple(f for f in written.files if task_of(f.path) == n) for n in range(len(alone))]


def writes_several(spark: SparkSession) -> bool:
    """Return whether `write_together` accepts several parts: names of files must identify tasks."""
    return engine_for(spark).numbers_files


def write_arranged(spark: SparkSession, rows: DataFrame, table: TableVersion) -> WrittenFiles:
    """Write rows like new rows: in files by the table's partitions, in its sort order.

    ``rows`` are those of `shelduck.read.scan.scan_frames.read_rows` with the origin ROW_ID.
    """
    own = versions(rows, table, with_row_ids=True).coalesce(1)
    how = Writing(lineage=(ROW_ID_COLUMN,), sorts=True, moved=_moved(table))
    return write_files(spark, own, table, how)


def at_once(spark: SparkSession) -> int:
    """Return how many files may be written in parallel."""
    return max(1, min(_MOST_AT_ONCE, engine_for(spark).parallelism))


def file_ids(rows: DataFrame) -> set[int]:
    """Return the ids of the data files from which rows with the origin FILE_ID come."""
    return {row[0] for row in rows.select(F.col(Origin.FILE_ID)).distinct().collect()}


def _moved(table: TableVersion) -> list[FieldId]:
    """Return the columns whose values come from files: all but those that a job makes."""
    return [f.id for f in table.columns if not is_shadow(f)]


def _order(table: TableVersion) -> tuple[Column, ...]:
    try:
        return clustering_of(table).order
    except Unsupported:
        # A sort order is not binding; an order that only DuckDB can evaluate is left to DuckDB.
        return ()
