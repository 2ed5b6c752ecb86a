"""What the tests of each folder cost, beside a loop that the same run timed.

    python -m tests.support.cost FOLDER

`make cost` calls it. A machine that is three times slower takes three times the seconds for the
tests and for the loop, so the last column compares runs on different machines. It is a report:
nothing fails, because seconds are of the machine as much as of the code.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

MOST = 25
"""How many of the dearest tests and fixtures are shown."""


def folder_of(name: str) -> str:
    """The folder of a test below tests; `shared` for what no folder pays."""
    parts = name.split("/")
    return parts[1] if len(parts) > 2 else "shared"


def report(recordings: list[dict[str, dict[str, float]]]) -> str:
    """A line for each folder, their sum, and the dearest tests, as Markdown."""
    costs: Counter[str] = Counter()
    for each in recordings:
        costs.update(each["costs"])
    folders: Counter[str] = Counter()
    for name, seconds in costs.items():
        folders[folder_of(name)] += seconds
    loop = sum(each["loop"]["seconds"] for each in recordings) / (len(recordings) or 1)
    rows = [*sorted(folders.items()), ("all", sum(folders.values()))]
    lines = ["| folder | seconds of CPU | loops |", "|---|---|---|"]
    lines += [f"| {name} | {n:.1f} | {n / loop if loop else 0:.0f} |" for name, n in rows]
    dearest = [f"{seconds:7.2f}  {name}" for name, seconds in costs.most_common(MOST)]
    return "\n".join([*lines, "", f"The loop took {loop:.3f} seconds.", "", *dearest])


if __name__ == "__main__":
    found = [json.loads(path.read_text()) for path in sorted(Path(sys.argv[1]).glob("*.json"))]
    print(report(found))  # noqa: T201 - a script
