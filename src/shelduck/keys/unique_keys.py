"""Each key of a table once: loads, checks of statements, and the folding of others' rows.

Rows are merged when they are written, in one snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

from shelduck.catalog.commit.settled import is_settled, settled_at
from shelduck.engine.named_errors import SparkError, data_fault
from shelduck.engine.session import DataFrame, SparkSession
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.lake.done import Counts, Done, Loaded
from shelduck.lake.evolution.alter_plan import AlterPlan
from shelduck.lake.lookup import TableHandle, rows_of, table_then
from shelduck.lake.preflight import Preflight
from shelduck.lake.results import Result, TableName
from shelduck.lake.table_changes import feed_since
from shelduck.lake.unit import UnitOfWork
from shelduck.model.changes.change import DeleteRows, altered
from shelduck.model.changes.records import Settling
from shelduck.model.shadows.shadows import Shadow, with_shadows
from shelduck.model.tables.keys import TableKeys, folds, table_keys
from shelduck.model.tables.schema import Path, SnapshotId
from shelduck.model.tables.table_version import TableVersion
from shelduck.read.scan.matching import Where
from shelduck.read.scan.scan_frames import ORIGINS, Origin
from shelduck.read.table_rows import TableRows, table_rows
from shelduck.write.changes.append import Placing, appended, moved_to_catalog, write_rows
from shelduck.write.changes.edits import (
    RowRules,
    Versions,
    deleted,
    require_free_names,
    write_versions,
)
from shelduck.write.hooks import carry_out_rows, stage_rows
from shelduck.write.merge.key_ranges import near_keys
from shelduck.write.merge.load_rows import (
    GONE,
    Folding,
    MeetingKeys,
    alive_rows,
    as_inserted,
    different_keys,
    dying,
    folded_again,
    fresh_rows,
    matched_rows,
    ordered,
    outcomes,
    repeated_keys,
    rows_of_keys,
    some_of_keys,
    some_twice,
    with_order,
    without_rows,
)
from shelduck.write.merge.merge_clauses import MergeAction
from shelduck.write.merge.merge_scopes import by_action
from shelduck.write.parquet.kept import ACTION, NUMBER, bring, can_bring, keep, shared
from shelduck.write.progress import write_progress
from shelduck.write.shadow_rows import with_converted


class KeyVerbs(TableHandle, in_parts=True):
    """Folding."""

    def fold(self) -> Result:
        """Combine rows of the same key that other writers put into the table.

        Every write of Shelduck does this first. If there is nothing to fold, no snapshot is made.

        Raises:
            InvalidRequest: the table has no UNIQUE or AGGREGATE KEY.
            Conflict: other commits kept changing the rows.
        """

        def prepare(unit: UnitOfWork) -> Done:
            rows = rows_of(unit, self.name, writes=True)
            if not folds(rows.table):
                raise InvalidRequest(
                    f"cannot fold {rows.table.full_name}: it has no UNIQUE or AGGREGATE KEY"
                )
            return folded_done(unit, rows)

        return carry_out_rows(self._state, self._unit, prepare, again=True)


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
    folding: Folding, spark: SparkSession, rows: TableRows, new: DataFrame, how: Placing
) -> Loaded:
    """Return the load of ``new`` into a UNIQUE or AGGREGATE table; nothing is committed.

    ``new`` are rows from `shelduck.write.merge.load_rows.ordered`. First, rows of one key are
    folded. Then the table's rows with these keys are looked up in the files whose key range
    overlaps theirs, and replaced or combined. A row that changes keeps its row id.

    Raises InvalidRequest for a value that does not fit its column, including sums.
    """
    require_free_names(rows.table)
    if rows.is_empty:
        return _first(spark, folding, new, how)
    found = _few(spark, rows, folding, new) if can_bring(new) else _many(spark, rows, folding, new)
    if found is None:
        return Loaded(Done(rows.table))
    if not found.versions.counts.rows:
        return Loaded(deleted(rows, {}, ()))
    return Loaded(write_versions(spark, rows, found.versions, how), found.rows)


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


def _first(spark: SparkSession, folding: Folding, new: DataFrame, how: Placing) -> Loaded:
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
    if table.id < 0 or rows.is_empty:
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
    folding = Folding(rows.table, _keys_of(rows.table))
    among = partial(rows_of_keys, folding=folding, since=since)
    return _fold(unit, rows, feed_since(unit, rows.table, since), among)


def _fold(
    unit: UnitOfWork,
    rows: TableRows,
    changes: DataFrame | None,
    among: Callable[[DataFrame], DataFrame],
) -> Done:
    """Return the folding of rows that are ``among`` those of some keys."""
    spark, folding = unit.state.spark, folding_of(rows.table)
    assert folding is not None
    require_free_names(rows.table)
    frame = rows.frame(spark, None, (*ORIGINS, Origin.SNAPSHOT_ID))
    found = keep(with_order(among(frame), changes)).rows
    again = keep(folded_again(found, folding))
    if not again.count:
        return Done(rows.table)
    dead = keep(rows_of_keys(found, folding, None, among=shared(again.rows, again.count)))
    counts = Counts(updated=again.count, deleted=dead.count - again.count)
    versions = Versions(counts, updated=again.rows, dead=dead.rows)
    return write_versions(spark, rows, versions, Placing(show_progress=unit.state.show_progress))


def told_of_keys(
    unit: UnitOfWork, table: TableVersion, plan: AlterPlan, found: Preflight | None
) -> AlterPlan:
    """Return a plan that says which keys become equal, and what becomes of their rows.

    They are counted only if Spark runs, and nothing ``found`` proves that there are none.
    """
    then = "are folded, which cannot be undone" if plan.folds else "are refused"
    is_apart = found is not None and found.is_apart(plan.meeting)
    if not (unit.state.has_spark or is_apart):
        return plan.telling(f"rows whose keys become equal {then}")
    met = None if is_apart else keys_that_meet(unit, table, plan)
    if met is None:
        return plan.telling("no different keys become equal")
    return plan.telling(f"these keys become equal, and their rows {then}: {met}")


def require_apart(
    unit: UnitOfWork, table: TableVersion, plan: AlterPlan, found: Preflight | None
) -> None:
    """Raise InvalidRequest if different keys become equal, which ``found`` may prove not to be."""
    is_apart = found is not None and found.is_apart(plan.meeting)
    met = None if is_apart else keys_that_meet(unit, table, plan)
    if met is not None:
        raise equal_keys(table, met)


def keys_that_meet(unit: UnitOfWork, table: TableVersion, plan: AlterPlan) -> MeetingKeys | None:
    """Return which different keys of a table become equal by a plan; a query of Spark.

    None if none do, or if an expression fails for a row, which is left to the job to name.
    """
    folding_of(table)
    assert plan.change is not None
    shadows = [s for s in plan.shadows if s.old.id in _keys_of(table).columns]
    keys = _keys(table, altered(table, plan.change), shadows)
    old, new = (each.key_fields for each in keys)
    needs_all = any(s.conversion.using is not None for s in shadows)
    names = None if needs_all else [f.name for f in old]
    rows = rows_of(unit, TableName.of(table)).frame(unit.state.spark, names)
    try:
        found = repeated_keys(with_converted(rows, shadows), old, new)
        return different_keys(found, old, new)
    except SparkError as error:
        if data_fault(error) is None:
            raise
        return None


def equal_keys(table: TableVersion, met: MeetingKeys) -> InvalidRequest:
    """Return the error for keys that may not become equal."""
    return InvalidRequest(
        f"different keys of {table.full_name} would become equal: {met}; change them, or use ON"
        " DUPLICATE KEYS KEEP NEWEST, which folds their rows as a load does and cannot be undone"
    )


@dataclass
class MeetingRows:
    """The rows whose keys a job makes equal: looked for in all files, and later in new ones only.

    ``base`` is the snapshot in which the job began. If it ``folds`` none, different keys that
    become equal are an error. ``seen`` are the files that were looked at, and ``met`` are keys that
    several of their rows have.
    """

    base: SnapshotId
    folds: bool
    seen: frozenset[int] = frozenset()
    met: tuple[DataFrame, ...] = ()

    def folded(
        self, unit: UnitOfWork, rows: TableRows, after: TableVersion, shadows: Sequence[Shadow]
    ) -> Done:
        """Return the folding of rows in the table that a job makes; nothing is committed.

        The files of ``rows`` hold the converted columns beside their own.
        """
        self._look(unit, rows, after, shadows)
        if not (self.folds and self.met):
            return Done(after)
        known = [f.id for f in _keys(rows.table, after, shadows)[1].key_fields]
        by = Folding(after, replace(_keys_of(after), columns=tuple(known)))
        met = reduce(DataFrame.unionAll, self.met).toDF(*(f.name for f in by.key_fields))
        among = partial(rows_of_keys, folding=by, since=None, among=met)
        done = _fold(unit, replace(rows, table=after), _came(unit, after, self.base), among)
        unit.own(done)
        since = rows.table.snapshot.id
        unit.settle(Settling(after.id, frozenset({after.id}), since, alone=True))
        return done

    def _look(
        self, unit: UnitOfWork, rows: TableRows, after: TableVersion, shadows: Sequence[Shadow]
    ) -> None:
        spark, fresh = unit.state.spark, tuple(f for f in rows.files if f.id not in self.seen)
        if not fresh:
            return
        old, new = _keys(rows.table, after, shadows)
        both = replace(rows, table=old.table)
        names = dict.fromkeys(f.name for f in (*old.key_fields, *new.key_fields))
        frame = both.frame(spark, list(names))
        if self.seen:
            added = keep(new.only_keys(replace(both, files=fresh).frame(spark)).distinct())
            near = near_keys(added.rows, new.key_fields, added.count)
            frame = rows_of_keys(frame.where(near), new, None, shared(added.rows, added.count))
        found = keep(repeated_keys(frame, old.key_fields, new.key_fields))
        met = None
        if found.count and not self.folds:
            met = different_keys(found.rows, old.key_fields, new.key_fields)
        if met is not None:
            raise equal_keys(rows.table, met)
        self.met += (found.rows.select("new.*"),) if found.count else ()
        self.seen = frozenset(f.id for f in rows.files)


def _keys(
    table: TableVersion, after: TableVersion, shadows: Sequence[Shadow]
) -> tuple[Folding, Folding]:
    """Return the keys as they are and as they become, of a table that has both of them.

    Keys that are new as columns are left out: all rows have one value there.
    """
    both = with_shadows(table, shadows)
    return Folding(both, _keys_of(table)), Folding(both, _keys_of(after))


def _keys_of(table: TableVersion) -> TableKeys:
    keys = table_keys(table)
    assert keys is not None
    return keys


def _came(unit: UnitOfWork, table: TableVersion, base: SnapshotId) -> DataFrame | None:
    """Return when rows came, as a change feed says it; None if that is unknown.

    Files that a job writes know nothing of it, but those of the snapshot ``base`` do.
    """
    since, state = feed_since(unit, table, base), unit.state
    before = state.store.ask(table_then, table.id, base, state.info)
    if since is None or before is None:
        return None
    rows = table_rows(state.store, before, state.layouts)
    frame = rows.frame(state.spark, [], (Origin.ROW_ID, Origin.SNAPSHOT_ID))
    return as_inserted(frame).unionByName(since, allowMissingColumns=True)
