"""A process whose children commit and are killed: test_killed_commits.py runs it as a program.

Reads one order after the other, a line of JSON each, and answers in the same way. Every order is
carried out by a fork, which is cheap because all modules are loaded and there is no JVM.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from sqlalchemy import Engine, event

import shelduck
from shelduck.catalog.databases.store import Store
from shelduck.catalog.upkeep.migrate import migrate
from tests.support.contenders import OURS
from tests.support.lake import Lake

MIGRATE = "migrate"
_CHANGES = ("INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER")


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            order = json.loads(line)
            (execute if "statement" in order else commit)(**order)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(json.dumps(os.waitstatus_to_exitcode(status)) + "\n")
        sys.stdout.flush()


def commit(url: str, name: str, at: int | str, *, spills: bool = False) -> None:
    """Make a change, or migrate, and die at a point of its commit.

    After the statement of that number, or ``before`` or ``after`` COMMIT. One that ``spills`` has
    its writes in the database file before, as a large transaction has.
    """
    lake = Lake(url, None)
    changes = () if name == MIGRATE else OURS[name].make(lake)
    base = lake.head().id
    lake.store.close()
    if spills:
        event.listen(Engine, "connect", _without_cache)
    if isinstance(at, int):
        event.listen(Engine, "after_cursor_execute", _Death(at))
    else:
        _die_around_commit(at)
    if name == MIGRATE:
        migrate(lake.store, "1.1", lambda _: False, plan=False)
    else:
        lake.commit(*changes, base=base)


def execute(url: str, statement: str, at: int | str) -> None:
    """Run a statement of a lake, and die after its ``at``-th change, or around its last COMMIT."""
    with shelduck.connect(url) as lake:
        if isinstance(at, int):
            event.listen(Engine, "after_cursor_execute", _Death(at, _CHANGES))
        else:
            _die_around_commit(at)
        lake.execute(statement)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


class _Death:
    """Comes with the last of so many statements, or of those that begin with some words."""

    def __init__(self, statements: int, words: tuple[str, ...] = ("",)) -> None:
        self._left, self._words = statements, words

    def __call__(self, _c: object, _cursor: object, statement: str, *_: object) -> None:
        self._left -= statement.lstrip().startswith(self._words)
        if self._left == 0:
            die()


def _die_around_commit(at: str) -> None:
    original = Store._commit

    def dying(self: Store, connection: object) -> None:
        if at == "after":
            original(self, connection)
        die()

    Store._commit = dying


def _without_cache(driver: object, _record: object) -> None:
    driver.execute("PRAGMA cache_size = 1")
    driver.execute("PRAGMA cache_spill = 1")


if __name__ == "__main__":
    main()
