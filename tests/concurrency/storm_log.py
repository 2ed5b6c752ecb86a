"""What the writers of a storm note: what each began, and what became of it.

Each writer has a number, which its rows bear, and a file of lines of JSON. A line is written before
and after each act, so that a reader of the file knows what a killed writer may have done.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

BEGUN, LANDED, REFUSED, UNKNOWN, FAILED = "begun", "landed", "refused", "unknown", "failed"
MARKERS = 1_000_000
"""A load into the key table has one row with a key from here on that no other load has."""
Held = dict[int, int]
_LANDED = re.compile(r'"what": "landed", "verb": "([^"]+)"')


class Log:
    """The notes of one writer about one table of its own rows."""

    def __init__(self, folder: Path) -> None:
        # Unlike other draws, never the same twice: rows of a killed writer are left alone.
        self.owner = random.SystemRandom().randrange(1, 2**31)
        self._file = (folder / f"{self.owner}.jsonl").open("w", buffering=1)

    def note(self, what: str, verb: str, **facts: Any) -> None:
        """Write a line, so that it survives this process."""
        self._file.write(json.dumps({"what": what, "verb": verb, **facts}) + "\n")

    def close(self) -> None:
        self._file.close()


@dataclass
class Story:
    """What the notes of one writer tell, and which rows it may have, by table and id."""

    owner: int
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)
    held: dict[str, Held] = field(default_factory=dict)
    perhaps: dict[str, Held] | None = None
    """What it has if its last act, whose end nobody knows, has landed."""
    loads: list[tuple[int, Held, str]] = field(default_factory=list)
    """Loads into the key table: the marker, the sums by key, and what became of it."""
    replaced: list[tuple[int, list[int], str]] = field(default_factory=list)
    """Loads into the table that keeps the last row: the marker, the keys, what became of it."""
    conflicts: list[str] = field(default_factory=list)
    """What loads were told that did not land."""
    moves: list[tuple[int, int, str]] = field(default_factory=list)
    """Amounts moved from one table to another: the id, the amount, and what became of it."""


def drawn(chance: random.Random, verbs: Sequence[str], folder: Path) -> str:
    """One of the verbs: what landed least so far, by anybody, is likelier.

    So each has its turn on a slow machine, and where one excludes others.
    """
    done = landed_so_far(folder)
    return chance.choices(verbs, [1 / (1 + done[verb]) ** 2 for verb in verbs])[0]


def landed_so_far(folder: Path) -> Counter[str]:
    """How many acts of each verb all writers have noted as landed."""
    found: Counter[str] = Counter()
    for log in folder.glob("*.jsonl"):
        found.update(_LANDED.findall(log.read_text()))
    return found


def read_story(log: Path) -> Story:
    """The story that a file of notes tells."""
    story, begun = Story(int(log.stem)), None
    for line in log.read_text().splitlines(keepends=True):
        # Whoever was killed may have left half a line.
        if not line.endswith("\n"):
            break
        note = json.loads(line)
        if note["what"] == BEGUN:
            begun = note
            continue
        assert begun is not None
        _ended(story, begun, note)
        begun = None
    if begun is not None:
        _ended(story, begun, {"what": UNKNOWN, "verb": begun["verb"]})
    return story


def _ended(story: Story, begun: dict[str, Any], note: dict[str, Any]) -> None:
    # Nothing follows an act whose end is unknown.
    assert story.perhaps is None
    what, verb = note["what"], note["verb"]
    story.counts[verb, what] += 1
    if what == FAILED:
        story.failures.append(f"{verb}: {note['told']}")
    if what == REFUSED:
        story.refusals[f"{verb}: {note['told']}"] += 1
    if verb == "load":
        sums = {int(key): n for key, n in begun["sums"].items()}
        story.loads.append((begun["marker"], sums, what))
    if verb == "replace":
        story.replaced.append((begun["marker"], begun["keys"], what))
    if verb in ("load", "replace") and what == REFUSED:
        story.conflicts.append(note["text"])
    if verb in ("transfer", "duckdb transfer"):
        story.moves.append((begun["id"], begun["amount"], what))
    if "table" not in begun or what == REFUSED:
        return
    after = {name: dict(rows) for name, rows in story.held.items()}
    changed(after.setdefault(begun["table"], {}), begun)
    if what == LANDED:
        story.held = after
    else:
        story.perhaps = after


def changed(held: Held, begun: dict[str, Any]) -> None:
    """Do to the rows of a writer what an act does: its facts say which."""
    held.update((int(key), v) for key, v in begun.get("put", {}).items())
    for key in begun.get("removed", ()):
        held.pop(int(key), None)
