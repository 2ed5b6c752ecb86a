"""The slow tests in shares that take about as long as each other; see `make test-shard`.

    python -m tests.support.shards K/N …    # runs the K-th of N shares, counted from 1

Most tests run in one pytest with two workers: each share has a stretch of them, in the order of
their ids. Groups that need a process of their own are in one share each, whole. Seconds are those
of tests/seconds.json, which `make test-shard` brings up to date.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.support.cover import ROOT, SECONDS

if TYPE_CHECKING:
    from collections.abc import Generator

# Minutes of all main tests, with two cores.
MAIN_MINUTES = 75
# Seconds of a test that nobody has measured.
_UNKNOWN = 0.5
_MAIN = (
    "slow and not soak and not cluster and not connect and not readers and not browser and not s3"
)


@dataclass(frozen=True)
class Group:
    """Tests that need a pytest of their own; `minutes` is what they take, with two cores.

    `targets` of the Makefile bring what they need.
    """

    name: str
    arguments: tuple[str, ...]
    minutes: float
    venv: str = ".venv"
    more: tuple[tuple[str, str], ...] = ()
    targets: tuple[str, ...] = ()


_SPARK41 = (".venv41/.ready", "jars")
_S3 = ("jars-s3",)
_PAIR = ("-n", "2", "--dist", "worksteal")
GROUPS = (
    Group("compiled", _PAIR, 9, more=(("SHELDUCK_TEST_SPARK", "compiled"),)),
    Group("s3", ("tests/object_store", "-m", "s3 and slow and not readers"), 5, targets=_S3),
    Group("cluster", ("tests/concurrency", "tests/stories", "-m", "cluster"), 8, targets=_S3),
    Group("connect", ("tests/stories", "-m", "connect and slow"), 4),
    Group("browser", ("tests/web", "-m", "browser and slow"), 2, targets=("chromium",)),
    Group("spark41", (*_PAIR, "-m", "spark41"), 4, ".venv41", targets=_SPARK41),
    Group("connect41", ("tests/stories", "-m", "connect"), 4, ".venv41", targets=_SPARK41),
    Group("readers", ("-m", "readers", "-s"), 5, ".venv41", targets=_SPARK41),
    Group(
        "oldest",
        ("-m", "readers", "-s"),
        5,
        ".venv41",
        (("SHELDUCK_TEST_ICEBERG", "oldest"),),
        _SPARK41,
    ),
)


@dataclass(frozen=True)
class Share:
    """What one share runs: whole groups, and the stretch of the main tests between two parts."""

    groups: tuple[Group, ...]
    begin: float
    end: float


def shares(number: int, main_minutes: float) -> list[Share]:
    """All shares, the groups dealt out from the longest, and the main tests where there is room."""
    dealt: list[list[Group]] = [[] for _ in range(number)]
    for group in sorted(GROUPS, key=lambda g: -g.minutes):
        min(dealt, key=_minutes).append(group)
    level = (main_minutes + sum(map(_minutes, dealt))) / number
    room = [max(level - _minutes(groups), 0) for groups in dealt]
    ends = [sum(room[: n + 1]) / (sum(room) or 1) for n in range(number)]
    return [
        Share(tuple(groups), begin, end)
        for groups, begin, end in zip(dealt, [0.0, *ends[:-1]], [*ends[:-1], 1.0], strict=True)
    ]


def _minutes(groups: list[Group]) -> float:
    return sum(group.minutes for group in groups)


class Stretch:
    """A plugin: of the tests that pytest chose, those between two parts of their seconds."""

    def __init__(self, begin: float, end: float) -> None:
        self._begin, self._end = begin, end

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        known = seconds()
        costs = [known.get(item.nodeid.partition("[")[0], _UNKNOWN) for item in items]
        total, passed, kept, left = sum(costs) or 1, 0.0, [], []
        for item, cost in zip(items, costs, strict=True):
            inside = self._begin <= (passed + cost / 2) / total < self._end
            (kept if inside else left).append(item)
            passed += cost
        items[:] = kept
        config.hook.pytest_deselected(items=left)


def seconds() -> dict[str, float]:
    """What a case of each test function costs, where it was measured."""
    told = json.loads(SECONDS.read_text()) if SECONDS.exists() else {}
    return {f"{module}::{test}": s for module, tests in told.items() for test, s in tests.items()}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that a share does not run where it says that it does has failed."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, and no share skips: {report.longrepr}"
    return report


def pytest_configure(config: pytest.Config) -> None:
    """Take the stretch that the environment names, in each worker as in their parent."""
    if part := os.environ.get("SHELDUCK_TEST_STRETCH"):
        config.pluginmanager.register(Stretch(*map(float, part.split("-"))), "stretch")


def main(*texts: str) -> int:
    """Run shares, all their groups to the end; the worst exit code comes back."""
    # Where one ends and the next begins is decided before any seconds change.
    return max(code for text in texts for code in map(_run, _groups(text)))


def _groups(text: str) -> list[Group]:
    number, of = map(int, text.split("/"))
    share = shares(of, MAIN_MINUTES)[number - 1]
    names = ", ".join(group.name for group in share.groups)
    stretch_told = f"main tests from {share.begin:.3f} to {share.end:.3f}"
    print(f"share {text}: {names}; {stretch_told}", flush=True)  # noqa: T201
    stretch = (("SHELDUCK_TEST_STRETCH", f"{share.begin}-{share.end}"),)
    return [
        Group("main", (*_PAIR, "-m", _MAIN), 0, more=stretch, targets=_S3),
        *share.groups,
    ]


def _run(group: Group) -> int:
    print(f"--- {group.name}", flush=True)  # noqa: T201
    if group.targets and subprocess.run(["make", *group.targets], cwd=ROOT, check=False).returncode:
        return 1
    python = str(ROOT / group.venv / "bin" / "python")
    plugins = ["-p", "tests.support.shards"]
    if "SHELDUCK_RECORD" in os.environ:
        plugins += ["-p", "tests.support.recording"]
    done = subprocess.run(
        [python, "-m", "pytest", *plugins, *group.arguments],
        cwd=ROOT,
        env=os.environ | dict(group.more),
        check=False,
    )
    # No test in a group is no failure: a stretch may be empty.
    return 0 if done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED else done.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
