"""A large job in shares: processes that wait for it claim some of its files, and convert them.

A file belongs to a share by its id, so processes need not agree on anything else. A claim has a
lease: if a process dies, its share is free again a minute later, and nothing else is lost. Two
processes may still meet at a file. Then the commit of one of them leaves the file out.
"""

from __future__ import annotations

import random

from shelduck import clock
from shelduck.engine.named_errors import SparkError
from shelduck.engine.stopping import stopped_on_error
from shelduck.errors import Conflict, NotFound, ShelduckError
from shelduck.files.compact import Survey
from shelduck.jobs.convert import older, unconverted
from shelduck.jobs.job_record import JobRecord
from shelduck.jobs.lots import Lots
from shelduck.lake.state import LakeState, Maintainer, new_identity
from shelduck.model.changes.job import Job, JobState, JobWork
from shelduck.model.shadows.shadows import Shadow, known_shadows

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
