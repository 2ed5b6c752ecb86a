"""The worker of a job: it moves the job from state to state, converting lot by lot.

A worker may die anywhere. All progress is in the catalog and in the files, so the next worker
continues from there.

At the end, all files begin in the snapshot that shows their columns, so that DuckDB compacts them:
DuckDB 1.5 writes a compacted file with the columns of the snapshot in which its source began. Files
that were converted for columns that nobody saw yet began too early. If a rewrite wrote them, the
rewrite moves to a later snapshot; the others are copied, with their deletes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from shelduck import clock
from shelduck.catalog.databases.store import Store
from shelduck.catalog.read import read
from shelduck.catalog.read import table_facts as read_upkeep
from shelduck.catalog.read.files.outside import nulls_of
from shelduck.catalog.read.table_facts import described
from shelduck.catalog.running import job_rows as catalog_jobs
from shelduck.catalog.running.writers import begin_running, writers_before
from shelduck.catalog.schema.lake_schema import CREATED_BY
from shelduck.engine.files.storage import copy_files
from shelduck.engine.named_errors import first_line
from shelduck.engine.stopping import stopped_on_error
from shelduck.errors import (
    CatalogUnavailable,
    Conflict,
    InvalidRequest,
    NewerFormat,
    NotFound,
    OutcomeUnknown,
    ShelduckError,
    StorageUnavailable,
)
from shelduck.files.compact import Survey
from shelduck.files.verb import FlushVerbs
from shelduck.jobs.convert import (
    ConvertedColumn,
    converted_columns,
    nulls_in,
    results,
    told_of_nulls,
)
from shelduck.jobs.job_record import Begun, JobRecord, ending, left_open, why_cancelled
from shelduck.jobs.lots import Helper, Lots, Shares, files_left, pauses
from shelduck.keys.key_draft import meeting_keys
from shelduck.keys.unique_keys import MeetingRows
from shelduck.lake.done import Counts, Done, discard
from shelduck.lake.evolution.plan import plan_alter
from shelduck.lake.results import Committed, TableName, Unchanged
from shelduck.lake.state import LakeState, is_gone, new_identity
from shelduck.lake.unit import UnitOfWork
from shelduck.model.changes.change import (
    AlterTable,
    DeleteRows,
    Entry,
    PostponedRewrites,
    RewriteFiles,
    RewrittenFile,
    Verb,
    altered,
)
from shelduck.model.changes.job import Job, JobState, JobStep
from shelduck.model.changes.staged_rows import StagedRows
from shelduck.model.files.data_file import DataFile, NewDataFile, deletes_seen, live_rows
from shelduck.model.files.place import same_file
from shelduck.model.shadows.shadows import Shadow, known_shadows
from shelduck.model.tables.keys import table_keys
from shelduck.model.tables.rollup import rollup_names
from shelduck.model.tables.schema import SnapshotId, TableId
from shelduck.model.tables.table_version import Feature, Snapshot, TableVersion
from shelduck.read.table_rows import TableRows
from shelduck.rollups.altered_bases import alter_with_rollups, stage_converted
from shelduck.rollups.builder import drop_unlisted, roll_up
from shelduck.rollups.following import refresh_by_id
from shelduck.write.parquet.clustering import directory_beside
from shelduck.write.parquet.write import fresh_name

# Shelduck's rewrites also log a flush.
_REWRITTEN = {Verb.REWRITE_DELETE, Verb.INLINE_FLUSH}


@dataclass(frozen=True, slots=True)
class Renewal:
    """Changes that let all files begin in the next snapshot: moved rewrites, copied files."""

    postponed: PostponedRewrites
    copies: Done


def renew(store: Store, found: Survey, since: int) -> Renewal:
    """Copy files that no rewrite after the snapshot ``since`` wrote, or that changed since.

    Five statements, however many files there are. Nothing is committed.
    """
    table = found.table
    with store.read() as connection:
        logged = read.logged(connection, since, table.snapshot.id)
        lots = postponable(table.id, logged, found.rows.files)
        results = frozenset[int]().union(*lots.values())
        ended = read_upkeep.ended_in(connection, table.id, lots)
        early = [f for f in found.rows.files if f.id not in results]
        known = described(connection, table.id, early, found.partitions)
    postponed = PostponedRewrites(frozenset(lots), ended, results)
    return Renewal(postponed, _copied(table, early, known))


def _copied(table: TableVersion, files: Sequence[DataFile], known: Sequence[NewDataFile]) -> Done:
    if not files:
        return Done(table)
    write = fresh_name(table)
    copies = tuple(_placed(table, write, n, file) for n, file in enumerate(known))
    pairs = [pair for old, new in zip(known, copies, strict=True) for pair in _pairs(old, new)]
    paths = tuple(target for _, target in pairs)
    try:
        copy_files((source, table.path + target) for source, target in pairs)
    except BaseException:
        discard(table, paths)
        raise
    sources = tuple(RewrittenFile(f.id, deletes_seen(f)) for f in files)
    change = RewriteFiles(table, sources, copies, keeps_history=False)
    size = sum(f.file_size_bytes for f in copies)
    return Done(table, (change,), paths, Counts(files=len(copies), bytes=size))


def _placed(table: TableVersion, write: str, number: int, file: NewDataFile) -> NewDataFile:
    """Return the path of a copy: a partition's files stay in its directory, as DuckDB requires."""
    name = f"{write}/{number}.parquet"
    if file.partition_id is not None:
        name = f"{directory_beside(table.path, file.path)}{write}-{number}.parquet"
    deletes = file.deletes
    if deletes is not None:
        dead = same_file(deletes.path, f"{write}/{number}-deletes.parquet")
        deletes = replace(deletes, path=dead)
    return replace(file, path=same_file(file.path, name), deletes=deletes)


def _pairs(old: NewDataFile, new: NewDataFile) -> list[tuple[str, str]]:
    pairs = [(old.path, new.path)]
    if old.deletes is not None and new.deletes is not None:
        pairs.append((old.deletes.path, new.deletes.path))
    return pairs


def postponable(
    table: TableId, snapshots: Sequence[tuple[Snapshot, Sequence[Entry]]], files: Iterable[DataFile]
) -> dict[int, frozenset[int]]:
    """Return the snapshots whose rewrites of a table can be moved, and the files each one wrote.

    ``snapshots`` are in order, each with its log entries; ``files`` are the live files. The rewrite
    of a snapshot can be moved if the snapshot did nothing else to any table and all files that it
    wrote are unchanged. The snapshot before it must still exist, so that the sources have not
    expired.
    """
    live = {f.id: f for f in files if f.partial_max is None and not f.dead_rows}
    found: dict[int, frozenset[int]] = {}
    for (before, _), (this, entries) in pairwise(snapshots):
        verbs, about = {e.verb for e in entries}, {e.id for e in entries}
        is_rewrite = Verb.REWRITE_DELETE in verbs and verbs <= _REWRITTEN and about == {table}
        if this.id != before.id + 1 or not is_rewrite:
            continue
        written = frozenset(range(before.next_file_id, this.next_file_id))
        if all(n in live and live[n].begin_snapshot == this.id for n in written):
            found[this.id] = written
    return found


# After so many lost races, a job briefly leaves rollups stale, so that it ends at all.
_INSISTING = 5
_WAITING = frozenset({JobState.PENDING, JobState.WAITING_TXN})
_RUNNING = frozenset({JobState.RUNNING})
# Consecutive attempts after an error that may be temporary, such as a full disk.
_ATTEMPTS = 3


class JobWorker:
    """Runs one job; helps another worker of it, and takes over if that dies."""

    def __init__(
        self,
        state: LakeState,
        number: int,
        *,
        show_progress: bool | None,
        begun: Begun | None = None,
    ) -> None:
        self._state = state
        self._number = number
        self._begun = begun
        self._name = new_identity() if begun is None else begun.worker
        self._record = JobRecord(state, number, self._name)
        self._lots = Lots(state, self._record, show=show_progress)
        self._shares = Shares(state, self._record, self._lots)
        self._helper = Helper(state, number, self._name, show=show_progress)
        self._meeting: MeetingRows | None = None
        self._lost = 0
        self._failed = 0

    def run(self) -> Committed:
        """Run the job to its end; raises what `SchemaChangeJob.wait` raises."""
        try:
            with self._at_work(), stopped_on_error(self._state.given_spark):
                return self._run()
        except BaseException as error:
            job = self._record.look()
            if job.state is JobState.CANCELLED:
                raise why_cancelled(error, job) from error
            if isinstance(error, KeyboardInterrupt) and job.is_open:
                raise KeyboardInterrupt(left_open(job, self._name)) from None
            raise

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        try:
            with self._state.leases.holding(catalog_jobs.renew_workers, self._name):
                yield
        finally:
            with suppress(ShelduckError):
                if not self._record.is_finished:
                    catalog_jobs.release_job(self._state.store, self._number, self._name)

    def _run(self) -> Committed:
        waits = pauses()
        job = self._record.look() if self._begun is None else self._begun.job
        while True:
            if job.state is JobState.FINISHED:
                assert job.published is not None
                return Committed(job.published)
            if not job.is_open:
                raise InvalidRequest(f"job {job.id} was cancelled: {job.message}")
            # A job of a newer Shelduck raises here and is left alone.
            _ = job.work
            if job.state is JobState.PAUSED:
                clock.sleep(next(waits))
            elif job.is_late(clock.now()):
                self._cancel("Timeout")
            elif not self._claim(job):
                if not self._helper.helps(job):
                    clock.sleep(next(waits))
            elif (published := self._go_on(job, lambda: clock.sleep(next(waits)))) is not None:
                return published
            self._begun = None
            job = self._record.look()

    def _claim(self, job: Job) -> bool:
        if job.worker == self._name:
            return True
        gone = job.worker if is_gone(job.worker) else None
        return catalog_jobs.claim_job(self._state.store, job.id, self._name, gone)

    def _go_on(self, job: Job, pause: Callable[[], None]) -> Committed | None:
        """Take the next step of the job's state; None to look again.

        On failure the step is retried or the job is cancelled, so that no job stays open for ever.
        Exceptions: no catalog or no storage, a worker that is stopped, or a job of a newer
        Shelduck.
        """
        try:
            done = self._next(job, pause)
        except Conflict:
            # The job was cancelled or taken over, or the table changed: look again.
            self._lost += 1
            return None
        except (CatalogUnavailable, StorageUnavailable, NewerFormat):
            raise
        except Exception as error:
            why = ending(error, job)
            self._failed += 1
            if why is None and self._failed < _ATTEMPTS:
                pause()
                return None
            self._cancel(why or f"it failed {self._failed} times: {first_line(error)}")
            raise
        self._failed = 0
        return done

    def _next(self, job: Job, pause: Callable[[], None]) -> Committed | None:
        if job.state in _WAITING:
            self._wait_for_writers(job, pause)
            return None
        if job.work.rollups:
            return roll_up(self._state, job, self._version(job), self._name)
        if job.work.remakes:
            return self._remake(job)
        return self._rewrite(job) if job.work.rewrites else self._advance(job)

    def _wait_for_writers(self, job: Job, pause: Callable[[], None]) -> None:
        found = self._state.store.ask(writers_before, job.table_id, job.base)
        alive = [writer for writer in found if not is_gone(writer)]
        if alive:
            told = f"waits for {len(alive)} writer(s)"
            if job.message != told:
                self._record.step(JobState.WAITING_TXN, _WAITING, message=told)
            pause()
            return
        told = "" if job.work.undoes is None else job.work.undoes.told
        step = JobStep(job.id, _WAITING, JobState.RUNNING, told, worker=self._name)
        begin_running(self._state.store, step, job)

    def _advance(self, job: Job) -> Committed | None:
        """Convert what is left, or publish if nothing is."""
        table = self._version(job)
        shadows = known_shadows(table, job.work.conversions)
        if isinstance(shadows, str):
            self._cancel(shadows)
            return None
        found = self._record.survey(table)
        if found.is_in_catalog:
            flushed = FlushVerbs(self._state, TableName.of(table)).flush_inlined_data()
            if isinstance(flushed, Committed | Unchanged) and flushed.note:
                self._cancel(f"rows stay in the catalog: {flushed.note}")
            return None
        if found.without_ids:
            self._cancel(
                f"rows of {found.without_ids[0].path} have no ids, so the file cannot be rewritten;"
                " add the file again, or delete its rows and insert them"
            )
            return None
        meeting = Feature.KEYS in table.features and meeting_keys(table_keys(table), shadows)
        # If others write all the time, only lots get to the end.
        is_alone = not (self._lost or meeting or rollup_names(table))
        if files_left(job, found, shadows) and is_alone:
            published = self._publish_whole(job, found, shadows)
            if published is not None:
                return published
        if self._shares.convert(job, found, shadows):
            return None
        if meeting and self._meeting is None:
            plan = plan_alter(table, job.work.clauses, job.work.conversions)
            self._meeting = MeetingRows(SnapshotId(job.base), folds=plan.folds)
        return self._publish(job, found, shadows)

    def _publish_whole(
        self, job: Job, found: Survey, shadows: tuple[Shadow, ...]
    ) -> Committed | None:
        """Publish the converted columns of a small table in the commit of its converted files."""
        whole = self._lots.written_whole(job, found, shadows)
        if whole is None:
            return None
        table, (written, speed) = found.table, whole
        try:
            change = publication(job, table, frozenset(f.id for f in found.rows.files))
            rewrites = [change for part in written for change in part.done.changes]
            columns = converted_columns(shadows, partial(nulls_in, results(written)))
            step = replace(self._finish(found, job, told_of_nulls(columns)), speed=speed)
            extra = what_was_done(job, found, columns)
            done = self._record.commit([change, *rewrites], table, step, extra_info=extra)
        except OutcomeUnknown:
            raise
        except Exception:
            # Not after Ctrl-C: the commit may have succeeded.
            for part in written:
                discard(table, part.done.paths)
            raise
        return Committed(done.snapshot.id)

    def _publish(self, job: Job, found: Survey, shadows: tuple[Shadow, ...]) -> Committed | None:
        """Publish the converted columns, in files that begin at the same snapshot."""
        table = found.table
        columns = converted_columns(shadows, lambda c: self._state.store.ask(nulls_of, table, c))
        change = publication(job, table, frozenset(f.id for f in found.rows.files))
        renewal = renew(self._state.store, found, job.base)
        change = replace(change, postponed=renewal.postponed)
        copies = renewal.copies
        unit = UnitOfWork(self._state)
        unit.is_of_job = True
        try:
            rows, folded = found.rows, Done(table)
            if self._meeting is not None:
                folded = self._meeting.folded(unit, rows, altered(table, change), shadows)
                if left := folded_copies(folded, copies):
                    discard(table, copies.paths)
                    unit.rollback()
                    self._lots.convert(job, found, left, shadows)
                    return None
                rows = rows_after(rows, folded)
            change = stage_converted(unit, rows, change, job.work.conversions)
            changes = [change, *copies.changes, *folded.changes, *unit.workspace.changes()]
            gone = folded.counts.deleted
            told = f"{gone} row(s) with equal keys folded into others" if gone else None
            told = "; ".join(filter(None, (told_of_nulls(columns), told)))
            step = replace(self._finish(found, job, told), folded=gone)
            extra = what_was_done(job, found, columns, gone)
            done = self._record.commit(changes, table, step, unit, extra_info=extra)
        except OutcomeUnknown:
            raise
        except Exception:
            # Not after Ctrl-C: the commit may have succeeded.
            discard(table, copies.paths)
            unit.rollback()
            raise
        if rollup_names(table):
            refresh_by_id(self._state, table)
        return Committed(done.snapshot.id)

    def _remake(self, job: Job) -> Committed:
        """Publish a light change together with the rollups that it changes."""
        table = self._version(job)
        required = self._lost < _INSISTING
        done = alter_with_rollups(self._state, job, table, self._name, required=required)
        # Update rollups that were stale before, or became so in between.
        refresh_by_id(self._state, table)
        return done

    def _rewrite(self, job: Job) -> Committed | None:
        """Rewrite older files, or finish if there are none."""
        found = self._record.survey(self._version(job))
        if self._shares.convert(job, found, ()):
            return None
        done = self._record.commit([], found.table, self._finish(found, job))
        return Committed(done.snapshot.id)

    def _finish(self, found: Survey, job: Job, told: str | None = None) -> JobStep:
        total = len(found.rows.files)
        message = "; ".join(filter(None, (job.message, told))) if told else None
        return self._record.stepped(
            JobState.FINISHED, _RUNNING, message=message, done=total, total=total
        )

    def _version(self, job: Job) -> TableVersion:
        if self._begun is not None and self._begun.table is not None:
            return self._begun.table
        try:
            return self._record.table(job)
        except NotFound:
            self._cancel("the table was dropped")
            raise

    def _cancel(self, message: str) -> None:
        # It may have ended in the meantime; the next look shows that.
        with suppress(Conflict):
            catalog_jobs.cancel_job(self._state.store, self._number, message)
        job = self._record.look()
        if job.work.rollups and job.state is JobState.CANCELLED:
            drop_unlisted(self._state, job)


def publication(job: Job, table: TableVersion, files: frozenset[int]) -> AlterTable:
    """Return the change that publishes a job, valid as long as ``files`` are all files.

    The clauses of its statement are applied to the current table. Raises what `plan_alter` raises.
    """
    shadows = known_shadows(table, job.work.conversions)
    if isinstance(shadows, str):
        raise InvalidRequest(shadows)
    change = plan_alter(table, job.work.clauses, job.work.conversions).change
    assert change is not None
    if job.work.undoes is not None:
        parts = (f for s in shadows for f in s.field.leaves())
        change = replace(change, returning=frozenset(f.id for f in parts))
    return replace(change, only_files=files)


def folded_copies(folded: Done, copies: Done) -> set[int]:
    """Return the files that lose rows of a commit that copies them; they are written again before.

    A copy has the rows and deletes of its file, and other numbers.
    """
    deleted = (c.files for c in folded.changes if isinstance(c, DeleteRows))
    sources = (c.sources for c in copies.changes if isinstance(c, RewriteFiles))
    copied = {s.data_file_id for each in sources for s in each}
    return copied.intersection(f.data_file_id for each in deleted for f in each)


def rows_after(rows: TableRows, folded: Done) -> TableRows:
    """Return the rows of a table as a folding leaves them."""
    staged = StagedRows()
    for change in folded.changes:
        staged.stage(change)
    return replace(rows, files=tuple(staged.over(rows.table, rows.files)))


def what_was_done(
    job: Job, found: Survey, columns: Sequence[ConvertedColumn], folded: int = 0
) -> str:
    """Return as JSON what a job has done, for the snapshot that it publishes.

    Any reader of the lake finds it there, also when the job is forgotten.
    """
    rows = live_rows(found.rows.files)
    told = {
        "job": job.id,
        "undoes": None if job.work.undoes is None else job.work.undoes.job,
        "rows": None if rows is None else rows - folded,
        "folded": folded or None,
        "conversions": [column.recorded() for column in columns],
        "by": CREATED_BY,
    }
    return json.dumps({key: value for key, value in told.items() if value is not None})
