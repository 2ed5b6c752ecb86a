"""APPEND: rows in, files out, ready for a commit."""

from __future__ import annotations

from shelduck.errors import Unsupported
from shelduck.model.schema import Field
from shelduck.model.table import TableVersion
from shelduck.operations.progress import write_progress
from shelduck.spark.assign import assign
from shelduck.spark.session import DataFrame, SparkSession
from shelduck.spark.write import WrittenFiles, discard_files, write_files
from shelduck.sql.defaults import expression_for_spark

WrittenRows = WrittenFiles


def append_rows(
    spark: SparkSession,
    rows: DataFrame,
    table: TableVersion,
    *,
    by_position: bool = False,
    show_progress: bool | None = None,
) -> WrittenRows:
    """Write rows as new files of a table and return what was written; nothing is committed.

    Raises InvalidRequest, before any work when names or types do not fit, and while writing when a
    value does not; no file is left behind then.
    """
    _refuse_unwritable(table)
    fitting = assign(rows, table, render_expression=expression_for_spark, by_position=by_position)
    with write_progress(spark, table.full_name, show=show_progress) as progress:
        return write_files(spark, fitting, table, progress=progress)


def discard(table: TableVersion, written: WrittenRows) -> None:
    """Delete written files that will not be committed."""
    discard_files(table, written.files)


def default_sql(field: Field) -> str:
    """Return the Spark SQL of what a column gets when a row says DEFAULT."""
    if field.default is None:
        return "NULL"
    if not field.default.literal:
        return expression_for_spark(field.default.text)
    quoted = field.default.text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{quoted}'"


def _refuse_unwritable(table: TableVersion) -> None:
    if table.partition:
        raise Unsupported(
            f"table {table.full_name} is partitioned, and Shelduck does not write partitioned files"
            " yet; insert with DuckDB, or ALTER TABLE … RESET PARTITIONED BY there first"
        )
