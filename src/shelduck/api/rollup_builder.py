"""ADD ROLLUP: filled while everybody goes on, caught up, and listed in one snapshot.

What is filled is a table that its base does not list, so nobody asks it and no write follows it.
A worker that comes after a crash finds it and catches up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shelduck.api.following import (
    catch_up,
    is_fresh,
    rollup_name,
    rollups_of,
    settling,
)
from shelduck.api.lookup import rows_of
from shelduck.api.results import Committed, TableName
from shelduck.api.rollup_shape import (
    create_rollup,
    drop_rollup,
    list_rollups,
    refresh_outdated,
)
from shelduck.api.state import LakeState
from shelduck.api.unit import UnitOfWork
from shelduck.catalog import read as catalog_read
from shelduck.errors import NotFound
from shelduck.evolution.alter import plan_alter
from shelduck.evolution.rollups import is_current
from shelduck.model.job import Job, JobState, JobStep
from shelduck.model.quoting import backticked
from shelduck.model.rollup import RollupSpec, rollup_names, rollup_of
from shelduck.model.schema_change import DropColumn
from shelduck.model.settled import Settling
from shelduck.model.table import TableVersion
from shelduck.model.table_change import TableChange
from shelduck.operations.overwrite import overwrite_table

_REFOLDED = "__folded"
_RUNNING = frozenset({JobState.RUNNING})


def build_rollups(state: LakeState, job: Job, table: TableVersion, worker: str) -> Committed | None:
    """Make the rollups of a job, each in a commit, and list them in another.

    None where the job goes on with `exchange` then.

    Raises Conflict when somebody else cancelled or took the job, or changed the table's shape; what
    is filled stays so.
    """
    specs = job.work.rollups
    for number, spec in enumerate(specs, 1):
        step = JobStep(job.id, _RUNNING, JobState.RUNNING, worker=worker)
        _fill(state, table, spec, replace(step, done=number, total=len(specs)))
    unit = UnitOfWork(state, state.commit_info(f"job {job.id}"))
    base = unit.workspace.table(TableName.of(table))
    try:
        for spec in specs:
            found = unit.workspace.table(rollup_name(base, spec.name))
            if not is_fresh(state, unit, base, found):
                catch_up(state, unit, base, found)
        names = (*rollup_names(base.properties), *(spec.name for spec in specs))
        list_rollups(unit, base, tuple(dict.fromkeys(names)))
        state_after = JobState.RUNNING if job.work.refolds else JobState.FINISHED
        unit.job = JobStep(job.id, _RUNNING, state_after, worker=worker)
        snapshot = unit.commit().snapshot
    except BaseException:
        unit.rollback()
        raise
    if job.work.refolds:
        return None
    # What others brought since the work began is caught up now, and not by the next write.
    refresh_outdated(state, TableName.of(base))
    return Committed(snapshot)


def refolding(table: TableVersion, changes: Sequence[TableChange]) -> RollupSpec:
    """Return a rollup of all that is left of an AGGREGATE table when some keys are dropped."""
    gone = {c.path[0].lower() for c in changes if isinstance(c, DropColumn) and len(c.path) == 1}
    left = tuple(f.name for f in table.columns if f.name.lower() not in gone)
    return RollupSpec(_REFOLDED, left)


def exchange(state: LakeState, job: Job, table: TableVersion, worker: str) -> Committed:
    """Put the rows of a rollup in the place of those of its base, which loses keys with that.

    One snapshot: nobody sees the columns without the rows. Raises Conflict when a load came in
    between, and InvalidRequest for a sum that its column cannot hold.
    """
    unit = UnitOfWork(state, state.commit_info(f"job {job.id}"))
    try:
        base = unit.workspace.table(TableName.of(table))
        [spec] = job.work.rollups
        found = unit.workspace.table(rollup_name(base, spec.name))
        if not is_fresh(state, unit, base, found):
            catch_up(state, unit, base, found)
        folded = rows_of(state, unit, TableName.of(found)).frame(state.spark)
        change = plan_alter(base, job.work.clauses).change
        assert change is not None
        rows = rows_of(state, unit, TableName.of(base), writes=True)
        unit.workspace.alter_table(change)
        after = replace(rows, table=unit.workspace.table(TableName.of(base)))
        left = folded.select(*map(backticked, after.table.columns.names))
        done = overwrite_table(state.spark, after, left, show_progress=state.show_progress)
        unit.own(done)
        unit.stage(done)
        for other in list(rollups_of(unit, base)):
            if other.id != found.id and is_fresh(state, unit, base, other):
                unit.settle(settling(unit, base, other))
        unit.settle(Settling(base.id, frozenset({base.id}), unit.workspace.base.id, alone=True))
        drop_rollup(unit, unit.workspace.table(TableName.of(base)), spec.name)
        unit.job = JobStep(job.id, _RUNNING, JobState.FINISHED, worker=worker)
        return Committed(unit.commit().snapshot)
    except BaseException:
        unit.rollback()
        raise


def is_taken(unit: UnitOfWork, base: TableVersion, name: str) -> bool:
    """Tell whether a rollup cannot have a name: its table is there and was not left by a job."""
    try:
        found = unit.workspace.table(rollup_name(base, name))
    except NotFound:
        return False
    return not _is_left(base, found)


def drop_unlisted(state: LakeState, job: Job, table: TableVersion | None = None) -> None:
    """Drop what a job that was given up has filled."""
    unit = UnitOfWork(state, state.commit_info(f"job {job.id}"))
    base = table or _by_id(state, unit, job)
    if base is None:
        return
    base = unit.workspace.table(TableName.of(base))
    for spec in job.work.rollups:
        if job.work.refolds and spec.name in rollup_names(base.properties):
            drop_rollup(unit, base, spec.name)
            continue
        try:
            found = unit.workspace.table(rollup_name(base, spec.name))
        except NotFound:
            continue
        if _is_left(base, found):
            unit.workspace.drop_table(found)
    unit.commit()


def _fill(state: LakeState, table: TableVersion, spec: RollupSpec, step: JobStep) -> None:
    unit = UnitOfWork(state, state.commit_info(f"job {step.job_id}"))
    try:
        base = unit.workspace.table(TableName.of(table))
        name = rollup_name(base, spec.name)
        if unit.workspace.has_table(name):
            found = unit.workspace.table(name)
            if is_current(base, found) and _is_rollup(base, found):
                # Filled before, and maybe listed.
                return
            if _is_left(base, found):
                unit.workspace.drop_table(found)
        catch_up(state, unit, base, create_rollup(unit, base, spec))
        unit.job = step
        unit.commit()
    except BaseException:
        unit.rollback()
        raise


def _is_left(base: TableVersion, found: TableVersion) -> bool:
    """Tell whether a table is a rollup of this base that the base does not list."""
    rollup = rollup_of(found.properties)
    if rollup is None or not _is_rollup(base, found):
        return False
    return rollup.name not in rollup_names(base.properties)


def _is_rollup(base: TableVersion, found: TableVersion) -> bool:
    rollup = rollup_of(found.properties)
    return rollup is not None and rollup.base == base.uuid


def _by_id(state: LakeState, unit: UnitOfWork, job: Job) -> TableVersion | None:
    with state.store.read() as connection:
        at = unit.workspace.base
        name = catalog_read.name_at(connection, job.table_id, at)
        if name is None:
            return None
        return catalog_read.table(connection, at, *name, state.info)
