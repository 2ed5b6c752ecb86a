"""Rollups follow their base: its rows, its creation, its name and its end; and answer queries."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from shelduck.catalog.commit.settled import is_settled, settled_at
from shelduck.catalog.read import read as catalog_read
from shelduck.engine.session import DataFrame
from shelduck.errors import Conflict, InvalidRequest, NewerFormat, NotFound, ShelduckError
from shelduck.lake.done import Done, Loaded
from shelduck.lake.lookup import rows_of, table_of_id
from shelduck.lake.results import Result, TableName
from shelduck.lake.state import LakeState
from shelduck.lake.table_changes import feed_since
from shelduck.lake.unit import UnitOfWork, carry_out_anew
from shelduck.model.changes.change import AppendFiles, RowChange, is_look
from shelduck.model.changes.records import Settling
from shelduck.model.files.data_file import live_rows
from shelduck.model.tables.keys import table_keys
from shelduck.model.tables.rollup import (
    RollupSpec,
    definition_of,
    keeps_rows,
    rollup_of,
    rollup_table,
)
from shelduck.model.tables.schema import FieldId
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.read.plan.rollup_choice import Candidate, Wanted, choose
from shelduck.read.scan.rollup_rule import Chooser, RollupFrame
from shelduck.read.table_rows import TableRows, table_rows
from shelduck.rollups.rollup_plan import is_current
from shelduck.rollups.rollup_rows import RollupRows, added, followed, made_anew, touched_rows
from shelduck.rollups.rollup_tables import (
    create_rollup,
    drop_rollup,
    is_rollup,
    list_rollups,
    redefined,
    rollups_of,
    settling,
)
from shelduck.write.hooks import settled_rows, staged


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
    return unit.state.store.ask(is_settled, settling(unit, base, table), unit.workspace.base)


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


def chooser_of(unit: UnitOfWork, rows: TableRows) -> Chooser | None:
    """Return a function that chooses a rollup for a query, None if the table has no usable one.

    Only rollups that are fresh at the unit's snapshot, from which the rows are too, are considered.
    If a newer Shelduck made them, the table itself answers.
    """
    with suppress(NewerFormat):
        return _chooser(unit, rows.table, rows)
    return None


def _chooser(unit: UnitOfWork, base: TableVersion, rows: TableRows) -> Chooser | None:
    candidates: list[Candidate] = []
    found: dict[str, TableRows] = {}
    for table in rollups_of(unit, base):
        if not is_fresh(unit, base, table):
            continue
        theirs = rows_of(unit, TableName.of(table))
        rollup, count = rollup_of(table), alive(theirs)
        if rollup is None or count is None:
            continue
        sources = {c.id: c.source for c in rollup.columns}
        order = tuple(s for i in _key_order(table) if (s := sources.get(i)) is not None)
        whole = keeps_rows(rollup, table_keys(table), table_keys(base))
        candidates.append(Candidate(rollup.name, rollup, order, count, whole))
        found[rollup.name] = theirs
    total = alive(rows)
    if not candidates or total is None:
        return None
    frames: dict[str, DataFrame] = {}

    def chosen(wanted: Wanted) -> RollupFrame | None:
        choice = choose(wanted, _key_order(base), total, candidates)
        if choice is None:
            return None
        theirs = found[choice.name]
        # Made once, as Spark plans a query several times. Two threads may make two.
        if choice.name not in frames:
            frames[choice.name] = theirs.frame(unit.state.spark)
        names = {f.id: f.name for f in theirs.table.columns}
        return RollupFrame.of(choice, frames[choice.name], names)

    return chosen


def _key_order(table: TableVersion) -> tuple[FieldId, ...]:
    keys = table_keys(table)
    return () if keys is None else keys.columns


def alive(rows: TableRows) -> int | None:
    """Return how many rows there are, None if a file does not say."""
    stored = live_rows(rows.files)
    return None if stored is None else stored + sum(len(part.row_ids) for part in rows.inlined)


def create_with_rollups(unit: UnitOfWork, name: TableName, specs: Sequence[RollupSpec]) -> None:
    """Stage the rollups of a new table, which are up to date as long as it is empty."""
    base = unit.workspace.table(name)
    for spec in specs:
        unit.settle(settling(unit, base, create_rollup(unit, base, spec)))
    list_rollups(unit, base, tuple(spec.name for spec in specs))


def drop_with_rollups(unit: UnitOfWork, table: TableVersion) -> None:
    """Stage the drop of a table and of its rollups; a rollup is removed from its base's list."""
    rollup = rollup_of(table)
    if rollup is not None:
        base = base_of(unit, table)
        if base is not None:
            drop_rollup(unit, base, rollup.name)
            return
    for found in _all_rollups(unit, table):
        unit.workspace.drop_table(found)
    unit.workspace.drop_table(table)


def rename_with_rollups(unit: UnitOfWork, table: TableVersion, new_name: str) -> None:
    """Stage a new name for a table, and for its rollups, whose names begin with it."""
    if rollup_of(table) is not None and base_of(unit, table) is not None:
        raise InvalidRequest(
            f"cannot rename {table.full_name}: it is a rollup, which is named after its base table;"
            " rename the base table"
        )
    for found in _all_rollups(unit, table):
        rollup = definition_of(found)
        unit.workspace.rename_table(found, rollup_table(new_name, rollup.name))
    unit.workspace.rename_table(table, new_name)


def _all_rollups(unit: UnitOfWork, base: TableVersion) -> list[TableVersion]:
    """Return the rollups of a table, including those that a job has not listed yet."""
    start = rollup_table(base.name, "")
    names = [n for n in unit.workspace.table_names(base.schema) if n.startswith(start)]
    tables = [unit.workspace.table(TableName(base.schema.name, name)) for name in names]
    return [table for table in tables if is_rollup(table, base)]


def base_of(unit: UnitOfWork, table: TableVersion) -> TableVersion | None:
    """Return the base of a rollup, None if it is gone or another table has its name."""
    rollup = rollup_of(table)
    if rollup is None:
        return None
    name = table.name.removesuffix(rollup_table("", rollup.name))
    found = unit.workspace.find_table(TableName(table.schema.name, name))
    return found if found is not None and is_rollup(table, found) else None


def refresh(unit: UnitOfWork, base: TableVersion) -> int:
    """Stage the update of every stale rollup of a table; return how many there were.

    Rows that others put into a table with a key model are folded first. A rollup whose columns
    changed with its base is rebuilt; one whose columns are gone is dropped.
    """
    settled_rows(unit, TableName.of(base))
    base = unit.workspace.table(TableName.of(base))
    count = 0
    for table in list(rollups_of(unit, base)):
        if is_fresh(unit, base, table):
            continue
        count += 1
        if is_current(base, table):
            catch_up(unit, base, table)
            continue
        remake(unit, base, table)
        base = unit.workspace.table(TableName.of(base))
    return count


def refresh_by_id(state: LakeState, table: TableVersion) -> None:
    """Update rollups after a commit, whatever the current name of their table is.

    The commit has succeeded, so nothing is raised: the next write of the table or a refresh makes
    up for a failure. A failure that is not due to another commit is a warning.
    """
    try:
        view = UnitOfWork(state)
        base = table_of_id(view, table)
        if not all(is_fresh(view, base, rollup) for rollup in rollups_of(view, base)):
            refresh_all(state, TableName.of(base))
    except (NotFound, Conflict):
        return
    except Exception as error:  # noqa: BLE001 - whatever it is, the commit has landed
        warnings.warn(
            f"Shelduck: the change of {table.full_name} is committed, but its rollups are stale:"
            f" {error}; call refresh_rollups(); until then, queries read the table itself",
            RuntimeWarning,
            stacklevel=2,
        )


def refresh_all(state: LakeState, name: TableName) -> Result:
    """Update all rollups of a table in one snapshot, or in none if they are up to date."""
    return carry_out_anew(state, lambda unit: refresh(unit, unit.workspace.table(name)))
