"""Rollups as tables: made with their base or after it, renamed and dropped with it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from shelduck.api.following import catch_up, is_fresh, remake
from shelduck.api.keyed import settled_rows
from shelduck.api.lookup import table_of_id
from shelduck.api.results import Result, TableName
from shelduck.api.rollup_tables import (
    create_rollup,
    drop_rollup,
    list_rollups,
    rollups_of,
    settling,
)
from shelduck.api.state import LakeState
from shelduck.api.unit import UnitOfWork
from shelduck.errors import Conflict, InvalidRequest, NotFound
from shelduck.evolution.rollups import is_current
from shelduck.model.rollup import RollupSpec, rollup_of, rollup_table
from shelduck.model.table import TableVersion

_ATTEMPTS = 10


def create_with_rollups(unit: UnitOfWork, name: TableName, specs: Sequence[RollupSpec]) -> None:
    """Stage the rollups of a new table, which are right as long as it is empty."""
    base = unit.workspace.table(name)
    for spec in specs:
        unit.settle(settling(unit, base, create_rollup(unit, base, spec)))
    list_rollups(unit, base, tuple(spec.name for spec in specs))


def drop_with_rollups(unit: UnitOfWork, table: TableVersion) -> None:
    """Stage the end of a table and of its rollups; a rollup's base forgets it."""
    rollup = rollup_of(table.properties)
    if rollup is not None:
        base = base_of(unit, table)
        if base is not None:
            drop_rollup(unit, base, rollup.name)
            return
    for found in _all_rollups(unit, table):
        unit.workspace.drop_table(found)
    unit.workspace.drop_table(table)


def rename_with_rollups(unit: UnitOfWork, table: TableVersion, new_name: str) -> None:
    """Stage another name for a table, and for its rollups, whose names begin with it."""
    if rollup_of(table.properties) is not None and base_of(unit, table) is not None:
        raise InvalidRequest(
            f"{table.full_name} is a rollup, which is called after its base; rename that"
        )
    for found in _all_rollups(unit, table):
        rollup = rollup_of(found.properties)
        assert rollup is not None
        unit.workspace.rename_table(found, rollup_table(new_name, rollup.name))
    unit.workspace.rename_table(table, new_name)


def _all_rollups(unit: UnitOfWork, base: TableVersion) -> list[TableVersion]:
    """Return the rollups of a table, those that a job has not listed yet among them."""
    start = rollup_table(base.name, "")
    names = [n for n in unit.workspace.table_names(base.schema) if n.startswith(start)]
    tables = [unit.workspace.table(TableName(base.schema.name, name)) for name in names]
    return [t for t in tables if (r := rollup_of(t.properties)) is not None and r.base == base.uuid]


def base_of(unit: UnitOfWork, table: TableVersion) -> TableVersion | None:
    """Return the table that a rollup is one of, None where it is gone or does not know it."""
    rollup = rollup_of(table.properties)
    if rollup is None:
        return None
    name = table.name.removesuffix(rollup_table("", rollup.name))
    try:
        found = unit.workspace.table(TableName(table.schema.name, name))
    except NotFound:
        return None
    return found if found.uuid == rollup.base else None


def refresh(state: LakeState, unit: UnitOfWork, base: TableVersion) -> int:
    """Stage what makes every rollup of a table right; return how many were not.

    Rows that others have put into a table with a key model are folded first. A rollup whose columns
    changed with its base is made anew, one whose columns are gone is dropped.
    """
    settled_rows(state, unit, TableName.of(base))
    base = unit.workspace.table(TableName.of(base))
    count = 0
    for table in list(rollups_of(unit, base)):
        if is_fresh(state, unit, base, table):
            continue
        count += 1
        if is_current(base, table):
            catch_up(state, unit, base, table)
            continue
        remake(state, unit, base, table)
        base = unit.workspace.table(TableName.of(base))
    return count


def _refresh_outdated(state: LakeState, name: TableName) -> None:
    """Make rollups right that a change of columns has left behind."""
    view = UnitOfWork(state, state.commit_info())
    base = view.workspace.table(name)
    if all(is_fresh(state, view, base, table) for table in rollups_of(view, base)):
        return
    refresh_all(state, name)


def refresh_by_id(state: LakeState, table: TableVersion) -> None:
    """Make rollups right behind a commit, whatever their table is called by now.

    The commit stands, so nothing is raised: what this misses, the next write of the table or a
    refresh does. A failure that another commit does not explain is a warning.
    """
    try:
        view = UnitOfWork(state, state.commit_info())
        _refresh_outdated(state, TableName.of(table_of_id(view, table)))
    except (NotFound, Conflict):
        return
    except Exception as error:  # noqa: BLE001 - whatever it is, the commit has landed
        warnings.warn(
            f"Shelduck: the change of {table.full_name} is committed, but its rollups are behind:"
            f" {error}; call refresh_rollups(), until then queries read the table itself",
            RuntimeWarning,
            stacklevel=2,
        )


def refresh_all(state: LakeState, name: TableName) -> Result:
    """Make all rollups of a table right, in one snapshot; none where they are."""
    for attempt in range(_ATTEMPTS):
        unit = UnitOfWork(state, state.commit_info())
        try:
            refresh(state, unit, unit.workspace.table(name))
            return unit.commit()
        except Conflict:
            if attempt == _ATTEMPTS - 1:
                raise
        except BaseException:
            unit.rollback()
            raise
    raise AssertionError("unreachable")
