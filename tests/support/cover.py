"""The cheapest set of tests that reaches every line that is reached at a fair price.

    python -m tests.support.cover FOLDER

`make cover` calls it. Tests are taken by the seconds that they cost for each line of `src` that
none before them reaches, and what a module shares costs its first test. Lines that only dear tests
reach are left to the shares. Tests that cost almost nothing, guards, and those that look at no code
of `src` are all taken. `make mutants` says whether others find what these do not.
tests/left_out.txt gets the others: they are slow. tests/seconds.json gets the seconds by the clock
of a case of each test function and of the fixtures of each module; shares are cut by it.
"""

from __future__ import annotations

import heapq
import json
import sqlite3
import sys
from collections import defaultdict
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEFT_OUT = ROOT / "tests" / "left_out.txt"
SECONDS = ROOT / "tests" / "seconds.json"
# Seconds of CPU below which a test is in the fast set without a reason.
CHEAP = 0.1
# Seconds of CPU that a line of its own may cost a test in the fast set.
FAIR = 0.5
_HEAD = """\
# Tests that the fast set does not need: others reach the code that they reach, or it is dear.
# `make cover` writes this list. To bring a test back, delete its line.
"""

Line = tuple[str, int]


class Recorded:
    """What tests and the fixtures that they share cost, and the lines that they reach."""

    def __init__(self, folder: Path) -> None:
        self.costs: dict[str, float] = {}
        self.times: dict[str, float] = {}
        self.guards: set[str] = set()
        self.lines: dict[str, set[Line]] = defaultdict(set)
        for path in sorted(folder.glob("*.json")):
            told = json.loads(path.read_text())
            self.guards |= set(told["guards"])
            for kept, seconds in ((self.costs, told["costs"]), (self.times, told["times"])):
                for name, each in seconds.items():
                    kept[name] = max(each, kept.get(name, 0))
        query = (
            "SELECT DISTINCT context, path, abs(tono) FROM arc"
            " JOIN context ON context.id = context_id JOIN file ON file.id = file_id"
        )
        for path in sorted(folder.glob("*.coverage")):
            with closing(sqlite3.connect(path)) as connection:
                for context, *line in connection.execute(query):
                    self.lines[context].add(tuple(line))
        self.tests = sorted(name for name in self.times if "::" in name and not _is_shared(name))
        self._shared: dict[str, list[str]] = defaultdict(list)
        for name in filter(_is_shared, self.costs):
            self._shared[module_of(name)].append(name)

    def entry(self, module: str) -> float:
        """What the fixtures of a module cost whoever is first."""
        return sum(self.costs[name] for name in self._shared[module])

    def lines_with(self, test: str) -> set[Line]:
        """The lines of a test and of the fixtures of its module."""
        shared = (self.lines[name] for name in self._shared[module_of(test)])
        return self.lines[test].union(*shared)


def choose(recorded: Recorded) -> set[str]:
    """The tests to run: those that stay anyway, and the cheapest that reach what is missing."""
    chosen: set[str] = set()
    reached: set[Line] = set()
    entered: set[str] = set()

    def take(test: str) -> None:
        chosen.add(test)
        reached.update(recorded.lines_with(test))
        entered.add(module_of(test))

    def price(test: str) -> float:
        """Seconds for each new line; infinite where there is none."""
        module = module_of(test)
        new = len(recorded.lines_with(test) - reached)
        cost = max(recorded.costs[test], 0.001)
        return (cost + (0 if module in entered else recorded.entry(module))) / new if new else _NONE

    for test in recorded.tests:
        cheap = recorded.costs[test] < CHEAP and recorded.entry(module_of(test)) < CHEAP
        if cheap or test in recorded.guards or not recorded.lines[test]:
            take(test)
    waiting = [(price(test), test) for test in recorded.tests if test not in chosen]
    heapq.heapify(waiting)
    while waiting:
        _, test = heapq.heappop(waiting)
        now = price(test)
        # A price only rises, so whoever is still the cheapest is next.
        if now < FAIR and (not waiting or now <= waiting[0][0]):
            take(test)
        elif now < FAIR:
            heapq.heappush(waiting, (now, test))
    # A module whose lake is made anyway keeps its cheap tests.
    return chosen | {
        test
        for test in recorded.tests
        if recorded.costs[test] < CHEAP and module_of(test) in entered
    }


_NONE = float("inf")


def write_left_out(recorded: Recorded, chosen: set[str]) -> None:
    """Write tests/left_out.txt; what it says of tests that were not recorded stays."""
    known = set(recorded.tests)
    left_out = (left_out_tests() - known) | (known - chosen)
    LEFT_OUT.write_text(_HEAD + "".join(f"{test}\n" for test in sorted(left_out)))


def write_seconds(recorded: Recorded) -> None:
    """Write tests/seconds.json; what it says of tests that were not recorded stays."""
    fresh: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    # A fixture of a module is named by itself, a test without its parameters.
    parts = {test: test.partition("[")[0].partition("::")[2] for test in recorded.tests}
    for name in filter(_is_shared, recorded.times):
        module, _, fixture = name.partition("::")
        if module and fixture.startswith("<"):
            parts[name] = fixture
    for name, part in parts.items():
        fresh[module_of(name)][part].append(recorded.times[name])
    told = json.loads(SECONDS.read_text()) if SECONDS.exists() else {}
    for module, functions in fresh.items():
        means = {name: round(sum(each) / len(each), 2) for name, each in functions.items()}
        told[module] = told.get(module, {}) | means
    SECONDS.write_text(json.dumps(told, indent=0, sort_keys=True) + "\n")


def left_out_tests() -> set[str]:
    """The ids in tests/left_out.txt."""
    lines = LEFT_OUT.read_text().splitlines() if LEFT_OUT.exists() else []
    return {line for line in lines if line and not line.startswith("#")}


def module_of(test: str) -> str:
    """The file of a test or of a shared fixture."""
    return test.partition("::")[0]


def _is_shared(name: str) -> bool:
    return name.rpartition("::")[2].startswith("<")


def main(folder: str) -> None:
    recorded = Recorded(Path(folder))
    write_seconds(recorded)
    if not any(recorded.lines.values()):
        return  # a recording of seconds alone says nothing about the fast set
    chosen = choose(recorded)
    write_left_out(recorded, chosen)
    total, kept = (sum(recorded.costs[t] for t in names) for names in (recorded.tests, chosen))
    print(  # noqa: T201 - a script
        f"{len(chosen)} of {len(recorded.tests)} tests, {kept:.0f} of {total:.0f} seconds of CPU"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
