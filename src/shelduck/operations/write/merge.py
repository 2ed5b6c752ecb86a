"""MERGE: rows of a table updated, deleted and inserted by those of a source, at once."""

from __future__ import annotations

from functools import partial

from shelduck.errors import InvalidRequest
from shelduck.model.tables.computed import COMPUTED
from shelduck.model.tables.table_version import TableVersion
from shelduck.operations.done import Counts, Done
from shelduck.operations.read.table_rows import TableRows
from shelduck.operations.write.delete import ORIGINS, deleted
from shelduck.operations.write.identities import with_numbers
from shelduck.operations.write.inlining import NOTHING_INLINED, Limits
from shelduck.operations.write.update import (
    Versions,
    require_free_names,
    row_rules,
    write_changed,
    write_versions,
)
from shelduck.spark.bridge.named import unaliased
from shelduck.spark.merge.key_ranges import near_source, small_source
from shelduck.spark.merge.merge_clauses import Merge, MergeAction, When
from shelduck.spark.merge.merge_rows import by_action, merged_rows, tally
from shelduck.spark.merge.merge_scopes import columns_of_match
from shelduck.spark.session import DataFrame, SparkSession, has_jvm
from shelduck.spark.write.kept import distinct, keep
from shelduck.spark.write.origins import marked
from shelduck.sql.ddl.defaults import expression_for_spark


def merge_rows(
    spark: SparkSession,
    rows: TableRows,
    source: DataFrame,
    merge: Merge,
    *,
    limits: Limits = NOTHING_INLINED,
    show_progress: bool | None = None,
) -> Done:
    """Return the merge of ``source`` into a table; nothing is committed.

    The join runs once. A small source is computed first: its keys say which files to read. Raises
    InvalidRequest if several rows of the source would change one row of the table.
    """
    table = rows.table
    require_free_names(table)
    changed = _changed(spark, rows, source, merge)
    if COMPUTED in table.properties:
        changed = with_numbers(changed, table, limits)
    refuse = partial(_refuse, table, merge)
    if has_jvm(spark) and row_rules(table) is None:
        return write_changed(
            spark,
            rows,
            marked(changed, table),
            limits=limits,
            contested=None if merge.only_inserts else refuse,
            show_progress=show_progress,
        )
    found = keep(changed).rows
    counted = tally(found, ORIGINS)
    refuse(counted.contested)
    counts = Counts(counted.inserted, counted.updated, counted.deleted)
    if not counts.rows:
        return deleted(rows, {}, ())
    versions = _versions(found, counts, is_contested=bool(counted.contested))
    rules = row_rules(table)
    if rules is not None:
        rules.require(spark, rows, versions, "MERGE")
    return write_versions(spark, rows, versions, limits=limits, show_progress=show_progress)


def _changed(spark: SparkSession, rows: TableRows, source: DataFrame, merge: Merge) -> DataFrame:
    """Return a row for each change; of a small source, the files that can match are read."""
    target = unaliased(rows.frame(spark, origins=ORIGINS))
    kept = small_source(source)
    if kept is not None:
        source = kept.rows
        if not merge.of(When.NOT_MATCHED_BY_SOURCE) and len(rows.files) > 1:
            near = near_source(kept, rows.table, columns_of_match(target, source, merge))
            target = target if near is None else target.where(near)
    return merged_rows(
        target,
        source,
        rows.table,
        merge,
        origins=ORIGINS,
        render_expression=expression_for_spark,
        shares=kept is not None,
    )


def _refuse(table: TableVersion, merge: Merge, contested: int) -> None:
    if contested and not merge.may_match_twice:
        raise InvalidRequest(
            f"MERGE INTO {table.full_name}: {contested} row(s) of the table match several rows of"
            " the source, so the result is ambiguous; make the source unique by the columns of ON"
        )


def _versions(found: DataFrame, counts: Counts, *, is_contested: bool) -> Versions:
    """Return what a merge makes of rows, each of which has its action."""
    dead = None
    if counts.updated or counts.deleted:
        dead = by_action(found, MergeAction.UPDATE, MergeAction.DELETE)
        dead = distinct(dead, ORIGINS) if is_contested else dead
    return Versions(
        counts,
        updated=by_action(found, MergeAction.UPDATE) if counts.updated else None,
        inserted=by_action(found, MergeAction.INSERT) if counts.inserted else None,
        dead=dead,
    )
