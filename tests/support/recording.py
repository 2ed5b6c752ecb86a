"""What each test costs and reaches, as a plugin of pytest; `make cover` reads what it writes.

    SHELDUCK_RECORD=FOLDER python -m pytest -p tests.support.recording …

Costs are seconds of CPU of the process and all that it started: the JVM, DuckDB, servers. What a
fixture of a module or a session does is its own, since another test would pay for it as well.
Seconds by the clock are kept too: a process that a test kills takes its seconds of CPU with it.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import coverage
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
_TICKS = os.sysconf("SC_CLK_TCK")


class Recording:
    """One process of pytest, test by test; with `lines`, what they reach is kept as well."""

    def __init__(self, folder: Path, name: str, *, lines: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._costs: Counter[str] = Counter()
        self._times: Counter[str] = Counter()
        self._guards: list[str] = []
        self._path = folder / f"{name}.json"
        self._at = ["between"]
        self._loop = _loop()
        self._since = cpu_seconds(), time.monotonic()
        self._coverage = None
        if lines:
            self._coverage = coverage.Coverage(
                str(folder / f"{name}.coverage"),
                source_pkgs=["shelduck"],
                branch=True,
                config_file=False,
            )
            self._coverage.start()

    @contextmanager
    def within(self, name: str) -> Iterator[None]:
        """Whatever runs until the end is for `name`."""
        self._charge()
        self._at.append(name)
        self._turn()
        try:
            yield
        finally:
            self._charge()
            self._at.pop()
            self._turn()

    def _charge(self) -> None:
        cpu, clock = cpu_seconds(), time.monotonic()
        self._costs[self._at[-1]] += cpu - self._since[0]
        self._times[self._at[-1]] += clock - self._since[1]
        self._since = cpu, clock

    def _turn(self) -> None:
        if self._coverage is not None:
            self._coverage.switch_context(self._at[-1])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        if item.get_closest_marker("guard") is not None:
            self._guards.append(item.nodeid)
        with self.within(item.nodeid):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            return (yield)
        with self.within(f"{request.node.nodeid}::<{fixturedef.argname}>"):
            return (yield)

    def pytest_sessionfinish(self) -> None:
        if self._coverage is not None:
            self._coverage.stop()
            self._coverage.save()
        told = {
            "costs": _rounded(self._costs),
            "times": _rounded(self._times),
            "guards": self._guards,
            "loop": {"seconds": round((self._loop + _loop()) / 2, 4)},
        }
        self._path.write_text(json.dumps(told, indent=0))


def _loop() -> float:
    """Seconds of CPU of work that never changes: a measure of the machine."""
    begun = time.process_time()
    sum(n * n % 7 for n in range(1_000_000))
    return time.process_time() - begun


def _rounded(seconds: Counter[str]) -> dict[str, float]:
    return {name: round(each, 3) for name, each in seconds.items()}


def cpu_seconds() -> float:
    """What this process, its children and theirs have used since they began."""
    return sum(map(_used, _tree(os.getpid()))) / _TICKS


def _tree(process: int) -> list[int]:
    """The numbers of a process and of all below it.

    Of the threads below the first process, only the main one is asked for children: a JVM has
    dozens, which start none that matter here.
    """
    found = [process]
    for parent in found:
        try:
            tasks = list(Path(f"/proc/{parent}/task").iterdir()) if parent == process else []
            for task in tasks or [Path(f"/proc/{parent}/task/{parent}")]:
                found += map(int, (task / "children").read_text().split())
        except OSError:
            continue  # it has ended
    return found


def _used(process: int) -> int:
    """Ticks of a process and of the children that it has waited for."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15]))


def pytest_configure(config: pytest.Config) -> None:
    """Record where tests run: in each worker, or in the only process."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    distributes = worker is None and getattr(config.option, "numprocesses", None)
    folder = os.environ.get("SHELDUCK_RECORD")
    if folder is None or distributes:
        return
    name = f"{worker or 'only'}-{os.getpid()}"
    lines = os.environ.get("SHELDUCK_RECORD_LINES", "1") == "1"
    config.pluginmanager.register(Recording(Path(folder), name, lines=lines), "recording")
