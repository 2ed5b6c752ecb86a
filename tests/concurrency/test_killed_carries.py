"""Whoever carries tables is killed again and again: those that follow are as their source.

Nobody does anything but to start the same program once more.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import duckdb
import pytest

import shelduck
from shelduck import change_type
from tests.support.carry_program import Program
from tests.support.lengths import one_by_one
from tests.support.oracle import DuckDBOracle

pytestmark = pytest.mark.slow
SEEDS, KILLS = range(100), 3
# Function after whose return somebody dies, and in which part of a batch that is.
PLACES = (
    "shelduck.streams.streamed.version_then",
    "shelduck.carry.sink_changes.sink_changes",
    "shelduck.write.appending.append",
    "shelduck.write.parquet.write.write_files",
    "shelduck.jobs.jobs.submit",
    "shelduck.jobs.lots.land",
)
# Who did not come to his point is killed then.
_SECONDS = 6.0


class Carrier:
    """A process that carries a table into the next one, until it has died often enough."""

    def __init__(self, hop, url, data, folder, draw):
        self._place, self._draw = (url, data, *hop), draw
        self.points = []
        self._log, self._ready = folder / f"{hop[1]}.log", folder / f"{hop[1]}.ready"
        self._start()

    @property
    def is_done(self):
        return len(self.points) > KILLS

    def look(self):
        """Kill it if its time has come, and start it again if it is dead."""
        if self.is_done:
            return
        if self._process.poll() is None and self._ready.exists():
            self._until = self._until or time.monotonic() + self._length
            if time.monotonic() > self._until:
                self.kill()
        code = self._process.poll()
        if code is not None:
            assert code == -signal.SIGKILL, (self.points, self._log.read_text()[-6000:])
            self._start()

    def kill(self):
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _start(self):
        self.points.append(self._point())
        if self.is_done:
            return
        self._ready.unlink(missing_ok=True)
        is_moment = self.points[-1] == "moment"
        self._length, self._until = self._draw.random() * 4 if is_moment else _SECONDS, None
        command = [*self._place, self.points[-1], self._ready]
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.concurrency.carrier", *map(str, command)],
                cwd=Path(__file__).parents[2],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _point(self):
        draw = self._draw
        kinds = (
            "moment",
            "job",
            f"statement {draw.randint(1, 30)}",
            f"before {draw.randint(1, 6)}",
            f"after {draw.randint(1, 6)}",
            f"{draw.choice(PLACES)} {draw.randint(1, 3)}",
        )
        return draw.choice(kinds)


class Patient:
    """A DuckDB that says it again when somebody else was faster."""

    def __init__(self, duck):
        self._duck, self.sql = duck, duck.sql

    def execute(self, text):
        deadline = time.monotonic() + 60
        while True:
            try:
                return self._duck.execute(text)
            except duckdb.Error as error:
                told = str(error).lower()
                if time.monotonic() > deadline or ("locked" not in told and "conflict" not in told):
                    raise
                time.sleep(0.05)


class Story(Program):
    """The program in one process, and who carries in others."""

    hops = ("b", "c")

    def convert(self):
        name = self.some("INT", "BIGINT")
        if name is not None:
            using = self.draw.choice((None, f"concat('u', {name}, ' of ', id)"))
            self.lake.table("a").alter(change_type(name, "string", using=using), wait=True)
            self.kinds[name] = "STRING"

    def look(self):
        super().look()
        assert not any(job.look().is_open for job in self.lake.jobs())


@contextmanager
def carriers(hops, *arguments):
    """Who carries these hops; all are dead afterwards."""
    with ExitStack() as stack:
        made = [Carrier(hop, *arguments) for hop in hops]
        for one in made:
            stack.callback(one.kill)
        yield made


@pytest.mark.parametrize("seed", one_by_one(SEEDS, 2))
def test_tables_are_as_their_source_after_kills(spark, sqlite_url, data_path, tmp_path, seed):
    with (
        shelduck.connect(sqlite_url, data_path, spark, progress=False) as lake,
        DuckDBOracle(sqlite_url) as duck,
    ):
        story = Story(lake, Patient(duck), seed)
        key = " ".join(story.key)
        hops = (("a", "b", "", key), ("b", "c", story.condition, key))
        with carriers(hops, sqlite_url, data_path, tmp_path, story.draw) as both:
            while not all(one.is_done for one in both):
                story.act()
                for _ in range(5):
                    time.sleep(0.2)
                    for one in both:
                        one.look()
                # Whoever carries b needs b, which may not be there when its own carrier is done.
                if both[0].is_done:
                    story.carry(0)
        for hop in range(2):
            story.carry(hop)
        story.look()
