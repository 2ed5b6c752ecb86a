"""A job in the catalog, as one worker sees it and moves it on, and how its work ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from shelduck import clock
from shelduck.catalog.commit.commit import Landed, commit
from shelduck.catalog.running import job_rows as catalog_jobs
from shelduck.engine.named_errors import SparkError, data_fault, first_line
from shelduck.engine.session import AnalysisException
from shelduck.errors import (
    CorruptLake,
    InvalidRequest,
    NotFound,
    OutcomeUnknown,
    ShelduckError,
    SparkFailed,
)
from shelduck.files.compact import Survey, survey
from shelduck.lake.done import discard, require_files
from shelduck.lake.state import LakeState, Writer
from shelduck.lake.unit import UnitOfWork
from shelduck.model.changes.change import Change
from shelduck.model.changes.job import Job, JobState, JobStep
from shelduck.model.changes.records import EndWriters, LearnLayouts
from shelduck.model.tables.table_version import TableVersion
from shelduck.write.changes.flush_rows import with_past


class JobRecord:
    """A job as one worker reads and writes it.

    Every step is a Conflict if the job is not in the expected state or, unless the worker only
    ``helps``, if it belongs to another worker.
    """

    def __init__(self, state: LakeState, number: int, worker: str, *, helps: bool = False) -> None:
        self._state = state
        self._number = number
        self.worker = worker
        self.helps = helps
        self.is_finished = False
        self._writer = Writer(state.store, state.leases)

    @contextmanager
    def registered(self, table: TableVersion) -> Iterator[None]:
        """Register who only helps as a writer of the table: the worker's lease covers the worker.

        Otherwise the helper could commit files that others remove as orphans.
        """
        if not self.helps:
            yield
            return
        try:
            self._writer.register(table)
            yield
        finally:
            self._writer.give_up()

    def look(self) -> Job:
        """Return the job as it is now."""
        return self._state.store.ask(catalog_jobs.job, self._number, is_there=True)

    def table(self, job: Job) -> TableVersion:
        """Return the newest version of the job's table; NotFound if it was dropped."""
        found = self._state.store.ask(self._state.tables.newest_of, job.table_id)
        if found is None:
            raise NotFound(f"table {job.table_name} was dropped", about="table")
        return found

    def survey(self, table: TableVersion) -> Survey:
        """Return the files of the job's table; a few statements."""
        return survey(self._state, table, for_job=True)

    def step(self, state: JobState, expected: frozenset[JobState], **told: Any) -> None:
        """Record a step in a transaction of its own."""
        catalog_jobs.move_job(self._state.store, self.stepped(state, expected, **told))

    def stepped(self, state: JobState, expected: frozenset[JobState], **told: Any) -> JobStep:
        """Return a step for a commit to record; it tells what `JobStep` has."""
        worker = None if self.helps else self.worker
        return JobStep(self._number, expected, state, worker=worker, **told)

    def commit(
        self,
        changes: Sequence[Change],
        table: TableVersion,
        step: JobStep,
        rollups: UnitOfWork | None = None,
        *,
        extra_info: str | None = None,
    ) -> Landed:
        """Commit changes of the job's table, and those staged for its rollups.

        ``extra_info`` is what the snapshot tells beside the number of the job.
        """
        paths: list[str] = []
        directories = {table.id: table.path}
        if rollups is not None:
            directories |= rollups.workspace.directories()
        try:
            complete = [with_past(self._state.store, change, paths) for change in changes]
            require_files(complete, directories)
            landed = commit(
                self._state.store,
                self._state.info,
                [
                    *complete,
                    step,
                    LearnLayouts(self._state.layouts.unrecorded()),
                    EndWriters(self._writer.registered, stay=True),
                    *(rollups.settlings().values() if rollups else ()),
                ],
                base=table.snapshot.id,
                info=self._state.commit_info(f"job {self._number}", extra_info),
            )
        except OutcomeUnknown:
            raise
        except Exception:
            discard(table, paths)
            raise
        self.is_finished = step.state is JobState.FINISHED
        return landed


@dataclass(frozen=True, slots=True)
class Begun:
    """A job that its ``worker`` has submitted, and the table as that commit left it, if known."""

    job: Job
    table: TableVersion | None
    worker: str


def ending(error: Exception, job: Job) -> str | None:
    """Return why an error ends a job, None if the error may be temporary."""
    if isinstance(error, OutcomeUnknown | SparkFailed):
        return None
    if isinstance(error, ShelduckError):
        return str(error)
    if isinstance(error, AnalysisException):
        combines = job.work.rollups or job.work.remakes
        what = "rows cannot be combined" if combines else "an expression cannot be evaluated"
        return f"{what}: {first_line(error)}"
    return data_fault(error)


def why_cancelled(error: BaseException, job: Job) -> ShelduckError:
    """Return the error of a job that was cancelled; ``error`` is what its worker met."""
    told = f"job {job.id} was cancelled: {job.message}"
    if isinstance(error, CorruptLake):
        return CorruptLake(told)
    if isinstance(error, AnalysisException):
        return InvalidRequest(told)
    if isinstance(error, (SparkFailed, *SparkError)) and data_fault(error) is None:
        return SparkFailed(f"{told}; when Spark works again, submit the change again")
    return InvalidRequest(told)


def left_open(job: Job, worker: str) -> str:
    """Return what becomes of an open job when its worker stops, or no longer waits for another."""
    if job.is_held(clock.now()) and job.worker != worker:
        return f"job {job.id} goes on: another process runs it"
    return (
        f"job {job.id} is not finished; continue with lake.job({job.id}).wait() or shelduck jobs"
        " run"
    )
