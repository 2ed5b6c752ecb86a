"""ADD ROLLUP: filled while reads and writes continue, caught up, and listed in one snapshot.

The rollup is filled in a table that its base does not list, so no query reads it and no write
updates it. After a crash the next worker finds the table and catches up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from shelduck.errors import Conflict
from shelduck.lake.evolution.plan import plan_alter
from shelduck.lake.lookup import rows_of, table_of_id, table_then
from shelduck.lake.results import Committed, TableName
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork, carry_out
from shelduck.model.changes.job import Job, JobState, JobStep
from shelduck.model.changes.modify import TableChange
from shelduck.model.changes.records import Settling
from shelduck.model.changes.schema_change import DropColumn
from shelduck.model.tables.rollup import (
    RollupSpec,
    definition_of,
    rollup_names,
    rollup_table,
    uuid_of_job,
    uuid_of_next,
)
from shelduck.model.tables.schema import Field, FieldId
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.rollups.following import catch_up, is_fresh, refresh_by_id
from shelduck.rollups.rollup_plan import is_current
from shelduck.rollups.rollup_tables import (
    create_rollup,
    drop_rollup,
    is_rollup,
    list_rollups,
    rollup_name,
    rollups_of,
    settling,
)
from shelduck.write.changes.append import Placing
from shelduck.write.changes.overwrite import overwrite_table

_REFOLDED = "__folded"
_RUNNING = frozenset({JobState.RUNNING})


def roll_up(state: LakeState, job: Job, table: TableVersion, worker: str) -> Committed:
    """Fill the rollups of a job, each in its own commit, and list them all in another.

    If they replace the rows of their base, `exchange` follows.

    Raises Conflict if the job was cancelled or taken over, or the table's shape has changed; what
    is filled stays filled.
    """
    specs = job.work.rollups
    for number, spec in enumerate(specs, 1):
        step = JobStep(job.id, _RUNNING, JobState.RUNNING, worker=worker)
        _fill(state, job, table, spec, replace(step, done=number, total=len(specs)))
    with _unit(state, job) as unit:
        base = table_of_id(unit, table)
        for spec in specs:
            _caught_up(unit, job, base, spec.name)
        names = (*rollup_names(base), *(spec.name for spec in specs))
        list_rollups(unit, base, tuple(dict.fromkeys(names)))
        state_after = JobState.RUNNING if job.work.refolds else JobState.FINISHED
        unit.job = JobStep(job.id, _RUNNING, state_after, worker=worker)
        done = Committed(unit.commit().snapshot)
    if job.work.refolds:
        done = exchange(state, job, table, worker)
    # Catch up now with what others wrote since, rather than at the next write.
    refresh_by_id(state, base)
    return done


def refolding(table: TableVersion, changes: Sequence[TableChange]) -> RollupSpec:
    """Return a rollup of all columns that an AGGREGATE table keeps when keys are dropped."""
    gone = {c.path[0].lower() for c in changes if isinstance(c, DropColumn) and len(c.path) == 1}
    left = tuple(f.name for f in table.columns if f.name.lower() not in gone)
    return RollupSpec(_REFOLDED, left)


def exchange(state: LakeState, job: Job, table: TableVersion, worker: str) -> Committed:
    """Replace the rows of a base by those of its rollup, and drop the keys.

    Both are one snapshot, so that columns and rows always match. Raises Conflict if a load was
    committed in between, and InvalidRequest for a sum that its column cannot hold.
    """
    with _unit(state, job) as unit:
        base = table_of_id(unit, table)
        [spec] = job.work.rollups
        found = _caught_up(unit, job, base, spec.name)
        folded = rows_of(unit, TableName.of(found)).frame(state.spark)
        change = plan_alter(base, job.work.clauses).change
        assert change is not None
        rows = rows_of(unit, TableName.of(base), writes=True)
        unit.workspace.alter_table(change)
        after = replace(rows, table=unit.workspace.table(TableName.of(base)))
        # Others may have renamed columns while it was filled.
        names = [_made_of(found)[f.id].name for f in after.table.columns]
        left = folded.select(*map(backticked, names)).toDF(*after.table.columns.names)
        done = overwrite_table(state.spark, after, left, Placing(show_progress=state.show_progress))
        unit.own(done)
        unit.stage(done)
        for other in list(rollups_of(unit, base)):
            if other.id != found.id and is_fresh(unit, base, other):
                unit.settle(settling(unit, base, other))
        unit.settle(Settling(base.id, frozenset({base.id}), unit.workspace.base.id, alone=True))
        drop_rollup(unit, unit.workspace.table(TableName.of(base)), spec.name)
        unit.job = JobStep(job.id, _RUNNING, JobState.FINISHED, worker=worker)
        return Committed(unit.commit().snapshot)


def is_taken(unit: UnitOfWork, base: TableVersion, name: str) -> bool:
    """Return whether a rollup name is taken: its table exists and was not left by a job."""
    found = unit.workspace.find_table(rollup_name(base, name))
    return found is not None and not _is_left(base, found)


def drop_unlisted(state: LakeState, job: Job) -> None:
    """Drop what a cancelled job has filled, even if its table is gone."""

    def stage(unit: UnitOfWork) -> None:
        around = unit.workspace.base.id, job.base
        seen = (state.store.ask(table_then, job.table_id, at, state.info) for at in around)
        base = next(filter(None, seen), None)
        if base is None:
            return
        for spec in job.work.rollups:
            if job.work.refolds and spec.name in rollup_names(base):
                drop_rollup(unit, base, spec.name)
                continue
            for found in _filled(unit, base, spec.name):
                if _is_left(base, found):
                    unit.workspace.drop_table(found)

    carry_out(state, None, stage, message=f"job {job.id}")


def _fill(state: LakeState, job: Job, table: TableVersion, spec: RollupSpec, step: JobStep) -> None:
    with _unit(state, job) as unit:
        base = table_of_id(unit, table)
        found = _adopted(unit, base, spec.name)
        unique = uuid_of_job(base.uuid, job.id, spec.name)
        if found is not None:
            unique = uuid_of_next(found.uuid)
            if _is_complete(job, base, found):
                # Already filled, and perhaps listed.
                unit.commit()
                return
            if _is_left(base, found):
                unit.workspace.drop_table(found)
            elif job.work.refolds:
                drop_rollup(unit, base, spec.name)
                base = table_of_id(unit, table)
        wanted = refolding(base, job.work.clauses) if job.work.refolds else spec
        catch_up(unit, base, create_rollup(unit, base, wanted, unique=unique))
        unit.job = step
        unit.commit()


def _unit(state: LakeState, job: Job) -> UnitOfWork:
    unit = UnitOfWork(state, state.commit_info(f"job {job.id}"))
    unit.is_of_job = True
    return unit


def _caught_up(unit: UnitOfWork, job: Job, base: TableVersion, name: str) -> TableVersion:
    """Return what a job has filled, up to date; raises Conflict if it has to be filled again."""
    found = _adopted(unit, base, name)
    if found is None or not _is_complete(job, base, found):
        raise Conflict(f"rollup {name} of {base.full_name} has to be rebuilt")
    if not is_fresh(unit, base, found):
        catch_up(unit, base, found)
    return found


def _is_complete(job: Job, base: TableVersion, found: TableVersion) -> bool:
    """Return whether a rollup is as its job would make it now."""
    if not is_current(base, found):
        return False
    if not job.work.refolds:
        return True
    # It must hold everything that remains, including columns that others added since.
    left = refolding(base, job.work.clauses).columns
    return set(_made_of(found)) == {base.columns.get((name,)).id for name in left}


def _made_of(found: TableVersion) -> dict[FieldId, Field]:
    """Return the columns of a rollup by the base columns that they come from."""
    rollup = definition_of(found)
    held = [(c.source, found.columns.by_id(c.id)) for c in rollup.columns]
    return {i: field for i, field in held if i is not None and field is not None}


def _adopted(unit: UnitOfWork, base: TableVersion, name: str) -> TableVersion | None:
    """Return what a job has filled, renamed if needed; None if there is nothing.

    It still has the old name if the base was renamed by somebody who could not see it yet.
    """
    wanted = rollup_name(base, name)
    filled = list(_filled(unit, base, name))
    found = next((t for t in filled if t.name.lower() == wanted.name.lower()), None)
    if found is not None or not filled:
        return found
    unit.workspace.rename_table(filled[0], wanted.name)
    return unit.workspace.table(wanted)


def _filled(unit: UnitOfWork, base: TableVersion, name: str) -> Iterator[TableVersion]:
    """Yield the tables made for a rollup of a base, even if the base had another name then."""
    end = rollup_table("", name).lower()
    for known in unit.workspace.table_names(base.schema):
        if known.lower().endswith(end):
            found = unit.workspace.table(TableName(base.schema.name, known))
            if is_rollup(found, base):
                yield found


def _is_left(base: TableVersion, found: TableVersion) -> bool:
    """Return whether a table is a rollup of this base that the base does not list."""
    return is_rollup(found, base) and definition_of(found).name not in rollup_names(base)
