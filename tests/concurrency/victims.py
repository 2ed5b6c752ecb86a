"""A process whose children commit and are killed: run by test_killed_commits.py as a program.

Reads one order after the other, a line of JSON each, and answers in the same way. Every order is
carried out by a fork, which is cheap because all modules are loaded and there is no JVM.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from sqlalchemy import Engine, event

from shelduck.catalog.databases.store import Store
from shelduck.catalog.upkeep.migrate import migrate
from tests.support.contenders import OURS
from tests.support.lake import Lake

MIGRATE = "migrate"


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            commit(**json.loads(line))
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


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


class _Death:
    """Comes with the last of so many statements."""

    def __init__(self, statements: int) -> None:
        self._left = statements

    def __call__(self, *_: object) -> None:
        self._left -= 1
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
