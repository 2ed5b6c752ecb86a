"""Processes and their tasks, one clock, and the scheduler that chooses who goes on.

Everything runs in one thread. A task is a greenlet. Whatever a task does to the catalog, to files
or to the clock is a step: before it, another task may run, time passes, and faults strike.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zlib import crc32

from greenlet import getcurrent, greenlet

from shelduck import clock

if TYPE_CHECKING:
    from collections.abc import Callable

START = datetime(2024, 1, 1, tzinfo=UTC)
MOST_STEPS = 60_000
_TRACED, _SHOWN = 400, 110


class Crashed(BaseException):
    """Ends everything that a process does; nothing that it still does has an effect."""


class Violation(AssertionError):
    """An invariant does not hold."""


class Stuck(AssertionError):
    """Nobody can go on, or the end does not come."""


@dataclass(eq=False)
class Process:
    """A program on a machine; its clock may be wrong by ``skew`` seconds."""

    world: World
    name: str
    machine: str
    pid: int
    skew: float = 0.0
    is_dead: bool = False
    frozen_until: float = 0.0
    is_late: bool = False
    """True once it was stopped for so long, or its clock jumped so far, that leases ran out."""
    is_immortal: bool = False
    is_registered: bool = False
    is_on_branch: bool = False
    """True while it writes where no job of the table's does anything."""
    writes: set[str] = field(default_factory=set)
    """The files that it wrote for a write that it has registered."""
    connections: list[Any] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)

    def now(self) -> datetime:
        return START + timedelta(seconds=self.world.time + self.skew)

    def monotonic(self) -> float:
        return self.world.time

    def sleep(self, seconds: float) -> None:
        self.world.sleep(seconds)

    def kill(self) -> None:
        """End it at once: its transactions are rolled back, and no handler has an effect."""
        if self.is_dead:
            return
        self.is_dead = True
        self.world.told(f"{self.name} DIES")
        for connection in self.connections:
            connection.cut()
        self.connections.clear()


@dataclass(eq=False)
class Task:
    """One thread of a process; ``is_daemon`` if nobody waits for it."""

    process: Process
    name: str
    act: Callable[[], object]
    is_daemon: bool = False
    wakes_at: float = 0.0
    is_done: bool = False
    greenlet: greenlet = field(init=False)

    def __post_init__(self) -> None:
        self.greenlet = greenlet(self._run, self.process.world.hub)

    def _run(self) -> None:
        try:
            if self.process.is_dead:
                return
            with clock.using(self.process):
                self.act()
        except Crashed:
            pass
        except BaseException as error:  # noqa: BLE001 - the world tells it
            self.process.world.failed(error)
        finally:
            self.is_done = True


class World:
    """One simulated run: its time, its tasks and its fate, all of them decided by the seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.time = 0.0
        self.steps = 0
        self.hub = getcurrent()
        self.tasks: list[Task] = []
        self.processes: list[Process] = []
        self.trace: deque[str] = deque(maxlen=_TRACED)
        self.digest = 0
        self.error: BaseException | None = None
        self.faults: Callable[[str], None] = lambda _: None
        self._current: Task | None = None
        self._pids = 100

    @property
    def task(self) -> Task | None:
        """The task that runs now, None outside of tasks."""
        return self._current

    def start(self, name: str, machine: str, act: Callable[[], object]) -> Process:
        self._pids += 1
        process = Process(self, name, machine, self._pids)
        # Others whose clock is wrong may take it for dead from the beginning.
        process.is_late = any(p.skew and not p.is_dead for p in self.processes)
        self.processes.append(process)
        self.spawn(process, name, act)
        return process

    def spawn(
        self, process: Process, name: str, act: Callable[[], object], *, is_daemon: bool = False
    ) -> Task:
        task = Task(process, name, act, is_daemon)
        process.tasks.append(task)
        self.tasks.append(task)
        return task

    def told(self, what: str) -> None:
        """Keep a line for the trace."""
        who = self._current.name if self._current is not None else "-"
        self.trace.append(f"{self.steps:6} {self.time:10.3f} {who:14} {what}")

    def failed(self, error: BaseException) -> None:
        """End the run with the first error."""
        if self.error is None:
            self.error = error

    def step(self, what: str) -> None:
        """Let others run, let time pass, and let faults strike: before everything that is done."""
        task = self._current
        if task is None:
            return
        if task.process.is_dead:
            raise Crashed
        self.steps += 1
        line = f"{self.steps:6} {self.time:10.3f} {task.name:14} {what[:_SHOWN]}"
        self.digest = crc32(line.encode(), self.digest)
        self.trace.append(line)
        if self.steps > MOST_STEPS:
            raise Stuck(f"{MOST_STEPS} steps are not enough")
        self.time += 0.002
        if not task.process.is_immortal:
            self.faults(what)
        if self.random.random() < 0.35:
            self.hub.switch()
        if task.process.is_dead:
            raise Crashed

    def sleep(self, seconds: float) -> None:
        task = self._current
        if task is None:
            self.time += seconds
            return
        if task.process.is_dead:
            raise Crashed
        task.wakes_at = self.time + seconds
        self.hub.switch()
        if task.process.is_dead:
            raise Crashed

    def run(self) -> None:
        """Run until all tasks that somebody waits for have ended; raises the first error."""
        while self.error is None:
            for gone in [t for t in self.tasks if t.process.is_dead and not t.is_done]:
                self._resume(gone)
            alive = [t for t in self.tasks if not t.is_done]
            self.tasks = alive
            if all(t.is_daemon for t in alive):
                break
            ready = [t for t in alive if max(t.wakes_at, t.process.frozen_until) <= self.time]
            if ready:
                self._resume(self.random.choice(ready))
            else:
                self.time = min(max(t.wakes_at, t.process.frozen_until) for t in alive)
        for process in self.processes:
            process.kill()
        for task in self.tasks:
            while not task.is_done:
                self._resume(task)
        if self.error is not None:
            raise self.error

    def _resume(self, task: Task) -> None:
        self._current = task
        try:
            task.greenlet.switch()
        finally:
            self._current = None
