"""The demo: changes of millions of rows, and a branch, while clients write, read, and look in."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid

from shelduck.alter.schema_changes import add_column, change_type, rename_column
from shelduck.doors.connect import connect
from shelduck.doors.lake import Lake
from shelduck.errors import Conflict, InvalidRequest, NotFound
from shelduck.jobs.jobs import SchemaChangeJob
from shelduck.lake.results import Committed
from shelduck.model.changes.job import JobState
from shelduck.model.types.data_types import type_text
from shelduck.objects.catalog_verbs import Table

T = TypeVar("T")
_FILES = 8
_COLUMNS = {"id": "bigint", "user_id": "int", "amount": "string", "at": "timestamp"}
_LOADED = (
    "id",
    "CAST(id % 1000 AS INT) AS user_id",
    "concat(id % 500, '.', lpad(id % 100, 2, '0')) AS amount",
    "timestamp_seconds(1767225600 + id % 86400) AS at",
)
_LOOK = "SELECT count(*) || ' rows, amount is ' || typeof(any_value(amount)) FROM events"
_NIGHTS = (
    "SELECT count(*) || ' rows from NZ, visitor is ' || typeof(any_value(visitor)) FROM events"
)
_NIGHTS += " WHERE country = 'NZ'"
BATCH = 500
"""Rows of one commit of the writer."""
AMOUNT = Decimal("0.25")
"""The amount in each row of the writer, and of the night load."""
NIGHT = 1000
"""Rows of the night load into a branch."""
_DUCKDB = """
import sys
from shelduck.catalog.databases.duckdb_view import DuckDBMissing, duckdb_rows
try:
    for row in duckdb_rows(sys.argv[1], sys.argv[2]):
        print(*row)
except DuckDBMissing as error:
    print(f"(skipped: {error})")
"""


class Client(threading.Thread, ABC):
    """Does one thing again and again until it is stopped; ``failed`` is what ended it, if anything.

    ``done`` counts what it did, ``longest`` is the longest pause in seconds between two successes.
    """

    def __init__(self, lake: Lake, table: str) -> None:
        super().__init__(daemon=True)
        self.lake = lake
        self.table = table
        self.done = 0
        self.longest = 0.0
        self.failed: BaseException | None = None
        self._ended = threading.Event()

    def run(self) -> None:
        """Work until `finish`, or until something fails."""
        last = time.monotonic()
        try:
            while not self._ended.is_set():
                self.step(self.lake.table(self.table))
                now = time.monotonic()
                self.done += 1
                self.longest = max(self.longest, now - last)
                last = now
        except BaseException as error:  # noqa: BLE001 - shown at the end of the demo
            self.failed = error

    @abstractmethod
    def step(self, table: Table) -> None:
        """Do it once."""

    def finish(self) -> None:
        """Stop after the current step; raise what made it fail."""
        self._ended.set()
        self.join()
        if self.failed is not None:
            raise self.failed


class DemoWriter(Client):
    """Appends rows without pause."""

    def __init__(self, lake: Lake, table: str, first_id: int) -> None:
        super().__init__(lake, table)
        self.first_id = first_id
        self.retries = 0

    @property
    def rows(self) -> int:
        """The committed rows."""
        return self.done * BATCH

    def step(self, table: Table) -> None:
        """Append the next rows, again if the columns changed meanwhile."""
        first = self.first_id + self.rows
        while True:
            # As any client would: by the columns that the table has at the moment.
            types = {f.name: type_text(f.type) for f in table.columns}
            person = "user_id" if "user_id" in types else "visitor"
            rows = self.lake.spark.range(first, first + BATCH).selectExpr(
                "id",
                f"CAST(id % 1000 AS {types[person]}) AS {person}",
                f"CAST('{AMOUNT}' AS {types['amount']}) AS amount",
                "current_timestamp() AS at",
            )
            try:
                table.append(rows)
            except (Conflict, InvalidRequest, NotFound):
                self.retries += 1
                continue
            return


class Reader(Client):
    """Reads the whole table, with a short rest after each query."""

    def step(self, table: Table) -> None:
        """Aggregate all rows."""
        table.read().selectExpr("count(amount)", "max(at)", "sum(id)").collect()
        self._ended.wait(0.5)


def ask_duckdb(url: str, query: str) -> str:
    """Return what DuckDB answers, in a process of its own, as DuckDB requires."""
    command = [sys.executable, "-c", _DUCKDB, url, query]
    told = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    return told.stdout.strip() or told.stderr.strip().rsplit("\n", 1)[-1]


def run_demo(
    console: Console, rows: int, keep: Path | None, show: Callable[[str], None] | None = None
) -> None:
    """Tell the story on ``rows`` rows, and print what happened.

    The lake is in ``keep``, or in a folder that is removed at the end, after ``show`` has returned,
    which gets its address.
    """
    if keep is not None and keep.exists():
        raise InvalidRequest(f"{keep} already exists; choose a new folder for the lake")
    if rows < 1000:
        raise InvalidRequest(f"--rows {rows} is too few; choose at least 1000")
    with tempfile.TemporaryDirectory(prefix="shelduck-demo-") as scratch:
        folder = keep or Path(scratch) / "lake"
        folder.mkdir(parents=True)
        url = f"sqlite:///{folder.absolute()}/lake.db"
        console.print(f"A new lake: [bold]{url}[/], its files are in {folder.absolute()}/files")
        with connect(url, str(folder.absolute() / "files"), progress=False) as lake:
            _Story(console, lake, url, rows).run()
        if show is not None:
            show(url)
        elif keep is not None:
            console.print(f"The lake is kept. See it: shelduck ui -c {url}", highlight=False)
        else:
            console.print("See such a lake in your browser: shelduck demo --ui", highlight=False)


class _Story:
    """One step after another; each is printed when it is done."""

    def __init__(self, console: Console, lake: Lake, url: str, rows: int) -> None:
        self.console = console
        self.lake = lake
        self.url = url
        self.rows = rows
        self.table = lake.create_table("events", _COLUMNS)
        self.seen = ""

    def run(self) -> None:
        """Tell all of it."""
        loaded = self._load()
        with self._clients() as (writer, reader):
            self._change_light()
            self._prove()
            job = self._change_heavy(writer, reader)
            self._travel(loaded)
            self._take_back(job)
            self._branch()
        self._sum_up(writer, reader)

    def _load(self) -> int:
        """Load the rows; return the snapshot that has them."""
        self._title("1. Load")
        data = self.lake.spark.range(0, self.rows, 1, _FILES).selectExpr(*_LOADED)
        spent, done = _timed(lambda: self.table.append(data))
        size = sum(p.stat().st_size for p in Path(self.lake.data_path).rglob("*.parquet"))
        assert isinstance(done, Committed)
        self._say(f"{self.rows:,} rows in {done.files} files ({decimal(size)}) in {spent:.1f} s")
        return done.snapshot

    @contextmanager
    def _clients(self) -> Iterator[tuple[DemoWriter, Reader]]:
        self._title("2. Somebody writes without pause, and somebody reads")
        writer, reader = DemoWriter(self.lake, "events", self.rows), Reader(self.lake, "events")
        for client in (writer, reader):
            client.start()
        while writer.done < 2 and writer.failed is None:
            time.sleep(0.05)
        self._say(f"The writer commits {BATCH} rows at a time, the reader reads all rows.")
        try:
            yield writer, reader
        finally:
            for client in (writer, reader):
                client.finish()

    def _change_light(self) -> None:
        self._title("3. Light changes: metadata only")
        changes = (
            add_column("country", "string", default="??"),
            rename_column("user_id", "visitor"),
            change_type("visitor", "bigint"),
        )
        before = _files(self.table)
        spent, _ = _timed(lambda: self.table.alter(*changes))
        kept = before <= _files(self.table)
        for change in changes:
            self._say(f"  ALTER TABLE events {change}")
        self._say(
            f"All in one snapshot, in {1000 * spent:.0f} ms."
            f" Files changed: {'none' if kept else 'some'}."
        )

    def _prove(self) -> None:
        self._title("4. A narrower type: proven, or refused at once")
        for wanted in ("int", "tinyint"):
            change = change_type("visitor", wanted)
            self._say(f"  ALTER TABLE events {change}")
            begun = time.perf_counter()
            try:
                assert isinstance(self.table.alter(change), Committed)
                told = "The bounds of all files prove that every value fits: metadata only."
            except InvalidRequest as error:
                told = f"Refused: {error}"
            spent = 1000 * (time.perf_counter() - begun)
            self._say(f"{told} ({spent:.0f} ms)")

    def _change_heavy(self, writer: DemoWriter, reader: Reader) -> SchemaChangeJob:
        change = change_type("amount", "decimal(10,2)")
        self._title("5. The plan of a heavy change")
        self._say(str(self.table.plan_alter(change)))
        self._title("6. The heavy change, while everybody goes on")
        # The others need cores, too: all of them work in this one Spark session.
        tasks = max(1, (os.cpu_count() or 1) // 2)
        self.lake.set_option("alter_tablet_worker_count", tasks, table="events")
        self._say(f"The job runs at most {tasks} task(s) at a time.")
        job = self.table.alter(change)
        assert isinstance(job, SchemaChangeJob)
        with _shown(self.console, job, writer, reader):
            looked = threading.Thread(target=self._look, args=(job,))
            looked.start()
            spent, done = _timed(lambda: job.wait(progress=False))
            looked.join()
        self._say(
            f"Job {job.id} is {job.state.value} after {spent:.1f} s: snapshot {done.snapshot} has"
            " the new type."
        )
        self._say(f"  DuckDB during the job: {self.seen}")
        self._say(f"  DuckDB now:            {ask_duckdb(self.url, _LOOK)}")
        return job

    def _look(self, job: SchemaChangeJob) -> None:
        """Let DuckDB read the lake in the middle of the job."""
        while job.state in (JobState.PENDING, JobState.WAITING_TXN):
            time.sleep(0.05)
        self.seen = ask_duckdb(self.url, _LOOK)

    def _travel(self, loaded: int) -> None:
        self._title("7. Time travel")
        for name, version in (("after the load", loaded), ("now", None)):
            frame = self.table.read(version=version)
            self._say(f"The table {name}: {frame.count():,} rows")
            frame.orderBy("id").show(2, truncate=False)

    def _take_back(self, job: SchemaChangeJob) -> None:
        self._title("8. Taken back, while everybody goes on")
        undo = job.undo()
        spent, _ = _timed(lambda: undo.wait(progress=False))
        self._say(
            f"ALTER TABLE events UNDO JOB {job.id}: {undo.look().message}. It took {spent:.1f} s."
        )
        self._say(f"  DuckDB again: {ask_duckdb(self.url, _LOOK)}")

    def _branch(self) -> None:
        self._title("9. A night load into a branch, checked, and merged while everybody goes on")
        spent, _ = _timed(lambda: self.lake.create_branch("night"))
        self._say(f"  CREATE BRANCH night: {1000 * spent:.0f} ms, no file copied.")
        night = self.lake.branch("night").table("events")
        night.alter(change_type("visitor", "bigint"))
        columns = ("-id AS visitor", f"'{AMOUNT}' AS amount", "now() AS at", "'NZ' AS country")
        night.append(self.lake.spark.range(-NIGHT, 0).selectExpr("id", *columns))
        self._say(str(self.lake.branch_diff("night")))
        spent, _ = _timed(lambda: self.lake.merge_branch("night"))
        self._say(f"  MERGE BRANCH night: {1000 * spent:.0f} ms.")
        self._say(f"  DuckDB now: {ask_duckdb(self.url, _NIGHTS)}")

    def _sum_up(self, writer: DemoWriter, reader: Reader) -> None:
        self._title("What happened")
        total = "sum(CAST(amount AS DECIMAL(10,2))) AS total"
        found = self.table.read().selectExpr("count(*) AS n", total).collect()[0]
        text = self.lake.spark.range(self.rows).selectExpr(_LOADED[2])
        paid = text.selectExpr(total).collect()[0].total
        wanted = paid + Decimal(writer.rows + NIGHT) * AMOUNT
        grid = Grid("", "")
        for what, number in (
            ("rows loaded", f"{self.rows:,}"),
            ("rows that the writer committed meanwhile", f"{writer.rows:,}"),
            ("rows merged from the branch", f"{NIGHT:,}"),
            ("rows in the table now", f"{found.n:,}"),
            ("[bold]writes lost[/]", f"[bold]{self.rows + writer.rows + NIGHT - found.n:,}[/]"),
            ("sum of all amounts, less what was written", f"{found.total - wanted}"),
            ("commits of the writer", f"{writer.done:,}"),
            ("commits that it made a second time, for newer columns", f"{writer.retries:,}"),
            ("longest pause between two commits", f"{writer.longest:.1f} s"),
            ("queries of the reader", f"{reader.done:,}"),
            ("longest pause between two answers", f"{reader.longest:.1f} s"),
        ):
            grid.add_row(what, number)
        self.console.print(grid)

    def _title(self, text: str) -> None:
        self.console.print(f"\n[bold]{text}[/]")

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def _shown(
    console: Console, job: SchemaChangeJob, writer: DemoWriter, reader: Reader
) -> Iterator[None]:
    """Show the job's progress, and what the others do meanwhile, while the block runs."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    ended = threading.Event()
    written, read, since = writer.rows, reader.done, time.monotonic()

    def told() -> tuple[str, int, int]:
        now = job.look()
        spent = max(0.1, time.monotonic() - since)
        text = f"{now.state.value} {now.done}/{now.total} files"
        text += f", writer {(writer.rows - written) / spent:,.0f} rows/s"
        return f"{text}, {reader.done - read} queries", now.done, now.total

    def follow(bar: Progress) -> None:
        task = bar.add_task("", total=None)
        while not ended.wait(0.3):
            text, done, total = told()
            bar.update(task, description=text, completed=done, total=total or None)

    with Progress(*columns, console=console, transient=True) as bar:
        follower = threading.Thread(target=follow, args=(bar,))
        follower.start()
        try:
            yield
        finally:
            ended.set()
            follower.join()
    console.print(told()[0], highlight=False)


def _files(table: Table) -> set[tuple[str, int, int]]:
    """Return the table's files with size and time of change: a file that is rewritten differs.

    Files that the writer has not committed yet may still grow.
    """
    found = [Path(row.file_path) for row in table.files().select("file_path").collect()]
    return {(str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in found}


def _timed(step: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter()
    found = step()
    return time.perf_counter() - start, found
