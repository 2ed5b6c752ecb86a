"""A small lake that two writers contend for: what each may do to it, and what that leaves of it.

Table ``main.t`` has a column ``id`` and its rows in every place in which DuckLake keeps rows: files
A (1, 2, 3) and B (4, 5, 6), C (7, 9 and a dead 8 by a delete file), D (12 and a dead 13 whose
position the catalog holds), and 10 and 11 in the catalog itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.support.lake import Lake
from tests.support.oracle import DuckDBOracle, duckdb_attach_string

ROWS = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12})
NAMES = frozenset({"main", "side", "empty", "main.t", "main.w", "side.s", "main.f()", "main.g()"})

_IN_FILES = (
    "CREATE SCHEMA empty",
    "CREATE SCHEMA side",
    "CREATE TABLE side.s (id BIGINT)",
    "CREATE TABLE t (id BIGINT)",
    "INSERT INTO t VALUES (1), (2), (3)",
    "INSERT INTO t VALUES (4), (5), (6)",
    "INSERT INTO t VALUES (7), (8), (9)",
    "DELETE FROM t WHERE id = 8",
    "INSERT INTO t VALUES (12), (13)",
)
_IN_CATALOG = ("DELETE FROM t WHERE id = 13", "INSERT INTO t VALUES (10), (11)")
# DuckDB crashes when it inlines into a schema that has a view and an option for inlining.
_OBJECTS = (
    "CREATE VIEW w AS SELECT 1 AS one",
    "CREATE MACRO f(a) AS a + 1",
    "CREATE MACRO g(a) AS TABLE SELECT a AS x",
)


@dataclass(frozen=True)
class Effect:
    """What a change does: rows of t by their ids, its columns, and names (``f()`` is a macro)."""

    adds: frozenset[int] = frozenset()
    removes: frozenset[int] = frozenset()
    columns: frozenset[str] = frozenset()
    new: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    t: str | None = None
    """The name that it gives to t; empty where it drops t."""


def effect(*, t: str | None = None, **parts: Any) -> Effect:
    """An effect; sets are given as any collection."""
    return Effect(t=t, **{k: frozenset(v) for k, v in parts.items()})


def make_contested(url: str, data_path: str) -> Lake:
    """The lake, made by DuckDB."""
    lake = Lake(url, data_path)
    lake.tell(*_IN_FILES)
    lake.tell(*_IN_CATALOG, *_OBJECTS, inline=10)
    return lake


def left_by(*effects: Effect) -> tuple[frozenset[str], frozenset[str], list[tuple[int]]]:
    """Names, columns and rows after all effects; no columns and rows when t is gone."""
    names = NAMES
    for one in effects:
        names = names - one.gone | one.new
    if not t_after(*effects):
        return names.difference(one.t for one in effects if one.t), frozenset(), []
    columns = frozenset({"id"}).union(*(one.columns for one in effects))
    rows = ROWS.difference(*(one.removes for one in effects))
    rows = rows.union(*(one.adds for one in effects))
    return names, columns, [(n,) for n in sorted(rows)]


def t_after(*effects: Effect) -> str:
    """The name that t has after all effects; empty when it is gone."""
    given = [one.t for one in effects if one.t is not None]
    return min(given, default="main.t")


def seen_by(oracle: Any, t: str) -> tuple[frozenset[str], frozenset[str], list[tuple[int]]]:
    """Names, columns and rows as DuckDB reads them, after some facts that must hold anyway."""
    names = frozenset(
        name.lower()
        for (name,) in oracle.sql(
            "SELECT schema_name FROM duckdb_schemas() WHERE database_name = 'lake'"
            " UNION ALL SELECT schema_name || '.' || table_name FROM duckdb_tables()"
            " WHERE database_name = 'lake' UNION ALL SELECT schema_name || '.' || view_name"
            " FROM duckdb_views() WHERE database_name = 'lake'"
            " UNION ALL SELECT schema_name || '.' || function_name || '()' FROM duckdb_functions()"
            " WHERE database_name = 'lake' AND function_type LIKE '%macro%'"
        )
    )
    if not t:
        return names, frozenset(), []
    rows = oracle.rows(t, columns="id")
    ids = [n for (n,) in rows]
    # Answered from the catalog, and by row ids.
    assert oracle.sql(f"SELECT count(*), min(id), max(id), count(DISTINCT rowid) FROM {t}") == [
        (len(ids), min(ids), max(ids), len(ids))
    ]
    return names, frozenset(name for name, _ in oracle.columns(t)), rows


class Reader:
    """One DuckDB for many lakes: starting it takes longer than what it reads here."""

    def __init__(self, url: str) -> None:
        self._oracle = DuckDBOracle(url)
        self._oracle.execute("SET threads = 1")
        self._leave()

    def looks_at(self, url: str, base: int, *effects: Effect) -> None:
        """Assert that DuckDB reads what is left by the effects, and at ``base`` what was there."""
        self._oracle.execute(duckdb_attach_string(url))
        self._oracle.execute("USE lake")
        try:
            assert seen_by(self._oracle, t_after(*effects)) == left_by(*effects)
            assert self._oracle.rows("main.t", version=base, columns="id") == left_by()[2]
        finally:
            self._leave()

    def close(self) -> None:
        self._oracle.close()

    def _leave(self) -> None:
        self._oracle.execute("USE memory")
        self._oracle.execute("DETACH lake")


def everything(lake):
    """Every row of every table of the catalog."""
    with lake.store.read() as connection:
        return {
            name: sorted(map(repr, connection.exec_driver_sql(f'SELECT * FROM "{name}"')))
            for name in lake.store.table_names(connection)
        }
