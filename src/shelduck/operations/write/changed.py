"""Rows that an UPDATE or MERGE changes, written in one pass with where they were."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from shelduck.model.changes.change import AppendFiles, DeleteRows
from shelduck.operations.done import Counts, Done, discard
from shelduck.operations.progress import write_progress
from shelduck.operations.read.rows import TableRows
from shelduck.operations.write.delete import deleted
from shelduck.operations.write.inlining import NOTHING_INLINED, Limits, moved_to_catalog
from shelduck.operations.write.write_rows import write_rows
from shelduck.spark.deletes.delete_files import write_delete_files
from shelduck.spark.files.physical import ROW_ID_COLUMN
from shelduck.spark.session import DataFrame, SparkSession
from shelduck.spark.write.changes import DELETED, UPDATED, Origins
from shelduck.spark.write.write import Writing, WrittenFiles

_TASK_BYTES = 128 * 1024 * 1024
# A scan of less than this is as quick in one task, and one task writes one file.
_ONE_TASK = 16 * 1024 * 1024
# Up to this many tasks write their own files; the rows of more are brought together.
_MOST_TASKS = 8


def write_changed(
    spark: SparkSession,
    rows: TableRows,
    changed: DataFrame,
    *,
    limits: Limits = NOTHING_INLINED,
    contested: Callable[[int], None] | None = None,
    show_progress: bool | None = None,
) -> Done:
    """Write changed rows and deletes by one Spark job; nothing is committed.

    ``changed`` has the table's columns, `ROW_ID_COLUMN` and the columns of
    `shelduck.spark.write.changes`. ``contested`` is called with the number of rows that are changed
    more than once, if that can happen, and may refuse them.
    """
    table = rows.table
    with write_progress(spark, table.full_name, show=show_progress) as progress:
        how = Writing(lineage=(ROW_ID_COLUMN,), spreads=bool(table.partition), changes=True)
        few = _in_few_tasks(changed, rows.bytes)
        written = write_rows(spark, few, table, how, progress=progress)
    paths = [f.path for f in written.files]
    try:
        origins = written.origins
        assert origins is not None
        if contested is not None:
            origins, several = origins.distinct()
            contested(several)
        counts = _counts(written, origins)
        if not counts.rows:
            return Done(table)
        gone = _deletes(spark, rows, origins, limits.deleted)
    except BaseException:
        discard(table, paths)
        raise
    changes = gone.changes or (DeleteRows(table),)
    if written.files:
        changes = (*changes, AppendFiles(table.id, written.files, table))
    counts = replace(counts, files=len(paths), bytes=written.bytes)
    done = Done(table, changes, (*paths, *gone.paths), counts)
    return moved_to_catalog(done, limits.new)


def _in_few_tasks(changed: DataFrame, size: int) -> DataFrame:
    """Return rows of files of that size in so many parts that each part is worth a file."""
    if size <= _ONE_TASK:
        return changed.coalesce(1)
    return changed if size <= _MOST_TASKS * _TASK_BYTES else changed.hint("rebalance")


def _counts(written: WrittenFiles, origins: Origins) -> Counts:
    updated, gone = origins.count(UPDATED), origins.count(DELETED)
    return Counts(written.rows - updated, updated, gone)


def _deletes(spark: SparkSession, rows: TableRows, origins: Origins, few: int) -> Done:
    dead = {}
    if rows.files:
        dead = write_delete_files(spark, origins.positions, rows, rows.table, few=few)
    return deleted(rows, dead, origins.inlined)
