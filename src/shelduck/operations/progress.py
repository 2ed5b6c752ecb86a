"""Progress of long work on a terminal; silent everywhere else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.filesize import decimal

from shelduck.planning.compaction import Bin
from shelduck.spark.session import SparkSession
from shelduck.spark.write.watch import Written, watching_writes
from shelduck.spark.write.write import Progress


@contextmanager
def write_progress(
    spark: SparkSession, table: str, *, show: bool | None = None
) -> Iterator[Progress | None]:
    """Show the rows, files and bytes of a write while it runs, and once more when it is done.

    If ``show`` is None, progress is shown if stderr is a terminal. Yields a function that the write
    calls with the rows, files and bytes that it has finished.
    """
    console = Console(stderr=True)
    if show is False or (show is None and not console.is_terminal):
        yield None
        return
    with console.status(f"writing {table} …") as status:

        def report(rows: int, files: int, size: int) -> None:
            status.update(f"writing {table}: {rows:,} rows, {files} file(s), {decimal(size)}")

        def running(seen: Written) -> None:
            status.update(f"writing {table}: {seen.rows:,} rows, {decimal(seen.bytes)}")

        final = _Last(report)
        with watching_writes(spark, running):
            yield final
    console.print(
        f"wrote {table}: {final.rows:,} rows, {final.files} file(s), {decimal(final.bytes)}"
    )


class _Last:
    """Passes reports on and keeps the last one."""

    def __init__(self, report: Progress) -> None:
        self._report = report
        self.rows = self.files = self.bytes = 0

    def __call__(self, rows: int, files: int, size: int) -> None:
        self.rows, self.files, self.bytes = rows, files, size
        self._report(rows, files, size)


@contextmanager
def bin_progress(
    table: object, bins: Sequence[Bin], what: str, *, show: bool | None = None
) -> Iterator[Callable[[Bin], None] | None]:
    """Show how many of the bins of a table are written, as in `write_progress`.

    Yields a function that is called with each written bin; None if nothing is shown.
    """
    console = Console(stderr=True)
    if show is False or (show is None and not console.is_terminal):
        yield None
        return
    total = sum(b.bytes for b in bins)
    lock = threading.Lock()
    done: list[Bin] = []
    with console.status(f"{what} {table} …") as status:

        def report(one: Bin) -> None:
            with lock:
                done.append(one)
                size = decimal(sum(b.bytes for b in done))
                status.update(
                    f"{what} {table}: {len(done)} of {len(bins)} new file(s), from {size} of"
                    f" {decimal(total)}"
                )

        yield report
    files = sum(len(b.files) for b in done)
    console.print(f"{what} {table}: {files} file(s) written as {len(done)}, {decimal(total)} read")
