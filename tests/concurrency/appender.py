"""A process that appends to a lake: run by test_appends.py as a program of its own."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import shelduck
from tests.support.spark import local_session


def main() -> None:
    """Append `count` batches of two rows to main.t, then print the snapshots that they became."""
    url, start, writer, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    snapshots = []
    with (
        tempfile.TemporaryDirectory() as scratch,
        local_session(Path(scratch)) as spark,
        shelduck.connect(url, spark=spark) as lake,
    ):
        table = lake.table("t")
        (start.parent / f"ready-{writer}").touch()
        while not start.exists():
            time.sleep(0.05)
        for number in range(count):
            first = writer * 1_000_000 + number * 2
            rows = spark.range(first, first + 2).selectExpr("id", f"'writer {writer}' AS who")
            snapshots.append(table.append(rows).snapshot)
    sys.stdout.write(json.dumps(snapshots))


if __name__ == "__main__":
    main()
