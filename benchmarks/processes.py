"""Small commits of several processes at once, beside DuckDB's extension."""

from __future__ import annotations

import multiprocessing
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import duckdb

import shelduck
from benchmarks.catalogs import durable_postgres, fresh_url
from benchmarks.harness import Section, Target, at_least, scratch
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection
    from pathlib import Path

PROCESSES = 8
_ROUNDS, _QUICK_ROUNDS = 4, 1
_SECONDS, _QUICK_SECONDS = 5.0, 2.0
_WHY = (
    "both cores are busy: a commit needs the time under CPU in Shelduck's processes, and the server"
    " needs the rest"
)
_ABOUT = (
    "{processes} processes commit one row each, `INSERT INTO t VALUES (…)`, for {seconds:g}"
    " seconds in a round, {rounds} rounds in turns, on PostgreSQL with its default durability:"
    " by `lake.execute`, without Java, and by DuckDB's extension, which repeats an INSERT that"
    " loses up to ten times by itself. What fails nevertheless is not repeated and does not"
    " count. At the end, DuckDB must count one row for each commit that reported success, in"
    " both lakes. Commits per second; a ratio above 1: Shelduck is faster. CPU: of"
    " Shelduck's processes for a commit."
)
_HEADER = ("tables", "Shelduck", "failed", "CPU", "DuckDB", "failed", "ratio")


def run(*, quick: bool) -> Section:
    rounds, seconds = (_QUICK_ROUNDS, _QUICK_SECONDS) if quick else (_ROUNDS, _SECONDS)
    about = _ABOUT.format(processes=PROCESSES, rounds=rounds, seconds=seconds)
    section = Section("Small commits of processes", about, _HEADER)
    ratios: dict[str, float] = {}
    failures = missing = 0
    with scratch("processes") as folder, durable_postgres() as server:
        for tables in (PROCESSES, 1):
            with (
                fresh_url("PostgreSQL", folder, server, f"ours{tables}") as ours,
                fresh_url("PostgreSQL", folder, server, f"theirs{tables}") as theirs,
            ):
                urls = {"ours": ours, "theirs": theirs}
                found = _measured(urls, folder / str(tables), tables, rounds * [seconds])
            name = f"{tables} table(s)"
            ratios[name] = found["ours"].rate / max(found["theirs"].rate, 0.001)
            failures += found["ours"].failed
            missing += found["ours"].missing
            cpu = f"{1000 * found['ours'].cpu / max(found['ours'].landed, 1):.1f} ms"
            first, second = (
                (f"{found[who].rate:.1f}", str(found[who].failed)) for who in ("ours", "theirs")
            )
            section.rows.append((str(tables), *first, cpu, *second, f"{ratios[name]:.2f}"))
    section.targets = [
        at_least(3, ratios, "commits per second of processes against DuckDB", _WHY),
        Target("no commit of Shelduck fails", str(failures), failures == 0),
        Target("no commit of Shelduck is lost", str(missing), missing == 0),
    ]
    return section


class _Tally:
    """What the processes of one engine did."""

    def __init__(self) -> None:
        self.landed = self.failed = self.missing = 0
        self.seconds = self.cpu = 0.0

    @property
    def rate(self) -> float:
        return self.landed / self.seconds

    def add(self, landed: int, failed: int, cpu: float) -> None:
        self.landed += landed
        self.failed += failed
        self.cpu += cpu


def _measured(
    urls: dict[str, str], folder: Path, tables: int, rounds: list[float]
) -> dict[str, _Tally]:
    folder.mkdir()
    found = {who: _Tally() for who in urls}
    with ExitStack() as stack:
        crowds = {}
        for who, url in urls.items():
            _make_tables(who, url, folder, tables)
            crowds[who] = stack.enter_context(_crowd(who, url, tables))
        for seconds in rounds:
            for who, crowd in crowds.items():
                began = time.perf_counter()
                for pipe in crowd:
                    pipe.send(seconds)
                for pipe in crowd:
                    found[who].add(*pipe.recv())
                found[who].seconds += time.perf_counter() - began
    for who, url in urls.items():
        with DuckDBOracle(url) as duck:
            counted = sum(duck.sql(f"SELECT count(*) FROM t{n}")[0][0] for n in range(tables))
        # One row of each process is its warm-up.
        found[who].missing = found[who].landed + PROCESSES - counted
    return found


def _make_tables(who: str, url: str, folder: Path, tables: int) -> None:
    with _writer(who, url, folder / who) as write:
        for n in range(tables):
            write(f"CREATE TABLE t{n} (id int, name string)")


@contextmanager
def _writer(who: str, url: str, data: Path | None = None) -> Iterator[Callable[[str], object]]:
    if who == "ours":
        with shelduck.connect(url, None if data is None else f"{data}/", progress=False) as lake:
            yield lake.execute
    else:
        with DuckDBOracle(url, data) as duck:
            yield duck.execute


@contextmanager
def _crowd(who: str, url: str, tables: int) -> Iterator[list[Connection]]:
    """Start processes: each inserts for the seconds that it receives, and ends at None."""
    context = multiprocessing.get_context("spawn")
    pipes: list[Connection] = []
    processes = []
    for n in range(PROCESSES):
        pipe, far = context.Pipe()
        process = context.Process(target=_insert, args=(who, url, n, n % tables, far), daemon=True)
        process.start()
        processes.append(process)
        pipes.append(pipe)
    try:
        for pipe in pipes:
            pipe.recv()
        yield pipes
    finally:
        for pipe, process in zip(pipes, processes, strict=True):
            pipe.send(None)
            process.join(60)


def _insert(who: str, url: str, process: int, table: int, pipe: Connection) -> None:
    with _writer(who, url) as write:
        _warm_up(write, f"INSERT INTO t{table} VALUES (-1, 'warm up of {process}')")
        pipe.send("ready")
        while (seconds := pipe.recv()) is not None:
            landed = failed = 0
            until, cpu = time.perf_counter() + seconds, time.process_time()
            while time.perf_counter() < until:
                try:
                    write(f"INSERT INTO t{table} VALUES ({landed}, 'row of process {process}')")
                except (duckdb.Error, shelduck.ShelduckError):
                    failed += 1
                else:
                    landed += 1
            pipe.send((landed, failed, time.process_time() - cpu))


def _warm_up(write: Callable[[str], object], statement: str) -> None:
    # All begin at once, and DuckDB may give up: this is not measured, so it is repeated.
    for _ in range(100):
        try:
            write(statement)
        except (duckdb.Error, shelduck.ShelduckError):
            time.sleep(0.1)
        else:
            return
    raise AssertionError("no warm-up has landed")
