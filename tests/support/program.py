"""A table as a dictionary of rows, and random statements that change it as they change a lake.

Rows go by a key that never changes; values go by the identity of their column, so that a column
that comes again under an old name is another one.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis import strategies as st

Values = dict[int, Any]
Test = "Callable[[int, Values], bool]"

KEY, V, S = 0, 1, 2
NAMES = ("c", "d", "e", "f")
WORDS = ["", "a", "it's", "größe", "b c"]


@dataclass
class State:
    """The rows of one moment: by key, then by identity of the column; names in column order."""

    names: dict[int, str] = field(default_factory=lambda: {KEY: "id", V: "v", S: "s"})
    defaults: dict[int, int] = field(default_factory=dict)
    rows: dict[int, Values] = field(default_factory=dict)
    row_ids: dict[int, int] = field(default_factory=dict)
    """What was seen of them; a key that is missing has a new row."""

    def expected(self) -> list[tuple[Any, ...]]:
        """The rows as a query without conditions gives them, by key."""
        return [
            tuple(key if c == KEY else values.get(c) for c in self.names)
            for key, values in sorted(self.rows.items())
        ]

    def put(self, key: int, values: Values) -> None:
        """A new row; columns that are not given have their default."""
        self.rows[key] = {c: self.defaults.get(c) for c in self.names if c != KEY} | values
        self.row_ids.pop(key, None)

    def remove(self, key: int) -> None:
        """The end of a row."""
        del self.rows[key]
        self.row_ids.pop(key, None)


@dataclass(frozen=True)
class Step:
    """What is said to the lake: a statement for both dialects, or one for Shelduck only."""

    statement: str
    by: str = "both"


class Author:
    """Draws statements, and does to its own rows what they say."""

    def __init__(self, data: st.DataObject, strategies: Any) -> None:
        self.data = data
        self.st = strategies
        self.state = State()
        self.next_key = 0
        self.next_column = 3

    def number(self, low: int, high: int) -> int:
        return int(self.data.draw(self.st.integers(low, high)))

    def pick(self, values: list[Any]) -> Any:
        return self.data.draw(self.st.sampled_from(values))

    def rows_statement(self) -> Step:
        """One statement over rows."""
        kinds = [self.insert] * 3 + [self.delete, self.update, self.update, self.merge, self.sync]
        kinds += [self.overwrite, self.replace, self.truncate] if self.state.rows else []
        found: Step = self.pick(kinds)()
        return found

    def shape_statement(self) -> Step:
        """One ALTER TABLE."""
        extra = [c for c in self.state.names if c > S]
        kinds = [self.rename_column]
        kinds += [self.add_column] if len(extra) < len(NAMES) else []
        kinds += [self.drop_column] if extra else []
        found: Step = self.pick(kinds)()
        return found

    def insert(self) -> Step:
        count = self.pick([1, 2, 3, 15])
        rows = [self.fresh_row() for _ in range(count)]
        for key, v, s in rows:
            self.state.put(key, {V: v, S: s})
        values = ", ".join(f"({key}, {_sql(v)}, {_sql(s)})" for key, v, s in rows)
        return Step(f"INSERT INTO t (id, v, {self.state.names[S]}) VALUES {values}")

    def fresh_row(self) -> tuple[int, int | None, str]:
        self.next_key += 1
        return self.next_key, self.pick([None, 0, 7, -3, 2**40]), self.pick(WORDS)

    def condition(self) -> tuple[str, Callable[[int, Values], bool]]:
        at = self.number(1, max(self.next_key, 1))
        rest = self.number(0, 2)
        newest = max(self.state.rows, default=0)
        found: tuple[str, Callable[[int, Values], bool]] = self.pick(
            [
                (f"id = {at}", lambda key, _: key == at),
                (f"id <= {at}", lambda key, _: key <= at),
                (f"id % 3 = {rest}", lambda key, _: key % 3 == rest),
                ("v IS NULL", lambda _, row: row[V] is None),
                ("v > 0 OR id > 9", lambda key, row: (row[V] or 0) > 0 or key > 9),
                ("id IN (SELECT max(id) FROM t)", lambda key, _: key == newest),
            ]
        )
        return found

    def chosen(self, matches: Callable[[int, Values], bool]) -> list[int]:
        return [key for key, row in self.state.rows.items() if matches(key, row)]

    def delete(self) -> Step:
        text, matches = self.condition()
        for key in self.chosen(matches):
            self.state.remove(key)
        return Step(f"DELETE FROM t WHERE {text}")

    def truncate(self) -> Step:
        for key in list(self.state.rows):
            self.state.remove(key)
        return Step("TRUNCATE TABLE t", by="shelduck")

    def update(self) -> Step:
        text, matches = self.condition()
        word = self.pick(WORDS)
        for key in self.chosen(matches):
            row = self.state.rows[key]
            row[V] = None if row[V] is None else row[V] + 10
            row[S] = word
        s = self.state.names[S]
        return Step(f"UPDATE t SET v = v + 10, {s} = {_sql(word)} WHERE {text}")

    def source(self) -> list[tuple[int, int | None]]:
        known = sorted(self.state.rows)[: self.number(1, 4)]
        rows = [(key, self.pick([None, 5, -5])) for key in known]
        for _ in range(self.number(0, 2)):
            self.next_key += 1
            rows.append((self.next_key, self.pick([1, -1])))
        return rows or [(-1, 0)]

    def merge(self) -> Step:
        """Update what is there, insert what is not."""
        rows = self.source()
        for key, v in rows:
            if key in self.state.rows:
                self.state.rows[key][V] = v
            else:
                self.state.put(key, {V: v})
        return Step(
            f"MERGE INTO t USING ({_values(rows)}) AS src ON t.id = src.id"
            " WHEN MATCHED THEN UPDATE SET v = src.v"
            " WHEN NOT MATCHED THEN INSERT (id, v) VALUES (src.id, src.v)"
        )

    def sync(self) -> Step:
        """All kinds of clauses at once."""
        rows = dict(self.source())
        for key in list(self.state.rows):
            row = self.state.rows[key]
            if key not in rows:
                if key % 2:
                    self.state.remove(key)
                else:
                    row[S] = "kept"
            elif (rows[key] or 0) < 0:
                self.state.remove(key)
            else:
                row[V] = rows[key]
        for key, v in rows.items():
            if v == 1:
                self.state.put(key, {V: v}) if key not in self.state.rows else None
        s = self.state.names[S]
        return Step(
            f"MERGE INTO t USING ({_values(list(rows.items()))}) AS src ON t.id = src.id"
            " WHEN MATCHED AND src.v < 0 THEN DELETE"
            " WHEN MATCHED THEN UPDATE SET v = src.v"
            " WHEN NOT MATCHED AND src.v = 1 THEN INSERT (id, v) VALUES (src.id, src.v)"
            " WHEN NOT MATCHED BY SOURCE AND t.id % 2 = 1 THEN DELETE"
            f" WHEN NOT MATCHED BY SOURCE THEN UPDATE SET {s} = 'kept'",
            by="shelduck",
        )

    def overwrite(self) -> Step:
        text, matches = self.condition()
        kept = self.chosen(matches)
        for key in list(self.state.rows):
            values = self.state.rows[key]
            self.state.remove(key)
            if key in kept:
                self.state.rows[key] = values
        return Step(f"INSERT OVERWRITE t SELECT * FROM t WHERE {text}", by="shelduck")

    def replace(self) -> Step:
        at = self.number(1, max(self.next_key, 1))
        for key in [k for k in self.state.rows if k <= at]:
            self.state.remove(key)
        self.state.put(at, {V: 3})
        self.next_key = max(self.next_key, at)
        columns = ", ".join(
            {KEY: f"{at} AS id", V: "3L AS v"}.get(c, f"{_sql(self.state.defaults.get(c))} AS {n}")
            for c, n in self.state.names.items()
        )
        return Step(f"INSERT INTO t REPLACE WHERE id <= {at} SELECT {columns}", by="shelduck")

    def add_column(self) -> Step:
        number, default = self.next_column, self.pick([None, 4])
        self.next_column += 1
        name = self.pick([n for n in NAMES if n not in self.state.names.values()])
        self.state.names[number] = name
        if default is not None:
            self.state.defaults[number] = default
        for row in self.state.rows.values():
            row[number] = default
        suffix = "" if default is None else f" DEFAULT {default}"
        return Step(f"ALTER TABLE t ADD COLUMN {name} INTEGER{suffix}")

    def drop_column(self) -> Step:
        number = self.pick([c for c in self.state.names if c > S])
        name = self.state.names.pop(number)
        for row in self.state.rows.values():
            row.pop(number, None)
        return Step(f"ALTER TABLE t DROP COLUMN {name}")

    def rename_column(self) -> Step:
        old = self.state.names[S]
        self.state.names[S] = "s" if old == "word" else "word"
        return Step(f"ALTER TABLE t RENAME COLUMN {old} TO {self.state.names[S]}")

    def copy(self) -> State:
        """The rows as they are now, not changed by what comes."""
        return copy.deepcopy(self.state)


def _values(rows: list[tuple[int, int | None]]) -> str:
    parts = (f"SELECT {key} AS id, CAST({_sql(v)} AS bigint) AS v" for key, v in rows)
    return " UNION ALL ".join(parts)


def _sql(value: str | int | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(value)
    return "'" + value.replace("'", "''") + "'"
