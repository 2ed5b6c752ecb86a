"""A storm: several writers append to a table while another process alters it all the time.

As a program (`python -m tests.support.storm engine url count seconds`) it is who alters.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

import shelduck
from shelduck.alter.statement import AlterTableStatement
from shelduck.doors.sql.parse import parse
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

ROWS = 10
_FILES_ONLY = {"DATA_INLINING_ROW_LIMIT": 0}
_ID_ROOM = 10_000_000


@dataclass
class Tally:
    """What became of the writes of all writers: how many landed, and the errors of the others."""

    landed: Counter[int] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    altered: int = 0
    alters_failed: int = 0

    @property
    def tried(self) -> int:
        return sum(self.landed.values()) + len(self.failed)


def alteration(number: int) -> str:
    """The alteration of that number: a column comes, is renamed, widened, defaulted, and goes."""
    k = number // 5
    return (
        f"ADD COLUMN c{k} INT DEFAULT {k}",
        f"RENAME COLUMN c{k} TO d{k}",
        f"ALTER COLUMN d{k} TYPE BIGINT",
        f"ALTER COLUMN d{k} SET DEFAULT {k + 1}",
        f"DROP COLUMN d{k}",
    )[number % 5]


def storm(
    engine: str,
    url: str,
    data: Path,
    *,
    spark: SparkSession,
    writers: int,
    seconds: float,
    alters: int,
) -> Tally:
    """Let it rage on a new lake; ``engine`` is "shelduck" or "duckdb", and nobody else is there.

    Fails when a row is there that did not land, or is not there that did.
    """
    with shelduck.connect(url, f"{data}/", spark, progress=False) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        lake.sql("CREATE TABLE t (id BIGINT NOT NULL, writer INT, v BIGINT)")
        lake.sql("INSERT INTO t SELECT -1, -1, 0")
    tally, began = Tally(), threading.Barrier(writers + 1)
    kind = {"shelduck": _Ours, "duckdb": _Theirs}[engine]
    all_of_them = [kind(url, spark, n, seconds, began, tally) for n in range(writers)]
    threads = [threading.Thread(target=writer.run) for writer in all_of_them]
    for thread in threads:
        thread.start()
    began.wait()
    arguments = [engine, url, str(alters), str(seconds)]
    other = subprocess.run(
        [sys.executable, "-m", "tests.support.storm", *arguments],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=seconds * 4 + 60,
        check=False,
    )
    for thread in threads:
        thread.join()
    if other.returncode:
        raise AssertionError(other.stderr[-2000:])
    tally.altered, tally.alters_failed = map(int, other.stdout.splitlines()[-1].split())
    _check(url, tally)
    return tally


def _check(url: str, tally: Tally) -> None:
    wanted = {(n, ROWS * count, ROWS * count) for n, count in tally.landed.items() if count}
    with DuckDBOracle(url) as oracle:
        counts = "SELECT writer, count(*), count(DISTINCT id) FROM t WHERE v = 2 * id AND id >= 0"
        found = set(oracle.sql(f"{counts} GROUP BY writer"))
    if found != wanted:
        raise AssertionError(f"landed {sorted(wanted)}, found {sorted(found)}")


@dataclass
class _Writer:
    """Writes batch after batch; ids tell who wrote a row."""

    url: str
    spark: SparkSession
    number: int
    seconds: float
    began: threading.Barrier
    tally: Tally

    def write(self, act: Callable[[int], object], error: type[Exception]) -> None:
        """Write until the time is over, each batch once."""
        self.began.wait()
        end, first = time.monotonic() + self.seconds, self.number * _ID_ROOM
        while time.monotonic() < end:
            try:
                act(first)
            except error as failed:
                self.tally.failed.append(str(failed))
            else:
                self.tally.landed[self.number] += 1
            first += ROWS


class _Ours(_Writer):
    def run(self) -> None:
        with shelduck.connect(self.url, spark=self.spark, progress=False) as lake:
            table = lake.table("t")

            def append(first: int) -> None:
                rows = self.spark.range(first, first + ROWS, 1, 1)
                table.append(rows.selectExpr("id", f"{self.number} AS writer", "2 * id AS v"))

            self.write(append, shelduck.ShelduckError)


class _Theirs(_Writer):
    def run(self) -> None:
        with DuckDBOracle(self.url, None, _FILES_ONLY) as connection:

            def insert(first: int) -> None:
                connection.execute(
                    f"INSERT INTO t (id, writer, v) SELECT i, {self.number}, 2 * i"
                    f" FROM range({first}, {first + ROWS}) r(i)"
                )

            self.write(insert, duckdb.Error)


def _alter(engine: str, url: str, count: int, seconds: float) -> tuple[int, int]:
    """Alter at even intervals, each until it lands; return how many did, and how many failed."""
    start = time.monotonic()

    def at_its_time(act: Callable[[str], object]) -> tuple[int, int]:
        done = failed = 0
        while done < count and time.monotonic() < start + seconds:
            time.sleep(max(0.0, start + seconds * done / count - time.monotonic()))
            try:
                act(f"ALTER TABLE t {alteration(done)}")
            except (duckdb.Error, shelduck.ShelduckError):
                failed += 1
            else:
                done += 1
        return done, failed

    if engine == "duckdb":
        with DuckDBOracle(url, None, _FILES_ONLY) as connection:
            return at_its_time(connection.execute)
    with shelduck.connect(url, progress=False) as lake:
        table = lake.table("t")

        # By the API: what `lake.sql` returns takes a Spark session.
        def alter(text: str) -> None:
            [statement] = parse(text)
            assert isinstance(statement, AlterTableStatement)
            table.alter(*statement.changes)

        return at_its_time(alter)


if __name__ == "__main__":
    name, address, number, duration = sys.argv[1:]
    landed, lost = _alter(name, address, int(number), float(duration))
    sys.stdout.write(f"{landed} {lost}\n")
