"""What the heavy steps of a plan would rewrite."""

from __future__ import annotations

import os

from shelduck.catalog.running.job_speeds import speeds
from shelduck.evolution.alter_plan import AlterPlan, Speed
from shelduck.model.tables.table import TableVersion
from shelduck.operations.upkeep.compact import survey
from shelduck.work.state import LakeState


def with_cost(state: LakeState, table: TableVersion, plan: AlterPlan) -> AlterPlan:
    """Return the plan with the files, rows and bytes of its job, from the catalog and footers."""
    if not plan.is_heavy:
        return plan
    found = survey(state.store, table, state.layouts)
    files = found.rows.files
    # A job that converts values flushes what the catalog keeps, and converts that too.
    flushed = found.in_catalog if plan.shadows else ()
    rows = sum((f.record_count or 0) - f.dead_rows for f in files) + sum(flushed)
    size = sum(f.file_size_bytes for f in files)
    cores = os.cpu_count() or 1
    return plan.rewriting(len(files) + len(flushed), rows, size, cores, _speed(state))


def _speed(state: LakeState) -> Speed:
    """Return how fast earlier jobs of this lake were."""
    with state.store.read() as connection:
        known = speeds(connection).values()
    spent = sum(s.milliseconds * s.cores for s in known) / 1000
    size = sum(s.bytes for s in known)
    return Speed(size / spent, len(known)) if spent and size else Speed()
