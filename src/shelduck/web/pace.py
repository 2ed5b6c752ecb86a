"""How fast jobs run, as far as this server has seen."""

from __future__ import annotations

import threading
from collections import OrderedDict
from datetime import datetime

from shelduck.model.changes.job import Job

_KEPT = 500
_ENOUGH = 5.0
"""Seconds after which what was seen says more than the time since the job was made."""


class Pace:
    """When each job was first seen, and how many files were done then; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: OrderedDict[int, tuple[datetime, int]] = OrderedDict()

    def first_seen(self, job: Job, now: datetime) -> tuple[datetime, int]:
        """Return when a job was first seen, and what was done; now, if this is the first time."""
        with self._lock:
            found = self._seen.setdefault(job.id, (now, job.done))
            if found[1] > job.done:
                # A job that begins again counts from zero.
                found = self._seen[job.id] = (now, job.done)
            while len(self._seen) > _KEPT:
                self._seen.popitem(last=False)
            return found


def pace_of(pace: Pace, job: Job, now: datetime) -> float | None:
    """Return files per second: since the job was first seen, or else since it was made."""
    since, done = pace.first_seen(job, now)
    seen = (now - since).total_seconds()
    if seen >= _ENOUGH and job.done > done:
        return (job.done - done) / seen
    life = (now - job.created).total_seconds()
    return job.done / life if job.done and life > 0 else None
