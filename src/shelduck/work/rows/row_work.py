"""Statements over rows: prepared, applied to the rollups of their table, and committed."""

from __future__ import annotations

from collections.abc import Callable

from shelduck.catalog.databases.retry import with_retries
from shelduck.errors import Conflict
from shelduck.operations.done import Done
from shelduck.operations.write.load import Loaded
from shelduck.spark.stopping import stopped_on_error
from shelduck.spark.unknown_columns import unknown_columns
from shelduck.work.hooks import stage_rows
from shelduck.work.results import Result, Staged
from shelduck.work.state import LakeState
from shelduck.work.unit import UnitOfWork, counted

Prepare = Callable[[UnitOfWork], Done | Loaded]


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
    if not again:
        return _alone(state, prepare)
    return with_retries(lambda: _alone(state, prepare), lost=Conflict)


def _alone(state: LakeState, prepare: Prepare) -> Result:
    own = UnitOfWork(state, state.commit_info())
    try:
        with unknown_columns(), stopped_on_error(state.given_spark):
            stage_rows(own, prepare(own))
        return own.commit()
    except BaseException:
        own.rollback()
        raise
