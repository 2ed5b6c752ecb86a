"""A process that works on jobs: ``python -m tests.concurrency.job_sharer URL DATA LOTS``.

A small table counts as large. It prints the files of each lot that it committed. After ``LOTS``
of them (0: never), it kills itself while it has claimed the next share.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path

import shelduck
from shelduck.jobs import lots
from tests.support.spark import local_session

SHARES = 8


def main(url: str, data: str, most: int) -> None:
    """Run the jobs until none is open."""
    lots.is_little = lambda _: False
    lots.share_count = lambda _: SHARES
    lots._PAUSE = 0.2
    land, written = lots.land, lots.Lots._written
    landed = 0

    def told(parts, commit):
        nonlocal landed
        done = land(parts, commit)
        landed += 1
        files = [f.id for _, some in done for part in some for f in part.bin.files]
        _say("landed", *files)
        return done

    def dies(self, *arguments):
        if most and landed == most:
            os.kill(os.getpid(), signal.SIGKILL)
        return written(self, *arguments)

    lots.land, lots.Lots._written = told, dies
    with (
        tempfile.TemporaryDirectory() as scratch,
        local_session(Path(scratch)) as spark,
        shelduck.connect(url, data, spark) as lake,
    ):
        _say("ready")
        sys.stdin.readline()
        while any(job.look().is_open for job in lake.jobs()):
            lake.run_jobs()


def _say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
