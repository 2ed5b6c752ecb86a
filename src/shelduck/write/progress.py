"""Progress of long work: a line on a terminal or in a notebook, and nothing in logs.

Nothing is shown of work that ends within two seconds, or while other work shows its progress.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from html import escape
from importlib import import_module
from typing import Any, TypeVar

from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape as escaped

from shelduck.engine.session import SparkSession
from shelduck.engine.stopping import SparkJobs, stopped_on_error
from shelduck.model.files.compaction import Bin
from shelduck.write.parquet.write import Progress

Thing = TypeVar("Thing")

_BEGIN, _BEAT = 2.0, 0.5
_turn = threading.Lock()


@dataclass
class Meter:
    """The work that is done so far, and if that is known, all of it."""

    what: str
    rows_in_all: int | None = None
    files_in_all: int | None = None
    rows: int = 0
    files: int = 0
    bytes: int = 0
    unit: str = "file(s)"
    begun: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """The seconds since it began."""
        return time.monotonic() - self.begun

    @property
    def seconds_left(self) -> float | None:
        """An estimate of the seconds that are left; None if it cannot be made."""
        for done, in_all in ((self.rows, self.rows_in_all), (self.files, self.files_in_all)):
            if done and in_all:
                return self.seconds * max(0, in_all - done) / done
        return None

    def line(self) -> str:
        """Return what is shown while it runs."""
        left = self.seconds_left
        parts = self._counts()
        if self.bytes and self.seconds:
            parts.append(f"{decimal(int(self.bytes / self.seconds))}/s")
        parts.append(duration(self.seconds) if left is None else f"{duration(left)} left")
        return f"{self.what}: {', '.join(parts)}"

    def summary(self) -> str:
        """Return what is shown when it is done."""
        return f"{self.what}: {', '.join(self._counts())} in {duration(self.seconds)}"

    def _counts(self) -> list[str]:
        parts = []
        if self.rows:
            of = "" if self.rows_in_all is None else f" of {self.rows_in_all:,}"
            parts.append(f"{self.rows:,}{of} rows")
        if self.files or self.files_in_all:
            of = "" if self.files_in_all is None else f" of {self.files_in_all:,}"
            parts.append(f"{self.files:,}{of} {self.unit}")
        if self.bytes:
            parts.append(decimal(self.bytes))
        return parts


def duration(seconds: float) -> str:
    """Return a time for people: ``8 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@contextmanager
def write_progress(
    spark: SparkSession, table: str, *, show: bool | None = None
) -> Iterator[Progress | None]:
    """Show the rows, files and bytes of writes to a table.

    If ``show`` is None, progress is shown on a terminal and in a notebook. Yields a function that a
    write calls with the rows, files and bytes that it has finished; None if nothing is shown.
    """
    display = _display(show=show)
    if display is None:
        yield None
        return
    meter = Meter(f"writing {table}")
    ended = last = (0, 0, 0)

    def report(rows: int, files: int, size: int) -> None:
        nonlocal ended, last
        if files == 1:
            # Another write begins.
            ended = last
        last = (ended[0] + rows, ended[1] + files, ended[2] + size)
        meter.rows, meter.files, meter.bytes = last

    with stopped_on_error(spark) as jobs, _shown(meter, display, partial(_look, meter, jobs)):
        yield report


@contextmanager
def bin_progress(
    spark: SparkSession, table: object, bins: Sequence[Bin], what: str, *, show: bool | None = None
) -> Iterator[Callable[[Bin], None] | None]:
    """Show how much of the bins of a table is written, as in `write_progress`.

    Yields a function that is called with each written bin; None if nothing is shown.
    """
    display = _display(show=show)
    if display is None:
        yield None
        return
    rows = sum((f.record_count or 0) - f.dead_rows for one in bins for f in one.files)
    meter = Meter(f"{what} {table}", rows_in_all=rows, files_in_all=len(bins))
    lock = threading.Lock()

    def report(_: Bin) -> None:
        with lock:
            meter.files += 1

    with stopped_on_error(spark) as jobs, _shown(meter, display, partial(_look, meter, jobs)):
        yield report


def _look(meter: Meter, jobs: SparkJobs) -> None:
    # Spark's counters follow its tasks with a delay, and it forgets old ones.
    rows, size = jobs.written()
    meter.rows, meter.bytes = max(meter.rows, rows), max(meter.bytes, size)


def counted(
    things: Iterable[Thing],
    what: str,
    in_all: int,
    *,
    unit: str = "file(s)",
    size: Callable[[Thing], int] = lambda _: 1,
    show: bool | None = None,
) -> Iterator[Thing]:
    """Yield the things, and show how many of them are done, as in `write_progress`.

    ``size`` tells for how many of ``in_all`` a thing counts.
    """
    display = _display(show=show)
    if display is None:
        yield from things
        return
    meter = Meter(what, files_in_all=in_all, unit=unit)
    with _shown(meter, display):
        for thing in things:
            yield thing
            meter.files += size(thing)


@contextmanager
def _shown(
    meter: Meter, display: _Notebook | _Terminal, look: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Show a meter while the block runs; ``look`` brings it up to date."""
    if not _turn.acquire(blocking=False):
        yield
        return
    rest = threading.Event()

    def run() -> None:
        pause = _BEGIN
        while not rest.wait(pause):
            # What cannot be shown must not stop the work, or hide its error.
            with suppress(Exception):
                look()
                display.show(meter.line())
            pause = _BEAT

    thread = threading.Thread(target=run, name="shelduck-progress", daemon=True)
    thread.start()
    told = None
    try:
        yield
        if meter.seconds >= _BEGIN:
            with suppress(Exception):
                look()
        told = meter.summary()
    finally:
        rest.set()
        thread.join()
        _turn.release()
        with suppress(Exception):
            display.end(told)


def _display(*, show: bool | None) -> _Notebook | _Terminal | None:
    """Return where a line is shown; nothing may be shown before `end`."""
    if show is False:
        return None
    if _is_notebook():
        return _Notebook()
    console = Console(stderr=True)
    return _Terminal(console) if show or console.is_terminal else None


def _is_notebook() -> bool:
    """Return whether this is the kernel of a notebook; IPython on a terminal has none."""
    ipython = sys.modules.get("IPython")
    return getattr(ipython and ipython.get_ipython(), "kernel", None) is not None


class _Terminal:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Any = None

    def show(self, line: str) -> None:
        if self._status is None:
            self._status = self._console.status("")
            self._status.start()
        self._status.update(escaped(line))

    def end(self, line: str | None) -> None:
        if self._status is None:
            return
        self._status.stop()
        if line is not None:
            self._console.print(escaped(line), highlight=False, soft_wrap=True)


class _Notebook:
    """One output of a cell, which changes: rich's own needs ipywidgets."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, line: str) -> None:
        shown = import_module("IPython.display")
        html = shown.HTML(f"<pre>{escape(line)}</pre>")
        if self._handle is None:
            self._handle = shown.display(html, display_id=True)
        else:
            self._handle.update(html)

    def end(self, line: str | None) -> None:
        if self._handle is not None:
            self.show(line or "")
