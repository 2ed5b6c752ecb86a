"""Heavy schema changes as jobs: submitted, inspected, waited for, cancelled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

from shelduck import clock
from shelduck.catalog.commit.commit import commit
from shelduck.catalog.running import job_rows as catalog_jobs
from shelduck.errors import AlreadyExists, Conflict, InvalidRequest, NotFound, Unsupported
from shelduck.files.verb import bytes_of
from shelduck.jobs.job_record import Begun
from shelduck.jobs.lots import help_job
from shelduck.jobs.undo import WayBack, undo_of
from shelduck.jobs.worker import JobWorker
from shelduck.lake.done import require_files
from shelduck.lake.evolution.alter_plan import AlterPlan
from shelduck.lake.lookup import TellsOfSpark
from shelduck.lake.results import Committed, TableName
from shelduck.lake.state import LakeState, Turns, is_gone, new_identity
from shelduck.lake.unit import UnitOfWork
from shelduck.metrics import JOB_DURATION, timed
from shelduck.model.changes.change import Change
from shelduck.model.changes.job import Job, JobIndex, JobPace, JobState, JobWork, NewJob, Undone
from shelduck.model.changes.modify import TableChange
from shelduck.model.shadows.shadows import Shadow, reservation, with_reserved
from shelduck.model.tables.rollup import RollupSpec, rollup_names
from shelduck.model.tables.table_version import Snapshot, TableVersion, require_writable
from shelduck.model.tables.twin import TWIN, refuse_tagged
from shelduck.model.text.intervals import whole_number
from shelduck.model.text.names import html_text, quote_name
from shelduck.rollups.builder import drop_unlisted, is_taken, refolding
from shelduck.rollups.rollup_plan import plan_rollup
from shelduck.text.query.rewriting import looks_at_other_rows
from shelduck.write.shadow_rows import require_resolved


class SchemaChangeJob(TellsOfSpark, in_parts=True):
    """A heavy change of a table; get one from `Table.alter` or `Lake.jobs`.

    Nothing runs until any process calls `wait` or runs ``shelduck jobs run``. Converted files stay
    converted.
    """

    def __init__(self, state: LakeState, number: int, seen: Job | None = None) -> None:
        self._state = state
        self.id = number
        self._seen = seen

    def __repr__(self) -> str:
        # Not a question to the catalog: what was seen last, which `look` and `state` renew.
        last = f", last seen as {_text(self._seen)!r}" if self._seen is not None else ""
        return f"SchemaChangeJob({self.id}{last})"

    def _repr_html_(self) -> str:
        return html_text(repr(self))

    def __str__(self) -> str:
        return _text(self.look())

    def _subject(self) -> str:
        return f"job {self.id}"

    @property
    def state(self) -> JobState:
        """The current state."""
        return self.look().state

    @property
    def progress(self) -> tuple[int, int]:
        """The converted files, and all files, as of the last count."""
        job = self.look()
        return job.done, job.total

    def look(self) -> Job:
        """Return all that the catalog knows about it."""
        self._seen = self._state.store.ask(catalog_jobs.job, self.id)
        return self._seen

    def wait(self, *, progress: bool | None = None) -> Committed:
        """Convert what is left and publish; return the snapshot that shows the new types.

        If another process runs it, wait for that process, and take over if it dies. Reads, writes
        and compaction continue. What others write is converted too, until a commit finds nothing
        left. After a crash the next call continues with what is not converted yet.

        Args:
            progress: Whether to show it on stderr; by default only if that is a terminal.

        Raises:
            InvalidRequest: a value cannot be converted, the job ran out of time, or it was
                cancelled; the table is unchanged.
            NewerFormat: a newer Shelduck made the job or its table; the job stays as it is.
        """
        show = self._state.show_progress if progress is None else progress
        with timed(JOB_DURATION):
            return JobWorker(self._state, self.id, show_progress=show).run()

    def undo(
        self, *, using: str | None = None, on_error_null: bool = False, timeout: int | None = None
    ) -> SchemaChangeJob:
        """Return a new job that gives the converted columns their older types and values back.

        The files of the job still hold the older values. Only what was written since is converted
        back; `look` of the new job tells what that is. Writes since the job are kept.

        Args:
            using: A Spark SQL expression for values written since, if the types have no conversion.
            on_error_null: Whether values written since that cannot be converted become NULL.
            timeout: Seconds after which the new job is cancelled; by default a day.

        Raises:
            InvalidRequest: the job is not finished, converted nothing, was undone already, or a
                column was dropped or converted again since.
            Unsupported: values written since have no conversion.
            NotFound: the table was dropped.
            AlreadyExists: the table has an open job.
        """
        done = submit_undo(self._state, self.id, WayBack(using, on_error_null), timeout)
        assert isinstance(done, SchemaChangeJob)
        return done

    def pause(self) -> None:
        """Pause the job until `resume`. Converted files stay converted, and nothing is locked.

        Writers still fill its columns, and whoever waits for the job waits on. A worker loses the
        lot that it is writing.

        Raises InvalidRequest if it is paused or has ended.
        """
        with _refused(f"cannot pause job {self.id}"):
            catalog_jobs.pause_job(self._state.store, self.id)

    def resume(self) -> None:
        """Let a paused job go on; whoever waits for it, or runs jobs, takes it up.

        The pause does not count against its timeout. Raises InvalidRequest if it is not paused.
        """
        with _refused(f"cannot resume job {self.id}"):
            catalog_jobs.resume_job(self._state.store, self.id)

    def set_pace(
        self, *, tasks: int | None = None, bytes_per_second: int | str | None = None
    ) -> None:
        """Limit what each worker of the job takes, from its next lot on; no limit where None.

        Args:
            tasks: How many files a worker writes at the same time, and so Spark's tasks.
            bytes_per_second: How much of the older files a worker rewrites; bytes, or text such as
                ``"50 MB"``. A worker rests after each lot.

        Raises InvalidRequest for a limit below 1, or if the job has ended.
        """
        if tasks is not None and tasks < 1:
            raise InvalidRequest(f"tasks of a job must be at least 1, not {tasks}")
        size = bytes_per_second
        limit = None if size is None else bytes_of("bytes_per_second", size)
        with _refused(f"cannot change the pace of job {self.id}"):
            catalog_jobs.pace_job(self._state.store, self.id, JobPace(tasks, limit))

    def cancel(self, message: str = "user cancelled") -> None:
        """Cancel the job. The table stays as it is; later compaction removes converted values.

        Args:
            message: Why, as `look` and SHOW ALTER TABLE tell it.

        Raises InvalidRequest if it has ended, and NewerFormat if a newer Shelduck made it.
        """
        job = self.look()
        if not job.is_open:
            raise InvalidRequest(f"cannot cancel job {job.id}: it is already {job.state.value}")
        work = job.work
        catalog_jobs.cancel_job(self._state.store, self.id, message)
        if work.rollups:
            drop_unlisted(self._state, job)


@contextmanager
def _refused(what: str) -> Iterator[None]:
    """Name what cannot be done to a job in the state that it is in."""
    try:
        yield
    except Conflict as error:
        raise InvalidRequest(f"{what}: {error}") from None


def _text(job: Job) -> str:
    told = f": {job.message}" if job.message else ""
    count = f" {job.done}/{job.total} file(s)" if job.state is JobState.RUNNING else ""
    return f"job {job.id} on {job.table_name}: {job.state.value}{count}{told}"


def submit(
    state: LakeState,
    table: TableVersion,
    plan: AlterPlan,
    changes: Sequence[TableChange],
    timeout: int | None = None,
    *,
    indexes: tuple[JobIndex, ...] = (),
    wait: bool = False,
    undoes: Undone | None = None,
) -> SchemaChangeJob | Committed:
    """Reserve the columns of heavy changes in one short commit, and return their job.

    A new layout applies at once, and the job rewrites the files to follow it. ``indexes`` are the
    table and the rollups that it changes, empty for the table alone. With ``wait``, the job is run
    to its end, as `SchemaChangeJob.wait` does. ``undoes`` is the job that it takes back.

    Raises AlreadyExists if the table has an open job, InvalidRequest for a timeout below 1 second
    or a USING that Spark rejects, and Unsupported for a USING that depends on other rows.
    """
    _require_using(state, table, plan.shadows)
    conversions = tuple(s.conversion for s in plan.shadows)
    given = conversions, tuple(changes), plan.rewrites
    work = JobWork(*given, indexes=indexes, undoes=undoes, renews=plan.renews)
    if plan.refolds:
        work = JobWork(clauses=tuple(changes), rollups=(refolding(table, changes),), refolds=True)
    wanted: list[Change] = [reservation(table, plan.shadows)] if plan.shadows else []
    if plan.rewrites and plan.change is not None:
        wanted.append(plan.change)
    if not wait:
        return SchemaChangeJob(state, _submitted(state, table, work, wanted, timeout)[0].id)
    worker = new_identity()
    job, snapshot = _submitted(state, table, work, wanted, timeout, worker=worker)
    known = None
    if plan.shadows and not plan.rewrites and snapshot.id == table.snapshot.id + 1:
        known = with_reserved(table, plan.shadows, snapshot)
    begun = Begun(job, known, worker)
    with timed(JOB_DURATION):
        return JobWorker(state, job.id, show_progress=state.show_progress, begun=begun).run()


def submit_undo(
    state: LakeState,
    number: int,
    wanted: WayBack,
    timeout: int | None = None,
    *,
    wait: bool = False,
    of: TableName | None = None,
) -> SchemaChangeJob | Committed:
    """Return the job that takes a published one back, or what it committed if it is run here.

    Raises what `undo_of` and `submit` raise.
    """
    undo = undo_of(state, number, wanted, of=of)
    done = submit(
        *(state, undo.table, undo.plan, undo.clauses, timeout),
        indexes=undo.indexes,
        wait=wait,
        undoes=undo.undone,
    )
    return replace(done, note=undo.undone.told) if isinstance(done, Committed) else done


def submit_remaking(
    state: LakeState,
    table: TableVersion,
    changes: Sequence[TableChange],
    indexes: tuple[JobIndex, ...],
    timeout: int | None = None,
) -> SchemaChangeJob:
    """Return the job that rebuilds rollups and publishes them with the changes of their table.

    Nothing is changed yet. Raises AlreadyExists if the table has an open job.
    """
    work = JobWork(clauses=tuple(changes), remakes=True, indexes=indexes)
    return SchemaChangeJob(state, _submitted(state, table, work, [], timeout)[0].id)


def _require_using(state: LakeState, table: TableVersion, shadows: Sequence[Shadow]) -> None:
    texts = [s for s in shadows if s.conversion.using is not None]
    for shadow in texts:
        using = shadow.conversion.using or ""
        if looks_at_other_rows(using):
            raise Unsupported(
                f"USING {using} of {quote_name(shadow.old.name)} of {table.full_name} depends on"
                " other rows, but rows are converted one by one; use only columns of the same row,"
                " or fill a new column with MERGE INTO"
            )
    if texts:
        require_resolved(state.spark, table, texts)


def submit_rollups(
    unit: UnitOfWork, table: TableVersion, specs: Sequence[RollupSpec], timeout: int | None = None
) -> SchemaChangeJob:
    """Return the job that makes rollups of a table; nothing is changed yet.

    Raises what `plan_rollup` raises, and AlreadyExists if a name is taken or the table has an open
    job.
    """
    taken = {name.lower() for name in rollup_names(table)}
    for spec in specs:
        made = plan_rollup(table, spec)
        require_writable(made.columns, f"rollup {spec.name} of {table.full_name}", "it needs a job")
        if spec.name.lower() in taken or is_taken(unit, table, spec.name):
            raise AlreadyExists(
                f"Rollup index {spec.name} of {table.full_name} already exists", about="rollup"
            )
        taken.add(spec.name.lower())
    work = JobWork(rollups=tuple(specs))
    return SchemaChangeJob(unit.state, _submitted(unit.state, table, work, [], timeout)[0].id)


def _submitted(
    state: LakeState,
    table: TableVersion,
    work: JobWork,
    wanted: Sequence[Change],
    timeout: int | None,
    *,
    worker: str | None = None,
) -> tuple[Job, Snapshot]:
    if timeout is not None and timeout < 1:
        raise InvalidRequest(f"the timeout of a job must be at least 1 second, not {timeout}")
    if TWIN in table.properties:
        refuse_tagged(table)
    name = TableName.of(table)
    require_files(wanted, {table.id: table.path})
    seconds = timeout or table.options.alter_table_timeout_second
    landed = commit(
        state.store,
        state.info,
        [*wanted, NewJob(table.id, str(name), work, seconds, worker)],
        base=table.snapshot.id,
        info=state.commit_info(),
    )
    assert landed.job is not None
    return landed.job, landed.snapshot


def alter_job(state: LakeState, number: int, action: str, pace: Mapping[str, str]) -> None:
    """Do what ALTER JOB says: PAUSE, RESUME, or SET with the limits in ``pace``.

    Raises what the method of `SchemaChangeJob` raises, NotFound for a job that there is not, and
    InvalidRequest for an unknown limit.
    """
    job = SchemaChangeJob(state, number)
    _ = job.look()
    if action != "SET":
        (job.pause if action == "PAUSE" else job.resume)()
        return
    for unknown in sorted(pace.keys() - {"tasks", "bytes_per_second"}):
        raise InvalidRequest(
            f"a job does not support the limit {unknown!r}; use tasks or bytes_per_second"
        )
    tasks = pace.get("tasks")
    if tasks is not None and whole_number(tasks) is None:
        raise InvalidRequest(f"tasks of a job must be a whole number of at least 1, not {tasks!r}")
    limit = pace.get("bytes_per_second")
    job.set_pace(tasks=int(tasks) if tasks else None, bytes_per_second=limit)


def job_properties(values: Mapping[str, str]) -> tuple[int | None, bool]:
    """Return the timeout in seconds and whether to wait, from ``PROPERTIES (…)`` of a statement.

    Raises InvalidRequest for an unknown property or an invalid value.
    """
    known = {"timeout": "a number of seconds", "wait": "true or false"}
    for key, value in values.items():
        if key not in known:
            raise InvalidRequest(
                f"a job does not support the property {key!r}; use timeout or wait"
            )
        is_valid = (
            whole_number(value, 15) is not None
            if key == "timeout"
            else value.lower() in ("true", "false")
        )
        if not is_valid:
            raise InvalidRequest(f"property {key!r} of a job must be {known[key]}, not {value!r}")
    timeout = values.get("timeout")
    waits = values.get("wait", "true").lower() == "true"
    return None if timeout is None else int(timeout), waits


def run_jobs(state: LakeState) -> list[SchemaChangeJob]:
    """Run the open jobs that no live worker runs, help with large ones of others; return them.

    After all of them, raises the first error that is not due to a job itself.
    """
    with Turns() as turns:
        open_jobs = [job for job in reversed(jobs_of(state)) if job.is_open]
        told = "while running job {0.id} on {0.table_name}".format
        done = turns.each(sorted(open_jobs, key=_is_taken), partial(_work, state), told)
        return [job for job in done if job is not None]


def _work(state: LakeState, job: Job) -> SchemaChangeJob | None:
    found = SchemaChangeJob(state, job.id)
    if job.state is JobState.PAUSED:
        return None
    if not job.is_understood:
        # Its message says why; a newer worker may run it.
        return None if _is_taken(job) else found
    if _is_taken(job):
        return found if help_job(state, job.id, show=state.show_progress) else None
    with suppress(InvalidRequest, Conflict, NotFound):
        found.wait()
    return found


def _is_taken(job: Job) -> bool:
    return job.is_held(clock.now()) and not is_gone(job.worker)


def jobs_of(state: LakeState) -> list[Job]:
    """Return what the catalog knows about all jobs, newest first."""
    return state.store.ask(catalog_jobs.jobs)
