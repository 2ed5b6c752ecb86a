"""UPDATE: changed rows as new versions in new files, which keep their row ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from shelduck.errors import Unsupported
from shelduck.model.changes.change import AppendFiles, DeleteRows
from shelduck.model.tables.schema import is_reserved
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.quoting import quote_name
from shelduck.operations.done import Counts, Done, discard
from shelduck.operations.progress import write_progress
from shelduck.operations.read.table_rows import TableRows
from shelduck.operations.write.append import write_rows
from shelduck.operations.write.delete import ORIGINS, deleted
from shelduck.operations.write.inlining import NOTHING_INLINED, Limits, moved_to_catalog
from shelduck.operations.write.unique_keys import (
    Versions,
    require_unique,
    sets_keys,
    write_versions,
)
from shelduck.spark.deletes.delete_files import write_delete_files
from shelduck.spark.files.physical import ROW_ID_COLUMN
from shelduck.spark.rows.assignments import Assignments, SetValue, updated_rows
from shelduck.spark.scan.matching import Where
from shelduck.spark.session import DataFrame, SparkSession, has_jvm
from shelduck.spark.write.kept import keep
from shelduck.spark.write.origins import DELETED, UPDATED, Origins, marked
from shelduck.spark.write.write import Writing, WrittenFiles
from shelduck.sql.ddl.defaults import expression_for_spark

_TASK_BYTES = 128 * 1024 * 1024
# A scan of less than this is as quick in one task, and one task writes one file.
_ONE_TASK = 16 * 1024 * 1024
# Up to this many tasks write their own files; the rows of more are brought together.
_MOST_TASKS = 8


def update_rows(
    spark: SparkSession,
    rows: TableRows,
    values: Sequence[SetValue],
    where: Where | None,
    *,
    alias: str | None = None,
    limits: Limits = NOTHING_INLINED,
    show_progress: bool | None = None,
) -> Done:
    """Return the update of the rows that match, all without ``where``; nothing is committed.

    ``alias`` is the name of the table in the values. Rows are chosen and computed once, by one job.
    A row counts as updated even if its values stay the same.
    """
    table = rows.table
    require_free_names(table)
    assignments = Assignments(table, values)
    frame = rows.frame(spark, origins=ORIGINS)
    if alias is not None:
        frame = frame.alias(alias)
    matches = frame if where is None else where.rows(frame)
    changed = updated_rows(
        matches, assignments, keep=ORIGINS, render_expression=expression_for_spark
    )
    keys = sets_keys(table, [value.path for value in values])
    if has_jvm(spark) and not keys:
        found = marked(changed, table, UPDATED)
        return write_changed(spark, rows, found, limits=limits, show_progress=show_progress)
    kept = keep(changed)
    if not kept.count:
        return Done(table)
    versions = Versions(Counts(updated=kept.count), updated=kept.rows, dead=kept.rows)
    if keys:
        require_unique(spark, rows, versions, "UPDATE")
    return write_versions(spark, rows, versions, limits=limits, show_progress=show_progress)


def require_free_names(table: TableVersion) -> None:
    """Refuse another writer's table with column names that changes of rows reserve."""
    for field in table.columns:
        if is_reserved(field.name):
            raise Unsupported(
                f"column {quote_name(field.name)} of {table.full_name} has a reserved name, so"
                " rows cannot be changed; rename the column first"
            )


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
    `shelduck.spark.write.origins`. ``contested`` is called with the number of rows that are changed
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
