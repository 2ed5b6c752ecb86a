"""UPDATE: changed rows as new versions in new files, which keep their row ids."""

from __future__ import annotations

from collections.abc import Sequence

from shelduck.errors import Unsupported
from shelduck.model.tables.schema import is_reserved
from shelduck.model.tables.table import TableVersion
from shelduck.model.text.quoting import quote_name
from shelduck.operations.done import Counts, Done
from shelduck.operations.read.rows import TableRows
from shelduck.operations.write.changed import write_changed
from shelduck.operations.write.delete import ORIGINS
from shelduck.operations.write.inlining import NOTHING_INLINED, Limits
from shelduck.operations.write.unique_keys import require_unique, sets_keys
from shelduck.operations.write.versions import Versions, write_versions
from shelduck.spark.rows.assignments import Assignments, SetValue, updated_rows
from shelduck.spark.scan.matching import Where
from shelduck.spark.session import SparkSession, has_jvm
from shelduck.spark.write.changes import UPDATED, marked
from shelduck.spark.write.kept import keep
from shelduck.sql.ddl.defaults import expression_for_spark


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
