"""Each key of a table once: loads, checks of statements, and the folding of others' rows.

Rows are merged when they are written, in one snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial, reduce

from shelduck.catalog.commit.settled import is_settled, settled_at
from shelduck.engine.session import DataFrame, SparkSession
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.lake.done import Counts, Done, Loaded
from shelduck.lake.lookup import rows_of
from shelduck.lake.results import TableName
from shelduck.lake.table_changes import feed_since
from shelduck.lake.unit import UnitOfWork
from shelduck.model.changes.change import DeleteRows
from shelduck.model.changes.records import Settling
from shelduck.model.tables.keys import folds, table_keys
from shelduck.model.tables.schema import Path
from shelduck.model.tables.table_version import TableVersion
from shelduck.read.scan.matching import Where
from shelduck.read.scan.scan_frames import Origin
from shelduck.read.table_rows import TableRows
from shelduck.write.changes.append import appended, write_rows
from shelduck.write.changes.delete import ORIGINS, deleted
from shelduck.write.changes.inlining import moved_to_catalog
from shelduck.write.changes.update import (
    Replacing,
    RowRules,
    Versions,
    require_free_names,
    write_versions,
)
from shelduck.write.hooks import stage_rows
from shelduck.write.merge.folding import GONE, Folding
from shelduck.write.merge.key_ranges import near_keys
from shelduck.write.merge.load_rows import (
    alive_rows,
    dying,
    folded_again,
    fresh_rows,
    matched_rows,
    ordered,
    outcomes,
    rows_of_keys,
    some_of_keys,
    some_twice,
    with_order,
    without_rows,
)
from shelduck.write.merge.merge_clauses import MergeAction
from shelduck.write.merge.merge_rows import by_action
from shelduck.write.parquet.kept import NUMBER, bring, can_bring, keep, shared
from shelduck.write.parquet.origins import ACTION
from shelduck.write.progress import write_progress


def folding_of(table: TableVersion) -> Folding | None:
    """Return how rows of a table are folded, None for a table that keeps all of them.

    Raises Unsupported if another writer has dropped a key, because rows of several keys would be
    combined.
    """
    keys = table_keys(table)
    if keys is None or not keys.folds:
        return None
    if len(keys.key_fields(table.columns)) < len(keys.columns):
        raise Unsupported(
            f"another writer dropped a key column of {table.full_name}, so rows with different"
            " keys look the same; use RESTORE TABLE with a version that has the column, or make"
            " a new table with CREATE TABLE ... AS SELECT"
        )
    return Folding(table, keys)


def rules_of(table: TableVersion) -> RowRules | None:
    """Return the rules for the rows of a table, None for a table that keeps all of them.

    Raises what `folding_of` raises.
    """
    folding = folding_of(table)
    if folding is None:
        return None
    return RowRules(
        looks_at=partial(_sets_keys, folding),
        require=partial(_require_unique, folding),
        require_apart=partial(_require_apart, folding),
        stored=lambda fitting: folding.without_sign(folding.folded(ordered(fitting))),
        load=partial(load_rows, folding),
    )


def _sets_keys(folding: Folding, paths: Iterable[Path]) -> bool:
    """Return whether one of the assigned columns is a key."""
    names = {path[0].lower() for path in paths}
    return any(f.name.lower() in names for f in folding.key_fields)


def _require_unique(
    folding: Folding, spark: SparkSession, rows: TableRows, versions: Versions, what: str
) -> None:
    """Raise InvalidRequest if rows of a statement have a key that another row has afterwards."""
    parts = [part for part in (versions.updated, versions.inserted) if part is not None]
    if not parts:
        return
    keys = folding.key_fields
    names = [f.name for f in keys]
    new = reduce(DataFrame.unionAll, [folding.only_keys(part) for part in parts])
    counts = versions.counts
    found = some_twice(new, keys)
    if not found:
        left = rows.frame(spark, names, ORIGINS).where(near_keys(new, keys))
        if versions.dead is not None:
            left = without_rows(left, shared(versions.dead, counts.updated + counts.deleted))
        found = some_of_keys(left, shared(new, counts.updated + counts.inserted), keys)
    _refuse(found, rows.table, what)


def _require_apart(
    folding: Folding, spark: SparkSession, rows: TableRows, new: DataFrame, where: Where
) -> DataFrame:
    """Return new rows, kept, whose keys no row has that the condition keeps."""
    kept = keep(new)
    frame = rows.frame(spark, None, ORIGINS)
    left = without_rows(frame, where.rows(frame))
    found = some_of_keys(left, shared(kept.rows, kept.count), folding.key_fields)
    _refuse(found, rows.table, "INSERT … REPLACE WHERE")
    return kept.rows


def _refuse(found: tuple[object, ...], table: TableVersion, what: str) -> None:
    if found:
        told = ", ".join(map(str, found))
        raise InvalidRequest(
            f"{what} would leave several rows with the key ({told}) in {table.full_name}, where"
            " keys are unique; load the rows with INSERT INTO instead, which replaces the old"
            " ones"
        )


def load_rows(
    folding: Folding, spark: SparkSession, rows: TableRows, new: DataFrame, how: Replacing
) -> Loaded:
    """Return the load of ``new`` into a UNIQUE or AGGREGATE table; nothing is committed.

    ``new`` are rows from `shelduck.write.merge.load_rows.ordered`. First, rows of one key are
    folded. Then the table's rows with these keys are looked up in the files whose key range
    overlaps theirs, and replaced or combined. A row that changes keeps its row id.

    Raises InvalidRequest for a value that does not fit its column, including sums.
    """
    require_free_names(rows.table)
    if not rows.files and not any(part.row_ids for part in rows.inlined):
        return _first(spark, folding, new, how)
    found = _few(spark, rows, folding, new) if can_bring(new) else _many(spark, rows, folding, new)
    if found is None:
        return Loaded(Done(rows.table))
    if not found.versions.counts.rows:
        return Loaded(deleted(rows, {}, ()))
    done = write_versions(
        spark, rows, found.versions, limits=how.limits, show_progress=how.show_progress
    )
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


def _first(spark: SparkSession, folding: Folding, new: DataFrame, how: Replacing) -> Loaded:
    """Return the load into a table without rows: nothing is kept, and nothing is looked up."""
    table = folding.table
    alive = alive_rows(folding.folded(new), folding)
    with write_progress(spark, table.full_name, show=how.show_progress) as progress:
        done = appended(table, write_rows(spark, alive, table, progress=progress))
    if done.is_nothing:
        return Loaded(done)
    done = moved_to_catalog(done, how.limits.new)
    # Rows that others add in the meantime may have the same keys.
    return Loaded(replace(done, changes=(DeleteRows(table), *done.changes)))


def settled(unit: UnitOfWork, rows: TableRows) -> TableRows:
    """Return the rows of a table after those that others put into it are folded.

    The same commit has the folding.
    """
    if not folds(rows.table) or unit.settles(rows.table.id):
        return rows
    done = folded_done(unit, rows)
    if done.is_nothing:
        return rows
    stage_rows(unit, replace(done, counts=Counts(files=done.counts.files)))
    return rows_of(unit, TableName.of(rows.table), writes=True, needs_all=False)


def folded_done(unit: UnitOfWork, rows: TableRows) -> Done:
    """Return the folding of rows that other writers put into a table with a key model."""
    table, base = rows.table, unit.workspace.base
    settling = Settling(table.id, frozenset({table.id}), base.id, alone=True)
    unit.settle(settling)
    if table.id < 0 or not (rows.files or any(part.rows for part in rows.inlined)):
        return Done(table)
    with unit.state.store.read() as connection:
        if is_settled(connection, settling, base):
            return Done(table)
        since = settled_at(connection, table.id)
    return fold_rows(unit, rows, since)


def fold_rows(unit: UnitOfWork, rows: TableRows, since: int) -> Done:
    """Return the folding of rows that others put into the table after snapshot ``since``.

    Keys with only one row are left alone. For the others, the last row is the one that the change
    feed since then has last; without a feed, it is the one in the newest file. Rows of one snapshot
    are ordered by their row ids. The remaining row keeps the smallest row id.
    """
    spark, changes = unit.state.spark, feed_since(unit, rows.table, since)
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
    return write_versions(spark, rows, versions, show_progress=unit.state.show_progress)
