"""The jobs of the lake: states, progress, rate and time left; and buttons for each."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from shelduck.catalog.read.overview.commits import notes_for_programs
from shelduck.catalog.running import job_rows as catalog_jobs
from shelduck.jobs.jobs import SchemaChangeJob
from shelduck.model.changes.job import Job, JobState
from shelduck.web.site import Site, asked_number, pace_of

LISTED = 100


@dataclass(frozen=True, slots=True)
class JobLine:
    """A job as the list shows it; ``rate`` is files per second, None if it is not known.

    ``record`` is what the snapshot that published it says. ``may_be_undone``: it converted columns,
    and no other job has taken that back.
    """

    job: Job
    does: tuple[str, ...]
    rate: float | None
    left: timedelta | None
    is_held: bool
    may_be_undone: bool
    record: tuple[str, ...] = ()

    @property
    def percent(self) -> float:
        """How much of its files is done."""
        return round(100 * self.job.done / self.job.total, 2) if self.job.total else 0.0


def show(site: Site, request: Request) -> Response:
    """Return the list of jobs, the newest first."""
    table = asked_number(request, "table")
    with site.reading() as (connection, _):
        found = catalog_jobs.jobs(connection)
        mine = [j for j in found if table is None or j.table_id == table]
        published = [j.published for j in mine[:LISTED] if j.published is not None]
        notes = notes_for_programs(connection, published) if published else {}
    return site.render(
        request,
        "jobs.html",
        lines=_lines(site, mine[:LISTED], _undone(mine), notes),
        hidden=max(0, len(mine) - LISTED),
        is_live=any(j.is_open for j in mine),
        table=table,
    )


def _acted(change: Callable[[SchemaChangeJob], object], site: Site, request: Request) -> Response:
    """Change a job, and return to the list."""
    change(SchemaChangeJob(site.state, int(request.path_params["job"])))
    return RedirectResponse("/jobs", 303)


ACTS = {
    "cancel": partial(_acted, lambda job: job.cancel("cancelled on the page")),
    "pause": partial(_acted, SchemaChangeJob.pause),
    "resume": partial(_acted, SchemaChangeJob.resume),
    "undo": partial(_acted, SchemaChangeJob.undo),
}
"""What the buttons of a job do."""


def _undone(found: Sequence[Job]) -> set[int]:
    """Return the jobs that others have taken back, or are about to."""
    understood = [j for j in found if j.is_understood and j.state is not JobState.CANCELLED]
    return {j.work.undoes.job for j in understood if j.work.undoes is not None}


def _lines(
    site: Site, found: Sequence[Job], undone: Collection[int], notes: Mapping[int, str]
) -> list[JobLine]:
    now = datetime.now(UTC)
    lines = []
    for job in found:
        rate = pace_of(site.pace, job, now) if job.state is JobState.RUNNING else None
        left = timedelta(seconds=max(0, job.total - job.done) / rate) if rate else None
        has_converted = job.published is not None and job.is_understood and job.work.conversions
        may_be_undone = bool(has_converted) and not job.work.folded and job.id not in undone
        record = _record(notes.get(job.published or 0, ""))
        lines.append(JobLine(job, _does(job), rate, left, job.is_held(now), may_be_undone, record))
    return lines


def _record(note: str) -> tuple[str, ...]:
    """Return in words what a job has done to its columns; nothing for a note of somebody else."""
    try:
        told = json.loads(note)
        words = [
            f"{c['column']}: {c['from']} to {c['to']}"
            + (f", {c['nulls']:,} NULL" if "nulls" in c else "")
            + (f", {c['became_null']:,} of them from other values" if "became_null" in c else "")
            for c in told["conversions"]
        ]
        rows = [f"{told['rows']:,} rows"] if words and "rows" in told else []
    except (ValueError, LookupError, TypeError):
        return ()
    return (*rows, *words)


def _does(job: Job) -> tuple[str, ...]:
    if not job.is_understood:
        return ()
    told = [str(clause) for clause in job.work.clauses]
    return (*told, *(f"ADD ROLLUP {spec.name}" for spec in job.work.rollups if not told))
