"""Drawn changes of a table that others follow, in a chain, as `Stream.to` carries them.

Shelduck and DuckDB change and fill the source in turns. In the end DuckDB reads all tables: those
that follow have the columns, comments and rows of the source. In every other story the streams have
a key, and rows of the source are changed and deleted, too.
"""

from __future__ import annotations

import random

from shelduck import change_type
from tests.support.oracle import DuckDBOracle

KINDS = ("INT", "STRING", "DOUBLE", "STRUCT<f: INT, g: STRING>")
WIDER = {"INT": "BIGINT", "FLOAT": "DOUBLE"}


class Program:
    """A story of a table `a`, which `b` follows, which `c` follows, which `d` follows."""

    hops = ("b", "c", "d")

    def __init__(self, lake, duck, seed):
        self.lake, self.duck, self.draw = lake, duck, random.Random(seed)
        self.number, self.known = 0, {"v", "s"}
        self.condition = self.draw.choice(("", "id % 3 > 0"))
        self.kinds = {"v": "INT", "s": "STRUCT<f: INT, g: STRING>"}
        self.inside, self.keys = {"s": ["f", "g"]}, []
        self.key = ("id",) if seed % 2 else ()
        lake.set_option("data_inlining_row_limit", seed // 2 % 2 * 10)
        lake.execute("CREATE TABLE a (id BIGINT, v INT, s STRUCT<f: INT, g: STRING>)")
        self.insert()

    def run(self, steps):
        for _ in range(steps):
            if self.key:
                # So that rows change which are there already.
                self.carry(0)
            self.act(self.insert, self.carry)
        for hop in range(len(self.hops)):
            self.carry(hop)

    def act(self, *more):
        """Change the source, or do one of these things; now and then, rows come right after it."""
        changes = (
            *(self.add, self.drop, self.rename, self.widen, self.move, self.comment),
            *(self.default, self.not_null, self.add_inside, self.rename_inside, self.drop_inside),
            *(self.convert, self.several, self.compact),
        )
        if self.key:
            more = (*more, *(self.update, self.delete, self.change_keys, self.undo) * 2)
        self.draw.choice((*more, *changes))()
        if self.draw.random() < 0.5:
            self.insert()

    def fresh(self):
        """A name that no column has; now and then one had it before."""
        self.number += 1
        gone = sorted(self.known - {*self.kinds})
        if gone and self.draw.random() < 0.4:
            return self.draw.choice(gone)
        self.known.add(f"c{self.number}")
        return f"c{self.number}"

    def inner(self):
        self.number += 1
        return self.number

    def both(self, text):
        """Let one of the engines change the source."""
        self.draw.choice((self.lake.execute, self.duck.execute))(text)

    def some(self, *kinds):
        known = [n for n, kind in self.kinds.items() if not kinds or kind in kinds]
        return self.draw.choice(known) if known else None

    def insert(self):
        keys = range(self.number, self.number + self.draw.choice((1, 3)))
        self.number = keys.stop
        self.keys += keys
        rows = ", ".join(f"({key}, {', '.join(self.values(key))})" for key in keys)
        names = ", ".join(["id", *self.kinds])
        self.duck.execute(f"INSERT INTO a ({names}) VALUES {rows}")

    def update(self):
        name = self.some("INT", "BIGINT", "DOUBLE", "STRING")
        if name is not None:
            value = "'u'" if self.kinds[name] == "STRING" else str(self.number % 100)
            self.both(f"UPDATE a SET {name} = {value} WHERE id % 3 = {self.draw.randrange(3)}")

    def delete(self):
        gone = self.draw.randrange(5)
        self.both(f"DELETE FROM a WHERE id % 5 = {gone}")
        self.keys = [key for key in self.keys if key % 5 != gone]

    def change_keys(self):
        """Keys move up by one, so that most are keys of other rows then."""
        self.both("UPDATE a SET id = id + 1")
        self.keys = [key + 1 for key in self.keys]
        self.number += 1

    def undo(self):
        """The rows are again what they were a snapshot before, if only rows changed since."""
        last = self.lake.snapshots()[-1]
        if "insert" in last.changes_made and "altered" not in last.changes_made:
            ids = [
                key for (key,) in self.duck.sql(f"SELECT id FROM a AT (VERSION => {last.id - 1})")
            ]
            self.lake.table("a").restore(version=last.id - 1)
            self.keys = ids

    def values(self, key):
        for name, kind in self.kinds.items():
            if name in self.inside:
                parts = (
                    f"'{p}': {key}" if p[0] == "f" else f"'{p}': 'x{key}'"
                    for p in self.inside[name]
                )
                yield "{" + ", ".join(parts) + "}"
            else:
                yield f"'{key}'" if kind == "STRING" else str(key % 100)

    # Changes of the source.

    def add(self):
        name, kind = self.fresh(), self.draw.choice(KINDS[:3])
        default = self.draw.choice(("", f" DEFAULT '{self.number}{'.5' * (kind == 'DOUBLE')}'"))
        self.both(f"ALTER TABLE a ADD COLUMN {name} {kind}{default}")
        self.kinds[name] = kind

    def drop(self):
        if len(self.kinds) > 1:
            name = self.some()
            self.both(f"ALTER TABLE a DROP COLUMN {name}")
            del self.kinds[name]
            self.inside.pop(name, None)

    def rename(self):
        known, name = self.some(), self.fresh()
        self.both(f"ALTER TABLE a RENAME COLUMN {known} TO {name}")
        self.renamed({known: name})

    def renamed(self, names):
        self.kinds = {names.get(n, n): kind for n, kind in self.kinds.items()}
        self.inside = {names.get(n, n): parts for n, parts in self.inside.items()}

    def several(self):
        """Two columns swap their names, and a third one comes, in one statement."""
        if len(self.kinds) < 2:
            return
        one, other = self.draw.sample(list(self.kinds), 2)
        name = self.fresh()
        self.lake.execute(
            f"ALTER TABLE a RENAME COLUMN {one} TO {other}, RENAME COLUMN {other} TO {one},"
            f" ADD COLUMN {name} INT FIRST"
        )
        self.renamed({one: other, other: one})
        self.kinds[name] = "INT"

    def widen(self):
        name = self.some("INT", "FLOAT")
        if name is not None:
            kind = WIDER[self.kinds[name]]
            self.both(f"ALTER TABLE a ALTER COLUMN {name} TYPE {kind}")
            self.kinds[name] = kind

    def convert(self):
        name = self.some("INT", "BIGINT")
        if name is not None:
            self.lake.table("a").alter(change_type(name, "string"), wait=True)
            self.kinds[name] = "STRING"

    def move(self):
        self.lake.execute(f"ALTER TABLE a ALTER COLUMN {self.some()} FIRST")

    def comment(self):
        self.both(f"COMMENT ON COLUMN a.{self.some()} IS 'told {self.number}'")

    def default(self):
        name = self.some("INT", "BIGINT")
        if name is not None:
            self.both(f"ALTER TABLE a ALTER COLUMN {name} SET DEFAULT {self.number % 100}")

    def compact(self):
        if self.draw.random() < 0.5:
            self.lake.table("a").compact(min_files=2)
        else:
            self.duck.execute("CALL ducklake_merge_adjacent_files('lake', 'a')")

    def not_null(self):
        change = self.draw.choice(("SET", "DROP"))
        self.lake.execute(f"ALTER TABLE a ALTER COLUMN id {change} NOT NULL")

    def add_inside(self):
        if self.inside:
            name, part = self.draw.choice(list(self.inside)), f"f_{self.inner()}"
            self.both(f"ALTER TABLE a ADD COLUMN {name}.{part} INT")
            self.inside[name].append(part)

    def rename_inside(self):
        if self.inside:
            name = self.draw.choice(list(self.inside))
            known = self.draw.choice(self.inside[name])
            part = f"{known[0]}_{self.inner()}"
            self.both(f"ALTER TABLE a RENAME COLUMN {name}.{known} TO {part}")
            self.inside[name] = [part if p == known else p for p in self.inside[name]]

    def drop_inside(self):
        names = [name for name, parts in self.inside.items() if len(parts) > 1]
        if names:
            name = self.draw.choice(names)
            part = self.inside[name].pop(self.draw.randrange(len(self.inside[name])))
            self.both(f"ALTER TABLE a DROP COLUMN {name}.{part}")

    # Carrying.

    def carry(self, hop=None):
        hop = self.draw.randrange(len(self.hops)) if hop is None else hop
        tables = ("a", *self.hops)
        if hop and not any(t.name == tables[hop] for t in self.lake.tables()):
            return
        stream = self.lake.stream(tables[hop], key=self.key)
        if self.condition and hop + 1 == len(self.hops):
            stream = stream.where(self.condition)
        stream.to(tables[hop + 1])

    def look(self):
        assert sorted(self.keys) == sorted(key for (key,) in self.duck.sql("SELECT id FROM a"))
        for name in self.hops:
            wanted = self.seen("a", self.condition if name == self.hops[-1] else "")
            for part, known in zip(self.seen(name), wanted, strict=True):
                assert part == known, f"{name} has {part}, not {known}"
        assert not self.lake.check(rows=True).problems

    def seen(self, name, condition=""):
        """Columns with their types, defaults and comments, and the rows, as DuckDB reads them.

        The last table has only the rows that fulfil a condition. Key columns come first.
        """
        columns = self.duck.sql(
            "SELECT column_name, data_type, column_default, is_nullable, comment"
            f" FROM duckdb_columns() WHERE database_name = 'lake' AND table_name = '{name}'"
            " ORDER BY column_index"
        )
        columns = sorted(columns, key=lambda column: column[0] not in self.key)
        names = ", ".join(column for column, *_ in columns)
        found = self.duck.sql(f"SELECT {names} FROM {name} WHERE {condition or True}")
        return columns, sorted(found, key=str)


def tell(lake, url, seed, steps=14):
    """Tell a story to its end, and look at what all tables are."""
    with DuckDBOracle(url) as duck:
        program = Program(lake, duck, seed)
        program.run(steps)
        program.look()
        return program
