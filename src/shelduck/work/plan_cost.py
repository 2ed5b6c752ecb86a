"""The rewrites that the heavy steps of a plan would make."""

from __future__ import annotations

import os

from shelduck.catalog.read import read
from shelduck.catalog.read.overview.table_files import stored_rows
from shelduck.catalog.running.jobs import speeds
from shelduck.evolution.alter_plan import AlterPlan, Speed
from shelduck.model.tables.table import TableVersion
from shelduck.work.state import LakeState


def with_cost(state: LakeState, table: TableVersion, plan: AlterPlan) -> AlterPlan:
    """Return the plan with the files, rows and bytes of its job, from the catalog alone."""
    if not plan.is_heavy:
        return plan
    with state.store.read() as connection:
        stored = stored_rows(connection, table)
        # Only a rewrite of older files leaves alone what the catalog keeps.
        reads_all = plan.shadows or plan.refolds or plan.remakes
        inlined = read.inlined_rows(connection, table) if reads_all else ()
    flushed = [len(part.rows) for part in inlined if part.rows]
    files, rows = stored.files + len(flushed), stored.rows + sum(flushed)
    cores = os.cpu_count() or 1
    found = (files, rows, stored.bytes, cores, _speed(state))
    return plan.rewriting(*found, in_catalog=sum(flushed))


def _speed(state: LakeState) -> Speed:
    """Return how fast earlier jobs of this lake were."""
    with state.store.read() as connection:
        known = speeds(connection).values()
    spent = sum(s.milliseconds * s.cores for s in known) / 1000
    size = sum(s.bytes for s in known)
    return Speed(size / spent, len(known)) if spent and size else Speed()
