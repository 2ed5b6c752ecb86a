"""A client of the mirror story: a process that does what it is told over a pipe, one at a time.

Commands and answers are lines of JSON. An error is an answer; the process goes on after it.
"""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import DataFrame

import shelduck
from tests.support.mirror import told
from tests.support.oracle import DuckDBOracle
from tests.support.spark import local_session

_LONGEST_START = 120.0
_LONGEST_STEP = 180.0
Command = dict[str, Any]
TRANSLATING = "translating"


class Client:
    """A process and the pipes to it. It starts in the background, and the first command waits."""

    def __init__(self, kind: str, url: str, folder: Path, *options: str) -> None:
        self.kind = kind
        folder.mkdir(parents=True)
        self._log = folder / "log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.mirror_client", kind, url, folder, *options],
                cwd=Path(__file__).parents[2],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self._is_ready = False

    def send(self, command: Command) -> None:
        """Hand a command over; returns when the process has begun with it."""
        self.wait_until_ready()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        assert self._next(_LONGEST_START) == {"begun": True}

    def wait_until_ready(self) -> None:
        """Returns when it takes commands."""
        if not self._is_ready:
            assert self._next(_LONGEST_START) == {"ready": True}
            self._is_ready = True

    def answer(self) -> dict[str, Any]:
        """What became of the command: ``done``, or ``error`` and ``text``."""
        return self._next(_LONGEST_STEP)

    def ask(self, command: Command) -> Any:
        """Hand a command over that has to be done, and return what it gives."""
        self.send(command)
        found = self.answer()
        assert "done" in found, found["text"]
        return found["done"]

    def kill(self) -> None:
        """Nobody gets a chance to tidy up: neither the process nor its JVM."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._end()

    def close(self) -> None:
        """Let it end by itself."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
        self._end()

    def _end(self) -> None:
        self._process.wait()
        self._listener.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # The last line of a process that was killed may be half written.
            if line.endswith("\n"):
                self._answers.put(json.loads(line))
        self._answers.put(None)

    def _next(self, seconds: float) -> dict[str, Any]:
        try:
            found = self._answers.get(timeout=seconds)
        except queue.Empty:
            found = None
        assert found is not None, f"{self.kind} is silent\n{self._log.read_text()[-4000:]}"
        return found


class ShelduckWorker:
    """Carries out commands through Shelduck."""

    def __init__(self, lake: shelduck.Lake) -> None:
        self.lake = lake

    def sql(self, texts: list[str]) -> list[list[str | None]]:
        rows: list[Any] = []
        for text in texts:
            rows = self.lake.sql(text).collect()
        return [[told(v) for v in row] for row in rows]

    def append(self, query: str, planned: str | None = None, go: str | None = None) -> None:
        """Rows of a query; with files they are held back: `planned` appears, `go` is waited for."""
        frame = self.lake.spark.sql(query)
        if planned and go:
            frame = _held(frame, planned, go)
        self.lake.table("t").append(frame)

    def heavy(self, column: str, kind: str, wait: bool) -> int:
        job = self.lake.table("t").alter(shelduck.change_type(column, kind))
        assert isinstance(job, shelduck.SchemaChangeJob)
        if wait:
            job.wait()
        return job.id

    def work(self, number: int) -> None:
        self.lake.job(number).wait()

    def run_jobs(self) -> None:
        self.lake.run_jobs()

    def jobs(self) -> dict[int, str]:
        return {job.id: job.state.value for job in self.lake.jobs()}

    def option(self, name: str, value: int) -> None:
        self.lake.set_option(name, value)

    def tend(self, verb: str, **arguments: Any) -> None:
        """Upkeep of the table."""
        getattr(self.lake.table("t"), verb)(**arguments)

    def expire(self, versions: list[int]) -> None:
        self.lake.expire_snapshots(versions=versions)

    def clean_up(self) -> None:
        self.lake.cleanup_old_files(cleanup_all=True)

    def remove_orphans(self) -> None:
        self.lake.remove_orphans(older_than=timedelta(0), duckdb_files=True)

    def read(self, versions: list[int | None]) -> list[Any]:
        """Names, types and rows of the table at snapshots; None is now."""
        found = []
        for version in versions:
            frame = self.lake.table("t").read(version=version)
            rows = [[told(v) for v in row] for row in frame.collect()]
            found.append([[list(pair) for pair in frame.dtypes], rows])
        return found


class DuckDBWorker:
    """Carries out commands through DuckDB's extension."""

    def __init__(self, oracle: DuckDBOracle) -> None:
        self.oracle = oracle

    def sql(self, texts: list[str]) -> None:
        """Several statements are one transaction."""
        if len(texts) == 1:
            self.oracle.execute(texts[0])
            return
        self.oracle.execute("BEGIN")
        try:
            for text in texts:
                self.oracle.execute(text)
            self.oracle.execute("COMMIT")
        except duckdb.Error:
            # A COMMIT that is refused has ended its transaction, a statement that is has not.
            with suppress(duckdb.Error):
                self.oracle.execute("ROLLBACK")
            raise

    def compact(self, call: str) -> None:
        """Call a function that changes no row.

        DuckDB 1.5.5 cannot rewrite files of a table of which it keeps rows that were inlined when
        its columns had other names; nothing happens then.
        """
        try:
            self.oracle.execute(f"CALL {call}")
        except duckdb.TransactionException as error:
            if "Failed to read inlined-data aggregates" not in str(error):
                raise


class TransactionException(Exception):
    """Others were faster."""


class TranslatingWorker(ShelduckWorker):
    """Carries out DuckDB's commands through Shelduck, on a lake that no DuckDB here opens."""

    def sql(self, texts: list[str]) -> list[list[str | None]]:
        """Several statements are one transaction."""
        expired = re.fullmatch(r"CALL ducklake_expire_snapshots\(.*\[(.*)\]\)", texts[0])
        if expired:
            self.expire([int(number) for number in expired[1].split(",")])
            return []
        said = [text.replace('"', "`") for text in texts]
        with _as_duckdb(self.lake):
            return super().sql(["BEGIN", *said, "COMMIT"] if len(said) > 1 else said)

    def compact(self, call: str) -> None:
        """Do what a function of DuckDB does."""
        table = self.lake.table("t")
        with _as_duckdb(self.lake):
            if "cleanup" in call:
                self.clean_up()
            elif "merge" in call:
                table.compact(min_files=2)
            else:
                table.rewrite_deletes(0)


@contextmanager
def _as_duckdb(lake: shelduck.Lake) -> Iterator[None]:
    """Leave no transaction open, and say as DuckDB that others were faster."""
    try:
        yield
    except shelduck.ShelduckError as error:
        with suppress(shelduck.ShelduckError):
            lake.sql("ROLLBACK")
        if isinstance(error, shelduck.Conflict):
            raise TransactionException(f"conflict: {error}") from error
        raise


def _held(frame: DataFrame, planned: str, go: str) -> DataFrame:
    def waiting(parts: Iterator[Any]) -> Iterator[Any]:
        Path(planned).touch()
        deadline = time.monotonic() + _LONGEST_STEP
        while not Path(go).exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        yield from parts

    return frame.mapInArrow(waiting, frame.schema)


@contextmanager
def _worker(kind: str, url: str, folder: Path, options: list[str]) -> Iterator[object]:
    if kind == "duckdb":
        limit = {"DATA_INLINING_ROW_LIMIT": int(options[0])} if options else None
        with DuckDBOracle(url, None, limit) as oracle:
            yield DuckDBWorker(oracle)
        return
    own = {"spark.master": "local[1]", "spark.driver.memory": "1g"}
    own |= {"spark.sql.shuffle.partitions": "1"}
    with (
        local_session(folder, own) as spark,
        shelduck.connect(url, spark=spark, progress=False) as lake,
    ):
        yield (TranslatingWorker if kind == TRANSLATING else ShelduckWorker)(lake)


def _carried_out(act: Callable[..., object], arguments: Command) -> dict[str, object]:
    try:
        return {"done": act(**arguments)}
    except Exception as error:  # noqa: BLE001 - whatever it is, the driver judges it
        return {"error": type(error).__name__, "text": traceback.format_exc()}


def main() -> None:
    """Do what comes in, until nothing more can come."""
    kind, url, folder, *options = sys.argv[1:]
    # What libraries and the JVM print must not get among the answers.
    with os.fdopen(os.dup(1), "w", buffering=1) as answers:
        os.dup2(2, 1)
        with _worker(kind, url, Path(folder), options) as worker:
            answers.write(json.dumps({"ready": True}) + "\n")
            for line in sys.stdin:
                command = json.loads(line)
                answers.write(json.dumps({"begun": True}) + "\n")
                act = getattr(worker, command.pop("do"))
                answers.write(json.dumps(_carried_out(act, command)) + "\n")


if __name__ == "__main__":
    main()
