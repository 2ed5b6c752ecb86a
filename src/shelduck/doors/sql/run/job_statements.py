"""Statements about jobs and maintenance: SHOW ALTER TABLE, ALTER JOB, UNDO, OPTIMIZE, VACUUM."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from shelduck.catalog.read.overview.column_history import ShapeVersions
from shelduck.catalog.running.job_rows import LightChange, jobs, light_changes, open_job
from shelduck.doors.sql.calls.procedures import call
from shelduck.doors.sql.calls.upkeep_calls import checkpoint as do_checkpoint
from shelduck.doors.sql.calls.upkeep_calls import compacted_rows, deleted_rows, lake_of
from shelduck.doors.sql.runner import Runner, by_statement
from shelduck.engine.bridge import engine_for
from shelduck.engine.query import answer
from shelduck.engine.session import DataFrame
from shelduck.errors import InvalidRequest, NotFound
from shelduck.jobs.jobs import (
    SchemaChangeJob,
    alter_job,
    job_properties,
    submit_rollups,
    submit_undo,
)
from shelduck.jobs.undo_plan import WayBack
from shelduck.lake.results import FilesDeleted, PlainRows, Result, Unchanged
from shelduck.lake.unit import UnitOfWork, carry_out, refuse_in_transaction
from shelduck.model.changes.job import Job, JobIndex, JobState
from shelduck.model.tables.rollup import (
    AddRollup,
    DropRollup,
    refuse_rollup,
    rollup_names,
    rollup_table,
)
from shelduck.model.tables.schema import path_text
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import split_name
from shelduck.read.scan.matching import Where
from shelduck.rollups.rollup_tables import drop_rollup
from shelduck.text.statements import statement_values as st
from shelduck.text.statements import upkeep_statements as up
from shelduck.upkeep.lake_upkeep import ORPHAN_AGE

_COLUMNS = (
    "JobId bigint, TableName string, CreateTime string, FinishTime string, IndexName string,"
    " IndexId bigint, OriginIndexId bigint, SchemaVersion string, TransactionId bigint,"
    " State string, Msg string, Progress string, Timeout bigint"
)

_ROLLUP_COLUMNS = (
    "JobId bigint, TableName string, CreateTime string, FinishTime string, BaseIndexName string,"
    " RollupIndexName string, RollupId bigint, TransactionId bigint, State string, Msg string,"
    " Progress string, Timeout bigint"
)


def show_jobs(runner: Runner, statement: up.ShowJobs) -> DataFrame | PlainRows:
    """SHOW ALTER TABLE COLUMN, newest first, with Doris' thirteen columns.

    Changes without a job come from the snapshots that made them, also DuckDB's. They have no JobId;
    their TransactionId is that snapshot.
    """
    wanted = None if statement.schema is None else statement.schema.schema
    if wanted is not None:
        wanted = runner.view().workspace.schema(wanted).name
    with runner.state.store.read() as connection:
        heavy = jobs(connection)
        light = [] if statement.rollups else light_changes(connection, heavy)
        altered = [] if statement.rollups else heavy
        shown = [c.table_id for c in light] + [i.table_id for j in altered for i in _indexes(j)]
        versions = ShapeVersions(connection, shown)
    columns = _ROLLUP_COLUMNS if statement.rollups else _COLUMNS
    told = [
        (split_name(j.table_name)[0], j.created, row)
        for j in heavy
        if (j.is_understood and j.work.makes_rollups) is statement.rollups
        for row in (_rollup_rows(j) if statement.rollups else _rows(j, versions))
    ]
    told += [(c.table_name[0], c.snapshot.time, _light_row(c, versions)) for c in light]
    newest = sorted(told, key=lambda one: one[1], reverse=True)
    rows = [row for schema, _, row in newest if wanted in (None, schema)]
    found = PlainRows(columns, rows)
    if not statement.tail:
        return found
    word = "__shelduck_jobs__"
    spark = runner.state.spark
    frame = answer(spark, found.columns, found.rows)
    return engine_for(spark).query(f"SELECT * FROM {word} {statement.tail}", {word: frame})


def alter_rollups(runner: Runner, statement: st.AlterRollups) -> Result:
    """ALTER TABLE … ADD ROLLUP and DROP ROLLUP, and the same of materialized views."""
    name = runner.name(statement.name)
    view = runner.view()
    if statement.if_exists and not view.workspace.has_table(name):
        return Unchanged(view.workspace.base.id)
    table = view.workspace.table(name)
    refuse_rollup(table)
    timeout, waits = job_properties(statement.properties)
    adds = [c for c in statement.changes if isinstance(c, AddRollup)]
    gone = [c.name for c in statement.changes if isinstance(c, DropRollup)]
    if statement.if_exists:
        known = {n.lower() for n in rollup_names(table)}
        gone = [n for n in gone if n.lower() in known]

    def stage(unit: UnitOfWork) -> None:
        for found in gone:
            drop_rollup(unit, unit.workspace.table(name), found)

    done: Result = Unchanged(view.workspace.base.id)
    if gone:
        done = carry_out(runner.state, runner.unit, stage)
    if not adds:
        return done
    refuse_in_transaction(runner.unit, "making a rollup")
    _require_sources(table, adds)
    specs = [change.spec for change in adds]
    job = submit_rollups(view, table, specs, timeout)
    return job.wait() if waits else Unchanged(job.look().base)


def _require_sources(table: TableVersion, adds: Sequence[AddRollup]) -> None:
    """Raise NotFound if a new rollup is to be made from one that does not exist."""
    known = (table.name, *rollup_names(table))
    for change in adds:
        if change.source is not None and change.source.lower() not in map(str.lower, known):
            raise NotFound(
                f"Base index[{change.source}] does not exist in {table.full_name}; existing"
                f" indexes: {', '.join(known)}",
                about="rollup",
            )


def cancel_alter(runner: Runner, statement: up.CancelJob) -> Unchanged:
    """CANCEL ALTER TABLE COLUMN."""
    table = runner.version(statement.name)
    with runner.state.store.read() as connection:
        job = open_job(connection, table.id)
    is_other = job is not None and job.work.makes_rollups is not statement.rollups
    if job is None or is_other or (statement.jobs and job.id not in statement.jobs):
        told = f" (job {', '.join(map(str, statement.jobs))})" if statement.jobs else ""
        what = "ROLLUP" if statement.rollups else "SCHEMA_CHANGE"
        raise InvalidRequest(f"table {table.full_name} is not under {what}{told}")
    SchemaChangeJob(runner.state, job.id).cancel()
    return Unchanged(table.snapshot.id)


def alter_job_of_lake(runner: Runner, statement: up.AlterJob) -> Unchanged:
    """ALTER JOB: pause a job, let it go on, or set its pace."""
    refuse_in_transaction(runner.unit, "ALTER JOB")
    alter_job(runner.state, statement.job, statement.action, statement.pace)
    return Unchanged(runner.view().workspace.base.id)


def undo_job(runner: Runner, statement: up.UndoJob) -> Result:
    """ALTER TABLE … UNDO JOB; waits for the job that does it, unless ``"wait" = "false"``."""
    view = runner.view().workspace
    name = runner.name(statement.name)
    if statement.if_exists and not view.has_table(name):
        return Unchanged(view.base.id)
    refuse_in_transaction(runner.unit, "UNDO JOB")
    timeout, waits = job_properties(statement.properties)
    wanted = WayBack(statement.using, statement.on_error_null)
    done = submit_undo(runner.state, statement.job, wanted, timeout, wait=waits, of=name)
    if not isinstance(done, SchemaChangeJob):
        return done
    job = done.look()
    return Unchanged(job.base, note=job.message)


def undrop_column(runner: Runner, statement: up.UndropColumn) -> Result:
    """ALTER TABLE … UNDROP COLUMN."""
    view = runner.view().workspace
    if statement.if_exists and not view.has_table(runner.name(statement.name)):
        return Unchanged(view.base.id)
    return runner.table(statement.name).undrop_column(path_text(statement.path))


def _indexes(job: Job) -> Sequence[JobIndex]:
    """Return the table and each rollup that a job changes."""
    indexes = job.work.indexes if job.is_understood else ()
    return indexes or (JobIndex(split_name(job.table_name)[-1], job.table_id),)


def _rows(job: Job, versions: ShapeVersions) -> list[tuple[object, ...]]:
    """Return a row for the table and each rollup that a job changes."""
    name = split_name(job.table_name)[-1]
    progress = f"{job.done}/{job.total}" if job.state is JobState.RUNNING else None
    when = (_time(job.created), _time(job.finished))
    at = job.base if job.published is None else job.published
    return [
        (
            *(job.id, name, *when, index.name, index.table_id, index.table_id),
            *(versions.text(index.table_id, at), job.base, job.state.value, job.message),
            *(progress, job.timeout),
        )
        for index in _indexes(job)
    ]


def _rollup_rows(job: Job) -> list[tuple[object, ...]]:
    """Return a row for each rollup that a job makes."""
    name = split_name(job.table_name)[-1]
    progress = f"{job.done}/{job.total}" if job.state is JobState.RUNNING else None
    when = (_time(job.created), _time(job.finished))
    return [
        (
            *(job.id, name, *when, name, spec.name, None),
            *(job.base, job.state.value, job.message, progress, job.timeout),
        )
        for spec in job.work.rollups
    ]


def _light_row(change: LightChange, versions: ShapeVersions) -> tuple[object, ...]:
    table, at, index = change.table_name[1], change.snapshot, change.table_name[1]
    if change.is_rollup:
        table, _, index = table.rpartition(rollup_table("", ""))
    return (
        *(None, table, _time(at.time), _time(at.time), index, change.table_id, change.table_id),
        *(versions.text(change.table_id, at.id), at.id, JobState.FINISHED.value, "", None, 1),
    )


def _time(when: datetime | None) -> str:
    return "N/A" if when is None else when.isoformat(" ", "milliseconds").partition("+")[0]


def optimize(runner: Runner, statement: up.Optimize) -> PlainRows:
    """OPTIMIZE a table, or only its files with rows for which the condition is true."""
    table = runner.table(statement.name)
    condition = statement.rows.condition
    if condition is None:
        return compacted_rows([table.compact()])
    with runner.views(condition) as named:
        where = Where(named(condition.text), statement.rows.target.alias)
        return compacted_rows([table.compact(where=where)])


def reorg(runner: Runner, statement: up.Reorg) -> PlainRows:
    """REORG TABLE … APPLY (PURGE): every file with a deleted row is written again."""
    return compacted_rows([runner.table(statement.name).rewrite_deletes(0)])


def drop_feature(runner: Runner, statement: up.DropFeature) -> Result:
    """ALTER TABLE … DROP FEATURE: files of older types are rewritten first."""
    view = runner.view().workspace
    if statement.if_exists and not view.has_table(runner.name(statement.name)):
        return Unchanged(view.base.id)
    return runner.table(statement.name).drop_feature(statement.feature)


def vacuum(runner: Runner, statement: up.Vacuum) -> PlainRows:
    """VACUUM: delete unneeded and orphaned files, of one table or of the lake."""
    lake = lake_of(runner)
    hours, dry_run = statement.retain_hours, statement.dry_run
    age = None if hours is None else timedelta(hours=hours)
    name = None if statement.name is None else str(runner.name(statement.name))
    old = lake.cleanup_old_files(older_than=age, table=name, dry_run=dry_run)
    lost = lake.remove_orphans(
        older_than=ORPHAN_AGE if age is None else age, table=name, dry_run=dry_run
    )
    return deleted_rows(FilesDeleted(old.files + lost.files, dry_run=dry_run))


def checkpoint(runner: Runner, _: up.Checkpoint) -> PlainRows:
    """CHECKPOINT: all maintenance of the lake."""
    return do_checkpoint(runner)


RUN = by_statement(
    *(show_jobs, cancel_alter, alter_job_of_lake, alter_rollups, call, drop_feature, undo_job),
    *(undrop_column, optimize, reorg, vacuum, checkpoint),
)
