"""The part that subjects above have in calls on tables which have their feature.

A call asks `hooks_of` for the features of its table, so a table without any costs nothing. Subjects
are put in by `shelduck.doors.subjects`, which the doors import (docs/decisions/0060).
`carry_out_rows` prepares a statement over rows, stages its change with theirs, and commits it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from shelduck.engine.named_errors import unknown_columns
from shelduck.engine.stopping import stopped_on_error
from shelduck.lake.done import Done, Loaded
from shelduck.lake.evolution.arrangement import SHAPE_RULES, Partition, ShapeRules
from shelduck.lake.lookup import rows_of
from shelduck.lake.results import Result, Staged, TableName
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork, carry_out_anew, counted
from shelduck.model.tables.properties import require_known
from shelduck.model.tables.table_version import Feature, TableVersion
from shelduck.model.tables.twin import TWIN, refuse_tagged
from shelduck.read.scan.rollup_rule import Chooser
from shelduck.read.table_rows import TableRows
from shelduck.write.changes.edits import ROW_RULES, RowRules

Prepare = Callable[[UnitOfWork], Done | Loaded]


@dataclass(frozen=True, slots=True)
class Hooks:
    """The functions of one subject.

    ``stage_rows`` takes the place of `staged`: it stages a change of rows, and what follows from it
    for the subject. ``chooser`` may return a function that answers queries of rows from others.
    ``settled`` returns the rows of a table, made ready for a statement that writes some. ``refuse``
    raises InvalidRequest for a table whose rows no statement changes. The others give the rules for
    rows that statements write, and for an ALTER TABLE.
    """

    stage_rows: Callable[[UnitOfWork, Loaded], Done] | None = None
    chooser: Callable[[UnitOfWork, TableRows], Chooser | None] | None = None
    settled: Callable[[UnitOfWork, TableRows], TableRows] | None = None
    refuse: Callable[[TableVersion], None] | None = None
    row_rules: Callable[[TableVersion], RowRules | None] | None = None
    shape_rules: Callable[[TableVersion, Partition], ShapeRules] | None = None


_HOOKS: dict[Feature, Hooks] = {}


def put_in(feature: Feature, hooks: Hooks) -> None:
    """Let a subject take part in calls on tables with its feature.

    Operations and plans are below this layer, and have its rules for them in tables of their own.
    """
    _HOOKS[feature] = hooks
    if hooks.row_rules is not None:
        ROW_RULES[feature] = hooks.row_rules
    if hooks.shape_rules is not None:
        SHAPE_RULES[feature] = hooks.shape_rules


def hooks_of(table: TableVersion) -> Iterator[Hooks]:
    """Yield the hooks of the features that a table has."""
    return (_HOOKS[each] for each in table.features)


def refuse_followers(table: TableVersion) -> None:
    """Raise InvalidRequest for a table whose rows follow those of others."""
    for hooks in hooks_of(table):
        if hooks.refuse is not None:
            hooks.refuse(table)


def changed_rows(unit: UnitOfWork, name: TableName, *, writes: bool = False) -> TableRows:
    """Return where a table's rows are, for a statement that deletes, or ``writes``, some.

    Raises InvalidRequest for a table whose rows follow those of others, and Unsupported for a table
    of a tag.
    """
    table = unit.workspace.table(name)
    refuse_followers(table)
    if TWIN in table.properties:
        refuse_tagged(table)
    return rows_of(unit, name, writes=writes, deletes=True, needs_all=False)


def settled_rows(unit: UnitOfWork, name: TableName) -> TableRows:
    """Return where a table's rows are, for a statement that writes some.

    What its subjects do before comes into the same commit: with a key model, rows that another
    writer added without folding are folded.
    """
    rows = changed_rows(unit, name, writes=True)
    for hooks in hooks_of(rows.table):
        rows = rows if hooks.settled is None else hooks.settled(unit, rows)
    return rows


def stage_rows(unit: UnitOfWork, what: Done | Loaded) -> Done:
    """Stage a change of rows of a table, and what its subjects make of it; return the change.

    The unit owns the files.
    """
    loaded = what if isinstance(what, Loaded) else Loaded(what)
    done = loaded.done
    base = done.table if done.alter is None else done.alter.table
    if base.properties and not done.keeps_rows:
        require_known(base)
    stage = next((each.stage_rows for each in hooks_of(base) if each.stage_rows), None)
    return staged(unit, done, base) if stage is None else stage(unit, loaded)


def staged(unit: UnitOfWork, done: Done, base: TableVersion) -> Done:
    """Stage a change of the rows of a table alone; it stays as settled as it is."""
    settled = unit.settlings()
    unit.own(done)
    unit.stage(done)
    if base.id in settled:
        unit.settle(settled[base.id])
    return done


def carry_out_rows(
    state: LakeState, unit: UnitOfWork | None, prepare: Prepare, *, again: bool = False
) -> Result:
    """Do work over rows in the open unit, or in a new one that is committed at once.

    The rows were chosen by reading, so a commit of another writer that touches them is a Conflict.
    Another attempt must compute everything again; it is made only if ``again`` says that the work
    means the same on any snapshot, as a load does. If the unit is not committed, its files are
    removed.
    """
    if unit is not None:
        unit.require_open()
        with unit.statement(), unknown_columns(), stopped_on_error(state.given_spark):
            done = stage_rows(unit, prepare(unit))
        return Staged(**counted(done.counts))

    def work(own: UnitOfWork) -> None:
        with unknown_columns(), stopped_on_error(state.given_spark):
            stage_rows(own, prepare(own))

    if again:
        return carry_out_anew(state, work)
    with UnitOfWork(state) as own:
        work(own)
        return own.commit()
