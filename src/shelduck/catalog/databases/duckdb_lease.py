"""Keep a DuckDB file open between statements, until somebody asks for it or it rests.

    duckdb:////data/lake.ducklake?keep_open=1

A process that waits for the file touches `lake.ducklake.wanted` again and again. The holder looks
at the time of that file and lets go when it changes. So a file that a dead process has left asks
for nothing. A folder where nobody can write such a file has no wishes: then only resting helps.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from weakref import WeakSet

import sqlalchemy as sa

from shelduck.errors import InvalidRequest

SETTING = "keep_open"
LONGEST_SECONDS = 3600.0
_LOOK_SECONDS = 0.02
_TURN_SECONDS = 0.2

# Opening and closing exclude each other: the watcher closes in a thread of its own.
opening = threading.RLock()


def seconds_to_keep(url: sa.URL) -> float | None:
    """Return how long a file that rests stays open by an address, None if it is not kept."""
    value = url.query.get(SETTING)
    if value is None:
        return None
    try:
        seconds = float(str(value)) if isinstance(value, str) else math.nan
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= LONGEST_SECONDS:
        raise InvalidRequest(
            f"the setting {SETTING} of a DuckDB catalog is not a number of seconds; use a number"
            f" above 0, up to {LONGEST_SECONDS:g}, as in duckdb:////file.ducklake?{SETTING}=1"
        )
    return seconds


class Wish:
    """The wish of processes for a DuckDB file, beside the file."""

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(f"{path.name}.wanted")

    def say(self) -> None:
        """Ask for the file; say it again until the file is free."""
        flags = os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        with contextlib.suppress(OSError):
            file = os.open(self.path, flags, 0o666)
            try:
                os.utime(file)
            finally:
                os.close(file)

    def end(self) -> None:
        """Ask no more; others who wait ask again by themselves."""
        with contextlib.suppress(OSError):
            self.path.unlink()

    def said_at(self) -> int | None:
        """Return when somebody asked last, None if nobody does."""
        try:
            return self.path.lstat().st_mtime_ns
        except OSError:
            return None


class Lease:
    """The holder of an open DuckDB file: a connection that does nothing."""

    def __init__(self, path: Path, seconds: float) -> None:
        self._path, self._seconds = path, seconds
        self._wish = Wish(path)
        self._anchor: Any = None
        self._file: tuple[int, int] | None = None
        self._used = 0.0
        self._known_wish: int | None = None
        self._owes_turn = False
        _LEASES.add(self)

    def before_open(self) -> None:
        """Let a process that asked go first, and leave a file that another one has replaced."""
        if self._owes_turn:
            self._owes_turn = False
            deadline = time.monotonic() + _TURN_SECONDS
            while self._wish.said_at() is not None and time.monotonic() < deadline:
                time.sleep(_LOOK_SECONDS / 4)
        if self._anchor is not None and self._file != _identity(self._path):
            self.give_up()

    def keep(self, connect: Callable[[str], Any]) -> None:
        """Keep a file open that is open; hold `opening` for this."""
        self._used = time.monotonic()
        if self._anchor is not None:
            return
        # Not a cursor of the connection: DuckDB closes those together with it.
        self._anchor, self._file = connect(str(self._path)), _identity(self._path)
        self._known_wish = self._wish.said_at()
        threading.Thread(
            target=self._watch, args=(self._anchor,), name="shelduck-duckdb-file", daemon=True
        ).start()

    def rest(self, *_: object) -> None:
        """Note that a connection has ended its work."""
        self._used = time.monotonic()

    def give_up(self, *_: object) -> None:
        """Let the file go; a transaction that runs keeps it until it ends."""
        with opening:
            anchor, self._anchor = self._anchor, None
            if anchor is not None:
                anchor.close()

    def _watch(self, anchor: Any) -> None:
        while True:
            time.sleep(_LOOK_SECONDS)
            with opening:
                if self._anchor is not anchor:
                    return
                said = self._wish.said_at()
                is_wanted = said is not None and said != self._known_wish
                if is_wanted or time.monotonic() - self._used > self._seconds:
                    self._owes_turn = is_wanted
                    self.give_up()
                    return


_LEASES: WeakSet[Lease] = WeakSet()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _give_up_all() -> None:
    for lease in list(_LEASES):
        lease.give_up()


def _before_fork() -> None:
    # A child must not inherit an open file: its copy would write into it at the end.
    opening.acquire()
    _give_up_all()


atexit.register(_give_up_all)
os.register_at_fork(
    before=_before_fork, after_in_parent=opening.release, after_in_child=opening.release
)
