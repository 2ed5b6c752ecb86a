"""Random events around tables with rollups: writes by us and DuckDB, ALTERs, crashes, upkeep.

A plain list of rows says what the base holds. After each event both engines read it, and every
rollup that Shelduck calls fresh holds what DuckDB makes of the base; after a write of ours all are.
At the end older snapshots read as they did.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import shelduck
from shelduck import OutcomeUnknown
from shelduck.ducklake.format import FORMATS
from shelduck.lake import unit
from shelduck.model.tables.keys import DELETE_SIGN
from shelduck.rollups import following
from tests.properties.test_evolution import SETTINGS
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.lakes import newest
from tests.support.lengths import long
from tests.support.rollups import Followed, bag

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

Row = dict["Column", Any]
Draw = Callable[[int], int]
Note = Callable[[str], object]
MODELS = ("DUPLICATE", "UNIQUE", "AGGREGATE")
EVENTS = (
    "load load update delete merge transaction duckdb_insert duckdb_delete duckdb_spoil"
    " add drop rename refresh fold upkeep crash"
).split()
KEYS = (0, 1, 2, None)
GROUPS = ("a", "b", None)
VALUES = (-3, 0, 1, 7, None)
COMBINED: dict[str, Callable[[list[int]], int]] = {"SUM": sum, "MIN": min, "MAX": max}


@dataclass(eq=False)
class Column:
    """A column, which stays itself under any name; ``how`` combines it in an AGGREGATE table."""

    name: str
    how: str | None = None


@dataclass
class Held:
    """A rollup: the columns of the base that it holds; some count or combine rows by themselves."""

    keys: list[Column]
    values: list[Column] = field(default_factory=list)
    measures: str = ""

    @property
    def query(self) -> str:
        keys = ", ".join(c.name for c in self.keys)
        values = [c.name if c.how is None else f"{c.how}({c.name})" for c in self.values]
        if self.measures:
            values = [self.measures.format(*(c.name for c in self.values))]
        group = f" GROUP BY {keys}" if self.measures or any(c.how for c in self.values) else ""
        return f"SELECT {', '.join([keys, *values])} FROM {{t}}{group}"


class Story:
    """One run: the lake, the rows that its table should hold in their order, and its rollups."""

    def __init__(self, draw: Draw, note: Note, model: str, lake: Any, url: str) -> None:
        self._draw, self.note, self.model, self.lake = draw, note, model, lake
        how = ("SUM", "MAX") if model == "AGGREGATE" else (None, None)
        self.k, self.g = Column("k"), Column("g")
        self.v, self.m = Column("v", how[0]), Column("m", how[1])
        self.columns = [self.k, self.g, self.v, self.m]
        self.defaults: dict[Column, Any] = {}
        self.rows: list[Row] = []
        self.rollups = self.first_rollups()
        self.tables = Followed(lake, url, "t", {})
        self._names = 0
        self.create()

    def create(self) -> None:
        values = ", ".join(f"{c.name} INT {c.how or ''}" for c in (self.v, self.m))
        listed = {
            "DUPLICATE": "p (v, g)",
            "UNIQUE": "p (g, k, v), q (g, k, m)",
            "AGGREGATE": "p (g, v), q (g, k, m)",
        }[self.model]
        keys = f"{self.model} KEY (k{', g' if self.folds else ''})"
        self.lake.sql(f"CREATE TABLE t (k INT, g STRING, {values}) {keys} ROLLUP ({listed})")
        if not self.folds:
            self.lake.sql(
                "CREATE MATERIALIZED VIEW q AS SELECT g, SUM(v) s, MAX(m) hi, COUNT(*) n,"
                " COUNT(v) c FROM t GROUP BY g"
            )

    def first_rollups(self) -> dict[str, Held]:
        if self.model == "DUPLICATE":
            measures = "SUM({0}), MAX({1}), COUNT(*), COUNT({0})"
            return {"p": Held([self.v, self.g]), "q": Held([self.g], [self.v, self.m], measures)}
        if self.model == "UNIQUE":
            return {"p": Held([self.g, self.k], [self.v]), "q": Held([self.g, self.k], [self.m])}
        return {"p": Held([self.g], [self.v]), "q": Held([self.g, self.k], [self.m])}

    @property
    def folds(self) -> bool:
        return self.model != "DUPLICATE"

    def pick(self, options: Any) -> Any:
        found = list(options)
        return found[self._draw(len(found))]

    def run(self, events: int) -> None:
        self.load()
        self.check()
        for _ in range(events):
            getattr(self, self.pick(EVENTS))()
            self.check()
        self.load()
        self.check()
        self.check_versions()

    # What the rows become.

    def drawn(self) -> Row:
        row: Row = {c: self.pick(VALUES) for c in self.columns}
        return row | {self.k: self.pick(KEYS), self.g: self.pick(GROUPS)}

    def key(self, row: Row) -> tuple[Any, Any]:
        return row[self.k], row[self.g]

    def folded(self, rows: list[Row]) -> list[Row]:
        """Rows of one key as one row, the last or combined, where the first of them was."""
        if not self.folds:
            return rows
        found: dict[tuple[Any, Any], Row] = {}
        for row in rows:
            before = found.get(self.key(row))
            found[self.key(row)] = row if before is None else self.combined(before, row)
        return list(found.values())

    def combined(self, old: Row, new: Row) -> Row:
        if self.model == "UNIQUE":
            return new
        made = dict(new)
        for column in (c for c in self.columns if c.how is not None):
            values = [r[column] for r in (old, new) if r[column] is not None]
            made[column] = COMBINED[column.how](values) if values else None
        return made

    # Events.

    def load(self) -> None:
        rows = [self.drawn() for _ in range(self.pick((1, 3, 5)))]
        gone = self.model == "UNIQUE" and self.pick((False, False, True))
        after = self.folded([*self.folded(self.rows), *rows])
        if gone:
            dead = self.key(rows[-1])
            after = [r for r in after if self.key(r) != dead]
        names = [c.name for c in self.columns] + ([DELETE_SIGN] if gone else [])
        values = [self.literals(r) + ([str(r is rows[-1])] if gone else []) for r in rows]
        listed = ", ".join(f"({', '.join(v)})" for v in values)
        self.write(f"INSERT INTO t ({', '.join(names)}) VALUES {listed}", after)

    def update(self) -> None:
        number, column, value = self.pick(KEYS), self.pick([self.v, self.m]), self.pick(VALUES)
        change = {column: value}
        if not self.folds and self.pick((False, True)):
            change[self.g] = self.pick(GROUPS)
        sets = ", ".join(f"{c.name} = {literal(v)}" for c, v in change.items())
        after = [r | change if r[self.k] == number else r for r in self.folded(self.rows)]
        self.write(f"UPDATE t SET {sets} WHERE {self.k.name} <=> {literal(number)}", after)

    def delete(self) -> None:
        column = self.pick([self.k, self.g])
        value = self.pick(KEYS if column is self.k else GROUPS)
        after = [r for r in self.rows if r[column] != value]
        self.write(f"DELETE FROM t WHERE {column.name} <=> {literal(value)}", after)

    def merge(self) -> None:
        new, rows = self.drawn(), self.folded(self.rows)
        is_there = any(self.key(r) == self.key(new) for r in rows)
        after = [r | {self.v: new[self.v]} if self.key(r) == self.key(new) else r for r in rows]
        if not is_there:
            after.append({c: self.defaults.get(c) for c in self.columns})
            after[-1] |= {c: new[c] for c in (self.k, self.g, self.v)}
        k, g, v = (c.name for c in (self.k, self.g, self.v))
        a, b, c = (literal(new[c]) for c in (self.k, self.g, self.v))
        self.write(
            f"MERGE INTO t USING (SELECT CAST({a} AS INT) a, CAST({b} AS STRING) b,"
            f" CAST({c} AS INT) c) s ON t.{k} <=> s.a AND t.{g} <=> s.b"
            f" WHEN MATCHED THEN UPDATE SET {v} = s.c"
            f" WHEN NOT MATCHED THEN INSERT ({k}, {g}, {v}) VALUES (s.a, s.b, s.c)",
            after,
        )

    def transaction(self) -> None:
        """Two loads and a delete in one snapshot."""
        one, two, value = self.drawn(), self.drawn(), self.pick(GROUPS)
        after = self.folded([*self.folded(self.rows), one])
        after = [r for r in after if r[self.g] != value]
        after = self.folded([*after, two])
        texts = [f"INSERT INTO t VALUES ({', '.join(self.literals(r))})" for r in (one, two)]
        delete = f"DELETE FROM t WHERE {self.g.name} <=> {literal(value)}"
        self.write(f"BEGIN; {texts[0]}; {delete}; {texts[1]}; COMMIT", after)

    def crash(self) -> None:
        """A load that dies after its files, before its commit, or does not hear of its commit."""
        place = self.pick(["follow", "before", "after"])
        self.note(f"crash {place}")
        before, rows = newest(self.lake), list(self.rows)
        with pytest.MonkeyPatch.context() as patch:
            if place == "follow":
                patch.setattr(following, "_stage_rollup", dying)
            else:
                patch.setattr(unit, "commit", deaf if place == "after" else dying)
            with suppress(KeyboardInterrupt, OutcomeUnknown):
                self.load()
        if newest(self.lake) == before:
            self.rows = rows
        assert (newest(self.lake) == before) is (place != "after")

    def write(self, text: str, after: list[Row]) -> None:
        """A statement of ours: one snapshot after which rollups are right, or none."""
        self.note(text)
        before, self.rows = newest(self.lake), after
        self.lake.sql(text)
        made = newest(self.lake) - before
        assert made in (0, 1)
        assert not made or all(self.tables.fresh().values())

    def duckdb(self, *statements: str) -> None:
        self.note(f"duckdb: {statements}")
        self.tables.duckdb(*statements, inline=self.pick((0, 100)))

    def duckdb_insert(self) -> None:
        """Rows of keys that may be there already; they are folded by the next write."""
        row = self.drawn()
        self.rows = [*self.rows, row]
        self.duckdb(f"INSERT INTO t VALUES ({', '.join(self.literals(row))})")
        assert not any(self.tables.fresh().values())

    def duckdb_delete(self) -> None:
        value = self.pick(GROUPS)
        self.rows = [r for r in self.rows if r[self.g] != value]
        self.duckdb(f"DELETE FROM t WHERE {self.g.name} IS NOT DISTINCT FROM {literal(value)}")

    def duckdb_spoil(self) -> None:
        """Rows of a rollup go, of which the log tells only that."""
        self.duckdb(f'DELETE FROM "t${self.pick(self.rollups)}"')

    def add(self) -> None:
        self._names += 1
        how = self.pick(COMBINED) if self.model == "AGGREGATE" else None
        column = Column(f"n{self._names}", how)
        value = self.pick((None, 0 if how == "SUM" else 4))
        name = self.pick([None, *(n for n, r in self.rollups.items() if not r.measures)])
        default = "" if value is None else f" DEFAULT {value}"
        target = "" if name is None else f" TO {name}"
        self.alter(f"ADD COLUMN {column.name} INT {how or ''}{default}{target}")
        self.columns.append(column)
        self.rows = [{**r, column: value} for r in self.rows]
        self.defaults[column] = value
        if name is not None:
            self.rollups[name].values.append(column)

    def drop(self) -> None:
        """A column that was added goes from a rollup alone, or from the base and so from all."""
        added = [c for c in self.columns if c.name.startswith("n")]
        if not added:
            return
        column = self.pick(added)
        holders = [n for n, r in self.rollups.items() if column in r.values]
        name = self.pick([None, *holders])
        self.alter(f"DROP COLUMN {column.name}{'' if name is None else f' FROM {name}'}")
        for holder in holders if name is None else [name]:
            self.rollups[holder].values.remove(column)
        if name is None:
            self.columns.remove(column)
            self.rows = [{c: r[c] for c in self.columns} for r in self.rows]

    def rename(self) -> None:
        column = self.pick(self.columns)
        self._names += 1
        new = f"{column.name[0]}{self._names}"
        self.alter(f"RENAME COLUMN {column.name} TO {new}")
        column.name = new

    def alter(self, clause: str) -> None:
        """A change of columns is one snapshot; another one follows where rollups are stale."""
        self.note(clause)
        before, fresh = newest(self.lake), all(self.tables.fresh().values())
        self.lake.sql(f"ALTER TABLE t {clause}")
        assert newest(self.lake) - before in ((1,) if fresh else (1, 2))

    def refresh(self) -> None:
        self.note("refresh")
        self.lake.sql("CALL refresh_rollups('t')")
        assert all(self.tables.fresh().values()) or not self.rows

    def fold(self) -> None:
        if self.folds:
            self.note("fold")
            self.rows = self.folded(self.rows)
            self.lake.sql("CALL fold('t')")

    def upkeep(self) -> None:
        table = self.lake.table(self.pick(self.tables.tables))
        verb = self.pick([table.compact, table.flush_inlined_data, table.rewrite])
        self.note(f"{table.name} {verb.__name__}")
        verb()

    # What is there.

    def check(self) -> None:
        fresh = self.tables.fresh()
        queries = {n: r.query for n, r in self.rollups.items()}
        assert fresh.keys() == queries.keys()
        self.tables.queries = {n: q for n, q in queries.items() if fresh[n]}
        held = self.tables.agree()
        assert held["t"] == Counter(map(self.tuple, self.rows))

    def check_versions(self) -> None:
        """DuckDB reads every snapshot as it was, and Shelduck some."""
        some = [self.pick(self.tables.seen) for _ in range(2)]
        with oracle_at(self.tables.url) as duckdb:
            for version, held in self.tables.seen.items():
                for name, rows in held.items():
                    assert bag(duckdb.rows(f'"{name}"', version=version)) == rows
        for version in some:
            for name, rows in self.tables.seen[version].items():
                frame = self.lake.sql(f"SELECT * FROM `{name}` VERSION AS OF {version}")
                assert bag(frame.collect()) == rows

    def tuple(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[c] for c in self.columns)

    def literals(self, row: Row) -> list[str]:
        return [literal(v) for v in self.tuple(row)]


def literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value)


def dying(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


_commit = unit.commit


def deaf(*arguments: Any, **more: Any) -> None:
    """A commit of whose end nobody hears."""
    _commit(*arguments, **more)
    raise OutcomeUnknown("the connection broke")


def tell(draw: Draw, note: Note, model: str, spark: SparkSession, folder: Path, *, n: int) -> None:
    url = f"sqlite:///{folder}/lake.db"
    version = list(FORMATS)[draw(len(FORMATS))]
    note(f"DuckLake {version}")
    with shelduck.connect(
        url, str(folder / "data"), spark, progress=False, ducklake_version=version
    ) as lake:
        Story(draw, note, model, lake, url).run(n)
    shutil.rmtree(folder)


@pytest.mark.parametrize(("model", "seed"), [(model, 1) for model in MODELS])
def test_a_few_events_leave_rollups_as_their_base(spark, tmp_path, model, seed):
    folder = tmp_path / "story"
    folder.mkdir()
    tell(random.Random(seed).randrange, print, model, spark, folder, n=2)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@settings(SETTINGS, max_examples=long(5, 1))
@given(st.data())
def test_events_leave_rollups_as_their_base(spark, tmp_path_factory, model, data):
    def draw(options: int) -> int:
        return data.draw(st.integers(0, options - 1))

    tell(draw, note, model, spark, tmp_path_factory.mktemp("story"), n=14)
