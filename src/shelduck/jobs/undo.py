"""What a published job changed: the undo that takes it back, and its comparison, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from shelduck.catalog.read import read
from shelduck.catalog.running import job_rows as catalog_jobs
from shelduck.errors import InvalidRequest, NotFound
from shelduck.files.compact import Survey, survey
from shelduck.jobs.convert import OlderValues, held, unheld
from shelduck.jobs.undo_plan import (
    PublishedJob,
    WayBack,
    plan_undo,
    refuse_not_published,
    refuse_other_values,
)
from shelduck.lake.evolution.alter_plan import AlterPlan
from shelduck.lake.evolution.plan import plan_alter
from shelduck.lake.results import TableName
from shelduck.lake.state import LakeState
from shelduck.lake.unit import view_of
from shelduck.model.changes.job import Job, JobIndex, Undone
from shelduck.model.changes.schema_change import ChangeTypeBack
from shelduck.model.shadows.shadows import Shadow, known_shadow
from shelduck.model.tables.schema import SnapshotId
from shelduck.model.tables.table_version import Feature, Snapshot, TableVersion
from shelduck.read.table_rows import table_rows
from shelduck.rollups.altered_bases import parted
from shelduck.rollups.rollup_tables import rollups_of
from shelduck.write.shadow_rows import unlike_rows


@dataclass(frozen=True, slots=True)
class Undo:
    """The job that takes another one back, ready to be submitted."""

    table: TableVersion
    plan: AlterPlan
    clauses: Sequence[ChangeTypeBack]
    indexes: tuple[JobIndex, ...]
    undone: Undone


def undo_of(state: LakeState, number: int, wanted: WayBack, *, of: TableName | None = None) -> Undo:
    """Return the job that takes a job back; nothing is changed yet.

    ``of`` is the table to which the job must belong. Raises what `plan_undo` and `plan_alter`
    raise, and NotFound if the job does not exist or its table was dropped.
    """
    past = _past(state, number, of)
    clauses, conversions = plan_undo(past, wanted)
    losses = ""
    if any(c.recalls for c in conversions):
        has_past = _snapshots_around(state, past.after.snapshot.id) is not None
        conversions = [replace(c, recalls=c.recalls and has_past) for c in conversions]
        losses = _losses(past, has_past=has_past)
    plan = plan_alter(past.now, clauses, conversions)
    found = survey(state, past.now, for_job=True)
    newest = max((f.begin_snapshot for f in found.rows.files if held(f, plan.shadows)), default=0)
    refuse_other_values(past, conversions, newest)
    indexes: tuple[JobIndex, ...] = ()
    if Feature.HAS_ROLLUPS in past.now.features:
        view = view_of(state, None)
        table = view.workspace.table(TableName.of(past.now))
        indexes = parted(table, list(rollups_of(view, table)), clauses).indexes(plan)
    told = "; ".join(_told(found, past, plan, losses))
    undone = Undone(number, past.after.snapshot.id, told)
    return Undo(past.now, plan, clauses, indexes, undone)


def _past(state: LakeState, number: int, of: TableName | None) -> PublishedJob:
    with state.store.read() as connection:
        job = catalog_jobs.job(connection, number)
        # A job of a newer Shelduck raises here.
        _ = job.work
        if of is not None:
            _require_table(state, connection, job, of)
        refuse_not_published(job)
        now = state.tables.newest_of(connection, job.table_id)
        if now is None:
            raise NotFound(
                f"cannot undo job {number}: table {job.table_name} was dropped", about="table"
            )
        known = [j for j in catalog_jobs.jobs(connection) if j.table_id == job.table_id]
        published = job.published or 0
        before = _version(state, connection, now, published - 1)
        after = _version(state, connection, now, published)
    return PublishedJob(job, known, before, after, now)


def _require_table(state: LakeState, connection: read.Connection, job: Job, of: TableName) -> None:
    found = state.tables.table(connection, of.home, of.name)
    if found.id != job.table_id:
        other = "a table of this name that was dropped"
        its = other if job.table_name == found.full_name else job.table_name
        raise InvalidRequest(f"job {job.id} is not of {found.full_name}, but of {its}")


def _version(
    state: LakeState, connection: read.Connection, now: TableVersion, number: int
) -> TableVersion:
    """Return a version of a table with the columns of a snapshot, which may have expired."""
    at = replace(now.snapshot, id=SnapshotId(number))
    found = read.table_by_id(connection, now.id, at, state.info)
    if found is None:
        raise NotFound(f"{now.full_name} did not exist at snapshot {number}", about="table")
    return found


def older_values(state: LakeState, table: TableVersion, undone: Undone) -> OlderValues:
    """Return the rows around the snapshot that a job published; nothing is read yet.

    Raises InvalidRequest if they have expired since the undo began.
    """
    around = rows_around(state, table.id, undone.published)
    if around is None:
        raise InvalidRequest(
            f"snapshot {undone.published - 1}, from which rows of {table.full_name} get their older"
            f" values, has expired while the job ran; undo job {undone.job} again without it"
        )
    return around


def rows_around(state: LakeState, table: int, published: int) -> OlderValues | None:
    """Return the rows of a table just before and just after a job published it.

    None if one of the snapshots has expired. Nothing is read yet.
    """
    around = _snapshots_around(state, published)
    if around is None:
        return None
    with state.store.read() as connection:
        found = [read.table_by_id(connection, table, at, state.info) for at in around]
    before, after = (
        table_rows(state.store, version, state.layouts) for version in found if version is not None
    )
    return OlderValues(before, after)


def _snapshots_around(state: LakeState, published: int) -> tuple[Snapshot, Snapshot] | None:
    """Return the snapshot that a job published, after the one before; None if one has expired."""
    with state.store.read() as connection:
        try:
            before = read.snapshot(connection, version=published - 1)
            return before, read.snapshot(connection, version=published)
        except NotFound:
            return None


def _told(found: Survey, past: PublishedJob, plan: AlterPlan, losses: str) -> list[str]:
    """Return what an undo brings back, and what it cannot."""
    lacking = len(unheld(found, plan.shadows))
    total = len(found.rows.files)
    told = [f"{total - lacking} of {total} file(s) hold the old values"]
    rows = sum(found.in_catalog)
    since = [f"{lacking} file(s)"] if lacking else []
    since += [f"{rows} row(s) in the catalog"] if rows else []
    if since:
        told.append(f"{' and '.join(since)} do not, and are converted back{losses}")
    converted = {c.clause for c in past.job.work.conversions}
    others = [str(c) for n, c in enumerate(past.job.work.clauses) if n not in converted]
    if others:
        told.append(f"what else job {past.job.id} did stays: {', '.join(others)}")
    return told


def _losses(past: PublishedJob, *, has_past: bool) -> str:
    published = past.after.snapshot.id
    if has_past:
        return f", except that unchanged rows get their values of snapshot {published - 1}"
    return (
        f"; snapshot {published - 1} has expired, so what job {past.job.id} changed in their values"
        " cannot come back"
    )


@dataclass(frozen=True, slots=True)
class ComparedJob:
    """A published job, and how many rows do not have the values into which it converts theirs."""

    job: Job
    columns: tuple[str, ...]
    unlike: int


def compared_jobs(state: LakeState, table: TableVersion) -> Iterator[ComparedJob]:
    """Compare the published jobs of a table whose snapshots still exist; a query of Spark for each.

    Columns that an expression made are left out, since it may be random, and so are those that
    an undo took from an older snapshot, or from files after that snapshot had expired. Jobs that
    folded rows have fewer of them, and are left out.
    """
    with state.store.read() as connection:
        jobs = [j for j in catalog_jobs.jobs(connection) if j.table_id == table.id and j.published]
    for job in jobs:
        if not job.is_understood or not job.work.conversions or job.work.folded:
            continue
        undone = job.work.undoes
        if undone is not None and rows_around(state, table.id, undone.published) is None:
            continue
        around = rows_around(state, table.id, job.published or 0)
        shadows = [] if around is None else _shadows(job, around)
        if around is not None and shadows:
            unlike = unlike_rows(*around.frames(state.spark, shadows), shadows)
            yield ComparedJob(job, tuple(s.old.name for s in shadows), unlike)


def _shadows(job: Job, around: OlderValues) -> list[Shadow]:
    """Return the columns to compare, as they were before the job."""
    table = around.before.table
    done = [c for c in job.work.conversions if c.using is None and not c.recalls]
    found = [(table.columns.by_id(c.column_id), c) for c in done]
    return [known_shadow(old, c, table.full_name) for old, c in found if old is not None]
