"""Statements about jobs: SHOW ALTER TABLE, CANCEL, ALTER JOB, UNDO JOB and DROP FEATURE."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from shelduck.catalog.read.overview.lake_tables import ShapeVersions
from shelduck.catalog.running.job_rows import LightChange, jobs, light_changes, open_job
from shelduck.engine.bridge import engine_for
from shelduck.engine.session import DataFrame, answer
from shelduck.errors import InvalidRequest
from shelduck.jobs.jobs import SchemaChangeJob, alter_job, job_properties, submit_undo
from shelduck.jobs.undo import WayBack
from shelduck.jobs.widening import WideningVerbs
from shelduck.lake.operation import Operation, Runner
from shelduck.lake.results import PlainRows, Result, Unchanged
from shelduck.lake.unit import refuse_in_transaction
from shelduck.model.changes.job import Job, JobIndex, JobState
from shelduck.model.tables.rollup import rollup_table
from shelduck.model.text.names import split_name
from shelduck.text.ddl.column_clauses import take_conversion
from shelduck.text.tokens.arguments import end_alone, read_job_properties, read_properties
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import TokenKind
from shelduck.text.tokens.parts import NamedTable, OfAltered, OfTable, SchemaName, Statement

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
_TAILS = ("WHERE", "ORDER", "LIMIT")
# Doris' LIMIT says first how many rows to leave out.
_LIMIT = re.compile(r"\bLIMIT\s+(\d+)\s*,\s*(\d+)\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ShowJobs(Statement):
    """SHOW ALTER TABLE COLUMN; ``tail`` is WHERE, ORDER BY and LIMIT as text.

    With ``rollups`` it is SHOW ALTER TABLE ROLLUP, which MATERIALIZED VIEW is another word for.
    """

    schema: SchemaName | None
    tail: str = ""
    rollups: bool = False


@dataclass(frozen=True, slots=True)
class CancelJob(OfTable):
    """CANCEL ALTER TABLE COLUMN: the open job of a table, or only if it is one of these.

    With ``rollups`` it is CANCEL ALTER TABLE ROLLUP or MATERIALIZED VIEW.
    """

    jobs: tuple[int, ...] = ()
    rollups: bool = False


@dataclass(frozen=True, slots=True)
class AlterJob(Statement):
    """ALTER JOB n PAUSE, RESUME or SET (…); ``action`` is the word, ``pace`` what SET sets."""

    job: int
    action: str
    pace: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UndoJob(OfAltered):
    """ALTER TABLE … UNDO JOB: the job, how new values are converted back, and the new job's."""

    job: int
    using: str | None = None
    on_error_null: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DropFeature(OfAltered):
    """ALTER TABLE … DROP FEATURE."""

    feature: str


def read_show_jobs(cursor: Cursor) -> ShowJobs:
    """Read the statement behind ``SHOW ALTER TABLE``.

    What chooses and orders rows is Spark SQL over the statement's own columns.
    """
    rollups = _are_rollups(cursor)
    schema = cursor.schema_name() if cursor.accept_any("FROM", "IN") else None
    if cursor.peek().kind is not TokenKind.END and cursor.peek().key not in _TAILS:
        raise cursor.failure("FROM and a schema, WHERE, ORDER BY or LIMIT")
    return ShowJobs(schema, _LIMIT.sub(r"LIMIT \2 OFFSET \1", cursor.rest()), rollups)


def read_cancel(cursor: Cursor) -> CancelJob:
    """Read the statement behind ``CANCEL``."""
    if not cursor.accept("ALTER", "TABLE"):
        raise cursor.failure("ALTER TABLE COLUMN FROM and a table, or ROLLUP for COLUMN")
    rollups = _are_rollups(cursor)
    cursor.expect("FROM")
    name = cursor.table_name()
    jobs = cursor.in_brackets(Cursor.job) if cursor.sees("(") else ()
    return CancelJob(name, jobs, rollups)


def read_alter_job(cursor: Cursor) -> AlterJob:
    """Read the statement behind ``ALTER JOB``."""
    job = cursor.job()
    action = cursor.accept_any("PAUSE", "RESUME", "SET")
    if not action:
        raise cursor.failure("PAUSE, RESUME or SET (tasks = 2, bytes_per_second = '50 MB')")
    pace = read_properties(cursor) if action == "SET" else {}
    return AlterJob(job, action, pace)


def _are_rollups(cursor: Cursor) -> bool:
    """Take COLUMN, ROLLUP or MATERIALIZED VIEW; tell whether it was one of the last two."""
    if cursor.accept("COLUMN"):
        return False
    if cursor.accept("ROLLUP") or cursor.accept("MATERIALIZED", "VIEW"):
        return True
    raise cursor.failure("COLUMN, ROLLUP or MATERIALIZED VIEW")


def _feature_dropped(cursor: Cursor, name: NamedTable) -> DropFeature | None:
    """Read a feature, which may be a text as in Delta; None for a column of that name."""
    named = cursor.peek(2)
    if not (named.may_name or named.kind is TokenKind.STRING):
        return None
    cursor.expect("DROP", "FEATURE")
    is_text = cursor.peek().kind is TokenKind.STRING
    feature = cursor.string("a feature") if is_text else cursor.name("a feature")
    if cursor.sees("TRUNCATE"):
        raise cursor.refusal(
            "DROP FEATURE ... TRUNCATE HISTORY",
            "older snapshots stay readable; CALL expire_snapshots(...) removes them",
        )
    end_alone(cursor, "DROP FEATURE")
    return DropFeature(name, feature)


def _undone(cursor: Cursor, name: NamedTable) -> UndoJob:
    cursor.expect("UNDO", "JOB")
    job = cursor.job()
    using, on_error_null = take_conversion(cursor)
    properties = read_job_properties(cursor, {})
    end_alone(cursor, "UNDO JOB")
    return UndoJob(name, job, using, on_error_null, properties=properties)


def show_jobs(runner: Runner, statement: ShowJobs) -> DataFrame | PlainRows:
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
        for row in _rows(j, versions)
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


def cancel_alter(runner: Runner, statement: CancelJob) -> Unchanged:
    """CANCEL ALTER TABLE COLUMN."""
    table = runner.version(statement.name)
    job = runner.state.store.ask(open_job, table.id)
    is_other = job is not None and job.work.makes_rollups is not statement.rollups
    if job is None or is_other or (statement.jobs and job.id not in statement.jobs):
        told = f" (job {', '.join(map(str, statement.jobs))})" if statement.jobs else ""
        what = "ROLLUP" if statement.rollups else "SCHEMA_CHANGE"
        raise InvalidRequest(f"table {table.full_name} is not under {what}{told}")
    SchemaChangeJob(runner.state, job.id).cancel()
    return Unchanged(table.snapshot.id)


def alter_job_of_lake(runner: Runner, statement: AlterJob) -> Unchanged:
    """ALTER JOB: pause a job, let it go on, or set its pace."""
    refuse_in_transaction(runner.unit, "ALTER JOB")
    alter_job(runner.state, statement.job, statement.action, statement.pace)
    return Unchanged(runner.view().workspace.base.id)


def undo_job(runner: Runner, statement: UndoJob) -> Result:
    """ALTER TABLE … UNDO JOB; waits for the job that does it, unless ``"wait" = "false"``."""
    name = runner.name(statement.name)
    refuse_in_transaction(runner.unit, "UNDO JOB")
    timeout, waits = job_properties(statement.properties)
    wanted = WayBack(statement.using, statement.on_error_null)
    done = submit_undo(runner.state, statement.job, wanted, timeout, wait=waits, of=name)
    if not isinstance(done, SchemaChangeJob):
        return done
    job = done.look()
    return Unchanged(job.base, note=job.message)


def drop_feature(runner: Runner, statement: DropFeature) -> Result:
    """ALTER TABLE … DROP FEATURE: files of older types are rewritten first."""
    return runner.verbs(WideningVerbs, statement.name).drop_feature(statement.feature)


def _indexes(job: Job) -> Sequence[JobIndex]:
    """Return the table and each rollup that a job changes."""
    indexes = job.work.indexes if job.is_understood else ()
    return indexes or (JobIndex(split_name(job.table_name)[-1], job.table_id),)


def _rows(job: Job, versions: ShapeVersions) -> list[tuple[object, ...]]:
    """Return a row for each rollup that a job makes, or for the table and all that it changes."""
    name = split_name(job.table_name)[-1]
    progress = f"{job.done}/{job.total}" if job.state is JobState.RUNNING else None
    begin = (job.id, name, _time(job.created), _time(job.finished))
    end = (job.base, job.state.value, job.message, progress, job.timeout)
    if job.is_understood and job.work.makes_rollups:
        return [(*begin, name, spec.name, None, *end) for spec in job.work.rollups]
    at = job.base if job.published is None else job.published
    return [
        (*begin, each.name, each.table_id, each.table_id, versions.text(each.table_id, at), *end)
        for each in _indexes(job)
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


OPERATIONS = (
    Operation(
        "SHOW JOBS", ShowJobs, show_jobs, read_show_jobs, "SHOW ALTER TABLE", of_current=True
    ),
    Operation("CANCEL JOB", CancelJob, cancel_alter, read_cancel, "CANCEL", only_lakes=True),
    Operation("ALTER JOB", AlterJob, alter_job_of_lake, read_alter_job, of_current=True),
    Operation("UNDO JOB", UndoJob, undo_job, forms={"UNDO JOB": _undone}, only_lakes=True),
    Operation(
        *("DROP FEATURE", DropFeature, drop_feature),
        forms={"DROP FEATURE": _feature_dropped},
        only_lakes=True,
    ),
)
