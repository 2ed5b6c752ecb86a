"""Changes of rows, staged together with the changes of the table's rollups."""

from __future__ import annotations

from dataclasses import replace

from shelduck.catalog.commit.settled import is_settled, settled_at
from shelduck.catalog.read import read as catalog_read
from shelduck.engine.session import DataFrame
from shelduck.errors import ShelduckError
from shelduck.lake.done import Done, Loaded
from shelduck.lake.lookup import rows_of
from shelduck.lake.results import TableName
from shelduck.lake.table_changes import feed_since
from shelduck.lake.unit import UnitOfWork
from shelduck.model.changes.change import AppendFiles, RowChange, is_look
from shelduck.model.changes.records import Settling
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.read.table_rows import TableRows, table_rows
from shelduck.rollups.rollup_plan import is_current
from shelduck.rollups.rollup_rows import RollupRows, added, followed, made_anew, touched_rows
from shelduck.rollups.rollup_tables import redefined, rollups_of, settling
from shelduck.write.hooks import staged


def stage_followed(unit: UnitOfWork, loaded: Loaded) -> Done:
    """Stage a change of rows, and the resulting changes of the table's rollups.

    A rollup that others left stale is updated too. The unit owns the files. Returns the change.
    """
    done = loaded.done
    base = done.table if done.alter is None else done.alter.table
    rollups = list(rollups_of(unit, base))
    before = _before(unit, base) if rollups and not done.keeps_rows else None
    right = [t for t in rollups if is_fresh(unit, base, t)]
    staged(unit, done, base)
    after = unit.workspace.table(TableName.of(base)) if rollups else base
    for table in rollups:
        if not is_current(after, table):
            # A rollup that others left without its columns waits for a refresh.
            if unit.workspace.alters(base):
                remake(unit, unit.workspace.table(TableName.of(base)), table)
        elif before is not None:
            _follow(unit, before, table, loaded, is_right=table in right)
        elif table in right:
            # DuckLake logs deletes that are only moved into files as deletes.
            unit.settle(settling(unit, base, table))
    return done


def is_fresh(unit: UnitOfWork, base: TableVersion, table: TableVersion) -> bool:
    """Return whether a rollup is up to date with its base at the unit's snapshot."""
    if not is_current(base, table):
        return False
    if unit.settles(table.id):
        return True
    with unit.state.store.read() as connection:
        return is_settled(connection, settling(unit, base, table), unit.workspace.base)


def make_anew(
    unit: UnitOfWork,
    base: TableVersion,
    table: TableVersion,
    now: TableRows | None = None,
    *,
    required: bool = False,
) -> None:
    """Stage all rows of a rollup, computed from those of its base in the unit, or from ``now``.

    With ``required``, the commit is a Conflict if others have changed those rows.
    """
    if now is None:
        now = rows_of(unit, TableName.of(base))
    rows = rows_of(unit, TableName.of(table))
    _register(unit, base)
    done = made_anew(unit.state.spark, rows, RollupRows(base, table), now)
    unit.own(done)
    unit.stage_unseen(done)
    since = min(unit.workspace.base.id, now.table.snapshot.id)
    unit.settle(replace(settling(unit, base, table), since=since, required=required))


def remake(
    unit: UnitOfWork, base: TableVersion, table: TableVersion, *, required: bool = False
) -> None:
    """Stage a rollup with the columns that fit its current base, and with all of its rows.

    A rollup that is no longer possible is dropped. ``required`` is as in `make_anew`.
    """
    made = redefined(unit, base, table)
    if made is not None:
        make_anew(unit, base, made, required=required)


def catch_up(
    unit: UnitOfWork, base: TableVersion, table: TableVersion, before: TableRows | None = None
) -> None:
    """Stage the update of a rollup that others left stale.

    The keys of rows that were added or removed since are recomputed if the change feed lists them;
    otherwise the whole rollup is. ``before`` is where the rows of the base were before the unit
    staged changes.
    """
    since = _right_since(unit, table)
    older = None if since is None else _changes(unit, base, since)
    now = rows_of(unit, TableName.of(base))
    if older is None:
        make_anew(unit, base, table, now)
        return
    rows = rows_of(unit, TableName.of(table))
    _register(unit, base)
    touched = [] if before is None else touched_rows(unit.state.spark, before, now)
    done = followed(unit.state.spark, rows, RollupRows(base, table), now, [*older, *touched])
    _stage_rollup(unit, base, table, done)


def _follow(
    unit: UnitOfWork, before: TableRows, table: TableVersion, loaded: Loaded, *, is_right: bool
) -> None:
    base = before.table
    if not is_right:
        catch_up(unit, base, table, before)
        return
    rollup = RollupRows(base, table)
    rows = rows_of(unit, TableName.of(table))
    _register(unit, base)
    only_adds = all(_only_adds(c) for c in loaded.done.changes)
    if loaded.rows is not None or (only_adds and not loaded.done.alter):
        done = added(unit.state.spark, rows, rollup, loaded)
    else:
        now = rows_of(unit, TableName.of(base))
        touched = touched_rows(unit.state.spark, before, now)
        done = followed(unit.state.spark, rows, rollup, now, touched)
    _stage_rollup(unit, base, table, done)


def _register(unit: UnitOfWork, base: TableVersion) -> None:
    """Register the unit before it writes files of a rollup, as a writer of its base."""
    if not unit.is_of_job:
        unit.writer.register(base)


def _only_adds(change: RowChange) -> bool:
    return is_look(change) or isinstance(change, AppendFiles)


def _right_since(unit: UnitOfWork, table: TableVersion) -> int | None:
    """Return the snapshot since which the log has all changes, None if it does not."""
    with unit.state.store.read() as connection:
        since = settled_at(connection, table.id)
        if since < 0 or table.id < 0:
            return None
        try:
            entries = catalog_read.entries_since(connection, since, unit.workspace.base.id)
        except ShelduckError:
            return None
    # If others changed rows of the rollup itself, no log says which.
    own = Settling(table.id, frozenset({table.id}), since)
    return since if own.holds(entries) else None


def _changes(unit: UnitOfWork, base: TableVersion, since: int) -> list[DataFrame] | None:
    """Return the rows of a base added or removed after a snapshot, None if that is unknown."""
    if since >= unit.workspace.base.id:
        return []
    found = feed_since(unit, base, since)
    return None if found is None else [found.select(*map(backticked, base.columns.names))]


def _stage_rollup(unit: UnitOfWork, base: TableVersion, table: TableVersion, done: Done) -> None:
    unit.own(done)
    unit.stage_unseen(done)
    unit.settle(settling(unit, base, table))


def _before(unit: UnitOfWork, base: TableVersion) -> TableRows:
    """Return where the rows are before a change is staged."""
    found = unit.workspace.table(TableName.of(base))
    staged = unit.workspace.staged_rows(found)
    return table_rows(unit.state.store, found, unit.state.layouts, staged and staged.copied())
