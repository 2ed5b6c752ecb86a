"""Which changes of a table one snapshot makes, and which need a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shelduck.evolution.alter import plan_alter
from shelduck.model.changes.alteration import altered
from shelduck.model.changes.schema_change import ChangeType, SetDefault
from shelduck.model.changes.table_change import TableChange
from shelduck.model.tables.partition import ResetPartitioning, SetPartitioning
from shelduck.model.tables.sorting import SetSorting
from shelduck.model.tables.table import TableVersion

Changes = tuple[TableChange, ...]


def light_and_heavy(table: TableVersion, changes: Sequence[TableChange]) -> tuple[Changes, Changes]:
    """Return the changes that only write metadata, and those of a job that comes after them.

    What depends on a new type goes with it: the new default of the column, and a layout by it.
    Raises what `plan_alter` raises.
    """
    light: list[TableChange] = []
    heavy: list[TableChange] = []
    converted: set[str] = set()
    if any(isinstance(c, SetPartitioning | ResetPartitioning) for c in changes):
        # The keys of the table count at the end of all changes, wherever the clause is.
        table = replace(table, partition=())
    for change in changes:
        if isinstance(change, ChangeType) and plan_alter(_after(table, light), [change]).is_heavy:
            converted.add(change.path[0].lower())
            heavy.append(change)
        elif _depends_on(change, converted):
            heavy.append(change)
        else:
            light.append(change)
    return tuple(light), tuple(heavy)


def _depends_on(change: TableChange, converted: set[str]) -> bool:
    match change:
        case SetDefault(path=path, default=default):
            return default is not None and path[0].lower() in converted
        case SetPartitioning(keys=keys):
            return any(key.column.lower() in converted for key in keys)
        case SetSorting():
            # A key is an expression, which may name any column.
            return bool(converted)
        case _:
            return False


def _after(table: TableVersion, changes: Sequence[TableChange]) -> TableVersion:
    change = plan_alter(table, changes).change if changes else None
    return table if change is None else altered(table, change)
