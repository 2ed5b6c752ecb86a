"""The part that subjects above have in calls on tables which have their feature.

A call asks `hooks_of` for the features of its table, so a table without any costs nothing. Subjects
are put in by `shelduck.subjects`, which the doors import (docs/decisions/0060).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from shelduck.model.tables.properties import require_known
from shelduck.model.tables.table import Feature, TableVersion
from shelduck.operations.done import Done
from shelduck.operations.read.rows import TableRows
from shelduck.operations.write.load import Loaded
from shelduck.spark.scan.rollup_rule import Chooser
from shelduck.work.unit import UnitOfWork


@dataclass(frozen=True, slots=True)
class Hooks:
    """The functions of one subject.

    ``stage_rows`` takes the place of `staged`: it stages a change of rows, and what follows from it
    for the subject. ``chooser`` may return a function that answers queries of rows from others.
    """

    stage_rows: Callable[[UnitOfWork, Loaded], Done]
    chooser: Callable[[UnitOfWork, TableRows], Chooser | None]


_HOOKS: dict[Feature, Hooks] = {}


def put_in(feature: Feature, hooks: Hooks) -> None:
    """Let a subject take part in calls on tables with its feature."""
    _HOOKS[feature] = hooks


def hooks_of(table: TableVersion) -> Iterator[Hooks]:
    """Yield the hooks of the features that a table has."""
    return (_HOOKS[feature] for feature in table.features)


def stage_rows(unit: UnitOfWork, what: Done | Loaded) -> Done:
    """Stage a change of rows of a table, and what its subjects make of it; return the change.

    The unit owns the files.
    """
    loaded = what if isinstance(what, Loaded) else Loaded(what)
    done = loaded.done
    base = done.table if done.alter is None else done.alter.table
    if not done.keeps_rows:
        require_known(base)
    hooks = next(hooks_of(base), None)
    return staged(unit, done, base) if hooks is None else hooks.stage_rows(unit, loaded)


def staged(unit: UnitOfWork, done: Done, base: TableVersion) -> Done:
    """Stage a change of the rows of a table alone; it stays as settled as it is."""
    settled = unit.settlings()
    unit.own(done)
    unit.stage(done)
    if base.id in settled:
        unit.settle(settled[base.id])
    return done
