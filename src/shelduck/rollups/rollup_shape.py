"""Rollups as tables: created with their base, renamed, dropped and refreshed with it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from shelduck.errors import Conflict, InvalidRequest, NotFound
from shelduck.lake.lookup import table_of_id
from shelduck.lake.results import Result, TableName
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork, carry_out_anew
from shelduck.model.tables.rollup import RollupSpec, definition_of, rollup_of, rollup_table
from shelduck.model.tables.table_version import TableVersion
from shelduck.rollups.following import catch_up, is_fresh, remake
from shelduck.rollups.rollup_plan import is_current
from shelduck.rollups.rollup_tables import (
    create_rollup,
    drop_rollup,
    list_rollups,
    rollups_of,
    settling,
)
from shelduck.write.hooks import settled_rows


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
    return [t for t in tables if (r := rollup_of(t)) is not None and r.base == base.uuid]


def base_of(unit: UnitOfWork, table: TableVersion) -> TableVersion | None:
    """Return the base of a rollup, None if it is gone or another table has its name."""
    rollup = rollup_of(table)
    if rollup is None:
        return None
    name = table.name.removesuffix(rollup_table("", rollup.name))
    try:
        found = unit.workspace.table(TableName(table.schema.name, name))
    except NotFound:
        return None
    return found if found.uuid == rollup.base else None


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


def _refresh_outdated(state: LakeState, name: TableName) -> None:
    """Update rollups that a change of columns left stale."""
    view = UnitOfWork(state)
    base = view.workspace.table(name)
    if all(is_fresh(view, base, table) for table in rollups_of(view, base)):
        return
    refresh_all(state, name)


def refresh_by_id(state: LakeState, table: TableVersion) -> None:
    """Update rollups after a commit, whatever the current name of their table is.

    The commit has succeeded, so nothing is raised: the next write of the table or a refresh makes
    up for a failure. A failure that is not due to another commit is a warning.
    """
    try:
        view = UnitOfWork(state)
        _refresh_outdated(state, TableName.of(table_of_id(view, table)))
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
