"""APPEND: rows in, files out, ready for a commit."""

from __future__ import annotations

from shelduck.model.tables.table import TableVersion
from shelduck.operations.done import Done, appended, inlined
from shelduck.operations.progress import write_progress
from shelduck.operations.write.inlining import NOTHING_INLINED, Limits, moved_to_catalog
from shelduck.operations.write.write_rows import write_rows
from shelduck.spark.rows.assign import assign
from shelduck.spark.session import DataFrame, SparkSession
from shelduck.spark.write.small import small_rows
from shelduck.spark.write.write import Register
from shelduck.sql.ddl.defaults import expression_for_spark


def append_rows(
    spark: SparkSession,
    rows: DataFrame,
    table: TableVersion,
    *,
    by_position: bool = False,
    show_progress: bool | None = None,
    limits: Limits = NOTHING_INLINED,
    in_one_task: bool = False,
    register: Register | None = None,
) -> Done:
    """Write rows as new files of a table and return what was written; nothing is committed.

    Few rows are kept for the catalog instead, as ``limits`` say, and no file is left. If Spark's
    plan already contains them, they are taken without a Spark job. ``register`` is called
    before files are written.

    Raises InvalidRequest, before any work if names or types do not fit, and while writing if a
    value does not fit; no file is left then.
    """
    fitting = assign(rows, table, render_expression=expression_for_spark, by_position=by_position)
    if limits.new:
        batch = small_rows(fitting, table, limits.new)
        if batch is not None and batch.can_be_kept:
            return inlined(table, batch)
    if in_one_task:
        fitting = fitting.coalesce(1)
    if register is not None:
        table = register(table)
    with write_progress(spark, table.full_name, show=show_progress) as progress:
        done = appended(table, write_rows(spark, fitting, table, progress=progress))
    return moved_to_catalog(done, limits.new)
