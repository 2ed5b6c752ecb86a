"""Writing rows into files, with the columns that an open job of the table converts.

If the new type cannot hold a value, the write that brings it fails, and the job continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from shelduck.errors import InvalidRequest
from shelduck.model.tables.shadow import shadow_name
from shelduck.model.tables.table import TableVersion
from shelduck.model.text.quoting import backticked
from shelduck.planning.shadows import Shadow, known_shadows, with_shadows
from shelduck.spark.rows.shadow_rows import LOST, add_shadows
from shelduck.spark.session import AnalysisException, DataFrame, SparkSession
from shelduck.spark.write.changes import MARKS
from shelduck.spark.write.write import NEW_ROWS, Progress, Writing, WrittenFiles, write_files


def write_rows(
    spark: SparkSession,
    rows: DataFrame,
    table: TableVersion,
    how: Writing = NEW_ROWS,
    *,
    progress: Progress | None = None,
) -> WrittenFiles:
    """Write assigned rows as `write_files` does, with the columns of an open job beside them.

    If columns of a job no longer exist, or its expression names such a column, nothing is written
    for it: the job ends by itself.
    """
    shadows = known_shadows(table, table.conversions)
    write = partial(write_files, spark, how=how, progress=progress)
    behind = (*how.lineage, *MARKS) if how.changes else how.lineage
    with_both = None if isinstance(shadows, str) else _with_shadows(rows, table, shadows, behind)
    if isinstance(shadows, str) or with_both is None:
        return write(rows, table)
    target = with_shadows(table, shadows)
    try:
        return write(with_both, target)
    except InvalidRequest as error:
        if LOST not in str(error):
            raise
        raise InvalidRequest(
            f"{error}; a job is changing types of {table.full_name}, and new rows must fit the new"
            f" types, too; correct them, or use CANCEL ALTER TABLE COLUMN FROM {table.full_name}"
        ) from error


def _with_shadows(
    rows: DataFrame, table: TableVersion, shadows: Sequence[Shadow], behind: Sequence[str]
) -> DataFrame | None:
    if not shadows:
        return None
    names = (*table.columns.names, *(shadow_name(s.field) for s in shadows), *behind)
    try:
        found = add_shadows(rows, shadows).select(*map(backticked, names))
        # Over Spark Connect, only a request for the schema finds names that do not exist.
        _ = found.schema
    except AnalysisException:
        return None
    return found
