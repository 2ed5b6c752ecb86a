"""Rollups as tables of the catalog: found by their base, created, listed, redefined and dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from shelduck.errors import AlreadyExists, NotFound
from shelduck.lake.results import TableName
from shelduck.lake.unit import UnitOfWork
from shelduck.model.changes.change import alteration
from shelduck.model.changes.records import Settling
from shelduck.model.tables.rollup import (
    RollupSpec,
    definition_of,
    rollup_names,
    rollup_of,
    rollup_table,
    uuid_of_next,
    with_rollup_names,
)
from shelduck.model.tables.table_version import TableVersion
from shelduck.rollups.rollup_plan import RollupTable, plan_again, plan_rollup


def rollups_of(
    unit: UnitOfWork, base: TableVersion, find: Callable[[TableName], TableVersion] | None = None
) -> Iterator[TableVersion]:
    """Yield the rollups of a table as the unit sees them, without those that others dropped.

    ``find`` looks them up elsewhere, such as in an older snapshot.
    """
    for name in rollup_names(base):
        try:
            found = (find or unit.workspace.table)(rollup_name(base, name))
        except NotFound:
            continue
        if is_rollup(found, base):
            yield found


def is_rollup(found: TableVersion, base: TableVersion) -> bool:
    """Return whether a table is a rollup of this base, listed or not."""
    rollup = rollup_of(found)
    return rollup is not None and rollup.base == base.uuid


def rollup_name(base: TableVersion, name: str) -> TableName:
    """Return the table name of a rollup."""
    return TableName(base.schema.name, rollup_table(base.name, name))


def settling(unit: UnitOfWork, base: TableVersion, table: TableVersion) -> Settling:
    """Return what a unit records about a rollup that it leaves up to date."""
    return Settling(table.id, frozenset({base.id, table.id}), unit.workspace.base.id)


def create_rollup(
    unit: UnitOfWork, base: TableVersion, spec: RollupSpec, *, unique: str | None = None
) -> TableVersion:
    """Stage the empty table of a rollup; its base does not list it yet.

    ``unique`` is its UUID; by default a random one.

    Raises what `plan_rollup` raises, and AlreadyExists if the name is taken.
    """
    return stage_rollup(unit, base, plan_rollup(base, spec), unique)


def stage_rollup(
    unit: UnitOfWork, base: TableVersion, planned: RollupTable, unique: str | None
) -> TableVersion:
    """Stage the empty table of a rollup as it is planned."""
    name = rollup_name(base, planned.rollup.name)
    if unit.workspace.has_table(name):
        raise AlreadyExists(
            f"Rollup index {planned.rollup.name} of {base.full_name} already exists", about="rollup"
        )
    return unit.workspace.create_table(
        name,
        planned.columns,
        arrangement=planned.arrangement,
        properties=planned.properties,
        unique=unique,
    )


def list_rollups(unit: UnitOfWork, base: TableVersion, names: tuple[str, ...]) -> None:
    """Stage the list of rollups of a table: from then on every write updates them."""
    properties = with_rollup_names(base.properties, names)
    if properties != base.properties:
        unit.workspace.alter_table(alteration(base, replace(base, properties=properties)))


def drop_rollup(unit: UnitOfWork, base: TableVersion, name: str) -> None:
    """Stage the drop of one rollup; NotFound lists the existing ones."""
    names = rollup_names(base)
    known = next((n for n in names if n.lower() == name.lower()), None)
    if known is None:
        raise NotFound.named("rollup", name, names, where=base.full_name)
    for found in list(rollups_of(unit, base)):
        if found.name == rollup_table(base.name, known):
            unit.workspace.drop_table(found)
    list_rollups(unit, base, tuple(n for n in names if n != known))


def redefined(unit: UnitOfWork, base: TableVersion, table: TableVersion) -> TableVersion | None:
    """Stage an empty table that replaces a rollup whose definition no longer fits its base.

    The caller fills it in the same snapshot. Returns None if the rollup is no longer possible; it
    is then dropped.
    """
    planned = plan_again(base, table)
    if planned is None:
        drop_rollup(unit, base, definition_of(table).name)
        return None
    unit.workspace.drop_table(table)
    return stage_rollup(unit, base, planned, uuid_of_next(table.uuid))
