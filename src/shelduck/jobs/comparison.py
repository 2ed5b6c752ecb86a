"""The comparison of a published job with what it began with, row by row, as long as both exist."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shelduck.catalog.running import job_rows as catalog_jobs
from shelduck.jobs.convert import OlderValues
from shelduck.jobs.undo import rows_around
from shelduck.lake.state import LakeState
from shelduck.model.changes.job import Job
from shelduck.model.shadows.shadows import Shadow, known_shadow
from shelduck.model.tables.table_version import TableVersion
from shelduck.write.shadow_rows import unlike_rows


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
