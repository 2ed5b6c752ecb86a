"""Statements about jobs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from shelduck.api.jobs import SchemaChangeJob
from shelduck.api.results import Unchanged
from shelduck.api.runner import Answer, Runner
from shelduck.catalog.jobs import LightChange, jobs, light_changes, open_job
from shelduck.errors import InvalidRequest
from shelduck.model.job import Job, JobState
from shelduck.model.names import split_name
from shelduck.spark.query import answer, run_query
from shelduck.spark.session import DataFrame
from shelduck.sql import upkeep_statements as up

_COLUMNS = (
    "JobId bigint, TableName string, CreateTime string, FinishTime string, IndexName string,"
    " IndexId bigint, OriginIndexId bigint, SchemaVersion string, TransactionId bigint,"
    " State string, Msg string, Progress string, Timeout bigint"
)


def show_jobs(runner: Runner, statement: up.ShowJobs) -> DataFrame:
    """SHOW ALTER TABLE COLUMN, newest first, with Doris' thirteen columns.

    Changes that took no job are told by the snapshots that made them, DuckDB's too; their JobId is
    NULL.
    """
    wanted = None if statement.schema is None else statement.schema.schema
    if wanted is not None:
        wanted = runner.view().workspace.schema(wanted).name
    with runner.state.store.read() as connection:
        heavy = jobs(connection)
        light = light_changes(connection, heavy)
    told = [(split_name(j.table_name)[0], j.created, _row(j)) for j in heavy]
    told += [(c.table_name[0], c.snapshot.time, _light_row(c)) for c in light]
    newest = sorted(told, key=lambda one: one[1], reverse=True)
    rows = [row for schema, _, row in newest if wanted in (None, schema)]
    found = answer(runner.state.spark, _COLUMNS, rows)
    if not statement.tail:
        return found
    word = "__shelduck_jobs__"
    return run_query(runner.state.spark, f"SELECT * FROM {word} {statement.tail}", {word: found})


def cancel_job(runner: Runner, statement: up.CancelJob) -> Unchanged:
    """CANCEL ALTER TABLE COLUMN."""
    table = runner.version(statement.name)
    with runner.state.store.read() as connection:
        job = open_job(connection, table.id)
    if job is None or (statement.jobs and job.id not in statement.jobs):
        told = f" (job {', '.join(map(str, statement.jobs))})" if statement.jobs else ""
        raise InvalidRequest(f"table {table.full_name} is not under SCHEMA_CHANGE{told}")
    SchemaChangeJob(runner.state, job.id).cancel()
    return Unchanged(table.snapshot.id)


def _row(job: Job) -> tuple[object, ...]:
    name = split_name(job.table_name)[-1]
    is_running = job.state is JobState.RUNNING
    return (
        *(job.id, name, _time(job.created), _time(job.finished), name, job.table_id, job.table_id),
        *(f"{job.schema_version}:0", job.base, job.state.value, job.message),
        *(f"{job.done}/{job.total}" if is_running else None, job.timeout),
    )


def _light_row(change: LightChange) -> tuple[object, ...]:
    name, at = change.table_name[1], change.snapshot
    return (
        *(None, name, _time(at.time), _time(at.time), name, change.table_id, change.table_id),
        *(f"{at.schema_version}:0", at.id, JobState.FINISHED.value, "", None, 1),
    )


def _time(when: datetime | None) -> str:
    return "N/A" if when is None else when.isoformat(" ", "milliseconds").partition("+")[0]


RUN: dict[type, Callable[[Runner, Any], Answer]] = {
    up.ShowJobs: show_jobs,
    up.CancelJob: cancel_job,
}
