"""Rollups as tables of the catalog: found by their base, created, listed, redefined and dropped."""

from __future__ import annotations

from collections.abc import Iterator

from shelduck.api.results import TableName
from shelduck.api.unit import UnitOfWork
from shelduck.errors import AlreadyExists, InvalidRequest, NotFound
from shelduck.evolution.rollups import plan_rollup, spec_of
from shelduck.model.change import AlterTable
from shelduck.model.rollup import (
    RollupSpec,
    rollup_names,
    rollup_of,
    rollup_table,
    with_rollup_names,
)
from shelduck.model.settled import Settling
from shelduck.model.table import TableVersion


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


def rollup_name(base: TableVersion, name: str) -> TableName:
    """Return what a rollup of a table is found by."""
    return TableName(base.schema.name, rollup_table(base.name, name))


def settling(unit: UnitOfWork, base: TableVersion, table: TableVersion) -> Settling:
    """Return what a unit says of a rollup that it leaves right."""
    return Settling(table.id, frozenset({base.id, table.id}), unit.workspace.base.id)


def create_rollup(
    unit: UnitOfWork, base: TableVersion, spec: RollupSpec, *, for_use: bool = True
) -> TableVersion:
    """Stage the empty table of a rollup; its base does not list it yet.

    Raises what `plan_rollup` raises, and AlreadyExists where the name is taken.
    """
    planned = plan_rollup(base, spec, for_use=for_use)
    name = rollup_name(base, spec.name)
    if unit.workspace.has_table(name):
        raise AlreadyExists(
            f"Rollup index {spec.name} of {base.full_name} already exists", about="rollup"
        )
    return unit.workspace.create_table(
        name, planned.columns, layout=planned.layout, properties=planned.properties
    )


def list_rollups(unit: UnitOfWork, base: TableVersion, names: tuple[str, ...]) -> None:
    """Stage which rollups a table has: from now on every write of it follows them up."""
    properties = with_rollup_names(base.properties, names)
    if properties != base.properties:
        unit.workspace.alter_table(
            AlterTable(base, base.columns, base.comments, properties=properties)
        )


def drop_rollup(unit: UnitOfWork, base: TableVersion, name: str) -> None:
    """Stage the end of one rollup; raises NotFound, naming those there are."""
    names = rollup_names(base.properties)
    known = next((n for n in names if n.lower() == name.lower()), None)
    if known is None:
        raise NotFound.named("rollup", name, names, where=base.full_name)
    for found in list(rollups_of(unit, base)):
        if found.name == rollup_table(base.name, known):
            unit.workspace.drop_table(found)
    list_rollups(unit, base, tuple(n for n in names if n != known))


def redefined(unit: UnitOfWork, base: TableVersion, table: TableVersion) -> TableVersion | None:
    """Stage an empty table in the place of a rollup that its base would have otherwise now.

    Whoever calls this fills it in the same snapshot. None where it cannot be made any more: then
    it is dropped.
    """
    rollup = rollup_of(table.properties)
    assert rollup is not None
    spec = spec_for(base, table)
    if spec is None:
        drop_rollup(unit, base, rollup.name)
        return None
    unit.workspace.drop_table(table)
    return create_rollup(unit, base, spec, for_use=False)


def spec_for(base: TableVersion, table: TableVersion) -> RollupSpec | None:
    """Return how a rollup would be asked for today, None where it can be made no more."""
    spec = spec_of(base, table)
    if spec is not None:
        try:
            plan_rollup(base, spec, for_use=False)
        except InvalidRequest:
            return None
    return spec
