"""What strikes: crashes, lost connections, busy catalogs, full disks, slow storage, clocks."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.simulation.catalog import broken
from tests.simulation.world import Crashed

if TYPE_CHECKING:
    from tests.simulation.catalog import Connection
    from tests.simulation.run import Simulation

_LEASE = 60.0


@dataclass(frozen=True)
class Rates:
    """How often each fault strikes, for one occasion."""

    crash: float
    interrupt: float
    freeze: float
    jump: float
    busy: float
    statement: float
    before_commit: float
    after_commit: float
    full: float
    storage: float
    repeat: float
    slow: float


CALM = Rates(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0)


class Faults:
    """Strikes at the steps of a run; nothing strikes while it is `off`."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._random = simulation.world.random
        self.rates = self._drawn()
        self.struck: dict[str, int] = {}

    def off(self) -> None:
        """Let nothing strike any more."""
        self.rates = CALM

    def _drawn(self) -> Rates:
        """Draw how much of each fault this run has: some runs have none of a kind."""
        draw = self._random.choice
        return Rates(
            crash=draw((0, 1 / 800, 1 / 300)),
            interrupt=draw((0, 0, 1 / 500)),
            freeze=draw((0, 1 / 600, 1 / 300)),
            jump=draw((0, 0, 1 / 500)),
            busy=draw((0, 0.01, 0.05)),
            statement=draw((0, 1 / 1000, 1 / 300)),
            before_commit=draw((0, 0.02, 0.05)),
            after_commit=draw((0, 0.02, 0.05)),
            full=draw((0, 0.03, 0.1)),
            storage=draw((0, 0, 0.03)),
            repeat=draw((0, 0.5)),
            slow=draw((0.1, 0.3, 0.6)),
        )

    def _strikes(self, what: str, rate: float) -> bool:
        if rate and self._random.random() < rate:
            self.struck[what] = self.struck.get(what, 0) + 1
            self._simulation.world.told(f"FAULT {what}")
            return True
        return False

    def at_step(self, _what: str) -> None:
        """Kill, stop, or set the clock of the process that takes a step."""
        world = self._simulation.world
        assert world.task is not None
        process = world.task.process
        if self._strikes("crash", self.rates.crash):
            process.kill()
            raise Crashed
        if self._strikes("freeze", self.rates.freeze):
            rest = self._random.choice((5.0, 40.0, 90.0, 600.0))
            process.frozen_until = world.time + rest
            if rest > _LEASE / 2:
                # Nobody can give a sign of life while a stopped process has the catalog locked.
                locks = any(c.holds_lock for c in process.connections)
                for each in world.processes if locks else [process]:
                    each.is_late = True
            world.hub.switch()
        is_beat = world.task.is_daemon
        if not is_beat and self._strikes("Ctrl-C", self.rates.interrupt):
            raise KeyboardInterrupt
        if self._strikes("jump", self.rates.jump):
            self._set_clock()

    def _set_clock(self) -> None:
        world = self._simulation.world
        assert world.task is not None
        if self._random.random() < 0.5:
            # Nobody gave a sign of life meanwhile.
            world.time += self._random.choice((30.0, 120.0, 7200.0))
            for each in world.processes:
                each.is_late = True
        else:
            world.task.process.skew += self._random.choice((-600.0, -5.0, 5.0, 600.0))
            for each in world.processes:
                each.is_late = True

    def at_begin(self, connection: Connection, statement: str) -> None:
        """Let a writer wait for the lock in vain, or lose the connection."""
        if "IMMEDIATE" in statement and self._strikes("lock timeout", self.rates.busy):
            world = self._simulation.world
            assert world.task is not None
            if world.task.is_daemon:
                # The next sign of life then comes a minute after the last one.
                world.task.process.is_late = True
            world.sleep(30.0)
            raise broken(sqlite3.SQLITE_BUSY, "database is locked")

    def at_statement(self, connection: Connection) -> None:
        """Lose the connection in the middle of a transaction."""
        if self._strikes("lost connection", self.rates.statement):
            connection.lose()
            raise broken(sqlite3.SQLITE_IOERR, "disk I/O error")

    def before_commit(self, connection: Connection) -> None:
        """Lose the connection so that nothing is committed."""
        if self._strikes("lost before COMMIT", self.rates.before_commit):
            connection.lose()
            raise broken(sqlite3.SQLITE_IOERR, "disk I/O error")

    def after_commit(self, connection: Connection) -> None:
        """Lose the connection, or the whole process, when everything is committed."""
        if self._strikes("lost after COMMIT", self.rates.after_commit):
            connection.lose()
            raise broken(sqlite3.SQLITE_IOERR, "disk I/O error")
        if self._strikes("Ctrl-C after COMMIT", self.rates.interrupt * 20):
            raise KeyboardInterrupt
        if self._strikes("crash after COMMIT", self.rates.crash * 10):
            task = self._simulation.world.task
            assert task is not None
            task.process.kill()
            raise Crashed

    def is_full(self) -> bool:
        """Return whether the disk is full."""
        return self._strikes("full disk", self.rates.full)

    def storage_fails(self) -> bool:
        """Return whether the storage does not answer a request."""
        return self._strikes("storage", self.rates.storage)

    def delay(self) -> float:
        """Return for how many seconds a request of a listing or a deletion takes."""
        is_slow = self._strikes("slow storage", self.rates.slow / 5)
        return self._random.choice((5.0, 60.0)) if is_slow else 0.0

    def repeats(self) -> bool:
        """Return whether a listing names a file twice."""
        return self._strikes("repeated listing", self.rates.repeat)

    def duration(self) -> float:
        """Return for how many seconds rows are computed."""
        if self._random.random() < self.rates.slow:
            return self._random.choice((20.0, 70.0, 200.0))
        return self._random.uniform(0.1, 3.0)
