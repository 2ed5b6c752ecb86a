"""Processes that write while a job converts: run by test_job_story.py as programs of their own.

Each touches ids of its own only, and logs what landed, with the snapshot, as a line of JSON.
"""

from __future__ import annotations

import json
import random
import sys
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

import shelduck
from tests.support.oracle import DuckDBOracle
from tests.support.spark import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LONGEST_PAUSE = {"shelduck": 1.0, "duckdb": 2.0}
_LONGEST_TRANSACTION = 0.5
_LONGEST_COURTESY = 15.0
Rows = dict[int, list[Any] | None]
# Few rows stay in the catalog, many become a file.
_FEW, _MANY = 3, 200
# What an id modulo three says about who may touch it.
_RESTS = {"shelduck": 1, "duckdb": 2}
_FIRST_NEW = {"shelduck": 10_000_000, "duckdb": 20_000_000}


class Refused(Exception):
    """Somebody else was faster: nothing has happened."""


class Writer(ABC):
    """Draws what to do with rows of its own, and remembers which of them there are."""

    KINDS = ("insert", "delete")

    def __init__(self, name: str, size: int) -> None:
        self.random = random.Random(name)
        self.rest, self.size = _RESTS[name], size
        self.next = _FIRST_NEW[name]
        self.new: list[int] = []
        self.gone: set[int] = set()
        self.turn = 0

    def draw(self) -> tuple[str, Rows]:
        """What kind of operation, and what it makes of which rows: None deletes one."""
        keys: list[int] = []
        while not keys:
            self.turn += 1
            kind = self.KINDS[self.turn % len(self.KINDS)]
            keys = self._keys(kind, self.random.choice([_FEW, _MANY]))
        return kind, {k: None if kind == "delete" else self._values(k) for k in keys}

    @abstractmethod
    def carry_out(self, kind: str, rows: Rows) -> int:
        """The snapshot that it became; raises Refused."""

    def landed(self, kind: str, rows: Rows) -> None:
        """Note what is there by now."""
        if kind == "insert":
            self.new.extend(rows)
        elif kind == "delete":
            self.gone.update(rows)

    def _keys(self, kind: str, count: int) -> list[int]:
        if kind == "insert":
            self.next += count
            return list(range(self.next - count, self.next))
        if self.new and self.random.random() < 0.3:
            among = self.new[-count:]
        else:
            first = self.random.randrange(self.size - 3 * count) // 3 * 3 + self.rest
            among = list(range(first, first + 3 * count, 3))
        return [key for key in among if key not in self.gone]

    def _values(self, key: int) -> list[Any]:
        number = (key * 31 + self.turn * 1009) % 2_000_003 - 1_000_000
        day = date(2023, 1, 1) + timedelta(days=(key + self.turn) % 700)
        return [None if key % 53 == 0 else str(number), (key + self.turn) % 9001 / 4, str(day)]


class ShelduckWriter(Writer):
    """Appends and deletes through Shelduck."""

    def __init__(self, size: int, lake: shelduck.Lake) -> None:
        super().__init__("shelduck", size)
        self.table = lake.table("t")
        self.spark = lake.spark

    def carry_out(self, kind: str, rows: Rows) -> int:
        types = self._types()
        try:
            if kind == "insert":
                done = self.table.append(self._frame(rows, types))
            else:
                done = self.table.delete(f"id IN ({', '.join(map(str, rows))})")
        except shelduck.Conflict as error:
            raise Refused(str(error)) from error
        except shelduck.InvalidRequest as error:
            # The rows were made for what the columns were a moment ago.
            if self._types() == types:
                raise
            raise Refused(str(error)) from error
        assert isinstance(done, shelduck.Committed), (kind, list(rows), done)
        return done.snapshot

    def _types(self) -> dict[str, str]:
        return {f.name: f.dataType.simpleString() for f in self.table.schema}

    def _frame(self, rows: Rows, types: dict[str, str]) -> DataFrame:
        texts = [(key, *(values or [])) for key, values in rows.items()]
        frame = self.spark.createDataFrame(texts, "id BIGINT, v STRING, d DOUBLE, day STRING")
        return frame.selectExpr(*(f"CAST({n} AS {kind}) AS {n}" for n, kind in types.items()))


class DuckDBWriter(Writer):
    """Inserts, updates and deletes through DuckDB's extension, which casts what it is given."""

    # An insert of others keeps Shelduck from deleting: it is not the most frequent.
    KINDS = ("insert", "update", "delete", "update", "delete")

    def __init__(self, size: int, oracle: DuckDBOracle) -> None:
        super().__init__("duckdb", size)
        self.oracle = oracle

    def carry_out(self, kind: str, rows: Rows) -> int:
        try:
            self.oracle.execute("BEGIN")
            self.oracle.execute(self._statement(kind, rows))
            time.sleep(self.random.uniform(0, _LONGEST_TRANSACTION))
            self.oracle.execute("COMMIT")
        except duckdb.TransactionException as error:
            # A COMMIT that is refused has ended its transaction, a statement that is has not.
            with suppress(duckdb.TransactionException):
                self.oracle.execute("ROLLBACK")
            raise Refused(str(error)) from error
        [(snapshot,)] = self.oracle.sql("FROM ducklake_last_committed_snapshot('lake')")
        return int(snapshot)

    def _statement(self, kind: str, rows: Rows) -> str:
        if kind == "delete":
            return f"DELETE FROM t WHERE id IN ({', '.join(map(str, rows))})"
        texts = ", ".join(
            f"({', '.join('NULL' if x is None else repr(x) for x in (key, *(values or [])))})"
            for key, values in rows.items()
        )
        if kind == "insert":
            return f"INSERT INTO t VALUES {texts}"
        return (
            f"UPDATE t SET v = n.v, d = n.d, day = n.day FROM (VALUES {texts}) AS n(id, v, d, day)"
            " WHERE t.id = n.id"
        )


def write(writer: Writer, folder: Path, name: str) -> None:
    """Write from when ``go`` is there until ``stop`` is, and log it.

    Whoever is refused tries again, and the faster one lets the slower one through meanwhile.
    """
    (folder / f"ready-{name}").touch()
    while not (folder / "go").exists():
        time.sleep(0.05)
    kind, rows = writer.draw()
    again = folder / f"{name}-again"
    with (folder / f"{name}.jsonl").open("w", buffering=1) as log:
        while not (folder / "stop").exists():
            try:
                snapshot = writer.carry_out(kind, rows)
            except Refused as error:
                again.touch()
                log.write(json.dumps({"refused": str(error), "kind": kind}) + "\n")
            else:
                again.unlink(missing_ok=True)
                writer.landed(kind, rows)
                done = {"snapshot": snapshot, "kind": kind, "rows": list(rows.items())}
                log.write(json.dumps(done) + "\n")
                kind, rows = writer.draw()
            # A job that never finds a moment without news would never end.
            time.sleep(writer.random.uniform(0, LONGEST_PAUSE[name] + writer.turn / 20))
            if name == "duckdb":
                _let_through(folder / "shelduck-again")


def _let_through(again: Path) -> None:
    deadline = time.monotonic() + _LONGEST_COURTESY
    while again.exists() and time.monotonic() < deadline:
        time.sleep(0.05)


def main() -> None:
    """Write as the first argument says until the test tells to stop."""
    name, url, folder, size = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
    if name == "duckdb":
        with DuckDBOracle(url) as oracle:
            write(DuckDBWriter(size, oracle), folder, name)
        return
    with (
        local_session(folder / "spark") as spark,
        shelduck.connect(url, spark=spark, progress=False) as lake,
    ):
        write(ShelduckWriter(size, lake), folder, name)


if __name__ == "__main__":
    main()
