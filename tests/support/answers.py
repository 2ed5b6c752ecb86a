"""Tables with rollups and queries over them, drawn at random: what a shortcut may not change.

Many queries are one query of Spark: the rows of each stand as text behind its number.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shelduck.model.tables.rollup import rollup_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shelduck import Lake

    Draw = Callable[[int], int]

VALUES = {
    "int32": ("0", "1", "-3", "NULL"),
    "int64": ("0", "1", "-3", "NULL"),
    "varchar": ("'a'", "'b'", "''", "NULL"),
    "date": ("DATE'2024-01-01'", "DATE'2024-01-02'", "NULL"),
    "decimal(9,2)": ("1.50", "-0.25", "0", "NULL"),
}
NUMBERS = ("int32", "int64", "decimal(9,2)")
SQL = {"int32": "INT", "int64": "BIGINT", "varchar": "STRING", "date": "DATE"}
SQL |= {"decimal(9,2)": "DECIMAL(9,2)"}
MODELS = ("AGGREGATE", "UNIQUE", "DUPLICATE")
HOW = ("SUM", "MAX", "MIN", "REPLACE", "REPLACE_IF_NOT_NULL")
COMPARED = ("=", "<>", "<", ">=", "<=>")


@dataclass
class Drawing:
    """Choices, each by one number."""

    draw: Draw

    def one(self, options: Sequence[str]) -> str:
        return options[self.draw(len(options))]

    def some(self, options: Sequence[str], least: int = 1, most: int | None = None) -> list[str]:
        """Some of the options in any order."""
        left = list(options)
        most = len(left) if most is None else min(most, len(left))
        count = least + self.draw(max(1, most - least + 1))
        return [left.pop(self.draw(len(left))) for _ in range(count)]

    def maybe(self) -> bool:
        return self.draw(2) == 1


@dataclass
class Table:
    """A table: its keys, and its other columns with how they are combined, "" for not at all."""

    name: str
    model: str
    keys: dict[str, str]
    values: dict[str, tuple[str, str]]
    rollups: list[list[str]] = field(default_factory=list)
    views: list[str] = field(default_factory=list)

    def create(self) -> list[str]:
        columns = [f"{n} {SQL[kind]}" for n, kind in self.keys.items()]
        columns += [f"{n} {SQL[kind]} {how}" for n, (kind, how) in self.values.items()]
        listed = ", ".join(f"r{n} ({', '.join(r)})" for n, r in enumerate(self.rollups))
        rollups = f" ROLLUP ({listed})" if listed else ""
        keys = f"{self.model} KEY ({', '.join(self.keys)})"
        return [f"CREATE TABLE {self.name} ({', '.join(columns)}) {keys}{rollups}", *self.views]


def drawn_table(drawing: Drawing, name: str, model: str) -> Table:
    """A table with rollups that its model allows, and that are of use."""
    kinds = {"k": "int32", "g": "varchar", "d": "date"}
    keys = {n: kinds[n] for n in list(kinds)[: 2 + drawing.draw(2)]}
    values = {}
    for n in ("v", "w", "x")[: drawing.draw(4)]:
        how = drawing.one(HOW) if model == "AGGREGATE" else ""
        values[n] = (drawing.one(NUMBERS), how)
    found = Table(name, model, keys, values)
    for _ in range(1 + drawing.draw(3)):
        rollup = _rollup(drawing, found)
        if rollup is not None and rollup not in found.rollups:
            found.rollups.append(rollup)
    if model == "DUPLICATE" and values:
        groups = drawing.some([*keys], most=2)
        value, most = next(iter(values)), drawing.one([*keys])
        found.views.append(
            f"CREATE MATERIALIZED VIEW z AS SELECT {', '.join(groups)}, SUM({value}) s,"
            f" COUNT({value}) c, MAX({most}) hi, COUNT(*) n FROM {name}"
            f" GROUP BY {', '.join(groups)}"
        )
    return found


def _rollup(drawing: Drawing, table: Table) -> list[str] | None:
    keys, values = [*table.keys], [*table.values]
    if table.model == "DUPLICATE":
        found = drawing.some([*keys, *values])
        starts = [*keys, *values][: len(found)]
        return None if found == starts or found[0] in values else found
    chosen = drawing.some(keys, least=len(keys) if table.model == "UNIQUE" else 1)
    if chosen == keys:
        chosen = chosen[1:] + chosen[:1]
    if len(chosen) < len(keys):
        values = [n for n in values if not table.values[n][1].startswith("REPLACE")]
    return [*chosen, *drawing.some(values, least=0)] if values else chosen


def drawn_rows(drawing: Drawing, table: Table, count: int) -> str:
    kinds = [*table.keys.values(), *(kind for kind, _ in table.values.values())]
    rows = [", ".join(drawing.one(VALUES[kind]) for kind in kinds) for _ in range(count)]
    return f"INSERT INTO {table.name} VALUES {', '.join(f'({row})' for row in rows)}"


@dataclass
class Queries:
    """Queries over tables with these columns, of which one is joined with another.

    Most ask for the columns of one rollup, of which ``rollups`` has the names.
    """

    drawing: Drawing
    every: dict[str, dict[str, str]]
    rollups: dict[str, list[list[str]]]
    columns: dict[str, dict[str, str]] = field(init=False)

    def drawn(self) -> str:
        self.columns = {name: self._some_of(name) for name in self.every}
        if not {*self.columns["t"]} & {*self.columns["u"]}:
            self.columns = self.every
        kind = self.drawing.draw(8)
        table = self.drawing.one([*self.columns])
        makers = (self.grouped, self.grouped, self.grouped, self.plain, self.plain, self.joined)
        return (*makers, self.nested, self.window)[kind](table)

    def _some_of(self, table: str) -> dict[str, str]:
        """The columns of a table that a query asks for: of one rollup, or all."""
        every, rollups = self.every[table], self.rollups[table]
        if not rollups or self.drawing.draw(4) == 0:
            return every
        held = rollups[self.drawing.draw(len(rollups))]
        return {n: kind for n, kind in every.items() if n in held} or every

    def column(self, table: str, prefix: str = "", kinds: Sequence[str] = ()) -> str | None:
        found = [n for n, kind in self.columns[table].items() if not kinds or kind in kinds]
        return prefix + self.drawing.one(found) if found else None

    def condition(self, table: str, prefix: str = "") -> str:
        name = self.drawing.one([*self.columns[table]])
        value = self.drawing.one(VALUES[self.columns[table][name]][:-1])
        other = self.drawing.one(VALUES[self.columns[table][name]][:-1])
        column = prefix + name
        return (
            f"{column} {self.drawing.one(COMPARED)} {value}",
            f"{column} IN ({value}, {other})",
            f"{column} IS {self.drawing.one(['', 'NOT '])}NULL",
            f"({column} = {value} OR {column} IS NULL)",
        )[self.drawing.draw(4)]

    def where(self, table: str, prefix: str = "") -> str:
        found = [self.condition(table, prefix) for _ in range(self.drawing.draw(3))]
        return f" WHERE {' AND '.join(found)}" if found else ""

    def aggregate(self, table: str, prefix: str = "") -> str:
        any_, number = self.column(table, prefix), self.column(table, prefix, NUMBERS)
        found = [
            *("COUNT(*)", "COUNT(1)", f"COUNT({any_})", f"COUNT(DISTINCT {any_})"),
            *(f"MIN({any_})", f"MAX({any_})"),
            f"COUNT(*) FILTER (WHERE {self.condition(table, prefix)})",
        ]
        if number is not None:
            found += [f"AVG({number})", f"SUM(DISTINCT {number})", f"SUM({number} + 1)"]
            found += [f"SUM({number})"] * 3 + [f"MAX({number}) - MIN({number})"]
        return self.drawing.one(found)

    def grouped(self, table: str, source: str | None = None, prefix: str = "") -> str:
        names = [prefix + n for n in self.columns[table]]
        groups = self.drawing.some(names, least=0, most=2)
        made = [self.aggregate(table, prefix) for _ in range(self.drawing.draw(3))]
        if not groups and not made:
            made = [self.aggregate(table, prefix)]
        text = f"SELECT {_named([*groups, *made])} FROM {source or table}"
        text += "" if source else self.where(table)
        if groups:
            text += f" GROUP BY {', '.join(groups)}"
        if self.drawing.draw(4) == 0:
            more = self.drawing.one(["", " AND COUNT(*) > 1"])
            text += f" HAVING {self.aggregate(table, prefix)} IS NOT NULL{more}"
        return text

    def plain(self, table: str) -> str:
        names = self.drawing.some([*self.columns[table]], most=3)
        distinct = self.drawing.one(["", "", "DISTINCT "])
        return f"SELECT {distinct}{_named(names)} FROM {table}{self.where(table)}"

    def shared(self, table: str, other: str) -> list[str]:
        """Columns of the same name and type: keys of the two tables begin alike."""
        found = self.columns[other]
        both = [n for n, kind in self.columns[table].items() if found.get(n) == kind]
        return both or [
            n for n, kind in self.every[table].items() if self.every[other].get(n) == kind
        ]

    def joined(self, table: str) -> str:
        other = self.drawing.one([*self.columns])
        both = self.shared(table, other)
        on = " AND ".join(f"a.{n} = b.{n}" for n in self.drawing.some(both, most=2))
        how = self.drawing.one(["", "LEFT ", "LEFT SEMI ", "LEFT ANTI "])
        source = f"{table} a {how}JOIN {other} b ON {on}{self.where(table, 'a.')}"
        if self.drawing.maybe():
            return self.grouped(table, source, "a.")
        names = [f"a.{n}" for n in self.drawing.some([*self.columns[table]], most=2)]
        return f"SELECT {_named(names)} FROM {source}"

    def nested(self, table: str) -> str:
        other = self.drawing.one([*self.columns])
        both = self.shared(table, other)
        name = self.drawing.one(both)
        inner = f"FROM {other} b{self.where(other, 'b.')}"
        made = self.aggregate(table)
        verb = self.drawing.one(["UNION", "EXCEPT", "INTERSECT"])
        same, counted = f"{other} b WHERE b.{name} = a.{name}", f"(SELECT COUNT(*) {inner})"
        group = f"FROM {table} GROUP BY {name}"
        per = f"SELECT {name}, COUNT(*) n {group}"
        return (
            f"SELECT {_named([made])} FROM {table} WHERE {name} IN (SELECT b.{name} {inner})",
            f"SELECT {_named([name])} FROM {table} WHERE {name} >= (SELECT MAX(b.{name}) {inner})",
            f"SELECT {_named([name, counted])} FROM {table}",
            f"SELECT COUNT(*) c0 FROM {table} a WHERE EXISTS (SELECT 1 FROM {same})",
            f"SELECT a.{name} c0, (SELECT COUNT(*) FROM {same}) c1 FROM {table} a",
            f"SELECT COUNT(*) c0, MAX(n) c1 FROM (SELECT {name}, {made} n {group}) i",
            f"SELECT a.n c0, b.n c1 FROM ({per}) a JOIN ({per}) b ON a.{name} <=> b.{name}",
            f"SELECT {name} c0 FROM {table} {verb} ALL SELECT {name} FROM {other}",
        )[self.drawing.draw(8)]

    def window(self, table: str) -> str:
        one, two = self.column(table), self.column(table)
        made = self.drawing.one(
            [
                f"COUNT(*) OVER (PARTITION BY {one})",
                f"RANK() OVER (PARTITION BY {one} ORDER BY {two})",
                f"MAX({two}) OVER (PARTITION BY {one})",
                "COUNT(*) OVER ()",
                f"DENSE_RANK() OVER (ORDER BY {two})",
            ]
        )
        if self.drawing.maybe():
            return f"SELECT {_named([str(one), made])} FROM {table}{self.where(table)}"
        windowed = "SUM(COUNT(*)) OVER ()"
        return f"SELECT {_named([str(one), windowed])} FROM {table} GROUP BY {one}"


def _named(expressions: Sequence[str]) -> str:
    return ", ".join(f"{text} AS c{n}" for n, text in enumerate(expressions))


def as_one(queries: Sequence[str], hint: str = "") -> str:
    """A query that has the rows of all, as text behind the numbers of their queries."""
    parts = [
        f"SELECT {hint if not n else ''} {n} AS n, to_json(struct(q.*)) AS r FROM ({text}) q"
        for n, text in enumerate(queries)
    ]
    return " UNION ALL ".join(parts)


def answers(found: object, count: int) -> list[Counter[str]]:
    """The rows of each query of `as_one`."""
    made: list[Counter[str]] = [Counter() for _ in range(count)]
    for number, text in found.collect():  # type: ignore[attr-defined]
        made[number][text] += 1
    return made


def columns_of(lake: Lake, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """The columns of tables that queries may ask for, with their types."""
    found = {name: lake.table(name).columns for name in names}
    return {
        name: {f.name: str(f.type) for f in columns if str(f.type) in VALUES}
        for name, columns in found.items()
    }


def rollup_columns(lake: Lake, names: Sequence[str]) -> dict[str, list[list[str]]]:
    """The names of the columns that rollups of tables hold, or combine."""
    there = [t.name for t in lake.tables()]
    found: dict[str, list[list[str]]] = {name: [] for name in names}
    for name in names:
        base = lake.table(name).columns
        for table in [t for t in there if t.startswith(f"{name}$")]:
            rollup = rollup_of(lake.table(table)._version())
            assert rollup is not None
            held = [base.by_id(c.source) for c in rollup.columns if c.source is not None]
            found[name].append([f.name for f in held if f is not None])
    return found
