"""Refreshes of materialized views after one row in a hundred changed, beside full ones."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import shelduck
from benchmarks.harness import Section, Timing, at_most, ratio, scratch, timed
from benchmarks.session import session

if TYPE_CHECKING:
    from shelduck import Lake

SIZE, QUICK_SIZE = 10_000_000, 200_000
RUNS, QUICK_RUNS = 3, 1
_ABOUT = (
    "Orders, customers (a tenth as many) and a text of 40 characters. A change is of one order in a"
    " hundred: new ones, or updated ones all over the table. Each refresh stands beside one with"
    " FULL of the same view, after another such change."
)
_VIEWS = {
    "1,000 groups, sum": "SELECT g, sum(v) AS s, count(*) AS n FROM o GROUP BY g",
    "a group for ten rows, sum": "SELECT cid, sum(v) AS s, count(*) AS n FROM o GROUP BY cid",
    "a group for ten rows, avg": "SELECT cid, avg(v) AS a FROM o GROUP BY cid",
    "rows of a join": "SELECT o.id, o.v, c.name FROM o JOIN c ON o.cid = c.id WHERE o.v > 30",
    "groups of a join": (
        "SELECT c.city, c.kind, sum(o.v) AS s, count(*) AS n FROM o JOIN c ON o.cid = c.id"
        " GROUP BY c.city, c.kind"
    ),
}


def run(*, quick: bool) -> Section:
    header = ("view", "change", "way", "refresh", "FULL", "ratio")
    section = Section("Refreshes of materialized views", _ABOUT, header)
    found: dict[str, float] = {}
    size, runs = (QUICK_SIZE, QUICK_RUNS) if quick else (SIZE, RUNS)
    with scratch("materialized") as folder, session(folder) as spark:
        url = f"sqlite:///{folder}/catalog.db"
        with shelduck.connect(url, f"{folder}/data/", spark, progress=False) as lake:
            _fill(lake, size)
            for n, (name, query) in enumerate(_VIEWS.items()):
                lake.sql(f"CREATE MATERIALIZED VIEW m{n} REFRESH ON DEMAND AS {query}")
                for change in ("new", "updated"):
                    way, part, full = _measured(lake, f"m{n}", change, size, runs)
                    found[f"{name}, {change}"] = ratio(part, full)
                    cells = (name, change, way, str(part), str(full))
                    section.rows.append((*cells, f"{ratio(part, full):.2f}"))
                lake.sql(f"DROP MATERIALIZED VIEW m{n}")
    section.targets = [at_most(0.1, found, "time over FULL")]
    return section


def _fill(lake: Lake, size: int) -> None:
    lake.sql("CREATE TABLE o (id BIGINT, cid BIGINT, g INT, v BIGINT NOT NULL, t STRING)")
    lake.sql("CREATE TABLE c (id BIGINT, city INT, kind INT, name STRING)")
    lake.sql(f"INSERT INTO o {_orders(0, size, size)}")
    lake.sql(
        "INSERT INTO c SELECT id, CAST(id % 500 AS INT), CAST(id % 7 AS INT), concat('c', id)"
        f" FROM range({size // 10})"
    )


def _orders(first: int, last: int, size: int) -> str:
    return (
        f"SELECT id, id % {size // 10}, CAST(id % 1000 AS INT), id % 77, repeat('x', 40)"
        f" FROM range({first}, {last})"
    )


def _measured(
    lake: Lake, view: str, change: str, size: int, runs: int
) -> tuple[str, Timing, Timing]:
    """Return the way of a refresh, its times, and those of full ones, in turns."""
    seconds: dict[bool, list[float]] = {False: [], True: []}
    way = ""
    for turn in range(runs + 1):
        for full, found in seconds.items():
            if change == "new":
                lake.sql(f"INSERT INTO o {_orders(size, size + size // 100, size)}")
            else:
                lake.sql(f"UPDATE o SET v = v + 1 WHERE id % 100 = {turn}")
            if not full:
                way = lake.execute(f"EXPLAIN REFRESH MATERIALIZED VIEW {view}").rows[0][0]
            took = timed(partial(lake.refresh, view, full=full))
            if turn:
                found.append(took)
    return way, *(Timing(tuple(taken)) for taken in seconds.values())
