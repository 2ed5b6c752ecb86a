"""A process that does all kinds of things to one table: run by test_mix.py as its own program."""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import shelduck
from tests.concurrency.storm_log import LANDED, Log, drawn
from tests.support.spark import local_session

KINDS = ("append", "update", "delete", "merge", "compact")
# An insert excludes whoever chose rows meanwhile: without a breath between them nothing else lands.
LONGEST_PAUSE = 4.0


class Mixer:
    """Draws an operation, carries it out, and remembers what landed, with its snapshot."""

    def __init__(self, lake: shelduck.Lake, writer: int, folder: Path) -> None:
        self.lake = lake
        self.folder = folder
        self.log = Log(folder)
        self.table = lake.table("t")
        self.random = random.Random(writer)
        self.first = writer * 1_000_000
        self.next = self.first
        self.landed: list[list[Any]] = []
        self.conflicts: Counter[str] = Counter()

    def step(self) -> None:
        """One operation; a conflict is an answer, any other error ends the process."""
        kind = drawn(self.random, KINDS, self.folder)
        try:
            arguments, result = getattr(self, kind)()
        except shelduck.Conflict:
            self.conflicts[kind] += 1
        else:
            snapshots = result.snapshots if kind == "compact" else [result.snapshot]
            if kind == "compact" or isinstance(result, shelduck.Committed):
                self.landed += [[snapshot, kind, arguments] for snapshot in snapshots]
                self.log.note(LANDED, kind)
        time.sleep(self.random.uniform(0, LONGEST_PAUSE))

    def append(self) -> tuple[list[int], Any]:
        keys = [self.next, self.next + 1]
        self.next += 2
        rows = self.lake.spark.range(keys[0], keys[-1] + 1).selectExpr("id", "0L AS v")
        return keys, self.table.append(rows)

    def update(self) -> tuple[int, Any]:
        rest = self.random.randrange(5)
        return rest, self.table.update({"v": "v + 1"}, where=f"id % 5 = {rest}")

    def delete(self) -> tuple[int, Any]:
        key = self.random.randrange(self.first, self.next + 1)
        return key, self.table.delete(f"id = {key}")

    def merge(self) -> tuple[list[int], Any]:
        keys = [self.random.randrange(self.first, self.next + 1), self.next]
        self.next += 1
        texts = " UNION ALL ".join(f"SELECT {key}L AS id, 100L AS v" for key in set(keys))
        result = self.table.merge(
            self.lake.spark.sql(texts),
            ["id"],
            shelduck.when_matched_update_all(),
            shelduck.when_not_matched_insert_all(),
        )
        return sorted(set(keys)), result

    def compact(self) -> tuple[None, Any]:
        return None, self.table.compact()


def main() -> None:
    """Mix until told to stop, then print what landed and which kinds met how many conflicts."""
    url, folder, writer = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    with (
        tempfile.TemporaryDirectory() as scratch,
        local_session(Path(scratch)) as spark,
        shelduck.connect(url, spark=spark, progress=False) as lake,
    ):
        mixer = Mixer(lake, writer, folder)
        (folder / f"ready-{writer}").touch()
        while not (folder / "go").exists():
            time.sleep(0.05)
        while not (folder / "stop").exists():
            mixer.step()
    sys.stdout.write("\n" + json.dumps({"landed": mixer.landed, "conflicts": mixer.conflicts}))


if __name__ == "__main__":
    main()
