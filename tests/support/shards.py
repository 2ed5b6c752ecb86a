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
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cover import ROOT, SECONDS
from tests.support.lengths import one_by_one

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

# Minutes of all main tests, with two cores.
MAIN_MINUTES = 108
# Seconds of a test that nobody has measured.
_UNKNOWN = 0.5
# Marks of tests that need a pytest of their own.
_OWN = ("cluster", "connect", "readers", "browser", "s3", "orchestration")
_MAIN = " and not ".join(("slow", "soak", *_OWN))
_PAIR = ("-n", "2", "--dist", "worksteal")


@dataclass(frozen=True)
class Group:
    """Tests that need a pytest of their own: those below `paths` that have all `marks`.

    `minutes` is what they take with two cores. `targets` of the Makefile bring what they need.
    What `repeats` tests in another way tells nothing about their usual seconds. It runs in one of
    so many `rounds` of all shares.
    """

    name: str
    marks: str
    minutes: float
    paths: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    venv: str = ".venv"
    more: tuple[tuple[str, str], ...] = ()
    targets: tuple[str, ...] = ()
    repeats: bool = False
    rounds: int = 1

    def takes(self, item: pytest.Item) -> bool:
        """Whether a test is one of the group."""
        below = not self.paths or item.nodeid.startswith(self.paths)
        return below and {*self.marks.split(" and ")} <= _marks(item)

    @property
    def arguments(self) -> list[str]:
        """The arguments that pytest gets."""
        return [*self.paths, *self.options, *(["-m", self.marks] if self.marks else [])]


_STORIES = ("tests/stories",)
_ON_S3 = ("tests/object_store",)


def _part(number: int) -> tuple[str, str]:
    """One of so many parts of the tests of a group; the next round has the next one."""
    due = one_by_one(range(number))[0]
    return "SHELDUCK_TEST_STRETCH", f"{due / number}-{(due + 1) / number}"


# Spark compiles the queries of a part of the fast tests.
_COMPILED = (("SHELDUCK_TEST_SPARK", "compiled"), _part(3))
_WITH_SPARK = tuple(f"tests/{name}" for name in "coverage differential properties spark".split())
_OLDEST = (("SHELDUCK_TEST_ICEBERG", "oldest"),)
_DBT: dict[str, Any] = {
    "venv": ".venvdbt",
    "targets": (".venvdbt/.ready",),
    # Its own fixtures, and what dbt says about its own code.
    "options": ("-c", "/dev/null", "--rootdir", "integrations/dbt", "-W", "ignore"),
}
_TOOLS: dict[str, Any] = {
    "venv": ".venvorchestration",
    "targets": (".venvorchestration/.ready",),
    # What the tools say about their own code.
    "options": ("-W", "ignore"),
}
_READERS: dict[str, Any] = {
    "options": ("-s",),
    "venv": ".venv41",
    "targets": (".venv41/.ready", "jars"),
}
# Minutes in which another environment comes, with its JARs.
_SET_UP = 3


def _on_older(spark: str) -> tuple[Group, ...]:
    """What runs again on an older Spark: a part of the tests of every Spark, and Connect's."""
    there: dict[str, Any] = {"venv": f".venv{spark}", "targets": (f".venv{spark}/.ready",)}
    return (
        Group(
            f"spark{spark}",
            "every_spark",
            2.5,
            options=_PAIR,
            more=(_part(3),),
            repeats=True,
            **there,
        ),
        Group(f"connect{spark}", "connect", 2.5, _STORIES, repeats=True, **there),
    )


# What needs the same things stays together in one share.
_BUNDLES = (
    (Group("compiled", "", 5, _WITH_SPARK, _PAIR, more=_COMPILED, repeats=True),),
    (Group("cluster", "cluster", 4.5, ("tests/concurrency", *_STORIES), targets=("jars-s3",)),),
    (
        Group("connect", "connect and slow", 1, _STORIES),
        Group("browser", "browser and slow", 1, ("tests/web",), targets=("chromium",)),
        Group("s3", "s3 and slow", 2.5, _ON_S3, targets=("jars-s3",)),
    ),
    (Group("dbt", "", 6, ("integrations/dbt/tests",), **_DBT),),
    (Group("orchestration", "orchestration and slow", 3, _STORIES, **_TOOLS),),
    _on_older("40"),
    _on_older("41"),
    (
        Group("readers", "readers", 5, **_READERS),
        Group("oldest", "readers", 5, more=_OLDEST, repeats=True, rounds=2, **_READERS),
    ),
)
GROUPS = tuple(group for bundle in _BUNDLES for group in bundle)


@dataclass(frozen=True)
class Share:
    """What one share runs: whole groups, and the stretch of the main tests between two parts."""

    groups: tuple[Group, ...]
    begin: float
    end: float


def shares(number: int, main_minutes: float) -> list[Share]:
    """All shares, the groups dealt out from the longest, and the main tests where there is room."""
    dealt: list[list[Group]] = [[] for _ in range(number)]
    due = [tuple(group for group in bundle if is_due(0, group.rounds)) for bundle in _BUNDLES]
    for bundle in sorted(due, key=minutes_of, reverse=True):
        min(dealt, key=minutes_of).extend(bundle)
    level = (main_minutes + sum(map(minutes_of, dealt))) / number
    room = [max(level - minutes_of(groups), 0) for groups in dealt]
    ends = [sum(room[: n + 1]) / (sum(room) or 1) for n in range(number)]
    return [
        Share(tuple(groups), begin, end)
        for groups, begin, end in zip(dealt, [0.0, *ends[:-1]], [*ends[:-1], 1.0], strict=True)
    ]


def is_due(number: int, rounds: int) -> bool:
    """Whether this round of all shares runs number n of what takes turns over ``rounds``."""
    return number % rounds in one_by_one(range(rounds))


def minutes_of(groups: Sequence[Group]) -> float:
    """What some groups take, with what has to be set up for them."""
    set_up = _SET_UP if any(group.venv != ".venv" for group in groups) else 0
    return set_up + sum(group.minutes for group in groups)


class Stretch:
    """A plugin: of the tests that pytest chose, those between two parts of their seconds.

    Of a module's tests that are marked `turns(n)`, every n-th is in this round of all shares.
    """

    def __init__(self, begin: float, end: float) -> None:
        self._begin, self._end = begin, end

    @staticmethod
    def pytest_deselected(items: list[pytest.Item]) -> None:
        """Refuse a slow test that no share would ever run."""
        for item in items:
            marks = _marks(item)
            is_ours = "slow" in marks and "soak" not in marks and marks.intersection(_OWN)
            if is_ours and not any(group.takes(item) for group in GROUPS):
                raise pytest.UsageError(f"no share runs {item.nodeid}")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        known, entered = seconds(), set[str]()
        self._leave_to_others(config, items)
        costs = []
        for item in items:
            module, _, test = item.nodeid.partition("[")[0].partition("::")
            of_module = known.get(module, {})
            # Whoever is first in a module makes what its tests share.
            shared = 0.0 if module in entered else sum(_shared(of_module))
            costs.append(of_module.get(test, _UNKNOWN) + shared)
            entered.add(module)
        total, passed, kept, left = sum(costs) or 1, 0.0, [], []
        for item, cost in zip(items, costs, strict=True):
            inside = self._begin <= (passed + cost / 2) / total < self._end
            (kept if inside else left).append(item)
            passed += cost
        items[:] = kept
        config.hook.pytest_deselected(items=left)

    @staticmethod
    def _leave_to_others(config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect what other rounds run."""
        counts: Counter[str] = Counter()
        due, others = [], []
        for item in items:
            mark = item.get_closest_marker("turns")
            module = item.nodeid.partition("::")[0]
            taken = mark is None or is_due(counts[module], mark.args[0])
            counts[module] += mark is not None
            (due if taken else others).append(item)
        items[:] = due
        config.hook.pytest_deselected(items=others)


def _marks(item: pytest.Item) -> set[str]:
    return {mark.name for mark in item.iter_markers()}


def seconds() -> dict[str, dict[str, float]]:
    """For each module, what a case of each test and each shared fixture cost, where measured."""
    return json.loads(SECONDS.read_text()) if SECONDS.exists() else {}


def _shared(of_module: dict[str, float]) -> Iterator[float]:
    return (cost for name, cost in of_module.items() if name.startswith("<"))


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
        Group("main", _MAIN, 0, options=_PAIR, more=stretch, targets=("jars-s3",)),
        *share.groups,
    ]


def _run(group: Group) -> int:
    print(f"--- {group.name}", flush=True)  # noqa: T201
    if group.targets and subprocess.run(["make", *group.targets], cwd=ROOT, check=False).returncode:
        return 1
    python = str(ROOT / group.venv / "bin" / "python")
    plugins = ["-p", "tests.support.shards"]
    if "SHELDUCK_RECORD" in os.environ and not group.repeats:
        plugins += ["-p", "tests.support.recording"]
    done = subprocess.run(
        [python, "-m", "pytest", *plugins, *group.arguments],
        cwd=ROOT,
        env=os.environ | dict(group.more),
        check=False,
    )
    is_empty = done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED
    # A stretch may be empty where groups fill the share; a group may not.
    return 0 if is_empty and group.name == "main" else done.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
