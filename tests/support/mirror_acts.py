"""What the clients of the mirror story are told to do, drawn at random, and what it means.

An act is a command for a client, and the same change of a mirror. Effects go by identities, so that
of two acts that are no matter to each other either may come first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from tests.support.mirror import HEAVY, NEW, WIDER, WIDER_STILL, Column, Mirror, literal, survives

if TYPE_CHECKING:
    import random

Effect = Callable[[Mirror], None]
Part = tuple[str, Effect]

NAMES = ["a", "b", "c", "d", "e", "größe", "x y", "select"]
KEY_NAMES = ["id", "key", "nr"]
MOST_COLUMNS = 7
_MANY_ROWS = 90
# What an ALTER of one clause may be beside rows that were made for the columns before it.
LIGHT = ["add", "rename", "rename_key", "default", "no_default", "widen"]
_ALTERS = [*LIGHT, "drop", "swap", "renew", "move", "nullable", "add", "default", "widen", "rename"]


@dataclass
class Act:
    """A command and its meaning; ``error`` is the class of the error that it has to end with.

    ``names`` are the columns by whose names it speaks.
    """

    command: dict[str, Any]
    effects: list[Effect]
    error: str | None = None
    names: frozenset[int] = frozenset()

    def apply(self, mirror: Mirror) -> None:
        for effect in self.effects:
            effect(mirror)

    def __str__(self) -> str:
        told = ", ".join(f"{k}={v}" for k, v in self.command.items() if k not in ("do", "texts"))
        return " ".join([self.command["do"], told, "; ".join(self.command.get("texts", []))])


class Author:
    """Draws acts for one of the engines, on a mirror as it is now.

    ``locked`` is the column that an open job converts, and to which type: its values have to
    survive, and no ALTER touches it.
    """

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.mirror = Mirror()
        self.locked: tuple[int, str] | None = None
        self.engine = "shelduck"
        self._next_key = 1
        self._gone: list[int] = []

    # Rows.

    def rows(self, engine: str) -> Act:
        """One statement over rows."""
        self.engine = engine
        kinds = [self.insert] * 4 + [self.update] * 3 + [self.delete] * 2 + [self.merge] * 2
        if len(self.mirror.rows) > _MANY_ROWS:
            kinds = [self.delete]
        return self.dice.choice(kinds)()

    def insert(self, *, whole: bool = False, fresh: bool = False) -> Act:
        """Rows of new keys, or of keys that there were; ``whole`` with a value for each column."""
        given = [c for c in self.mirror.others if whole or self.dice.random() < 0.8]
        rows = self._new_rows(given, fresh=fresh)
        names = ", ".join(self.quoted(c.name) for c in [self.mirror.key, *given])
        values = ", ".join(
            f"({', '.join([str(key), *(literal(row[c.identity]) for c in given)])})"
            for key, row in rows.items()
        )
        text = f"INSERT INTO t ({names}) VALUES {values}"
        return self._inserted(given, rows, {"do": "sql", "texts": [text]})

    def append(self) -> Act:
        """Rows of a DataFrame with a value for each column, in any order."""
        self.engine = "shelduck"
        given = self.mirror.others
        self.dice.shuffle(given)
        rows = self._new_rows(given, fresh=True)
        query = self._source(rows, given, [c.name for c in given], self.mirror.key.name)
        return self._inserted(given, rows, {"do": "append", "query": query})

    def delete(self, keys: list[int] | None = None) -> Act:
        where, found = self._where() if keys is None else self._among(keys)
        self._gone += found
        return self._sql(f"DELETE FROM t WHERE {where}", methodcaller("remove", found))

    def update(self, keys: list[int] | None = None) -> Act:
        """One or two columns of some rows: set, or counted up."""
        where, found = self._where() if keys is None else self._among(keys)
        chosen = self.dice.sample(self.mirror.others, self.dice.choice([1, 1, 2]))
        parts, effects = [], []
        for column in chosen:
            name = self.quoted(column.name)
            if self._counts(column) and self.dice.random() < 0.4:
                parts.append(f"{name} = {name} + 1")
                effects.append(methodcaller("count_up", found, column.identity))
                continue
            value = self._value(column)
            parts.append(f"{name} = {literal(value)}")
            effects.append(methodcaller("change", found, {column.identity: value}))
        return self._sql(f"UPDATE t SET {', '.join(parts)} WHERE {where}", *effects)

    def merge(self) -> Act:
        """Some rows change, some go, some come."""
        known = self.dice.sample(sorted(self.mirror.rows), min(len(self.mirror.rows), 3))
        given = self.dice.sample(self.mirror.others, 2)
        rows = {key: {c.identity: self._value(c) for c in given} for key in known}
        new = self._new_rows(given)
        # DuckDB 1.5.5 takes one of both only.
        deletes = self.engine == "shelduck"
        gone = [key for key in known if deletes and key % 5 == 0]
        self._gone += gone
        source = self._source(rows | new, given, ["v0", "v1"], "k")
        names = [self.quoted(c.name) for c in given]
        key = self.quoted(self.mirror.key.name)
        text = (
            f"MERGE INTO t USING ({source}) AS src ON t.{key} = src.k"
            f"{' WHEN MATCHED AND src.k % 5 = 0 THEN DELETE' if deletes else ''}"
            f" WHEN MATCHED THEN UPDATE SET {names[0]} = src.v0, {names[1]} = src.v1"
            f" WHEN NOT MATCHED THEN INSERT ({key}, {', '.join(names)})"
            " VALUES (src.k, src.v0, src.v1)"
        )
        effects: list[Effect] = [methodcaller("remove", gone)]
        effects += [
            methodcaller("change", [k], values) for k, values in rows.items() if k not in gone
        ]
        effects += [methodcaller("put", k, values) for k, values in new.items()]
        return self._sql(text, *effects)

    # Columns.

    def alter(self, engine: str, kinds: list[str] | None = None) -> Act:
        """One ALTER: a few clauses that build upon each other, or one of the kinds."""
        self.engine = engine
        draft, parts = self.mirror.copy(), list[Part]()
        names = frozenset[int]()
        wanted = 1 if kinds else self.dice.choice([1, 1, 1, 2, 3])
        while wanted:
            kind = self.dice.choice(kinds or _ALTERS)
            if len(self._free(draft)) < 2 and kind not in ("add", "rename_key"):
                continue
            before = {c.identity: c.name for c in draft.columns}
            found: list[Part] = getattr(self, "_" + kind)(draft)
            for _, effect in found:
                effect(draft)
            after = {c.identity: c.name for c in draft.columns}
            names |= {i for i, name in before.items() if after.get(i) != name}
            parts += found
            wanted -= bool(found)
        texts = [text for text, _ in parts]
        # DuckDB takes one clause at a time.
        texts = [", ".join(texts)] if engine == "shelduck" else texts
        command = {"do": "sql", "texts": [f"ALTER TABLE t {text}" for text in texts]}
        return Act(command, [effect for _, effect in parts], names=names)

    def heavy(self, *, must_work: bool = False) -> Act | None:
        """A change of type that needs a job; one that values do not survive has to fail."""
        self.engine = "shelduck"
        found = [(c, k) for c in self.mirror.others for k in HEAVY.get((c.kind, c.family), [])]
        self.dice.shuffle(found)
        for column, kind in found:
            works = self.mirror.can_become(column.identity, kind)
            if works or not must_work:
                command = {"do": "heavy", "column": column.name, "kind": kind, "wait": True}
                effects = [methodcaller("retype", column.identity, kind)] if works else []
                # Rows are found out by the job, a default before there is one.
                refused = "InvalidRequest" if survives(column.default, kind) else "Unsupported"
                error = None if works else refused
                return Act(command, effects, error, frozenset([column.identity]))
        return None

    def _add(self, draft: Mirror) -> list[Part]:
        free = [n for n in NAMES if n not in draft.names]
        if len(draft.columns) > MOST_COLUMNS:
            return []
        return [self._added(self.dice.choice(free))]

    def _added(self, name: str) -> Part:
        column = Column(name, *self.dice.choice(NEW))
        column.default = self.dice.choice([None, *column.values()])
        column.is_counted = self.engine != "duckdb"
        text = f"ADD COLUMN {self.quoted(name)} {column.kind}"
        if column.default is not None:
            column.nullable = self.engine == "duckdb" or self.dice.random() < 0.8
            text += "" if column.nullable else " NOT NULL"
            text += f" DEFAULT {literal(column.default)}"
        return text, methodcaller("add", column)

    def _drop(self, draft: Mirror) -> list[Part]:
        if len(draft.others) < 4:
            return []
        column = self._one(draft)
        return [(f"DROP COLUMN {self.quoted(column.name)}", methodcaller("drop", column.identity))]

    def _renew(self, draft: Mirror) -> list[Part]:
        """Another column under the name of one that goes."""
        column = self._one(draft)
        dropped = f"DROP COLUMN {self.quoted(column.name)}", methodcaller("drop", column.identity)
        return [dropped, self._added(column.name)]

    def _rename(self, draft: Mirror) -> list[Part]:
        free = [n for n in NAMES if n not in draft.names]
        return [self._renamed(self._one(draft), self.dice.choice(free))]

    def _rename_key(self, draft: Mirror) -> list[Part]:
        free = [n for n in KEY_NAMES if n != draft.key.name]
        return [self._renamed(draft.key, self.dice.choice(free))]

    def _renamed(self, column: Column, name: str) -> Part:
        text = f"RENAME COLUMN {self.quoted(column.name)} TO {self.quoted(name)}"
        return text, methodcaller("rename", column.identity, name)

    def _swap(self, draft: Mirror) -> list[Part]:
        one, other = self.dice.sample(self._free(draft), 2)
        tmp = Column("tmp", one.kind, one.family, identity=one.identity)
        return [
            self._renamed(one, "tmp"),
            self._renamed(other, one.name),
            self._renamed(tmp, other.name),
        ]

    def _move(self, draft: Mirror) -> list[Part]:
        """Another place, which only Shelduck gives."""
        if self.engine == "duckdb":
            return []
        column = self._one(draft)
        after = self.dice.choice([None, *(c for c in draft.columns if c is not column)])
        place = "FIRST" if after is None else f"AFTER {self.quoted(after.name)}"
        text = f"ALTER COLUMN {self.quoted(column.name)} {place}"
        before = None if after is None else after.identity
        return [(text, methodcaller("move", column.identity, before))]

    def _default(self, draft: Mirror) -> list[Part]:
        column = self._one(draft)
        value = self.dice.choice(column.values())
        text = f"ALTER COLUMN {self.quoted(column.name)} SET DEFAULT {literal(value)}"
        return [(text, methodcaller("set_default", column.identity, value))]

    def _no_default(self, draft: Mirror) -> list[Part]:
        found = [c for c in self._free(draft) if c.nullable and c.default is not None]
        if not found:
            return []
        column = self.dice.choice(found)
        text = f"ALTER COLUMN {self.quoted(column.name)} DROP DEFAULT"
        return [(text, methodcaller("set_default", column.identity, None))]

    def _widen(self, draft: Mirror) -> list[Part]:
        ways = [(c, kind) for c in self._free(draft) for kind in WIDER.get(c.kind, [])]
        if self.engine == "shelduck":
            ways += [(c, kind) for c in self._free(draft) for kind in WIDER_STILL.get(c.kind, [])]
        if not ways:
            return []
        column, kind = self.dice.choice(ways)
        text = f"ALTER COLUMN {self.quoted(column.name)} TYPE {kind}"
        return [(text, methodcaller("retype", column.identity, kind))]

    def _nullable(self, draft: Mirror) -> list[Part]:
        column = self._one(draft)
        if column.nullable and (column.default is None or draft.has_null(column.identity)):
            return []
        # DuckDB refuses it where the transaction has changed the table before, too.
        is_fit = column.is_counted and draft.columns == self.mirror.columns
        if column.nullable and self.engine == "duckdb" and not is_fit:
            return []
        word = "SET" if column.nullable else "DROP"
        text = f"ALTER COLUMN {self.quoted(column.name)} {word} NOT NULL"
        return [(text, methodcaller("set_nullable", column.identity, not column.nullable))]

    # What is drawn for them.

    def quoted(self, name: str) -> str:
        return f"`{name}`" if self.engine == "shelduck" else f'"{name}"'

    def _free(self, draft: Mirror) -> list[Column]:
        locked = None if self.locked is None else self.locked[0]
        found = [c for c in draft.others if c.identity != locked]
        if self.engine == "shelduck":
            return found
        # BUG: where one transaction changes the type of a column, and then anything else of it,
        # DuckDB 1.5.5 forgets its defaults: rows from before the column read NULL.
        kinds = {c.identity: c.kind for c in self.mirror.columns}
        return [c for c in found if kinds.get(c.identity, c.kind) == c.kind]

    def _one(self, draft: Mirror) -> Column:
        return self.dice.choice(self._free(draft))

    def _value(self, column: Column) -> Any:
        is_locked = self.locked is not None and self.locked[0] == column.identity
        found = column.values(self.locked[1] if is_locked and self.locked else None)
        return self.dice.choice([*([None] if column.nullable else []), *found])

    def _counts(self, column: Column) -> bool:
        return column.family == "whole" and column.kind in ("smallint", "int", "bigint")

    def _new_rows(self, given: list[Column], *, fresh: bool = False) -> dict[int, dict[int, Any]]:
        rows = {}
        for _ in range(self.dice.choice([1, 1, 2, 3, 5])):
            key = self._next_key
            if self._gone and not fresh and self.dice.random() < 0.3:
                key = self.dice.choice(self._gone)
            if key in self.mirror.rows or key in rows:
                key = self._next_key
            self._next_key += key == self._next_key
            rows[key] = {c.identity: self._value(c) for c in given}
        return rows

    def _inserted(
        self, given: list[Column], rows: dict[int, dict[int, Any]], command: dict[str, Any]
    ) -> Act:
        names = frozenset(c.identity for c in [self.mirror.key, *given])
        effects: list[Effect] = [methodcaller("put", key, values) for key, values in rows.items()]
        return Act(command, effects, names=names)

    def _source(
        self, rows: dict[int, dict[int, Any]], given: list[Column], names: list[str], key: str
    ) -> str:
        parts = []
        for number, row in rows.items():
            cells = [f"CAST({number} AS bigint) AS {self.quoted(key)}"]
            for column, name in zip(given, names, strict=True):
                cells.append(f"{literal(row[column.identity], column.kind)} AS {self.quoted(name)}")
            parts.append(f"SELECT {', '.join(cells)}")
        return " UNION ALL ".join(parts)

    def _where(self) -> tuple[str, list[int]]:
        known = sorted(self.mirror.rows)
        form = self.dice.choice(["in", "in", "one", "rest", "value"])
        if form == "value" and self.engine == "shelduck":
            return self._with_value()
        if form == "rest" or len(known) > _MANY_ROWS:
            rest, of = self.dice.randrange(5), 5
            key = self.quoted(self.mirror.key.name)
            return f"{key} % {of} = {rest}", [k for k in known if k % of == rest]
        if form == "one" or not known:
            return self._among([self.dice.randrange(1, self._next_key + 1)])
        return self._among(self.dice.sample(known, min(len(known), self.dice.randrange(1, 6))))

    def _with_value(self) -> tuple[str, list[int]]:
        """A condition on another column, at whose older files statistics and names may mislead."""
        column = self.dice.choice(self.mirror.others)
        name = self.quoted(column.name)
        there = sorted({repr(r[column.identity]): r[column.identity]
                        for r in self.mirror.rows.values()}.items())  # fmt: skip
        value = self.dice.choice([v for _, v in there] or [None])
        if value is None:
            return f"{name} IS NULL", self.mirror.keys_with(column.identity, None)
        found = self.mirror.keys_with(column.identity, value)
        return f"{name} = {literal(value, column.kind)}", found

    def _among(self, keys: list[int]) -> tuple[str, list[int]]:
        listed = ", ".join(map(str, keys))
        key = self.quoted(self.mirror.key.name)
        return f"{key} IN ({listed})", [k for k in keys if k in self.mirror.rows]

    def _sql(self, text: str, *effects: Effect) -> Act:
        return Act({"do": "sql", "texts": [text]}, list(effects))
