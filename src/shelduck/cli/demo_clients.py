"""Clients that use the demo's table all the time: one writes, one reads, DuckDB looks in."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from decimal import Decimal

from shelduck.api.lake import Lake
from shelduck.errors import Conflict, InvalidRequest, NotFound
from shelduck.model.types.data_types import type_text
from shelduck.verbs.table import Table

BATCH = 500
"""Rows of one commit of the writer."""
AMOUNT = Decimal("0.25")
"""The amount in each row of the writer."""
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
        self.began = time.monotonic()
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
        except BaseException as error:  # noqa: BLE001 - told at the end of the demo
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

    @property
    def rate(self) -> float:
        """Rows per second since the start."""
        return self.rows / max(1e-9, time.monotonic() - self.began)

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
