"""What a lake of very many files and snapshots costs: each verb in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import shelduck
from benchmarks.big_lake import make_lake
from benchmarks.catalogs import counting_statements, durable_postgres, fresh_url
from benchmarks.harness import Section, at_most, duration, scratch
from benchmarks.session import session
from shelduck.catalog.databases.store import Store, open_store
from shelduck.catalog.schema.lake_schema import open_lake
from shelduck.lake.state import LakeState
from shelduck.web.application import make_app
from shelduck.web.guard import Guard

with warnings.catch_warnings():
    # Starlette prefers a client that is not installed.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection

    from shelduck import Lake

KINDS = ("SQLite", "PostgreSQL")
# Files, and the snapshots that added them.
SIZES = ((10_000, 1_000), (100_000, 10_000), (1_000_000, 100_000))
QUICK_SIZES = ((1_000, 100), (10_000, 1_000))
_WHY_FIRST = (
    "with the fewest files, it takes what Python and Spark load for a first query; with the most,"
    " SQL also looks at each file for its kind, and once more for its statistics"
)
_WHY_NEXT = "PostgreSQL converts the texts of a million bounds, on both cores"
_ABOUT = (
    "A table of {files:,} files and {snapshots:,} snapshots, made by SQL. Every verb runs"
    " twice in a process of its own: times and statements of both runs, the longest"
    " transaction that took the catalog's lock, and the peak of the process (resident,"
    " without Spark's JVM). Spark's own first query, of a plain Parquet file, is not counted."
    " Point query: `count(*)` of one id, opened and planned each time. Expiry: of a tenth of"
    " the snapshots, then of a tenth of the others; the cleanup deletes their files, which were"
    " never made."
)


def run(*, quick: bool) -> Section:
    sizes = QUICK_SIZES if quick else SIZES
    about = _ABOUT.format(files=sizes[-1][0], snapshots=sizes[-1][1])
    section = Section("Very many files and snapshots", about, _HEADER)
    shown: dict[str, dict[str, dict[str, Any]]] = {verb: {} for verb in (*PAGES, *VERBS)}
    memory: dict[str, float] = {}
    first: dict[str, float] = {}
    again: dict[str, float] = {}
    locks: dict[str, float] = {}
    with scratch("scale") as folder, durable_postgres() as server:
        for kind in KINDS:
            for files, snapshots in sizes:
                place = folder / f"{kind}-{files}"
                place.mkdir()
                name = f"{kind}, {files:,}"
                with fresh_url(kind, place, server, "lake") as url:
                    with session(place) as spark:
                        start = time.perf_counter()
                        make_lake(spark, url, place, files, snapshots)
                        made = duration(time.perf_counter() - start)
                    print(f"{name}, made: {made}", file=sys.stderr, flush=True)
                    for verb in (*PAGES, *VERBS):
                        found = _asked(url, verb, place)
                        shown[verb][kind] = found
                        print(f"{name}, {verb}: {found}", file=sys.stderr, flush=True)
                        if verb == "point query":
                            memory[name], first[name] = found["memory"], found["first"]
                            again[name] = found["second"]
                        if found["longest lock"]:
                            locks[f"{name}, {verb}"] = 1000 * found["longest lock"]
    section.rows = [_row(verb, found) for verb, found in shown.items() if verb not in BRIEF]
    section.aside = [_row(verb, found) for verb, found in shown.items() if verb in BRIEF]
    section.targets = [
        at_most(300, memory, "MB of driver memory for a point query"),
        at_most(0.5, first, "seconds of the first point query of a process", _WHY_FIRST),
        at_most(0.5, again, "seconds of the next point query", _WHY_NEXT),
        at_most(100, locks, "ms that a transaction keeps the catalog's lock"),
    ]
    return section


_HEADER = ("verb", *KINDS, "statements", "longest lock", "peak")


def _row(verb: str, found: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    """The largest lake of each catalog; of the last three columns the larger value."""
    times = [f"{duration(each['first'])}, {duration(each['second'])}" for each in found.values()]
    statements = [max(each["statements"][turn] for each in found.values()) for turn in range(2)]
    lock = max(each["longest lock"] for each in found.values())
    peak = max(each["peak"] for each in found.values())
    return (
        *(verb, *times, f"{statements[0]:,}, {statements[1]:,}"),
        *(duration(lock) if lock else "", f"{peak:,.0f} MB"),
    )


def _asked(url: str, verb: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.scale", url, verb, str(folder)]
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return found


def _point(lake: Lake) -> object:
    return lake.table("t").read().where("id = 50000").count()


def _alter(lake: Lake) -> object:
    lake.execute("ALTER TABLE t ADD COLUMN c INT")
    return lake.execute("ALTER TABLE t DROP COLUMN c")


def _expire(lake: Lake) -> object:
    """Expire the next tenth of the snapshots that made the lake."""
    ids = [s.id for s in lake.snapshots()]
    return lake.expire_snapshots(versions=ids[: max(1, len(ids) // 10)])


def _page(url: str, path: str) -> None:
    store = open_store(url)
    app = make_app(LakeState(store, open_lake(store)), Guard(8765))
    with TestClient(app, base_url="http://127.0.0.1:8765") as client:
        found = client.get(path)
    assert found.status_code == 200, found.text
    store.close()


PAGES = {
    "page of the lake": "/",
    "page of snapshots": "/snapshots",
    "page of the files": "/tables/1/files",
}
VERBS: dict[str, Callable[[Lake], object]] = {
    "tables and columns": lambda lake: (lake.tables(), lake.table("t").columns),
    "light ALTER, twice": _alter,
    "INSERT of a row": lambda lake: lake.execute("INSERT INTO t VALUES (-1, 'a', 1.0)"),
    "newest 20 snapshots": lambda lake: lake.snapshots(limit=20),
    "newest 20 of the table": lambda lake: lake.table("t").history(limit=20),
    "history of the table": lambda lake: len(lake.table("t").history()),
    "point query": _point,
    "t.snapshots, counted": lambda lake: lake.sql("SELECT count(*) FROM t.snapshots").collect(),
    "t.files, counted": lambda lake: lake.sql("SELECT count(*) FROM t.files").collect(),
    "compaction of 20 files": lambda lake: lake.table("t").compact(max_files=20),
    "orphans, dry run": lambda lake: lake.remove_orphans(dry_run=True),
    "expiry of half, dry run": lambda lake: lake.expire_snapshots(
        retain_last=len(lake.snapshots()) // 2, dry_run=True
    ),
    "expiry of a tenth": _expire,
    "cleanup": lambda lake: lake.cleanup_old_files(cleanup_all=True),
}
# Printed, and not kept in the page: docs/scale.md has them, too.
BRIEF = (
    *("tables and columns", "newest 20 snapshots", "newest 20 of the table"),
    "history of the table",
)
_WITH_SPARK = (
    *("point query", "t.snapshots, counted", "t.files, counted"),
    "compaction of 20 files",
)


def _measure(act: Callable[[], object]) -> dict[str, float | list[int]]:
    before = _memory()
    seconds: list[float] = []
    statements: list[int] = []
    with timed_locks() as locks:
        for _ in range(2):
            with counting_statements() as counted:
                start = time.perf_counter()
                act()
                seconds.append(time.perf_counter() - start)
            statements.append(sum(counted.values()))
    peak = _memory()
    return {
        "first": seconds[0],
        "second": seconds[1],
        "statements": statements,
        "longest lock": max(locks, default=0.0),
        "memory": float(peak - before),
        "peak": float(peak),
    }


@contextmanager
def timed_locks() -> Iterator[list[float]]:
    """Measure how long each transaction of Shelduck keeps the catalog's lock meanwhile."""
    found: list[float] = []
    real = Store.write

    @contextmanager
    def write(store: Store) -> Iterator[Connection]:
        start = time.perf_counter()
        with real(store) as connection:
            yield connection
        found.append(time.perf_counter() - start)

    with patch.object(Store, "write", write):
        yield found


def _memory() -> int:
    """Return the peak of this process in MiB; getrusage would count its parent's, too."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    [peak] = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(peak) // 1024


def main() -> None:
    url, verb, folder = sys.argv[1:]
    if verb in PAGES:
        print(json.dumps(_measure(lambda: _page(url, PAGES[verb]))))
        return
    if verb not in _WITH_SPARK:
        with shelduck.connect(url, progress=False) as lake:
            print(json.dumps(_measure(lambda: VERBS[verb](lake))))
        return
    with session(Path(folder)) as spark, shelduck.connect(url, spark=spark, progress=False) as lake:
        plain = f"{folder}/plain"
        spark.range(10).write.mode("overwrite").parquet(plain)
        spark.read.parquet(plain).where("id = 3").count()
        print(json.dumps(_measure(lambda: VERBS[verb](lake))))


if __name__ == "__main__":
    main()
