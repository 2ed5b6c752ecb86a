"""Statements over rows: prepared, followed by the rollups of their table, committed."""

from __future__ import annotations

from collections.abc import Callable

from shelduck.api.following import stage_followed
from shelduck.api.results import Result, Staged
from shelduck.api.state import LakeState
from shelduck.api.unit import UnitOfWork, counted
from shelduck.errors import Conflict
from shelduck.operations.done import Done
from shelduck.operations.load import Loaded
from shelduck.spark.unknown_columns import unknown_columns

_ATTEMPTS = 10

Prepare = Callable[[UnitOfWork], Done | Loaded]


def carry_out_rows(
    state: LakeState, unit: UnitOfWork | None, prepare: Prepare, *, again: bool = False
) -> Result:
    """Do work over rows in the open unit, or in one of its own that is committed at once.

    The rows were chosen by reading, so a commit of another writer that touches them is a Conflict.
    What it takes to try again is another computation, which is done where ``again`` says that the
    work means the same on any snapshot, as a load does. Files are removed when the unit does not
    land.
    """
    if unit is not None:
        unit.require_open()
        with unit.statement(), unknown_columns():
            done = stage_followed(state, unit, prepare(unit))
        return Staged(**counted(done.counts))
    for attempt in range(_ATTEMPTS):
        try:
            return _alone(state, prepare)
        except Conflict:
            if not again or attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def _alone(state: LakeState, prepare: Prepare) -> Result:
    own = UnitOfWork(state, state.commit_info())
    try:
        with unknown_columns():
            stage_followed(state, own, prepare(own))
        return own.commit()
    except BaseException:
        own.rollback()
        raise
