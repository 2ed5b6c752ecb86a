"""MERGE: rows of a table updated, deleted and inserted by those of a source, at once."""

from __future__ import annotations

from shelduck.errors import InvalidRequest
from shelduck.operations.done import Counts, Done
from shelduck.operations.read.rows import TableRows
from shelduck.operations.write.delete import ORIGINS
from shelduck.operations.write.unique_keys import require_unique
from shelduck.operations.write.update import require_free_names
from shelduck.operations.write.versions import Versions, write_versions
from shelduck.spark.merge.merge_clauses import Action, Merge
from shelduck.spark.merge.merge_rows import by_action, merged_rows, tally
from shelduck.spark.session import DataFrame, SparkSession
from shelduck.spark.write.kept import distinct, keep
from shelduck.sql.ddl.defaults import expression_for_spark


def merge_rows(
    spark: SparkSession,
    rows: TableRows,
    source: DataFrame,
    merge: Merge,
    *,
    few: int = 0,
    few_rows: int = 0,
    show_progress: bool | None = None,
) -> Done:
    """Return the merge of ``source`` into a table; nothing is committed.

    The join runs once, and its result is kept until it is written. Raises InvalidRequest if several
    rows of the source would change one row of the table.
    """
    table = rows.table
    require_free_names(table)
    found = keep(
        merged_rows(
            rows.frame(spark, origins=ORIGINS),
            source,
            table,
            merge,
            origins=ORIGINS,
            render_expression=expression_for_spark,
        )
    ).rows
    counted = tally(found, ORIGINS)
    if counted.contested and not merge.may_match_twice:
        raise InvalidRequest(
            f"MERGE INTO {table.full_name}: {counted.contested} row(s) of the table match several"
            " rows of the source, so the result is ambiguous; make the source unique by the"
            " columns of ON"
        )
    counts = Counts(counted.inserted, counted.updated, counted.deleted)
    if not counts.rows:
        return Done(table)
    versions = _versions(found, counts, is_contested=bool(counted.contested))
    require_unique(spark, rows, versions, "MERGE")
    return write_versions(
        spark, rows, versions, few=few, few_rows=few_rows, show_progress=show_progress
    )


def _versions(found: DataFrame, counts: Counts, *, is_contested: bool) -> Versions:
    """Return what a merge makes of rows, each of which has its action."""
    dead = None
    if counts.updated or counts.deleted:
        dead = by_action(found, Action.UPDATE, Action.DELETE)
        dead = distinct(dead, ORIGINS) if is_contested else dead
    return Versions(
        counts,
        updated=by_action(found, Action.UPDATE) if counts.updated else None,
        inserted=by_action(found, Action.INSERT) if counts.inserted else None,
        dead=dead,
    )
