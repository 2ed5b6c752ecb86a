"""What a lake of very many files and snapshots costs: each verb in a process of its own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import shelduck
from benchmarks.big_lake import make_lake
from benchmarks.catalogs import counting_statements, durable_postgres, fresh_url
from benchmarks.harness import Section, at_most, duration, scratch
from benchmarks.session import session

if TYPE_CHECKING:
    from collections.abc import Callable

    from shelduck import Lake

KINDS = ("SQLite", "PostgreSQL")
# Files, and the snapshots that added them.
SIZES = ((10_000, 1_000), (100_000, 10_000), (1_000_000, 100_000))
QUICK_SIZES = ((1_000, 100), (10_000, 1_000))
_ABOUT = (
    "A table of very many files, made by SQL alone in the time of the first row. Every verb runs"
    " twice in a process of its own: seconds of the first and of the second run, statements of the"
    " second, and by how much the memory of the process grew. Spark's own first query is not"
    " counted. Point query: `count(*)` of one id, the table opened and the query planned each time."
)


def run(*, quick: bool) -> Section:
    section = Section("Very many files and snapshots", _ABOUT, ("catalog, files, verb", *_HEADER))
    memory: dict[str, float] = {}
    again: dict[str, float] = {}
    with scratch("scale") as folder, durable_postgres() as server:
        for kind in KINDS:
            for files, snapshots in QUICK_SIZES if quick else SIZES:
                place = folder / f"{kind}-{files}"
                place.mkdir()
                name = f"{kind}, {files:,}"
                with fresh_url(kind, place, server, "lake") as url:
                    with session(place) as spark:
                        start = time.perf_counter()
                        make_lake(spark, url, place, files, snapshots)
                        made = duration(time.perf_counter() - start)
                    section.rows.append((f"{name}, made", made, "", "", ""))
                    for verb in VERBS:
                        found = _asked(url, verb, place)
                        section.rows.append((f"{name}, {verb}", *found.values()))
                        if verb == "point query":
                            memory[name], again[name] = found["memory"], found["second"]
    section.rows = [(row[0], *map(_shown, _HEADER, row[1:])) for row in section.rows]
    section.targets = [
        at_most(300, memory, "MB of driver memory for a point query"),
        at_most(0.5, again, "seconds of a point query on a table that was read before"),
    ]
    return section


_HEADER = ("first", "second", "statements", "memory")


def _shown(column: str, value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f} MB" if column == "memory" else duration(value)


def _asked(url: str, verb: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.scale", url, verb, str(folder)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return found


def _point(lake: Lake) -> object:
    return lake.table("t").read().where("id = 50000").count()


def _alter(lake: Lake) -> object:
    lake.execute("ALTER TABLE t ADD COLUMN c INT")
    return lake.execute("ALTER TABLE t DROP COLUMN c")


VERBS: dict[str, Callable[[Lake], object]] = {
    "tables and columns": lambda lake: (lake.tables(), lake.table("t").columns),
    "light ALTER, twice": _alter,
    "INSERT of a row": lambda lake: lake.execute("INSERT INTO t VALUES (-1, 'a', 1.0)"),
    "history of the table": lambda lake: len(lake.table("t").history()),
    "point query": _point,
    "compaction of 20 files": lambda lake: lake.table("t").compact(max_files=20, dry_run=True),
    "orphans": lambda lake: lake.remove_orphans(dry_run=True),
    "expiry of half": lambda lake: lake.expire_snapshots(
        retain_last=len(lake.snapshots()) // 2, dry_run=True
    ),
}
_WITH_SPARK = ("point query", "compaction of 20 files")


def _measure(lake: Lake, verb: str) -> dict[str, float]:
    before = _memory()
    seconds = []
    for _ in range(2):
        with counting_statements() as counted:
            start = time.perf_counter()
            VERBS[verb](lake)
            seconds.append(time.perf_counter() - start)
    return {
        "first": seconds[0],
        "second": seconds[1],
        "statements": sum(counted.values()),
        "memory": float(_memory() - before),
    }


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    url, verb, folder = sys.argv[1:]
    if verb not in _WITH_SPARK:
        with shelduck.connect(url, progress=False) as lake:
            print(json.dumps(_measure(lake, verb)))
        return
    with session(Path(folder)) as spark, shelduck.connect(url, spark=spark, progress=False) as lake:
        spark.range(10).where("id = 3").count()
        print(json.dumps(_measure(lake, verb)))


if __name__ == "__main__":
    main()
