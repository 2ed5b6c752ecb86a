"""Heavy schema changes as jobs: submitted, looked at, waited for, cancelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

from shelduck.api.job_worker import JobWorker
from shelduck.api.results import Committed, TableName
from shelduck.api.rollup_builder import drop_unlisted, is_taken, refolding
from shelduck.api.state import LakeState
from shelduck.api.turns import Turns
from shelduck.api.unit import UnitOfWork
from shelduck.catalog import jobs as catalog_jobs
from shelduck.catalog.commit import commit
from shelduck.errors import AlreadyExists, Conflict, InvalidRequest, NotFound, Unsupported
from shelduck.evolution.alter import AlterPlan
from shelduck.evolution.rollups import plan_rollup
from shelduck.jobs.identity import is_gone
from shelduck.model.change import Change
from shelduck.model.job import TIMEOUT, Job, JobIndex, JobState, JobWork, NewJob
from shelduck.model.quoting import quote_name
from shelduck.model.rollup import RollupSpec, rollup_names
from shelduck.model.table import TableVersion
from shelduck.model.table_change import TableChange
from shelduck.model.writable import require_writable
from shelduck.operations.landing import require_files
from shelduck.planning.shadows import Shadow, reservation
from shelduck.spark.shadow_rows import require_resolved
from shelduck.sql.query import looks_at_other_rows


class SchemaChangeJob:
    """A heavy change of a table; get one from `Table.alter` or `Lake.jobs`.

    Nothing runs before `wait`, which any process may call, or ``shelduck jobs run`` finds it: files
    that are converted stay so.
    """

    def __init__(self, state: LakeState, number: int) -> None:
        self._state = state
        self.id = number

    def __repr__(self) -> str:
        return f"SchemaChangeJob({self.id})"

    def __str__(self) -> str:
        job = self.look()
        told = f": {job.message}" if job.message else ""
        count = f" {job.done}/{job.total} file(s)" if job.state is JobState.RUNNING else ""
        return f"job {job.id} on {job.table_name}: {job.state.value}{count}{told}"

    @property
    def state(self) -> JobState:
        """Where it is now."""
        return self.look().state

    @property
    def progress(self) -> tuple[int, int]:
        """The files that are converted, and all that were there when it was last counted."""
        job = self.look()
        return job.done, job.total

    def look(self) -> Job:
        """Return all that the catalog knows of it."""
        with self._state.store.read() as connection:
            return catalog_jobs.job(connection, self.id)

    def wait(self, *, progress: bool | None = None) -> Committed:
        """Convert what is left and publish; return the snapshot that shows the new types.

        Where another process works on it, wait for that one, and go on if it dies. Reads, writes
        and compaction by anybody go on meanwhile. What others write is converted too, until a
        commit finds nothing left. After a crash the next call goes on with what is not converted.

        Args:
            progress: Whether to show it on stderr; where that is a terminal when None.

        Raises:
            InvalidRequest: a value does not survive, it ran out of time, or it was cancelled; the
                table is as it was.
        """
        show = self._state.show_progress if progress is None else progress
        return JobWorker(self._state, self.id, show_progress=show).run()

    def cancel(self, message: str = "user cancelled") -> None:
        """Give it up; the table is as it was, and what was converted goes with later compaction.

        Raises InvalidRequest when it has ended.
        """
        job = self.look()
        if not job.is_open:
            raise InvalidRequest(f"job {job.id} cannot be cancelled: it is {job.state.value}")
        catalog_jobs.cancel_job(self._state.store, self.id, message)
        if job.work.rollups:
            drop_unlisted(self._state, job)


def submit(
    state: LakeState,
    table: TableVersion,
    plan: AlterPlan,
    changes: Sequence[TableChange],
    timeout: int | None = None,
    *,
    indexes: tuple[JobIndex, ...] = (),
) -> SchemaChangeJob:
    """Reserve the columns of heavy changes in one short commit, and return their job.

    A new layout counts at once, and the job has the files follow it. ``indexes`` are the table and
    the rollups that it changes, none for the table alone. Raises AlreadyExists when the
    table has an open job, InvalidRequest for a timeout that is no number of seconds above 0 and for
    a USING that Spark cannot make sense of, and Unsupported for one that looks at other rows.
    """
    _require_using(state, table, plan.shadows)
    conversions = tuple(s.conversion for s in plan.shadows)
    work = JobWork(conversions, tuple(changes), plan.rewrites, indexes=indexes)
    if plan.refolds:
        work = JobWork(clauses=tuple(changes), rollups=(refolding(table, changes),), refolds=True)
    wanted: list[Change] = [reservation(table, plan.shadows)] if plan.shadows else []
    if plan.rewrites and plan.change is not None:
        wanted.append(plan.change)
    return _submitted(state, table, work, wanted, timeout)


def submit_remaking(
    state: LakeState,
    table: TableVersion,
    changes: Sequence[TableChange],
    indexes: tuple[JobIndex, ...],
    timeout: int | None = None,
) -> SchemaChangeJob:
    """Return the job that rebuilds rollups and publishes them with the changes of their table.

    Nothing is changed yet. Raises AlreadyExists when the table has an open job.
    """
    work = JobWork(clauses=tuple(changes), remakes=True, indexes=indexes)
    return _submitted(state, table, work, [], timeout)


def _require_using(state: LakeState, table: TableVersion, shadows: Sequence[Shadow]) -> None:
    for shadow in shadows:
        using = shadow.conversion.using
        if using is not None and looks_at_other_rows(using):
            raise Unsupported(
                f"USING {using} of {quote_name(shadow.old.name)} of {table.full_name} looks at"
                " other rows, which files are converted without; make values from the columns of"
                " their own row, or fill a new column by MERGE INTO"
            )
    require_resolved(state.spark, table, shadows)


def submit_rollups(
    state: LakeState,
    unit: UnitOfWork,
    table: TableVersion,
    specs: Sequence[RollupSpec],
    timeout: int | None = None,
) -> SchemaChangeJob:
    """Return the job that makes rollups of a table; nothing is changed yet.

    Raises what `plan_rollup` raises, and AlreadyExists where a name is taken or the table has an
    open job.
    """
    taken = {name.lower() for name in rollup_names(table.properties)}
    for spec in specs:
        made = plan_rollup(table, spec)
        require_writable(made.columns, f"rollup {spec.name} of {table.full_name}", "it needs a job")
        if spec.name.lower() in taken or is_taken(unit, table, spec.name):
            raise AlreadyExists(
                f"Rollup index {spec.name} of {table.full_name} already exists", about="rollup"
            )
        taken.add(spec.name.lower())
    return _submitted(state, table, JobWork(rollups=tuple(specs)), [], timeout)


def _submitted(
    state: LakeState,
    table: TableVersion,
    work: JobWork,
    wanted: Sequence[Change],
    timeout: int | None,
) -> SchemaChangeJob:
    if timeout is not None and timeout < 1:
        raise InvalidRequest(f"a job's timeout is a number of seconds from 1 on, not {timeout}")
    name = TableName.of(table)
    require_files(wanted, {table.id: table.path})
    landed = commit(
        state.store,
        state.info,
        wanted,
        base=table.snapshot.id,
        info=state.commit_info(),
        job=NewJob(table.id, str(name), work, TIMEOUT if timeout is None else timeout),
    )
    assert landed.job is not None
    return SchemaChangeJob(state, landed.job)


def job_properties(values: Mapping[str, str]) -> tuple[int | None, bool]:
    """Return the timeout in seconds and whether to wait, as ``PROPERTIES (…)`` of a statement say.

    Raises InvalidRequest for a property that jobs do not have, or a value that it does not take.
    """
    known = {"timeout": "seconds", "wait": "true or false"}
    for key, value in values.items():
        if key not in known:
            raise InvalidRequest(f"a job has no property {key!r}; there are timeout and wait")
        is_valid = value.isdigit() if key == "timeout" else value.lower() in ("true", "false")
        if not is_valid:
            raise InvalidRequest(f"the property {key!r} of a job is {known[key]}, not {value!r}")
    timeout = values.get("timeout")
    waits = values.get("wait", "true").lower() == "true"
    return None if timeout is None else int(timeout), waits


def run_jobs(state: LakeState) -> list[SchemaChangeJob]:
    """Work on the open jobs that nobody alive works on, and return them.

    Raises the first error that is not a job's own when all of them had their turn.
    """
    with Turns() as turns:
        done = turns.each(reversed(jobs_of(state)), partial(_work, state), _told)
        return [job for job in done if job is not None]


def _told(job: Job) -> str:
    return f"by job {job.id} on {job.table_name}"


def _work(state: LakeState, job: Job) -> SchemaChangeJob | None:
    is_taken = job.is_held(datetime.now(UTC)) and not is_gone(job.worker)
    if not job.is_open or is_taken:
        return None
    found = SchemaChangeJob(state, job.id)
    with suppress(InvalidRequest, Conflict, NotFound):
        found.wait()
    return found


def jobs_of(state: LakeState) -> list[Job]:
    """Return what the catalog knows of all jobs, the newest first."""
    with state.store.read() as connection:
        return catalog_jobs.jobs(connection)
