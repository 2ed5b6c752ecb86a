"""APPEND: rows in, files out, ready for a commit."""

from __future__ import annotations

from shelduck.errors import Unsupported
from shelduck.model.table import TableVersion
from shelduck.operations.done import Done, appended
from shelduck.operations.progress import write_progress
from shelduck.spark.assign import assign
from shelduck.spark.session import DataFrame, SparkSession
from shelduck.spark.write import write_files
from shelduck.sql.defaults import expression_for_spark


def append_rows(
    spark: SparkSession,
    rows: DataFrame,
    table: TableVersion,
    *,
    by_position: bool = False,
    show_progress: bool | None = None,
) -> Done:
    """Write rows as new files of a table and return what was written; nothing is committed.

    Raises InvalidRequest, before any work when names or types do not fit, and while writing when a
    value does not; no file is left behind then.
    """
    _refuse_unwritable(table)
    fitting = assign(rows, table, render_expression=expression_for_spark, by_position=by_position)
    with write_progress(spark, table.full_name, show=show_progress) as progress:
        return appended(table, write_files(spark, fitting, table, progress=progress))


def _refuse_unwritable(table: TableVersion) -> None:
    if table.partition:
        raise Unsupported(
            f"table {table.full_name} is partitioned, and Shelduck does not write partitioned files"
            " yet; insert with DuckDB, or ALTER TABLE … RESET PARTITIONED BY there first"
        )
