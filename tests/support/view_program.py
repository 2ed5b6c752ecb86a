"""Drawn views over drawn tables, and drawn ALTERs between which DuckDB says what the views show.

DuckDB writes the views, as it writes any, and reads them after each ALTER. It is also asked what a
change would break: on a copy of the catalog, in which it makes the change itself.
"""

from __future__ import annotations

import random
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import duckdb

from shelduck import InvalidRequest
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from collections.abc import Callable

    import shelduck

NAMES = ("a", "b", "c", "d", "id", "odd name", 'say "x"')
TABLES = ("t", "u", "w")
_JOINS = (
    "JOIN {u} ON {t}.{x} = {u}.{y}",
    "LEFT JOIN {u} ON {t}.{x} < {u}.{y}",
    "JOIN {u} USING ({z})",
)
Shown = dict[str, tuple[list[str], list[str]]]


def quoted(name: str) -> str:
    """A name as DuckDB's SQL has it."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


class ViewProgram:
    """One program over an empty lake; ``copy`` returns the address of a copy of its catalog."""

    def __init__(
        self, lake: shelduck.Lake, url: str, copy: Callable[[], str], rng: random.Random
    ) -> None:
        self.lake, self.url, self.copy, self.rng = lake, url, copy, rng
        self.columns: dict[str, list[str]] = {}
        self.told: list[str] = []

    def run(self, steps: int) -> None:
        """Make tables and views, and change the tables step by step."""
        self._make()
        for _ in range(steps):
            self._step()

    def _make(self) -> None:
        with DuckDBOracle(self.url) as oracle:
            for table in TABLES:
                names = self.rng.sample(NAMES, self.rng.randint(2, 4))
                self.columns[table] = names
                columns = ", ".join(f"{quoted(name)} INT" for name in names)
                oracle.execute(f"CREATE TABLE {table} ({columns})")
                for row in range(3):
                    # No two columns of a name in any table hold the same.
                    values = ", ".join(str(2 * row + NAMES.index(name)) for name in names)
                    oracle.execute(f"INSERT INTO {table} VALUES ({values})")
            made = 0
            while made < 6:
                query = self._query(views=[f"v{n}" for n in range(made)], oracle=oracle)
                with suppress(duckdb.Error):
                    oracle.execute(f"CREATE VIEW v{made} AS {query}")
                    made += 1
                    self.told.append(query)

    def _query(self, views: list[str], oracle: DuckDBOracle) -> str:
        """A query that may not be valid: a name may be ambiguous, or of no table."""
        rng = self.rng
        relations = {**self.columns, **{v: [n for n, _ in oracle.columns(v)] for v in views}}
        t, u = rng.choice([*relations]), rng.choice([*relations])
        x, y, z = (quoted(rng.choice(relations[r])) for r in (t, u, t))
        any_name = quoted(rng.choice(NAMES))
        join = rng.choice(_JOINS).format(t=t, u=u, x=x, y=y, z=z) if t != u else ""
        return rng.choice(
            [
                f"SELECT {x}, {any_name} FROM {t} {join}",
                f"SELECT {t}.{x}, {z} AS {any_name} FROM {t} {join} WHERE {x} > 0 ORDER BY {x}",
                f"SELECT * FROM {t}",
                f"SELECT q.{x} FROM (SELECT * FROM {t}) q {join.replace(t + '.', 'q.')}",
                f"SELECT {x} + 1, max({z}) FROM {t} GROUP BY {x}",
                f"SELECT {x} AS n FROM {t} WHERE EXISTS (SELECT 1 FROM {u} WHERE {y} = {any_name})",
                f"WITH c AS (SELECT {x} FROM {t}) SELECT c.{x} FROM c UNION SELECT {y} FROM {u}",
                f"SELECT k.{x}, row_number() OVER (ORDER BY k.{z}) AS r FROM {t} AS k",
                f"SELECT {x} AS {any_name}, {any_name} + {any_name} AS twice FROM {t}",
                f"SELECT main.{t}.{x}, {u}.* FROM main.{t}, {u}",
            ]
        )

    def _step(self) -> None:
        rng = self.rng
        table = rng.choice(TABLES)
        names = self.columns[table]
        old, new = rng.choice(names), rng.choice(NAMES)
        kind = rng.choice(["rename", "rename", "rename", "add", "drop"])
        before = self._shown()
        if kind == "rename" and new not in names:
            self._alter(table, f"RENAME COLUMN {spark(old)} TO {spark(new)}", before)
        elif kind == "add" and new not in names:
            self._alter(table, f"ADD COLUMN {spark(new)} INT", before)
        elif kind == "drop" and len(names) > 1:
            self._drop(table, old, before)
        self.columns = {t: self.lake.table(t).columns.names for t in TABLES}

    def _alter(self, table: str, change: str, before: Shown) -> None:
        """Every view shows what it showed, but for the columns that ``*`` shows now."""
        self.told.append(f"ALTER TABLE {table} {change}")
        snapshot = self.lake.snapshots()[-1].id
        if not self._carried_out(self.told[-1]):
            self.told[-1] += " -- refused"
            assert self.lake.snapshots()[-1].id == snapshot
        self._same(before)

    def _drop(self, table: str, column: str, before: Shown) -> None:
        """Shelduck refuses what DuckDB's own DROP would break, and CASCADE drops those views."""
        then = self._if_duckdb_drops(table, column)
        broken = {v for v in before if v not in then}
        # A name may mean something else without the column: nothing fails, and rows change.
        broken |= {v for v in then if not self._stars(v) and then[v] != before[v]}
        broken |= {v for v in before if self._reads(v, broken)}
        change = f"ALTER TABLE {table} DROP COLUMN {spark(column)}"
        self.told.append(change)
        if not self._carried_out(change):
            self.lake.execute(f"{change} CASCADE")
        else:
            assert not broken, (self.told, broken)
        after = self._shown()
        gone = {*before} - {*after}
        named = {v for v in before if quoted(column) in self.told[int(v[1:])]}
        # A name that would mean another column of the same values.
        others = named | {v for v in before if self._reads(v, named)}
        assert broken <= gone <= broken | others, (self.told, gone, broken)
        self._same({view: before[view] for view in after})

    def _carried_out(self, statement: str) -> bool:
        """Whether an ALTER is carried out; if not, it says that it would break views."""
        try:
            self.lake.execute(statement)
        except InvalidRequest as error:
            if "would break views" not in str(error):
                raise
            return False
        return True

    def _if_duckdb_drops(self, table: str, column: str) -> Shown:
        copy = self.copy()
        with DuckDBOracle(copy) as oracle:
            oracle.execute(f"ALTER TABLE {table} DROP COLUMN {quoted(column)}")
            return _shown(oracle)

    def _shown(self) -> Shown:
        with DuckDBOracle(self.url) as oracle:
            return _shown(oracle)

    def _same(self, before: Shown) -> None:
        after = self._shown()
        assert {*after} == {*before}, (self.told, {*before} - {*after})
        for view, (names, rows) in before.items():
            if len(after[view][0]) == len(names) and not self._stars(view):
                assert after[view] == (names, rows), (self.told, view)

    def _reads(self, view: str, others: set[str]) -> bool:
        """Whether a view reads some of the others, or one that does."""
        query = self.told[int(view[1:])]
        read = [f"v{n}" for n in range(6) if re.search(rf"\bv{n}\b", query)]
        return any(v in others or self._reads(v, others) for v in read)

    def _stars(self, view: str) -> bool:
        """Whether a view shows ``*``, or reads one that does."""
        query = self.told[int(view[1:])]
        return "*" in query or any(
            self._stars(f"v{n}") for n in range(6) if f"v{n}" in query and f"v{n}" != view
        )


def spark(name: str) -> str:
    """A name as Shelduck's SQL has it."""
    return f"`{name}`"


def _shown(oracle: DuckDBOracle) -> Shown:
    """The names and rows of each view that does not fail."""
    found: Shown = {}
    for (view,) in oracle.sql("SELECT view_name FROM duckdb_views() WHERE view_name LIKE 'v_'"):
        with suppress(duckdb.Error):
            rows: list[Any] = oracle.sql(f"SELECT * FROM {view}")
            found[view] = [n for n, _ in oracle.columns(view)], sorted(map(str, rows))
    return found
