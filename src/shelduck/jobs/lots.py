"""The files that a job converts or rewrites, lot by lot: each lot is a commit of its own.

It also tells how far a job is, and how fast. A large job has shares: processes that wait for it
claim some of its files, and convert them. A file belongs to a share by its id, so processes need
not agree on anything else. A claim has a lease: if a process dies, its share is free again a minute
later, and nothing else is lost. Two processes may still meet at a file. Then the commit of one of
them leaves the file out.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from shelduck import clock
from shelduck.engine.named_errors import SparkError
from shelduck.engine.session import AnalysisException
from shelduck.engine.stopping import stopped_on_error
from shelduck.errors import Conflict, InvalidRequest, NotFound, ShelduckError
from shelduck.files.compact import Report, RewrittenBin, Survey, write_bins
from shelduck.files.verb import land
from shelduck.jobs.convert import (
    SMALL,
    OlderValues,
    bins_of_copies,
    copied_files,
    held,
    older,
    renewal_of_columns,
    told_of_bad_values,
    unconverted,
    write_converted,
)
from shelduck.jobs.job_record import JobRecord
from shelduck.jobs.undo import older_values
from shelduck.lake.results import TableName
from shelduck.lake.state import LakeState, Maintainer, new_identity
from shelduck.model.changes.job import Job, JobPace, JobSpeed, JobState, JobWork
from shelduck.model.files.compaction import Bin, batches
from shelduck.model.files.data_file import DataFile
from shelduck.model.shadows.shadows import Shadow, known_shadows
from shelduck.model.tables.schema import FieldId
from shelduck.model.tables.table_version import TableVersion
from shelduck.write.parquet.write import at_once, writes_several
from shelduck.write.progress import bin_progress

# Bins per concurrent task in one commit, a Spark job: what a crash may lose. Small ones are more.
_LOT, _SMALL_LOT = 4, 32
# Less than this is not worth a core of its own, nor a word about progress.
_LEAST_BIN = 16 << 20
_RUNNING = frozenset({JobState.RUNNING})


class Lots:
    """Converts or rewrites files of a job for one worker."""

    def __init__(self, state: LakeState, record: JobRecord, *, show: bool | None) -> None:
        self._state = state
        self._record = record
        self._show = show
        self._past: OlderValues | None = None
        self._renews: tuple[FieldId, ...] = ()

    def convert(
        self,
        job: Job,
        found: Survey,
        left: set[int],
        shadows: tuple[Shadow, ...],
        share: set[int] | None = None,
    ) -> bool:
        """Rewrite the files ``left``, or a ``share`` of them, and commit them lot by lot.

        Without ``shadows``, they are only rewritten. Files that others change meanwhile are left
        out. Returns False if the job was cancelled, paused or taken over, has another pace, or ran
        out of time.
        """
        self._renews = job.work.renews
        total = len(found.rows.files)
        done = total - len(left)
        bins, told = self._bins(found, left if share is None else share, shadows)
        is_small = is_little(bins)
        if not (self._record.helps or is_small or (job.done, job.total) == (done, total)):
            # It was asked of all files when the job began.
            message = None if job.done or job.work.undoes else told
            self._record.step(JobState.RUNNING, _RUNNING, message=message, done=done, total=total)
        name = TableName.of(found.table)
        what = "convert" if shadows else "rewrite"
        spark = self._state.spark
        with bin_progress(spark, name, bins, what, show=self._show) as report:
            for lot in batches(bins, self._most(found, bins, job.work.pace)):
                written, speed = self._timed(found, lot, shadows, report)
                landed = land(written, partial(self._land, found.table, (done, total), speed))
                done += sum(len(part.bin.files) for _, parts in landed for part in parts)
                if done == total:
                    break
                if not self._rests(job, speed):
                    return False
        return True

    def written_whole(
        self, job: Job, found: Survey, shadows: tuple[Shadow, ...]
    ) -> tuple[list[RewrittenBin], JobSpeed] | None:
        """Write all files of a small table, for one commit; None if it is not small."""
        bins, _ = self._bins(found, {f.id for f in found.rows.files}, shadows)
        if not is_little(bins) or len(bins) > self._most(found, bins, job.work.pace):
            return None
        spark, name = self._state.spark, TableName.of(found.table)
        with bin_progress(spark, name, bins, "convert", show=self._show) as report:
            return self._timed(found, bins, shadows, report)

    def _rests(self, job: Job, speed: JobSpeed) -> bool:
        """Rest until the job has its pace after a lot; False if this worker must not go on."""
        limit = job.work.pace.bytes_per_second
        left = 0.0 if limit is None else speed.bytes / limit - speed.milliseconds / 1000
        while self.goes_on(job):
            if left <= 0:
                return True
            clock.sleep(min(left, _LONGEST_PAUSE))
            left -= _LONGEST_PAUSE
        return False

    def goes_on(self, job: Job) -> bool:
        """Return whether the job still runs at its pace, and this worker may work on it."""
        now = self._record.look()
        if now.state is not JobState.RUNNING or now.is_late(clock.now()):
            return False
        if now.work.pace != job.work.pace:
            return False
        return self._record.helps or now.worker == self._record.worker

    def _bins(
        self, found: Survey, left: set[int], shadows: Sequence[Shadow]
    ) -> tuple[list[Bin], str | None]:
        """Return the bins, one for each new file, small enough to keep all cores busy.

        A file that is not small, and whose own columns can be copied, stays a file of its own. How
        many are copied, and why not more, comes with them.
        """
        files = [f for f in found.rows.files if f.id in left]
        if not (shadows or self._renews) or not writes_several(self._state.spark):
            return self._shared_bins(found, files, shadows), None
        past = self._older_values(found.table, shadows)
        copied, whole = copied_files(
            found.table, files, shadows, past, least=SMALL, renews=self._renews
        )
        bins = bins_of_copies(found, copied)
        shared = [f for f in files if f.id not in copied]
        return bins + self._shared_bins(found, shared, shadows), _told(len(copied), whole)

    def _shared_bins(
        self, found: Survey, files: Sequence[DataFile], shadows: Sequence[Shadow]
    ) -> list[Bin]:
        """Return bins of several files, which hold the same ones of the converted columns.

        Files in which an undo may find older rows are apart.
        """
        size = sum(f.file_size_bytes for f in files)
        # Files never fill a share exactly, and one extra bin would run alone at the end.
        share = max(_LEAST_BIN, size * 5 // 4 // at_once(self._state.spark))
        most = min(found.table.options.target_file_size, share)
        past = self._older_values(found.table, shadows)
        alike: dict[tuple[int, ...], set[int]] = {}
        for f in files:
            is_older = past is not None and past.may_have(f)
            alike.setdefault((is_older, *(s.field.id for s in held(f, shadows))), set()).add(f.id)
        return [one for some in alike.values() for one in found.chosen(some, most)]

    def _most(self, found: Survey, bins: Sequence[Bin], pace: JobPace) -> int:
        """Return how many bins one commit has at most, each of which is a task."""
        told = pace.tasks or found.table.options.alter_tablet_worker_count
        large = _LOT * _LEAST_BIN * len(bins) // max(1, sum(b.bytes for b in bins))
        return told or min(max(_LOT, large), _SMALL_LOT) * at_once(self._state.spark)

    def _timed(
        self, found: Survey, lot: list[Bin], shadows: tuple[Shadow, ...], report: Report | None
    ) -> tuple[list[RewrittenBin], JobSpeed]:
        began = clock.monotonic()
        written = self._written(found, lot, shadows, report)
        spent = round(1000 * (clock.monotonic() - began))
        cores = min(len(lot), at_once(self._state.spark))
        return written, JobSpeed(sum(b.bytes for b in lot), spent, cores)

    def _written(
        self, found: Survey, lot: list[Bin], shadows: tuple[Shadow, ...], report: Report | None
    ) -> list[RewrittenBin]:
        spark, past = self._state.spark, self._older_values(found.table, shadows)
        try:
            if shadows:
                return write_converted(spark, found, lot, shadows, report, past=past)
            if not self._renews:
                return write_bins(spark, found.rows, lot, report=report, arranges=True)
            ids = {f.id for one in lot for f in one.files}
            _, how = renewal_of_columns(spark, found, ids, self._renews)
            return write_bins(spark, found.rows, lot, report=report, derived=how)
        except (InvalidRequest, *SparkError) as error:
            if isinstance(error, AnalysisException):
                raise
            # Of rows that get older values, Spark names the value that has none.
            told = None if past else told_of_bad_values(spark, found, lot, shadows)
            if told is None:
                raise
            raise InvalidRequest(told) from error

    def _older_values(self, table: TableVersion, shadows: Sequence[Shadow]) -> OlderValues | None:
        """Return where an undo finds the values that its job lost, None if it recalls none."""
        if self._past is None and any(s.conversion.recalls for s in shadows):
            undone = self._record.look().work.undoes
            assert undone is not None
            self._past = older_values(self._state, table, undone)
        return self._past

    def _land(
        self,
        table: TableVersion,
        before: tuple[int, int],
        whole: JobSpeed,
        parts: Sequence[RewrittenBin],
    ) -> int:
        """Commit parts of a lot, behind so many of all files; the lot was written at that speed."""
        changes = [change for part in parts for change in part.done.changes]
        done, total = before
        done += sum(len(part.bin.files) for part in parts)
        size = sum(part.bin.bytes for part in parts)
        spent = whole.milliseconds * size // max(1, whole.bytes)
        # Only the worker of the job knows how far all of it is.
        counts = (None, None) if self._record.helps else (done, total)
        step = self._record.stepped(
            *(JobState.RUNNING, _RUNNING),
            done=counts[0],
            total=counts[1],
            speed=JobSpeed(size, spent, whole.cores),
        )
        return self._record.commit(changes, table, step).snapshot.id


def _told(copied: int, whole: Counter[str]) -> str:
    """Return how many files are copied but for the converted columns, and what the others are."""
    total = copied + whole.total()
    others = ", ".join(f"{count} {why}" for why, count in whole.most_common() if count)
    told = f"copies the other columns of {copied} of {total} file(s)"
    return f"{told}; writes {others} whole" if others else told


def is_little(bins: Sequence[Bin]) -> bool:
    """Return whether bins hold so little that nobody asks how far they are."""
    return sum(b.bytes for b in bins) <= _LEAST_BIN


_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


def pauses() -> Iterator[float]:
    """Yield the seconds to wait before each new look."""
    pause = _FIRST_PAUSE
    while True:
        yield pause
        pause = min(pause * 1.5, _LONGEST_PAUSE)


# A smaller table is not worth the claims.
_SHARE = 1 << 30
_MOST = 1024
# How long the worker waits if others have claimed all that is left.
_PAUSE = 2.0


class Shares:
    """Converts the files of a job for one worker, beside others if there are many bytes."""

    def __init__(self, state: LakeState, record: JobRecord, lots: Lots) -> None:
        self._record = record
        self._lots = lots
        self._claims = Maintainer(state.store, state.leases)

    def convert(self, job: Job, found: Survey, shadows: tuple[Shadow, ...]) -> bool:
        """Convert what is left and not claimed by others; False if there is nothing to do.

        Files may be left afterwards.
        """
        left = files_left(job, found, shadows)
        if not left:
            return False
        if (count := share_count(found)) > 1:
            self._shared(job, count, left, shadows)
        else:
            self._lots.convert(job, found, left, shadows)
        return True

    def _shared(self, job: Job, count: int, left: set[int], shadows: tuple[Shadow, ...]) -> None:
        numbers = sorted({file % count for file in left})
        # Whoever begins later begins elsewhere.
        random.shuffle(numbers)
        has_worked = False
        for number in numbers:
            with self._claims.claim(f"job {job.id}, share {number} of {count}", ends=True) as claim:
                if not claim.is_mine:
                    continue
                has_worked = True
                if not self._share(job, number, count, shadows):
                    return
        if not has_worked:
            clock.sleep(_PAUSE)

    def _share(self, job: Job, number: int, count: int, shadows: tuple[Shadow, ...]) -> bool:
        """Convert a claimed share; False if the job does not go on."""
        # Whoever had it before may have converted it.
        found = self._record.survey(self._record.table(job))
        left = files_left(job, found, shadows)
        share = {file for file in left if file % count == number}
        with self._record.registered(found.table):
            return self._lots.convert(job, found, left, shadows, share)


class Helper:
    """A process that waits for a job of another worker, and converts shares of it meanwhile."""

    def __init__(self, state: LakeState, number: int, name: str, *, show: bool | None) -> None:
        self._record = JobRecord(state, number, name, helps=True)
        self._shares = Shares(state, self._record, Lots(state, self._record, show=show))
        self._is_able = True

    def look(self) -> Job:
        """Return the job as it is now."""
        return self._record.look()

    def helps(self, job: Job) -> bool:
        """Convert shares that nobody has claimed; False if there is nothing to help with."""
        work = job.work
        if not self._is_able or job.state is not JobState.RUNNING or not job.is_held(clock.now()):
            return False
        if work.rollups or work.remakes:
            return False
        try:
            return self._convert(job, work)
        except (Conflict, NotFound):
            # The job has ended, or was taken over.
            return False
        except (ShelduckError, *SparkError):
            # The worker meets the same files, and says what is wrong with them.
            self._is_able = False
            return False

    def _convert(self, job: Job, work: JobWork) -> bool:
        found = self._record.survey(self._record.table(job))
        if share_count(found) == 1:
            self._is_able = False
            return False
        shadows = known_shadows(found.table, work.conversions)
        if isinstance(shadows, str) or (shadows and found.without_ids):
            return False
        return self._shares.convert(job, found, shadows)


def help_job(state: LakeState, number: int, *, show: bool | None) -> bool:
    """Convert shares of a job that another worker runs, until it ends; False if it is small."""
    helper = Helper(state, number, new_identity(), show=show)
    has_helped = False
    with stopped_on_error(state.given_spark):
        while helper.helps(helper.look()):
            has_helped = True
    return has_helped


def files_left(job: Job, found: Survey, shadows: tuple[Shadow, ...]) -> set[int]:
    """Return the ids of the files that the job still has to rewrite or to convert."""
    if not job.work.rewrites:
        return unconverted(found, shadows)
    assert job.last_file is not None
    if job.work.renews:
        return {f.id for f in found.rows.files if f.id <= job.last_file}
    return older(found, job.last_file)


def share_count(found: Survey) -> int:
    """Return how many shares a table has, 1 if it is small: a power of two rarely changes."""
    size = sum(f.file_size_bytes for f in found.rows.files)
    return min(_MOST, 1 << (size // _SHARE).bit_length())
