"""A Spark process that runs one statement, or jobs, and is killed on the way: run by test_kills.py.

Where it dies is told by a word: ``job`` (as soon as a file appears below the lake's directory),
``before`` or ``after`` the first COMMIT, ``before 3`` or ``after 3`` the third, ``statement 7`` of
the commit, or a function of Shelduck's after whose first return it dies, or with a number after a
later one. Leases are renewed now and then on a slow machine: that does not count.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Engine, event

import shelduck
from shelduck.catalog.databases.store import Store
from shelduck.jobs import lots
from tests.support.jars import s3_settings
from tests.support.spark import local_session

if TYPE_CHECKING:
    from collections.abc import Callable

RUN_JOBS = "run jobs"
# Modules that are loaded on first use would keep the function as it was.
_MODULES = ("shelduck.doors.lake", "shelduck.objects.catalog_verbs", "shelduck.doors.sql.execution")


def main() -> None:
    url, data, statement, point = sys.argv[1:]
    treat_as_large(setattr)
    more = s3_settings() if data.startswith("s3:") else None
    with (
        tempfile.TemporaryDirectory() as scratch,
        local_session(Path(scratch), more) as spark,
        shelduck.connect(url, spark=spark, progress=False) as lake,
    ):
        arm(point, Path(data))
        if statement == RUN_JOBS:
            lake.run_jobs()
        else:
            lake.sql(statement)


def treat_as_large(put: Callable[[object, str, object], None]) -> None:
    """Let jobs do with tiny files what they do with large ones; ``put`` is setattr, or its like."""
    put(lots, "SMALL", 0)
    put(lots, "_SMALL_LOT", lots._LOT)


def arm(point: str, data: Path) -> None:
    """Make sure that this process dies at a point."""
    for module in _MODULES:
        import_module(module)
    if point == "job":
        threading.Thread(target=_watch, args=(data, _files(data)), daemon=True).start()
    elif point.startswith("statement"):
        Store._commit = _dying(Store._commit, before=True)
        event.listen(Engine, "after_cursor_execute", _Death(int(point.split()[1])))
    elif point.startswith(("before", "after")):
        when, _, number = point.partition(" ")
        Store._commit = _dying(Store._commit, before=when == "before", calls=int(number or 1))
    else:
        path, _, number = point.partition(" ")
        module, _, name = path.rpartition(".")
        _replace(getattr(import_module(module), name), int(number or 1))


def die() -> None:
    """Nobody gets a chance to tidy up: neither this process nor its JVM."""
    os.killpg(0, signal.SIGKILL)


class _Death:
    """Comes with the last of so many statements that change something."""

    def __init__(self, statements: int) -> None:
        self._left = statements

    def __call__(self, _c: object, _cursor: object, statement: str, *_: object) -> None:
        if not _renews_leases() and statement.startswith(("INSERT", "UPDATE", "DELETE")):
            self._left -= 1
            if self._left == 0:
                die()


def _dying(
    function: Callable[..., object], *, before: bool = False, calls: int = 1
) -> Callable[..., object]:
    left = iter(range(calls - 1, -1, -1))

    @wraps(function)
    def dying(*arguments: object, **more: object) -> object:
        if _renews_leases():
            return function(*arguments, **more)
        is_last = next(left) == 0
        if is_last and before:
            die()
        found = function(*arguments, **more)
        if is_last:
            die()
        return found

    return dying


def _renews_leases() -> bool:
    return threading.current_thread().name == "shelduck leases"


def _replace(function: Callable[..., object], calls: int) -> None:
    """Put the dying function wherever a module of ours has imported it."""
    found = [
        (module, name)
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").startswith("shelduck")
        for name, value in vars(module).items()
        if value is function
    ]
    for module, name in found:
        setattr(module, name, _dying(function, calls=calls))


def _files(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def _watch(folder: Path, known: set[Path]) -> None:
    while not any(path.suffix == ".parquet" for path in _files(folder) - known):
        time.sleep(0.001)
    die()


if __name__ == "__main__":
    main()
