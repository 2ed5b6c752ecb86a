"""Changes of rows staged together with what the rollups of their table make of them."""

from __future__ import annotations

from collections.abc import Iterator

from shelduck.api.lookup import rows_of
from shelduck.api.results import TableName
from shelduck.api.state import LakeState
from shelduck.api.table_changes import changes_between
from shelduck.api.unit import UnitOfWork
from shelduck.catalog import read as catalog_read
from shelduck.catalog.settled import is_settled, settled_at
from shelduck.errors import NotFound, ShelduckError
from shelduck.evolution.rollups import is_current
from shelduck.model.change import AppendFiles, DeleteRows, RowChange
from shelduck.model.quoting import backticked
from shelduck.model.rollup import rollup_names, rollup_of, rollup_table
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
    is_followed = bool(rollups) and not done.keeps_rows
    before = _before(state, unit, base) if is_followed else None
    settled = unit.settlings()
    right = [t for t in rollups if is_fresh(state, unit, base, t)]
    if done.keeps_rows:
        # DuckLake logs deletes that are moved into files as deletes.
        for table in right:
            unit.settle(settling(unit, base, table))
    unit.own(done)
    unit.stage(done)
    if base.id in settled:
        unit.settle(settled[base.id])
    for table in rollups if before is not None else ():
        assert before is not None
        _follow(state, unit, before, table, loaded, is_right=table in right)
    return done


def rollups_of(unit: UnitOfWork, base: TableVersion) -> Iterator[TableVersion]:
    """Yield the rollups of a table as the unit sees them, those left out that others dropped."""
    for name in rollup_names(base.properties):
        try:
            found = unit.workspace.table(rollup_name(base, name))
        except NotFound:
            continue
        rollup = rollup_of(found.properties)
        if rollup is not None and rollup.base == base.uuid:
            yield found


def is_fresh(state: LakeState, unit: UnitOfWork, base: TableVersion, table: TableVersion) -> bool:
    """Tell whether a rollup holds what its base says, as of the unit's snapshot."""
    if not is_current(base, table):
        return False
    if unit.settles(table.id):
        return True
    with state.store.read() as connection:
        return is_settled(connection, settling(unit, base, table), unit.workspace.base)


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
    rollup = RollupRows(base, table)
    rows, now = rows_of(state, unit, TableName.of(table)), rows_of(state, unit, TableName.of(base))
    since = _right_since(state, unit, table)
    older = None if since is None else _changes(state, unit, base, since)
    if older is None:
        done = made_anew(state.spark, rows, rollup, now)
    else:
        touched = [] if before is None else touched_rows(state.spark, before, now)
        done = followed(state.spark, rows, rollup, now, [*older, *touched])
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
    if not is_current(unit.workspace.table(TableName.of(base)), table):
        # It waits for a refresh: what it is made of has other types now, or is gone.
        return
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


def settling(unit: UnitOfWork, base: TableVersion, table: TableVersion) -> Settling:
    """Return what a unit says of a rollup that it leaves right."""
    return Settling(table.id, frozenset({base.id, table.id}), unit.workspace.base.id)


def _before(state: LakeState, unit: UnitOfWork, base: TableVersion) -> TableRows:
    """Return where the rows are before something is staged."""
    found = unit.workspace.table(TableName.of(base))
    staged = unit.workspace.staged_rows(found)
    return table_rows(state.store, found, state.layouts, staged and staged.copied())


def rollup_name(base: TableVersion, name: str) -> TableName:
    """Return what a rollup of a table is found by."""
    return TableName(base.schema.name, rollup_table(base.name, name))
