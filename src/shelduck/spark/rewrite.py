"""Rows of several files into one, with the row ids and snapshots that they have."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.errors import Unsupported
from shelduck.model.quoting import backticked
from shelduck.model.table import TableVersion
from shelduck.spark.bridge import bridge_for
from shelduck.spark.clustering import clustering_of
from shelduck.spark.kept import versions
from shelduck.spark.physical import ROW_ID_COLUMN, SNAPSHOT_COLUMN
from shelduck.spark.read import Origin
from shelduck.spark.write import WrittenFiles, write_files

_MOST_AT_ONCE = 16
# Over Spark Connect nobody tells how many tasks run at once.
_UNKNOWN = 4


def write_together(
    spark: SparkSession,
    rows: DataFrame,
    table: TableVersion,
    *,
    snapshots: bool,
) -> WrittenFiles:
    """Write rows of one partition into one file, by one task.

    ``rows`` are those of `shelduck.spark.read.read_rows` with the origin ROW_ID, and SNAPSHOT_ID
    where ``snapshots`` are kept. They are sorted by the table's sort order; without one they stay
    as they are read.
    """
    columns = [F.col(backticked(f.name)) for f in table.columns]
    kept = {ROW_ID_COLUMN: Origin.ROW_ID}
    if snapshots:
        kept[SNAPSHOT_COLUMN] = Origin.SNAPSHOT_ID
    columns += [F.col(origin).alias(name) for name, origin in kept.items()]
    together = rows.select(*columns).coalesce(1)
    order = _order(table)
    if order:
        together = together.sortWithinPartitions(*order)
    return write_files(spark, together, table, lineage=tuple(kept), arranges=False)


def write_arranged(spark: SparkSession, rows: DataFrame, table: TableVersion) -> WrittenFiles:
    """Write rows into files as new ones are: by the table's partitions, sorted by its sort order.

    ``rows`` are those of `shelduck.spark.read.read_rows` with the origin ROW_ID.
    """
    own = versions(rows, table, with_row_ids=True).coalesce(1)
    return write_files(spark, own, table, lineage=(ROW_ID_COLUMN,), sorts=True)


def at_once(spark: SparkSession) -> int:
    """Return how many files may be written side by side."""
    if bridge_for(spark) is None:
        return _UNKNOWN
    return max(1, min(_MOST_AT_ONCE, spark.sparkContext.defaultParallelism))


def file_ids(rows: DataFrame) -> set[int]:
    """Return the ids of the data files that rows with the origin FILE_ID come from."""
    return {row[0] for row in rows.select(F.col(Origin.FILE_ID)).distinct().collect()}


def _order(table: TableVersion) -> tuple[Column, ...]:
    try:
        return clustering_of(table).order
    except Unsupported:
        # A sort order is advice, and one that only DuckDB can evaluate is left to DuckDB.
        return ()
