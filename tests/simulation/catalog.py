"""The catalog: a real SQLite file, whose driver asks the world before every statement."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, create_engine, event, make_url

from shelduck.catalog.databases.sqlite import SQLite, _take_over_transactions
from tests.simulation.world import Crashed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.simulation.run import Simulation

_BUSY = 30.0
_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


class SimulatedSQLite(SQLite):
    """SQLite whose connections belong to a simulated process."""

    def __init__(self, path: Path, simulation: Callable[[], Simulation]) -> None:
        super().__init__(make_url(f"sqlite:///{path}"))
        self._simulation = simulation

    def make_engine(self) -> Engine:
        simulation = self._simulation

        class Bound(Connection):
            def __init__(self, *given: Any, **more: Any) -> None:
                super().__init__(*given, **more)
                self.open_in(simulation())

        engine = create_engine(
            self.url, connect_args={"check_same_thread": False, "timeout": 0, "factory": Bound}
        )
        event.listen(engine, "connect", _take_over_transactions)
        return engine


def broken(code: int, told: str) -> sqlite3.OperationalError:
    """An error as SQLite raises it."""
    error = sqlite3.OperationalError(told)
    error.sqlite_errorcode = code
    return error


class Connection(sqlite3.Connection):
    """A connection; a cut one does nothing more, as that of a process that has died."""

    simulation: Simulation
    is_cut = False
    is_lost = False
    known_changes = 0
    """The number of rows that transactions before the open one changed."""

    def open_in(self, simulation: Simulation) -> None:
        self.simulation = simulation
        task = simulation.world.task
        if task is not None:
            task.process.connections.append(self)
        # This statement reads the schema, so it waits for whoever is about to commit.
        self._waiting(lambda: sqlite3.Connection.execute(self, "PRAGMA synchronous = OFF"))

    @property
    def holds_lock(self) -> bool:
        return not self.is_cut and self.in_transaction

    def cut(self) -> None:
        """Roll back and close, whatever the process was doing."""
        if not self.is_cut:
            self.is_cut = True
            super().close()

    def lose(self) -> None:
        """Lose the connection: what the transaction did is rolled back."""
        self.is_lost = True
        if self.in_transaction:
            super().rollback()

    def cursor(self, *_: Any, **__: Any) -> Cursor:  # type: ignore[override]
        self._require_alive()
        return super().cursor(Cursor)

    def execute(self, *given: Any) -> Any:
        """Run BEGIN, the only statement that comes without a cursor."""
        if not self.simulation.is_on:
            return super().execute(*given)
        statement = str(given[0])
        self._require_alive()
        self.simulation.world.step(statement)
        self.simulation.faults.at_begin(self, statement)
        self.known_changes = self.total_changes
        return self._waiting(lambda: sqlite3.Connection.execute(self, *given))

    def commit(self) -> None:
        if not self.simulation.is_on or not self.in_transaction:
            super().commit()
            return
        self._require_alive()
        wrote = self.total_changes > self.known_changes
        self.simulation.world.step("COMMIT")
        self.simulation.faults.before_commit(self)
        self._waiting(lambda: sqlite3.Connection.commit(self))
        if wrote:
            self.simulation.committed()
        self.simulation.faults.after_commit(self)

    def rollback(self) -> None:
        if not self.is_cut:
            super().rollback()

    def close(self) -> None:
        if not self.is_cut:
            self.is_cut = True
            super().close()

    def _require_alive(self) -> None:
        if self.is_cut:
            raise Crashed
        if self.is_lost:
            raise broken(sqlite3.SQLITE_IOERR, "the connection is lost")

    def _waiting(self, act: Callable[[], Any]) -> Any:
        """Do something as soon as the lock is free, or raise what SQLite raises in the end."""
        world = self.simulation.world
        until, pause = world.time + _BUSY, _PAUSE
        while True:
            try:
                return act()
            except sqlite3.OperationalError as error:
                is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or world.time > until or world.task is None:
                    raise
            world.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            self._require_alive()


class Cursor(sqlite3.Cursor):
    """A cursor, which asks before every statement."""

    connection: Connection

    def execute(self, statement: str, parameters: Any = ()) -> Any:
        return self._asked(statement, lambda: sqlite3.Cursor.execute(self, statement, parameters))

    def executemany(self, statement: str, parameters: Any) -> Any:
        rows = list(parameters)
        return self._asked(statement, lambda: sqlite3.Cursor.executemany(self, statement, rows))

    def _asked(self, statement: str, act: Callable[[], Any]) -> Any:
        mine = self.connection
        if not mine.simulation.is_on:
            return act()
        mine._require_alive()
        mine.simulation.world.step(statement)
        mine._require_alive()
        mine.simulation.faults.at_statement(mine)
        return mine._waiting(act)
