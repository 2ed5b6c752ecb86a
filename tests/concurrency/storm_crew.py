"""A process in a storm: run by test_storm.py and test_key_loads.py as a program of its own.

`python -m tests.concurrency.storm_crew role url folder`: the role says what it does to the lake,
until a file `stop` appears in the folder.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import shelduck
from tests.concurrency.storm_members import Ducks, Inserter, Keeper, Loader, Member, Shaper, Sparks
from tests.support.spark import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How many threads of which kind, by the role; some roles need a JVM.
KINDS: dict[str, tuple[int, type[Member]]] = {
    "spark": (3, Sparks),
    "loader": (1, Loader),
    "insert": (1, Inserter),
    "alter": (1, Shaper),
    "upkeep": (1, Keeper),
    "duckdb": (1, Ducks),
}


def main() -> None:
    role, url, place = sys.argv[1:]
    count, kind = KINDS[role.partition("-")[0]]
    folder = Path(place)
    with ExitStack() as stack:
        spark: SparkSession | None = None
        if issubclass(kind, Sparks):
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
            spark = stack.enter_context(local_session(scratch, {"spark.driver.memory": "1g"}))
        lakes = [stack.enter_context(_connected(url, spark)) for _ in range(count)]
        threads = [threading.Thread(target=kind(lake, folder, url).run) for lake in lakes]
        (folder / f"ready-{role}").touch()
        while not (folder / "go").exists():
            time.sleep(0.05)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _connected(url: str, spark: SparkSession | None) -> shelduck.Lake:
    """The lake, as soon as its database answers."""
    for _ in range(100):
        try:
            return shelduck.connect(url, spark=spark, progress=False)
        except shelduck.CatalogUnavailable:
            time.sleep(0.2)
    return shelduck.connect(url, spark=spark, progress=False)


if __name__ == "__main__":
    main()
