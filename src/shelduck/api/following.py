"""Changes of rows staged together with what the rollups of their table make of them."""

from __future__ import annotations

from dataclasses import replace

from shelduck.api.lookup import rows_of
from shelduck.api.results import TableName
from shelduck.api.rollup_tables import redefined, rollups_of, settling
from shelduck.api.state import LakeState
from shelduck.api.table_changes import changes_between
from shelduck.api.unit import UnitOfWork
from shelduck.catalog import read as catalog_read
from shelduck.catalog.settled import is_settled, settled_at
from shelduck.errors import ShelduckError
from shelduck.evolution.rollups import is_current
from shelduck.model.change import AppendFiles, DeleteRows, RowChange
from shelduck.model.quoting import backticked
from shelduck.model.settled import Settling
from shelduck.model.table import TableVersion
from shelduck.operations.done import Done
from shelduck.operations.load import Loaded
from shelduck.operations.rollups import added, followed, made_anew, touched_rows
from shelduck.operations.rows import TableRows, table_rows
from shelduck.spark.rollup_rows import RollupRows
from shelduck.spark.session import DataFrame


def stage_followed(state: LakeState, unit: UnitOfWork, what: Done | Loaded) -> Done:
    """Stage a change of rows, and what it makes of the rollups of their table.

    A rollup that others left behind is caught up too. The unit owns the files. Returns the change.
    """
    loaded = what if isinstance(what, Loaded) else Loaded(what)
    done = loaded.done
    base = done.table if done.alter is None else done.alter.table
    rollups = list(rollups_of(unit, base))
    before = _before(state, unit, base) if rollups and not done.keeps_rows else None
    settled = unit.settlings()
    right = [t for t in rollups if is_fresh(state, unit, base, t)]
    unit.own(done)
    unit.stage(done)
    if base.id in settled:
        unit.settle(settled[base.id])
    after = unit.workspace.table(TableName.of(base)) if rollups else base
    for table in rollups:
        if not is_current(after, table):
            # One that others left without its columns waits for a refresh.
            if unit.workspace.alters(base):
                remake(state, unit, unit.workspace.table(TableName.of(base)), table)
        elif before is not None:
            _follow(state, unit, before, table, loaded, is_right=table in right)
        elif table in right:
            # DuckLake logs deletes that are moved into files as deletes.
            unit.settle(settling(unit, base, table))
    return done


def is_fresh(state: LakeState, unit: UnitOfWork, base: TableVersion, table: TableVersion) -> bool:
    """Tell whether a rollup holds what its base says, as of the unit's snapshot."""
    if not is_current(base, table):
        return False
    if unit.settles(table.id):
        return True
    with state.store.read() as connection:
        return is_settled(connection, settling(unit, base, table), unit.workspace.base)


def make_anew(
    state: LakeState,
    unit: UnitOfWork,
    base: TableVersion,
    table: TableVersion,
    now: TableRows | None = None,
    *,
    required: bool = False,
) -> None:
    """Stage all rows of a rollup, made of those that its base has in the unit, or of ``now``.

    ``required``: the commit is a Conflict where others have changed them by then.
    """
    if now is None:
        now = rows_of(state, unit, TableName.of(base))
    rows = rows_of(state, unit, TableName.of(table))
    done = made_anew(state.spark, rows, RollupRows(base, table), now)
    unit.own(done)
    unit.stage_unseen(done)
    since = min(unit.workspace.base.id, now.table.snapshot.id)
    unit.settle(replace(settling(unit, base, table), since=since, required=required))


def remake(
    state: LakeState,
    unit: UnitOfWork,
    base: TableVersion,
    table: TableVersion,
    now: TableRows | None = None,
    *,
    required: bool = False,
) -> None:
    """Stage a rollup with the columns that its base gives it now, and with all of its rows.

    One that its base cannot have any more is dropped. ``now`` and ``required`` are what they are to
    `make_anew`.
    """
    made = redefined(unit, base, table)
    if made is not None:
        make_anew(state, unit, base, made, now, required=required)


def catch_up(
    state: LakeState,
    unit: UnitOfWork,
    base: TableVersion,
    table: TableVersion,
    before: TableRows | None = None,
) -> None:
    """Stage what makes a rollup that others left behind right again.

    Keys of rows that came or went since it was right are made anew where the change feed tells
    them, else all of it is. ``before`` is where the rows of the base were before what the unit has
    staged.
    """
    since = _right_since(state, unit, table)
    older = None if since is None else _changes(state, unit, base, since)
    now = rows_of(state, unit, TableName.of(base))
    if older is None:
        make_anew(state, unit, base, table, now)
        return
    rows = rows_of(state, unit, TableName.of(table))
    touched = [] if before is None else touched_rows(state.spark, before, now)
    done = followed(state.spark, rows, RollupRows(base, table), now, [*older, *touched])
    _stage_rollup(unit, base, table, done)


def _follow(
    state: LakeState,
    unit: UnitOfWork,
    before: TableRows,
    table: TableVersion,
    loaded: Loaded,
    *,
    is_right: bool,
) -> None:
    base = before.table
    if not is_right:
        catch_up(state, unit, base, table, before)
        return
    rollup = RollupRows(base, table)
    rows = rows_of(state, unit, TableName.of(table))
    only_adds = all(_only_adds(c) for c in loaded.done.changes)
    if loaded.rows is not None or (only_adds and not loaded.done.alter):
        done = added(state.spark, rows, rollup, loaded)
    else:
        now = rows_of(state, unit, TableName.of(base))
        touched = touched_rows(state.spark, before, now)
        done = followed(state.spark, rows, rollup, now, touched)
    _stage_rollup(unit, base, table, done)


def _only_adds(change: RowChange) -> bool:
    if isinstance(change, DeleteRows):
        return not (change.files or change.inlined)
    return isinstance(change, AppendFiles)


def _right_since(state: LakeState, unit: UnitOfWork, table: TableVersion) -> int | None:
    """Return the snapshot after which the log tells all that happened, None where it does not."""
    with state.store.read() as connection:
        since = settled_at(connection, table.id)
        if since < 0 or table.id < 0:
            return None
        try:
            entries = catalog_read.entries_since(connection, since, unit.workspace.base.id)
        except ShelduckError:
            return None
    # Rows of the rollup itself that others changed are told by nothing.
    own = Settling(table.id, frozenset({table.id}), since)
    return since if own.holds(entries) else None


def feed_since(
    state: LakeState, unit: UnitOfWork, table: TableVersion, since: int
) -> DataFrame | None:
    """Return the change feed of a table after a snapshot, None where it does not reach back."""
    try:
        return changes_between(state, unit, TableName.of(table), since + 1, None)
    except ShelduckError:
        return None


def _changes(
    state: LakeState, unit: UnitOfWork, base: TableVersion, since: int
) -> list[DataFrame] | None:
    """Return the rows of a base that came or went after a snapshot, None where nobody knows."""
    if since >= unit.workspace.base.id:
        return []
    found = feed_since(state, unit, base, since)
    return None if found is None else [found.select(*map(backticked, base.columns.names))]


def _stage_rollup(unit: UnitOfWork, base: TableVersion, table: TableVersion, done: Done) -> None:
    unit.own(done)
    unit.stage_unseen(done)
    unit.settle(settling(unit, base, table))


def _before(state: LakeState, unit: UnitOfWork, base: TableVersion) -> TableRows:
    """Return where the rows are before something is staged."""
    found = unit.workspace.table(TableName.of(base))
    staged = unit.workspace.staged_rows(found)
    return table_rows(state.store, found, state.layouts, staged and staged.copied())
