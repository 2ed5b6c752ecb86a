"""A lake as plain dictionaries, and random statements of one transaction that do to both the same.

Names come from a small pool without a look at what is there, so that a statement is often refused:
then it says which kind of refusal is right, and the dictionaries stay.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shelduck import AlreadyExists, InvalidRequest, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

Row = tuple[int | None, ...]

SCHEMAS = ("main", "s", "T")
NAMES = ("a", "b", "c", "A")
COLUMNS = ("w", "x", "y")


@dataclass
class Table:
    """Columns by name with their defaults, and rows in no order; ``rolled`` has a rollup of ids."""

    name: str
    columns: list[str] = field(default_factory=lambda: ["id", "v"])
    defaults: dict[str, int | None] = field(default_factory=dict)
    rows: list[dict[str, int | None]] = field(default_factory=list)
    rolled: bool = False
    is_new: bool = False

    def read(self) -> list[Row]:
        """The rows as a query gives them, sorted."""
        return in_order(tuple(row[c] for c in self.columns) for row in self.rows)


@dataclass
class Lake:
    """Schemas with their tables and views, all by lower-cased name; a view is its one value."""

    schemas: dict[str, str] = field(default_factory=lambda: {"main": "main"})
    tables: dict[tuple[str, str], Table] = field(default_factory=dict)
    views: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)

    def copied(self) -> Lake:
        """The same, which later statements leave alone."""
        return copy.deepcopy(self)

    def expected(self) -> dict[tuple[str, str], list[Row]]:
        """The rows of every table and view by schema and name, rollups among them."""
        found: dict[tuple[str, str], list[Row]] = {}
        for (schema, _), table in self.tables.items():
            found[self.schemas[schema], table.name] = table.read()
            if table.rolled:
                ids = in_order((row["id"],) for row in table.rows)
                found[self.schemas[schema], f"{table.name}$r"] = ids
        for (schema, _), (name, value) in self.views.items():
            found[self.schemas[schema], name] = [(value,)]
        return found


@dataclass(frozen=True)
class Said:
    """A statement, and the refusal that it ends in, None when it is done."""

    text: str
    refused: type[Exception] | None = None


class Author:
    """Draws statements, and does to its own lake what they say."""

    def __init__(self, random: Random, lake: Lake) -> None:
        self.random = random
        self.lake = lake
        self.next_value = 100

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def pick(self, values: Any) -> Any:
        return self.random.choice(values)

    def statement(self) -> Said:
        """One statement over whatever it happens to name."""
        kinds: list[Callable[[], Said]] = [
            *[self.create] * 2 + [self.create_filled] * 6 + [self.create_rolled],
            *[self.rename] * 9 + [self.drop] * 2 + [self.insert] * 4 + [self.delete, self.update],
            *[self.add_column] * 2 + [self.rename_column, self.drop_column, self.partition],
            *[self.create_schema, self.drop_schema, self.create_view, self.drop_view],
        ]
        found: Said = self.pick(kinds)()
        return found

    def place(self) -> tuple[str, str]:
        """A schema, mostly one that is there, and a name."""
        present = sorted(self.lake.schemas.values())
        return self.pick([*present * 3, *SCHEMAS]), self.pick(NAMES)

    def known(self) -> tuple[str, str]:
        """A table, mostly one that the transaction made, or else one that is there."""
        found = [(self.lake.schemas[s], t) for (s, _), t in self.lake.tables.items()]
        present = [(schema, t.name) for schema, t in found for _ in range(6 if t.is_new else 1)]
        return self.pick(present) if present and self.number(0, 9) else self.place()

    def free(self, schema: str, name: str) -> type[Exception] | None:
        """The refusal of a new name."""
        key = (schema.lower(), name.lower())
        if key[0] not in self.lake.schemas:
            return NotFound
        return AlreadyExists if key in self.lake.tables or key in self.lake.views else None

    def values(self) -> list[tuple[int, int]]:
        """Rows that no table has yet."""
        count = self.number(1, 2)
        self.next_value += count
        return [(self.next_value - n, self.number(0, 1)) for n in range(count)]

    def create(self) -> Said:
        schema, name = self.place()
        clause = self.pick(["", " PARTITIONED BY (id)"])
        return self.made(schema, name, f"CREATE TABLE {schema}.{name} (id INT, v INT){clause}", [])

    def create_filled(self) -> Said:
        schema, name = self.place()
        rows, replaces = self.values(), self.pick([False, False, True])
        word = "CREATE OR REPLACE TABLE" if replaces else "CREATE TABLE"
        text = f"{word} {schema}.{name} AS SELECT * FROM VALUES {listed(rows)} AS r(id, v)"
        if replaces:
            self.lake.tables.pop((schema.lower(), name.lower()), None)
        return self.made(schema, name, text, rows)

    def create_rolled(self) -> Said:
        schema, name = self.place()
        text = f"CREATE TABLE {schema}.{name} (v INT, id INT) DUPLICATE KEY(v) ROLLUP (r (id))"
        said = self.made(schema, name, text, [])
        if said.refused is None:
            table = self.lake.tables[schema.lower(), name.lower()]
            table.columns, table.rolled = ["v", "id"], True
        return said

    def made(self, schema: str, name: str, text: str, rows: list[tuple[int, int]]) -> Said:
        refused = self.free(schema, name)
        if refused is None:
            table = Table(name, is_new=True, rows=[{"id": i, "v": v} for i, v in rows])
            self.lake.tables[schema.lower(), name.lower()] = table
        return Said(text, refused)

    def found(self) -> tuple[str, Table | None]:
        schema, name = self.known()
        return f"{schema}.{name}", self.lake.tables.get((schema.lower(), name.lower()))

    def rename(self) -> Said:
        schema, name = self.known()
        free = [n for n in NAMES if not self.free(schema, n)]
        new = self.pick([*free * 3, *NAMES])
        text = f"ALTER TABLE {schema}.{name} RENAME TO {new}"
        table = self.lake.tables.get((schema.lower(), name.lower()))
        if table is None:
            return Said(text, NotFound)
        if new.lower() != name.lower() and self.free(schema, new):
            return Said(text, AlreadyExists)
        del self.lake.tables[schema.lower(), name.lower()]
        table.name = new
        self.lake.tables[schema.lower(), new.lower()] = table
        return Said(text)

    def drop(self) -> Said:
        schema, name = self.known()
        gone = self.lake.tables.pop((schema.lower(), name.lower()), None)
        return Said(f"DROP TABLE {schema}.{name}", None if gone else NotFound)

    def insert(self) -> Said:
        place, table = self.found()
        rows = self.values()
        text = f"INSERT INTO {place} (id, v) VALUES {listed(rows)}"
        if table is None:
            return Said(text, NotFound)
        table.rows += [
            {c: table.defaults.get(c) for c in table.columns} | {"id": i, "v": v} for i, v in rows
        ]
        return Said(text)

    def delete(self) -> Said:
        place, table = self.found()
        text = f"DELETE FROM {place} WHERE v = 1"
        if table is None:
            return Said(text, NotFound)
        table.rows = [row for row in table.rows if row["v"] != 1]
        return Said(text)

    def update(self) -> Said:
        place, table = self.found()
        text = f"UPDATE {place} SET v = v + 1 WHERE v = 0"
        if table is None:
            return Said(text, NotFound)
        for row in table.rows:
            row["v"] = 1 if row["v"] == 0 else row["v"]
        return Said(text)

    def add_column(self) -> Said:
        place, table = self.found()
        name, default = self.pick(COLUMNS), self.pick([None, 5])
        clause = "" if default is None else f" DEFAULT {default}"
        text = f"ALTER TABLE {place} ADD COLUMN {name} INT{clause}"
        if table is None:
            return Said(text, NotFound)
        if name in table.columns:
            return Said(text, AlreadyExists)
        table.columns.append(name)
        table.defaults[name] = default
        for row in table.rows:
            row[name] = default
        return Said(text)

    def rename_column(self) -> Said:
        place, table = self.found()
        extra = [c for c in (table.columns if table else ()) if c not in ("id", "v")]
        old, new = self.pick(extra or ["nope"]), self.pick(COLUMNS)
        text = f"ALTER TABLE {place} RENAME COLUMN {old} TO {new}"
        if table is None or old not in table.columns:
            return Said(text, NotFound)
        if new in table.columns and new != old:
            return Said(text, AlreadyExists)
        table.columns[table.columns.index(old)] = new
        table.defaults[new] = table.defaults.pop(old)
        for row in table.rows:
            row[new] = row.pop(old)
        return Said(text)

    def drop_column(self) -> Said:
        place, table = self.found()
        extra = [c for c in (table.columns if table else ()) if c not in ("id", "v")]
        name = self.pick(extra or ["nope"])
        text = f"ALTER TABLE {place} DROP COLUMN {name}"
        if table is None or name not in table.columns:
            return Said(text, NotFound)
        table.columns.remove(name)
        table.defaults.pop(name)
        for row in table.rows:
            row.pop(name)
        return Said(text)

    def partition(self) -> Said:
        place, table = self.found()
        clause = self.pick(["SET PARTITIONED BY (id)", "RESET PARTITIONED BY"])
        return Said(f"ALTER TABLE {place} {clause}", None if table else NotFound)

    def create_schema(self) -> Said:
        name = self.pick(SCHEMAS)
        text = f"CREATE SCHEMA {name}"
        if name.lower() in self.lake.schemas:
            return Said(text, AlreadyExists)
        self.lake.schemas[name.lower()] = name
        return Said(text)

    def drop_schema(self) -> Said:
        name, cascade = self.pick(SCHEMAS), self.pick([True, False])
        text = f"DROP SCHEMA {name}{' CASCADE' if cascade else ''}"
        key = name.lower()
        if key not in self.lake.schemas:
            return Said(text, NotFound)
        things: list[dict[tuple[str, str], Any]] = [self.lake.tables, self.lake.views]
        inside = any(k[0] == key for kind in things for k in kind)
        if key == "main" or (inside and not cascade):
            return Said(text, InvalidRequest)
        del self.lake.schemas[key]
        for kind in things:
            for known in [k for k in kind if k[0] == key]:
                del kind[known]
        return Said(text)

    def create_view(self) -> Said:
        schema, name = self.place()
        value = self.number(0, 9)
        text = f"CREATE VIEW {schema}.{name} AS SELECT {value} AS x"
        refused = self.free(schema, name)
        if refused is None:
            self.lake.views[schema.lower(), name.lower()] = (name, value)
        return Said(text, refused)

    def drop_view(self) -> Said:
        present = [(self.lake.schemas[s], name) for (s, _), (name, _) in self.lake.views.items()]
        schema, name = self.pick(present) if present else self.place()
        key = (schema.lower(), name.lower())
        text = f"DROP VIEW {schema}.{name}"
        if key in self.lake.tables:
            return Said(text, InvalidRequest)
        return Said(text, None if self.lake.views.pop(key, None) else NotFound)


def in_order(rows: Any) -> list[Row]:
    """Rows sorted, whatever is NULL in them."""
    return sorted(map(tuple, rows), key=lambda row: [(v is None, v or 0) for v in row])


def listed(rows: list[tuple[int, int]]) -> str:
    """Rows as VALUES takes them."""
    return ", ".join(f"({i}, {v})" for i, v in rows)
