"""LOAD: rows into a table with a key model, each key once, in one snapshot (merge on write)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shelduck.model.changes.change import DeleteRows
from shelduck.operations.done import Counts, Done, appended
from shelduck.operations.progress import write_progress
from shelduck.operations.read.table_rows import TableRows
from shelduck.operations.write.append import write_rows
from shelduck.operations.write.delete import ORIGINS
from shelduck.operations.write.inlining import NOTHING_INLINED, Limits, moved_to_catalog
from shelduck.operations.write.unique_keys import Versions, folding_of, write_versions
from shelduck.operations.write.update import require_free_names
from shelduck.spark.merge.folding import GONE, Folding
from shelduck.spark.merge.key_ranges import near_keys
from shelduck.spark.merge.load_rows import (
    alive_rows,
    dying,
    folded_again,
    fresh_rows,
    matched_rows,
    outcomes,
    rows_of_keys,
    with_order,
)
from shelduck.spark.merge.merge_clauses import MergeAction
from shelduck.spark.merge.merge_rows import by_action
from shelduck.spark.scan.scan_frames import Origin
from shelduck.spark.session import DataFrame, SparkSession
from shelduck.spark.write.kept import NUMBER, bring, can_bring, keep, shared
from shelduck.spark.write.origins import ACTION


@dataclass(frozen=True, slots=True)
class Loaded:
    """A load, and its rows after folding, kept; None if there were no rows."""

    done: Done
    rows: DataFrame | None = None


def load_rows(
    spark: SparkSession,
    rows: TableRows,
    new: DataFrame,
    *,
    limits: Limits = NOTHING_INLINED,
    show_progress: bool | None = None,
) -> Loaded:
    """Return the load of ``new`` into a UNIQUE or AGGREGATE table; nothing is committed.

    ``new`` are rows from `shelduck.spark.merge.load_rows.ordered`. First, rows of one key are
    folded. Then the table's rows with these keys are looked up in the files whose key range
    overlaps theirs, and replaced or combined. A row that changes keeps its row id.

    Raises InvalidRequest for a value that does not fit its column, including sums.
    """
    folding = folding_of(rows.table)
    assert folding is not None
    require_free_names(rows.table)
    if not rows.files and not any(part.row_ids for part in rows.inlined):
        return _first(spark, folding, new, limits, show_progress)
    found = _few(spark, rows, folding, new) if can_bring(new) else _many(spark, rows, folding, new)
    if found is None or not found.versions.counts.rows:
        return Loaded(Done(rows.table))
    done = write_versions(spark, rows, found.versions, limits=limits, show_progress=show_progress)
    return Loaded(done, found.rows)


@dataclass(frozen=True, slots=True)
class _Found:
    """Folded rows, and what they change."""

    rows: DataFrame
    versions: Versions


def _many(spark: SparkSession, rows: TableRows, folding: Folding, new: DataFrame) -> _Found | None:
    """Return what any number of rows change; the executors keep them. None if there are no rows."""
    folded = keep(folding.folded(new), *dying(folding))
    if not folded.count:
        return None
    source = folded.rows
    target = _near(spark, rows, folding, source, folded.count)
    met = keep(matched_rows(target, source, folding, folded.count), *outcomes())
    matched = met.rows
    updated, deleted, gone = met.holds
    alive = folded.count - sum(folded.holds)
    counts = Counts(alive - (met.count - gone), updated, deleted)
    fresh = fresh_rows(source, met, folding) if counts.inserted else None
    return _Found(source, _versions(counts, matched, fresh))


def _few(spark: SparkSession, rows: TableRows, folding: Folding, new: DataFrame) -> _Found | None:
    """Return what few rows change: one job folds them, and two look up the table's rows.

    All later steps read rows that are in the driver.
    """
    # In one part, nothing is shuffled.
    folded = bring(folding.folded(new.coalesce(1)))
    if not folded.count:
        return None
    numbered = folded.numbered
    source = numbered.rows
    target = _near(spark, rows, folding, source, folded.count)
    met = bring(matched_rows(target, source, folding, folded.count, also=[NUMBER]))
    actions = met.values(ACTION)
    updated, deleted = (actions.count(a.value) for a in (MergeAction.UPDATE, MergeAction.DELETE))
    fresh = numbered.without(NUMBER, met.values(NUMBER))
    if folding.is_unique:
        fresh = fresh.without(GONE, [True])
    counts = Counts(fresh.count, updated, deleted)
    inserted = folding.without_sign(fresh.rows) if fresh.count else None
    return _Found(source.drop(NUMBER), _versions(counts, met.rows, inserted))


def _near(
    spark: SparkSession, rows: TableRows, folding: Folding, source: DataFrame, count: int
) -> DataFrame:
    """Return the table's rows near the keys of the source, with the columns that a load needs."""
    needed = None
    if folding.is_unique:
        needed = [f.name for f in (*folding.key_fields, folding.sequence) if f is not None]
    near = near_keys(source, folding.key_fields, count)
    return rows.frame(spark, needed, ORIGINS).where(near)


def _versions(counts: Counts, matched: DataFrame, fresh: DataFrame | None) -> Versions:
    changed = counts.updated or counts.deleted
    return Versions(
        counts,
        updated=by_action(matched, MergeAction.UPDATE) if counts.updated else None,
        inserted=fresh,
        dead=by_action(matched, MergeAction.UPDATE, MergeAction.DELETE) if changed else None,
    )


def _first(
    spark: SparkSession,
    folding: Folding,
    new: DataFrame,
    limits: Limits,
    show_progress: bool | None,
) -> Loaded:
    """Return the load into a table without rows: nothing is kept, and nothing is looked up."""
    table = folding.table
    alive = alive_rows(folding.folded(new), folding)
    with write_progress(spark, table.full_name, show=show_progress) as progress:
        done = appended(table, write_rows(spark, alive, table, progress=progress))
    if done.is_nothing:
        return Loaded(done)
    done = moved_to_catalog(done, limits.new)
    # Rows that others add in the meantime may have the same keys.
    return Loaded(replace(done, changes=(DeleteRows(table), *done.changes)))


def fold_rows(
    spark: SparkSession,
    rows: TableRows,
    since: int,
    changes: DataFrame | None,
    *,
    show_progress: bool | None = None,
) -> Done:
    """Return the folding of rows that others put into the table after snapshot ``since``.

    Keys with only one row are left alone. For the others, the last row is the one that ``changes``,
    the change feed since then, has last; without a feed, it is the one in the newest file. Rows of
    one snapshot are ordered by their row ids. The remaining row keeps the smallest row id.
    """
    folding = folding_of(rows.table)
    assert folding is not None
    require_free_names(rows.table)
    frame = rows.frame(spark, None, (*ORIGINS, Origin.SNAPSHOT_ID))
    found = keep(with_order(rows_of_keys(frame, folding, since), changes)).rows
    again = keep(folded_again(found, folding))
    if not again.count:
        return Done(rows.table)
    dead = keep(rows_of_keys(found, folding, None, among=shared(again.rows, again.count)))
    counts = Counts(updated=again.count, deleted=dead.count - again.count)
    versions = Versions(counts, updated=again.rows, dead=dead.rows)
    return write_versions(spark, rows, versions, show_progress=show_progress)
