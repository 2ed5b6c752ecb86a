"""Changes of columns, staged for one commit with the changes of the table's rollups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shelduck.errors import Conflict, InvalidRequest
from shelduck.lake.evolution.plan import plan_alter
from shelduck.lake.lookup import require_checked, require_satisfied, table_of_id
from shelduck.lake.results import Committed, TableName
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork
from shelduck.model.changes.change import AlterTable, alteration, altered, changed_texts
from shelduck.model.changes.job import Job, JobState, JobStep
from shelduck.model.changes.modify import TableChange
from shelduck.model.tables.rollup import definition_of, uuid_of_next, with_rollup_names
from shelduck.model.tables.table_version import Conversion, TableVersion
from shelduck.read.table_rows import TableRows
from shelduck.rollups.altered_bases import parted
from shelduck.rollups.following import make_anew, remake
from shelduck.rollups.rollup_plan import has_other_values, is_current, renumbered
from shelduck.rollups.rollup_tables import create_rollup, rollups_of, spec_for
from shelduck.write.hooks import settled_rows


def stage_alter(
    unit: UnitOfWork,
    table: TableVersion,
    changes: Sequence[TableChange],
    *,
    remakes: bool = False,
    required: bool = False,
) -> None:
    """Stage changes of a table's columns and of its rollups.

    With ``remakes``, the same commit rebuilds the rollups whose rows change. With ``required``, it
    is a Conflict if others changed the table's rows in the meantime.

    Raises Conflict if the changes now need a job, and what `plan_alter` and `parted` raise.
    """
    parts = parted(table, list(rollups_of(unit, table)), changes)
    plan = plan_alter(table, parts.own) if parts.own else None
    change = None if plan is None else plan.change
    anew = parts.made_anew(change)
    if (anew and not remakes) or (plan is not None and plan.is_heavy):
        raise Conflict(f"another commit changed {table.full_name}; alter it again")
    if plan is not None:
        require_checked(unit, table, plan)
    parts.stage(unit, change)
    if plan is not None and plan.checks_rows:
        require_satisfied(unit, TableName.of(table), plan.checks_rows)
    for found in anew:
        after = unit.workspace.table(TableName.of(found))
        now = unit.workspace.table(TableName.of(table))
        remake(unit, now, after, required=required)


def alter_with_rollups(
    state: LakeState, job: Job, table: TableVersion, worker: str, *, required: bool
) -> Committed:
    """Publish the clauses of a job and the rollups that they change, all in one snapshot.

    Raises Conflict if the job was cancelled or taken over, or the table was changed; with
    ``required``, also if its rows were changed.
    """
    with UnitOfWork(state, state.commit_info(f"job {job.id}")) as unit:
        name = TableName.of(table_of_id(unit, table))
        settled_rows(unit, name)
        now = unit.workspace.table(name)
        try:
            stage_alter(unit, now, job.work.clauses, remakes=True, required=required)
        except Conflict as error:
            raise InvalidRequest(str(error)) from None
        running = frozenset({JobState.RUNNING})
        unit.job = JobStep(job.id, running, JobState.FINISHED, worker=worker)
        done = unit.commit()
    if not isinstance(done, Committed):
        raise InvalidRequest(f"another commit has already made the changes of the job to {name}")
    return done


def stage_converted(
    unit: UnitOfWork, rows: TableRows, change: AlterTable, conversions: Sequence[Conversion]
) -> AlterTable:
    """Stage the rollups of a base into which ``change`` puts converted columns.

    ``rows`` are those of the base, whose files already hold the converted columns. A rollup of such
    columns then refers to the new ones, and is rebuilt if its types or values change. Returns the
    change of the base without rollups that are no longer possible; it is not staged here.
    """
    base = altered(change.table, change)
    now = replace(rows, table=base)
    left = []
    for table in list(rollups_of(unit, change.table)):
        told = renumbered(table, conversions)
        rollup = definition_of(told)
        if is_current(base, told) and not has_other_values(table, conversions):
            left.append(rollup.name)
            unit.workspace.alter_table(alteration(table, told))
            continue
        spec = spec_for(base, told)
        unit.workspace.drop_table(table)
        if spec is not None:
            left.append(rollup.name)
            unique = uuid_of_next(table.uuid)
            made = create_rollup(unit, base, spec, for_use=False, unique=unique)
            make_anew(unit, base, made, now, required=True)
    properties = with_rollup_names(base.properties, tuple(left))
    texts = changed_texts(change.table.properties, properties)
    return replace(change, properties=texts)
