"""ADD ROLLUP: filled while everybody goes on, caught up, and listed in one snapshot.

What is filled is a table that its base does not list, so nobody asks it and no write follows it.
A worker that comes after a crash finds it and catches up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from shelduck.api.following import catch_up, is_fresh
from shelduck.api.lookup import rows_of, table_of_id
from shelduck.api.results import Committed, TableName
from shelduck.api.rollup_shape import refresh_by_id
from shelduck.api.rollup_tables import (
    create_rollup,
    drop_rollup,
    list_rollups,
    rollup_name,
    rollups_of,
    settling,
)
from shelduck.api.state import LakeState
from shelduck.api.unit import UnitOfWork, carry_out
from shelduck.catalog import read as catalog_read
from shelduck.errors import Conflict, NotFound
from shelduck.evolution.alter import plan_alter
from shelduck.evolution.rollups import is_current
from shelduck.model.job import Job, JobState, JobStep
from shelduck.model.quoting import backticked
from shelduck.model.rollup import RollupSpec, rollup_names, rollup_of, rollup_table
from shelduck.model.schema import Field, FieldId
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
        _fill(state, job, table, spec, replace(step, done=number, total=len(specs)))
    unit = UnitOfWork(state, state.commit_info(f"job {job.id}"))
    try:
        base = table_of_id(unit, table)
        for spec in specs:
            found = _complete(unit, job, base, spec.name)
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
    refresh_by_id(state, base)
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
        base = table_of_id(unit, table)
        [spec] = job.work.rollups
        found = _complete(unit, job, base, spec.name)
        if not is_fresh(state, unit, base, found):
            catch_up(state, unit, base, found)
        folded = rows_of(state, unit, TableName.of(found)).frame(state.spark)
        change = plan_alter(base, job.work.clauses).change
        assert change is not None
        rows = rows_of(state, unit, TableName.of(base), writes=True)
        unit.workspace.alter_table(change)
        after = replace(rows, table=unit.workspace.table(TableName.of(base)))
        # Others may have named columns anew while it was filled.
        names = [_made_of(found)[f.id].name for f in after.table.columns]
        left = folded.select(*map(backticked, names)).toDF(*after.table.columns.names)
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


def drop_unlisted(state: LakeState, job: Job) -> None:
    """Drop what a job that was given up has filled, also where its table is gone by now."""

    def stage(unit: UnitOfWork) -> None:
        base = _by_id(state, job, unit.workspace.base.id) or _by_id(state, job, job.base)
        if base is None:
            return
        for spec in job.work.rollups:
            if job.work.refolds and spec.name in rollup_names(base.properties):
                drop_rollup(unit, base, spec.name)
                continue
            for found in _filled(unit, base, spec.name):
                if _is_left(base, found):
                    unit.workspace.drop_table(found)

    carry_out(state, None, stage, message=f"job {job.id}")


def _fill(state: LakeState, job: Job, table: TableVersion, spec: RollupSpec, step: JobStep) -> None:
    unit = UnitOfWork(state, state.commit_info(f"job {job.id}"))
    try:
        base = table_of_id(unit, table)
        found = _adopted(unit, base, spec.name)
        if found is not None:
            if _is_complete(job, base, found):
                # Filled before, and maybe listed.
                unit.commit()
                return
            if _is_left(base, found):
                unit.workspace.drop_table(found)
            elif job.work.refolds:
                drop_rollup(unit, base, spec.name)
                base = table_of_id(unit, table)
        wanted = refolding(base, job.work.clauses) if job.work.refolds else spec
        catch_up(state, unit, base, create_rollup(unit, base, wanted))
        unit.job = step
        unit.commit()
    except BaseException:
        unit.rollback()
        raise


def _complete(unit: UnitOfWork, job: Job, base: TableVersion, name: str) -> TableVersion:
    """Return what a job has filled; raises Conflict where it has to be filled again."""
    found = _adopted(unit, base, name)
    if found is None or not _is_complete(job, base, found):
        raise Conflict(f"rollup {name} of {base.full_name} has to be made anew")
    return found


def _is_complete(job: Job, base: TableVersion, found: TableVersion) -> bool:
    """Tell whether a rollup is as its job would make it now."""
    if not is_current(base, found):
        return False
    if not job.work.refolds:
        return True
    # It is to hold all that is left, columns that others added meanwhile too.
    left = refolding(base, job.work.clauses).columns
    return set(_made_of(found)) == {base.columns.get((name,)).id for name in left}


def _made_of(found: TableVersion) -> dict[FieldId, Field]:
    """Return the columns of a rollup by those of the base that they are made of."""
    rollup = rollup_of(found.properties)
    assert rollup is not None
    held = [(c.source, found.columns.by_id(c.id)) for c in rollup.columns]
    return {i: field for i, field in held if i is not None and field is not None}


def _adopted(unit: UnitOfWork, base: TableVersion, name: str) -> TableVersion | None:
    """Return what a job has filled, under the name that it has to have; None where nothing is.

    Who renamed the base before it could be seen has left it under the older name.
    """
    wanted = rollup_name(base, name)
    filled = list(_filled(unit, base, name))
    found = next((t for t in filled if t.name.lower() == wanted.name.lower()), None)
    if found is not None or not filled:
        return found
    unit.workspace.rename_table(filled[0], wanted.name)
    return unit.workspace.table(wanted)


def _filled(unit: UnitOfWork, base: TableVersion, name: str) -> Iterator[TableVersion]:
    """Yield what was made as a rollup of a base, whatever the base was called then."""
    end = rollup_table("", name).lower()
    for known in unit.workspace.table_names(base.schema):
        if known.lower().endswith(end):
            found = unit.workspace.table(TableName(base.schema.name, known))
            if _is_rollup(base, found):
                yield found


def _is_left(base: TableVersion, found: TableVersion) -> bool:
    """Tell whether a table is a rollup of this base that the base does not list."""
    rollup = rollup_of(found.properties)
    if rollup is None or not _is_rollup(base, found):
        return False
    return rollup.name not in rollup_names(base.properties)


def _is_rollup(base: TableVersion, found: TableVersion) -> bool:
    rollup = rollup_of(found.properties)
    return rollup is not None and rollup.base == base.uuid


def _by_id(state: LakeState, job: Job, version: int) -> TableVersion | None:
    """Return the table of a job as it was at a snapshot, None where it was not."""
    with state.store.read() as connection, suppress(NotFound):
        at = catalog_read.snapshot(connection, version)
        name = catalog_read.name_at(connection, job.table_id, at)
        if name is not None:
            found = catalog_read.table(connection, at, *name, state.info)
            return found if found.id == job.table_id else None
    return None
