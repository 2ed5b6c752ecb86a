"""What each verb asks of the catalog: statements, and transactions that take its lock."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import shelduck
from benchmarks.catalogs import KINDS, counting_statements, durable_postgres, fresh_url
from benchmarks.harness import Section, at_most, scratch
from benchmarks.session import session
from shelduck.catalog.databases.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

_ABOUT = (
    "Statements / transactions that take the catalog's lock, of each verb after one like it, on"
    " tables of two columns with files of twenty rows. Only INSERT VALUES leaves rows in the"
    " catalog. Transactions that only read, BEGIN and COMMIT do not count."
    " `tests/spark/costs/test_catalog_statements.py` fails if there are more."
)
_HEADER = ("verb", *KINDS)
_GOALS = {"append": 12, "DELETE": 12, "UPDATE": 14, "heavy job": 25}
_WHY = {
    "UPDATE": "a statement looks for rows that the catalog keeps; one more registers the writer in"
    " a DuckDB file, whose RETURNING knows no subqueries",
    "heavy job": "an ALTER of another table came before, so the table is read again; alone it takes"
    " 25",
}


def run(*, quick: bool) -> Section:  # noqa: ARG001 - the counts are the same
    section = Section("Statements of a verb", _ABOUT, _HEADER)
    seen: dict[str, dict[str, tuple[int, int]]] = {}
    with scratch("statements") as folder, durable_postgres() as server, session(folder) as spark:
        for kind in KINDS:
            with fresh_url(kind, folder, server, "statements") as url:
                seen[kind] = _counted(url, folder / kind, spark)
    for verb in seen[KINDS[0]]:
        cells = (" / ".join(map(str, seen[kind][verb])) for kind in KINDS)
        section.rows.append((verb, *cells))
    section.targets = [
        at_most(
            wanted,
            {kind: seen[kind][verb][0] for kind in KINDS},
            f"statements of {verb}",
            _WHY.get(verb, ""),
        )
        for verb, wanted in _GOALS.items()
    ]
    return section


def _counted(url: str, folder: Path, spark: SparkSession) -> dict[str, tuple[int, int]]:
    rows = spark.range(0, 20, 1, 1).selectExpr("id", "cast(id as string) v")
    with shelduck.connect(url, data_path=f"{folder}/", spark=spark) as lake:
        lake.set_option("data_inlining_row_limit", "0")
        for name in ("t", "u", "k", "first", "second"):
            key = " UNIQUE KEY (id)" if name == "k" else ""
            lake.sql(f"CREATE TABLE {name} (id BIGINT, v STRING){key}")
            lake.table(name).append(rows)
        lake.set_option("data_inlining_row_limit", "10", table="u")
        lake.sql("ALTER TABLE first ALTER COLUMN v TYPE INT")
        table = lake.table("t")
        numbers = iter(range(20))

        verbs: dict[str, Callable[[], object]] = {
            "append": lambda: table.append(rows),
            "load of a UNIQUE table": lambda: lake.table("k").append(rows),
            "INSERT VALUES": lambda: lake.sql("INSERT INTO u VALUES (1, 'a')"),
            "DELETE": lambda: table.delete(f"id = {next(numbers)}"),
            "UPDATE": lambda: table.update({"v": "'x'"}, where=f"id = {next(numbers)}"),
            "ADD COLUMN": lambda: lake.sql(f"ALTER TABLE t ADD COLUMN c{next(numbers)} INT"),
        }
        found = {}
        for verb, act in verbs.items():
            act()
            found[verb] = _cost(act)
        change = "ALTER TABLE second ALTER COLUMN v TYPE INT"
        found["heavy job"] = _cost(lambda: lake.sql(change))
        return found


def _cost(act: Callable[[], object]) -> tuple[int, int]:
    real, writes = Store.write, Counter[str]()

    def counted(store: Store) -> object:
        writes["write"] += 1
        return real(store)

    Store.write = counted  # type: ignore[method-assign,assignment]
    try:
        with counting_statements() as seen:
            act()
    finally:
        Store.write = real  # type: ignore[method-assign]
    return seen.total(), writes["write"]
