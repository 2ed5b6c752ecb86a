"""Heavy schema changes as jobs: they convert file by file while everybody uses the table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from shelduck.api.compaction import land
from shelduck.api.results import Committed, TableName
from shelduck.api.state import LakeState
from shelduck.api.table_flush import FlushVerbs
from shelduck.catalog import jobs as catalog_jobs
from shelduck.catalog import read as catalog_read
from shelduck.catalog.commit import Landed, commit
from shelduck.errors import Conflict, InvalidRequest, NotFound
from shelduck.model.change import Change
from shelduck.model.job import OPEN_STATES, Conversion, Job, JobState, JobStep, NewJob
from shelduck.model.names import split_name
from shelduck.model.table import TableVersion
from shelduck.model.table_change import TableChange
from shelduck.operations.compact import Report, RewrittenBin, Survey, survey, write_bins
from shelduck.operations.convert import derived, told_of_bad_values, unconverted
from shelduck.operations.progress import bin_progress
from shelduck.planning.compaction import Bin, batches
from shelduck.planning.shadows import (
    Shadow,
    known_shadows,
    plan_shadows,
    publication,
    reservation,
)

TIMEOUT = 86_400
"""Seconds; Doris' alter_table_timeout_second."""


class SchemaChangeJob:
    """A heavy change of a table's types; get one from `Table.alter` or `Lake.jobs`.

    Nothing runs before `wait`, which any process may call: files that are converted stay so.
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

    def wait(self) -> Committed:
        """Convert what is left and publish; return the snapshot that shows the new types.

        Reads, writes and compaction by anybody go on meanwhile. What others write is converted too,
        until a commit finds nothing left. After a crash the next call goes on with what is not
        converted.

        Raises:
            InvalidRequest: a value does not survive, it ran out of time, or it was cancelled; the
                table is as it was.
        """
        try:
            return self._run()
        except BaseException:
            job = self.look()
            if job.state is JobState.CANCELLED:
                raise InvalidRequest(f"job {job.id} was cancelled: {job.message}") from None
            raise

    def cancel(self, message: str = "user cancelled") -> None:
        """Give it up; the table is as it was, and what was converted goes with later compaction.

        Raises InvalidRequest when it has ended.
        """
        job = self.look()
        if not job.is_open:
            raise InvalidRequest(f"job {job.id} cannot be cancelled: it is {job.state.value}")
        self._step(JobState.CANCELLED, OPEN_STATES, message=message)

    def _run(self) -> Committed:
        while True:
            job = self.look()
            if job.state is JobState.FINISHED:
                assert job.published is not None
                return Committed(job.published)
            if not job.is_open:
                raise InvalidRequest(f"job {job.id} was cancelled: {job.message}")
            if datetime.now(UTC) > job.created + timedelta(seconds=job.timeout):
                self.cancel("Timeout")
                continue
            published = self._advance(job)
            if published is not None:
                return published

    def _advance(self, job: Job) -> Committed | None:
        """Convert what is there now, or publish when there is nothing; None to look again."""
        table = self._version(job)
        shadows = known_shadows(table, job.conversions)
        if isinstance(shadows, str):
            self.cancel(shadows)
            return None
        try:
            FlushVerbs(self._state, TableName(table.schema.name, table.name)).flush_inlined_data()
        except Conflict:
            return None
        found = survey(self._state.store, self._version(job), self._state.layouts)
        if found.without_ids:
            self.cancel(
                f"rows of {found.without_ids[0].path} have no ids, so it is not written anew; add"
                " the file again, or delete its rows and insert them"
            )
            return None
        left = {f.id for f in unconverted(found, shadows)}
        total = len(found.rows.files)
        self._step(JobState.RUNNING, OPEN_STATES, done=total - len(left), total=total)
        if left:
            self._convert(found, left, shadows)
            return None
        change = publication(found.table, shadows, frozenset(f.id for f in found.rows.files))
        try:
            landed = self._commit([change], found.table, JobState.FINISHED)
        except Conflict:
            return None
        return Committed(landed.snapshot.id)

    def _convert(self, found: Survey, left: set[int], shadows: tuple[Shadow, ...]) -> None:
        bins = found.chosen(left, found.table.options.target_file_size)
        name = TableName(found.table.schema.name, found.table.name)
        show = self._state.show_progress
        with bin_progress(name, bins, "convert", show=show) as report:
            for lot in batches(bins):
                written = self._written(found, lot, shadows, report)
                # What others changed meanwhile is left out, and converted again later.
                land(written, partial(self._land, found.table))

    def _written(
        self, found: Survey, lot: list[Bin], shadows: tuple[Shadow, ...], report: Report | None
    ) -> list[RewrittenBin]:
        try:
            return write_bins(
                self._state.spark,
                found.rows,
                lot,
                report=report,
                derived=derived(found, shadows),
            )
        except InvalidRequest as error:
            told = told_of_bad_values(self._state.spark, found, lot, shadows)
            self.cancel(told or str(error))
            raise

    def _land(self, table: TableVersion, parts: Sequence[RewrittenBin]) -> int:
        changes = [change for part in parts for change in part.done.changes]
        return self._commit(changes, table, JobState.RUNNING).snapshot.id

    def _version(self, job: Job) -> TableVersion:
        with self._state.store.read() as connection:
            at = catalog_read.snapshot(connection)
            name = catalog_read.name_at(connection, job.table_id, at)
            try:
                found = catalog_read.table(connection, at, *(name or ("", "")), self._state.info)
            except NotFound:
                found = None
        if found is None or found.id != job.table_id:
            self.cancel("the table was dropped")
            raise NotFound(f"table {job.table_name} was dropped")
        return found

    def _step(
        self,
        state: JobState,
        expected: frozenset[JobState],
        *,
        message: str | None = None,
        done: int | None = None,
        total: int | None = None,
    ) -> None:
        step = JobStep(self.id, expected, state, message, done, total)
        catalog_jobs.move_job(self._state.store, step)

    def _commit(self, changes: Sequence[Change], table: TableVersion, state: JobState) -> Landed:
        step = JobStep(self.id, frozenset({JobState.RUNNING}), state)
        return commit(
            self._state.store,
            self._state.info,
            changes,
            base=table.snapshot.id,
            info=self._state.commit_info(f"job {self.id}"),
            layouts_learned=self._state.layouts.unrecorded(),
            job=step,
        )


def submit(
    state: LakeState, name: TableName, table: TableVersion, changes: Sequence[TableChange]
) -> SchemaChangeJob:
    """Reserve the columns of heavy changes in one short commit, and return their job.

    Raises AlreadyExists when the table has an open job, and what `plan_shadows` raises.
    """
    shadows = plan_shadows(table, changes)
    conversions: tuple[Conversion, ...] = tuple(s.conversion for s in shadows)
    landed = commit(
        state.store,
        state.info,
        [reservation(table, shadows)],
        base=table.snapshot.id,
        info=state.commit_info(),
        job=NewJob(table.id, str(name), conversions, TIMEOUT),
    )
    assert landed.job is not None
    return SchemaChangeJob(state, landed.job)


def jobs_of(state: LakeState, schema: str | None = None) -> list[Job]:
    """Return what the catalog knows of all jobs, or those of a schema's tables; newest first."""
    with state.store.read() as connection:
        found = catalog_jobs.jobs(connection)
    return [j for j in found if schema is None or split_name(j.table_name)[0] == schema]
