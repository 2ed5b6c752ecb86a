"""Where the product meets Spark, storage and the machine, and what is there instead."""

from __future__ import annotations

import os
import random
from concurrent.futures import Future
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self
from unittest.mock import patch

from shelduck.branches.changed_rows import RowMerge
from shelduck.engine.bridge import Engine
from shelduck.engine.files import listing, storage
from shelduck.engine.rows.needed_columns import NamedRows
from shelduck.files import compact
from shelduck.jobs import convert, lots
from shelduck.lake import state as leases
from shelduck.model.files.place import split_address
from shelduck.read.table_rows import TableRows
from shelduck.rollups import following
from shelduck.write import edit_verbs, shadow_rows
from shelduck.write.changes import append, flush_rows, overwrite
from shelduck.write.parquet import clustering
from tests.simulation.frames import StandInSpark, assign, under

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.simulation.run import Simulation


@contextmanager
def seams(simulation: Callable[[], Simulation]) -> Iterator[None]:
    """Put the stand-ins in place; ``simulation`` returns the run to which a call belongs."""
    spark = StandInSpark(simulation)
    replaced: list[tuple[Any, str, Any]] = [
        (TableRows, "frame", _method(spark.frame)),
        (NamedRows, "under", under),
        (append, "assign", assign),
        # New rows go into files; only deleted positions stay in the catalog.
        (append, "small_rows", lambda *_: None),
        (append, "moved_to_catalog", lambda done, _: done),
        (overwrite, "assign", assign),
        (overwrite, "row_rules", lambda _: None),
        (append, "write_files", spark.write_files),
        (append, "add_shadows", spark.add_shadows),
        (compact, "write_together", spark.write_together),
        (compact, "at_once", lambda _: 2),
        (compact, "writes_several", lambda _: True),
        (lots, "at_once", lambda _: 2),
        (lots, "writes_several", lambda _: False),
        # Some jobs publish what they convert in the same commit, as if their tables were small.
        (lots, "is_little", lambda _: random.random() < 0.5),
        # Half of the runs share their jobs, as if tables were large.
        (lots, "share_count", lambda _: 1 + 3 * (simulation().seed % 2)),
        (shadow_rows, "add_shadows", spark.add_shadows),
        (shadow_rows, "add_recalled", spark.add_recalled),
        (convert, "engine_for", Engine),
        (edit_verbs, "delete_rows", spark.delete_rows),
        (flush_rows, "write_deaths", spark.write_deaths),
        (flush_rows, "first_deaths", spark.first_deaths),
        (following, "added", spark.added),
        (following, "followed", spark.followed),
        (following, "made_anew", spark.made_anew),
        (following, "touched_rows", spark.touched_rows),
        # The change feed is a query of Spark: without it, a stale rollup is made of all rows.
        (following, "feed_since", lambda *_: None),
        # So is the comparison of rows that a merge makes.
        (RowMerge, "is_known", False),
        (leases, "threading", _threading(simulation)),
        (leases, "os", SimpleNamespace(getpid=_pid(simulation), kill=_kill(simulation))),
        (leases, "_place", lambda: _process(simulation).machine),
    ]
    replaced += [(m, "filesystem", _filesystem(simulation)) for m in (storage, listing)]
    pools = (storage, compact, clustering)
    replaced += [(module, "ThreadPoolExecutor", _InTurn) for module in pools]
    patches = [patch.object(owner, name, new) for owner, name, new in replaced]
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in reversed(patches):
            one.stop()


@contextmanager
def chance(seed: int) -> Iterator[None]:
    """Let every random number come from the seed: UUIDs, names of writes and pauses."""
    source = random.Random(seed)
    before = random.getstate()
    random.seed(seed)
    with patch.object(os, "urandom", source.randbytes):
        try:
            yield
        finally:
            random.setstate(before)


def _method(act: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a class, made of a method of another object."""

    def method(mine: object, *given: Any, **more: Any) -> Any:
        return act(mine, *given, **more)

    return method


class _InTurn:
    """A pool that does everything at once, in the thread of the caller."""

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, act: Callable[..., Any], *items: Any) -> Iterator[Any]:
        return iter([act(*item) for item in zip(*items, strict=True)])

    def submit(self, act: Callable[..., Any], *items: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(act(*items))
        except Exception as error:  # noqa: BLE001 - the caller asks for it
            done.set_exception(error)
        return done


def _filesystem(simulation: Callable[[], Simulation]) -> Callable[..., Any]:
    def filesystem(path: str, *, is_check: bool = False) -> tuple[Any, str]:
        _, host, key = split_address(path)
        return simulation().files, f"{host}/{key}"

    return filesystem


def _process(simulation: Callable[[], Simulation]) -> Any:
    task = simulation().world.task
    assert task is not None
    return task.process


def _pid(simulation: Callable[[], Simulation]) -> Callable[[], int]:
    return lambda: _process(simulation).pid


def _kill(simulation: Callable[[], Simulation]) -> Callable[[int, int], None]:
    def kill(number: int, _signal: int) -> None:
        mine = _process(simulation).machine
        running = [p for p in simulation().world.processes if p.machine == mine and not p.is_dead]
        if number not in {p.pid for p in running}:
            raise ProcessLookupError

    return kill


def _threading(simulation: Callable[[], Simulation]) -> SimpleNamespace:
    """Threads of the simulation: a new task of the process."""

    class Event:
        def __init__(self) -> None:
            self._is_set = False

        def set(self) -> None:
            self._is_set = True

        def wait(self, seconds: float) -> bool:
            if not self._is_set:
                simulation().world.sleep(seconds)
            return self._is_set

    class Thread:
        def __init__(self, target: Any, args: Any, name: str, daemon: bool) -> None:
            self._target, self._args = target, args

        def start(self) -> None:
            world, process = simulation().world, _process(simulation)
            beats = lambda: self._target(*self._args)  # noqa: E731 - the task wants a function
            world.spawn(process, f"{process.name}.beats", beats, is_daemon=True)

    class Lock:
        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            pass

    return SimpleNamespace(Event=Event, Thread=Thread, Lock=Lock)
