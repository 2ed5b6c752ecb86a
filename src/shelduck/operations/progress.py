"""Progress of long work on a terminal; silent everywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.filesize import decimal

from shelduck.spark.session import SparkSession
from shelduck.spark.watch import Written, watching_writes
from shelduck.spark.write import Progress


@contextmanager
def write_progress(
    spark: SparkSession, table: str, *, show: bool | None = None
) -> Iterator[Progress | None]:
    """Show the rows, files and bytes of a write while it runs, and once more when it is done.

    ``show`` is decided by whether stderr is a terminal when it is None. Yields what the write calls
    with the rows, files and bytes that it has finished.
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
