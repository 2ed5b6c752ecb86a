"""Drawn changes of two tables, and materialized views of them that are refreshed now and then.

Shelduck and DuckDB change the tables in turns. DuckDB computes what a view is to hold: it runs the
query, which is a view of the lake, and compares the rows.
"""

from __future__ import annotations

import random

from tests.support.oracle import DuckDBOracle

QUERIES = (
    "SELECT id, v + 1 AS w, s FROM o WHERE v > 3",
    "SELECT v, s FROM o",
    "SELECT o.v, c.name, c.k FROM o JOIN c ON o.k = c.k",
    "SELECT o.v, o.s, c.name FROM o LEFT JOIN c ON o.k = c.k AND c.z > 1",
    "SELECT o.s, c.name FROM o LEFT JOIN c ON o.k = c.k WHERE c.name IS NULL OR o.v > 2",
    "SELECT k, sum(v) AS s, count(*) AS n, count(v) AS nv FROM o GROUP BY k",
    "SELECT s, sum(id) AS t, count(*) AS n FROM o WHERE v IS NOT NULL GROUP BY s",
    "SELECT k, min(v) AS low, max(s) AS high FROM o GROUP BY k",
    "SELECT k, s, count(v) AS n FROM o GROUP BY k, s",
    "SELECT k, count(DISTINCT v) AS n, sum(v) + count(*) AS m FROM o GROUP BY k",
    "SELECT c.name, count(*) AS n, sum(o.id) AS t FROM o JOIN c ON o.k = c.k GROUP BY c.name",
    "SELECT o.s, count(c.z) AS n, max(c.name) AS m FROM o LEFT JOIN c ON o.k = c.k GROUP BY o.s",
    (
        "SELECT c.name, sum(o.v) AS t, count(o.v) AS nv, count(*) AS n"
        " FROM o LEFT JOIN c ON o.k = c.k GROUP BY c.name"
    ),
    "SELECT DISTINCT k, s FROM o",
    "SELECT DISTINCT c.name FROM o JOIN c ON o.k = c.k",
    "SELECT count(*) AS n, sum(v) AS t FROM o",
    "SELECT s, count(*) AS n FROM o GROUP BY s HAVING count(*) > 1",
    "SELECT k + 1 AS kk, count(*) AS n FROM o GROUP BY k + 1",
)


class Program:
    """A story of `o` and `c`, and of materialized views `m0`, `m1`, …"""

    def __init__(self, lake, duck, seed):
        self.lake, self.duck, self.draw = lake, duck, random.Random(seed)
        self.next, self.ways = 1, set()
        lake.set_option("data_inlining_row_limit", seed % 3 * 5)
        # Columns get other names, so a column is known by the place that it had first.
        self.names = {"o": ["id", "k", "v", "s"], "c": ["k", "name", "z"]}
        lake.execute("CREATE TABLE o (id BIGINT NOT NULL, k INT, v INT, s VARCHAR)")
        lake.execute("CREATE TABLE c (k INT, name VARCHAR, z INT)")
        for table in ("c", "o", "o"):
            self.insert(table)
        self.views = [f"m{n}" for n in range(4)]
        for view, query in zip(self.views, self.draw.sample(QUERIES, 4), strict=True):
            lake.execute(f"CREATE MATERIALIZED VIEW {view} REFRESH ON DEMAND AS {query}")

    def run(self, steps):
        for _ in range(steps):
            for _ in range(self.draw.choice((1, 1, 2, 3))):
                self.change()
            self.refresh(self.draw.choice(self.views))
        for view in self.views:
            self.refresh(view)

    def change(self):
        writes = (self.insert, self.insert, self.update, self.delete, self.merge, self.replace)
        others = (self.rename, self.add, self.widen, self.compact, self.restore, self.foreign)
        table = self.draw.choice(("o", "o", "c"))
        self.draw.choice((*writes, *writes, *others))(table)

    def both(self, text):
        self.draw.choice((self.lake.execute, self.duck.execute))(text)

    def value(self, of):
        """A value for a column by its first name; some are NULL."""
        if of == "id":
            self.next += 1
            return str(self.next)
        if self.draw.random() < 0.15:
            return "NULL"
        number = self.draw.randrange(6)
        return f"'{'abc'[number % 3]}'" if of in ("s", "name") else str(number)

    def rows(self, table, count):
        first = {"o": ("id", "k", "v", "s"), "c": ("k", "name", "z")}[table]
        values = (f"({', '.join(map(self.value, first))})" for _ in range(count))
        return ", ".join(self.names[table][: len(first)]), ", ".join(values)

    def where(self, table):
        name = self.names[table][1 if table == "o" else 0]
        return f"{name} = {self.draw.randrange(6)}"

    # Changes.

    def insert(self, table):
        names, rows = self.rows(table, self.draw.choice((1, 3, 8)))
        self.both(f"INSERT INTO {table} ({names}) VALUES {rows}")

    def update(self, table):
        at = self.draw.choice((1, 2, 3) if table == "o" else (0, 1, 2))
        first = (("id", "k", "v", "s") if table == "o" else ("k", "name", "z"))[at]
        text = f"{self.names[table][at]} = {self.value(first)}"
        self.both(f"UPDATE {table} SET {text} WHERE {self.where(table)}")

    def delete(self, table):
        self.both(f"DELETE FROM {table} WHERE {self.where(table)}")

    def merge(self, table):
        key = self.names[table][0 if table == "c" else 1]
        number, value = self.draw.randrange(6), self.names[table][2]
        self.lake.execute(
            f"MERGE INTO {table} AS t USING (SELECT {number} AS q) AS s ON t.{key} = s.q"
            f" WHEN MATCHED AND t.{value} > 3 THEN DELETE"
            f" WHEN MATCHED THEN UPDATE SET {value} = 4"
        )

    def replace(self, table):
        """All rows go at once, seldom."""
        if self.draw.random() < 0.3:
            names, rows = self.rows(table, 5)
            if self.draw.random() < 0.5:
                self.lake.execute(f"TRUNCATE TABLE {table}")
            else:
                self.lake.execute(f"INSERT OVERWRITE {table} ({names}) VALUES {rows}")

    def rename(self, table):
        at, self.next = self.draw.randrange(len(self.names[table])), self.next + 1
        old, new = self.names[table][at], f"x{self.next}"
        self.lake.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
        self.names[table][at] = new

    def add(self, table):
        self.next += 1
        self.both(f"ALTER TABLE {table} ADD COLUMN y{self.next} INT DEFAULT 7")

    def widen(self, table):
        name = self.names[table][2]
        self.both(f"ALTER TABLE {table} ALTER COLUMN {name} TYPE BIGINT")

    def compact(self, table):
        if self.draw.random() < 0.5:
            self.lake.table(table).compact(min_files=2)
        else:
            self.duck.execute(f"CALL ducklake_merge_adjacent_files('lake', '{table}')")

    def restore(self, table):
        known = [s.id for s in self.lake.table(table).history(limit=4)]
        if not known:
            return  # All of them have expired.
        self.lake.execute(f"RESTORE TABLE {table} TO VERSION AS OF {self.draw.choice(known)}")
        self.names[table] = [c.name for c in self.lake.table(table).columns][
            : len(self.names[table])
        ]

    def foreign(self, _):
        """DuckDB writes into a view, or all older snapshots expire."""
        if self.draw.random() < 0.5:
            self.duck.execute(f"DELETE FROM {self.draw.choice(self.views)} WHERE random() < 0.5")
        else:
            self.lake.expire_snapshots(older_than="0 seconds", retain_last=2)

    # Refreshing.

    def refresh(self, view):
        [(way, why, _)] = self.lake.execute(f"EXPLAIN REFRESH MATERIALIZED VIEW {view}").rows
        self.lake.execute(f"REFRESH MATERIALIZED VIEW {view}")
        self.ways.add(way)
        held = sorted(self.duck.sql(f"FROM {view}"), key=str)
        wanted = sorted(self.duck.sql(f'FROM "{view}$now"'), key=str)
        assert held == wanted, f"{view}, {way} ({why})"


def tell(lake, url, seed, steps=8):
    """Tell a story to its end; return in which ways views were refreshed."""
    with DuckDBOracle(url) as duck:
        program = Program(lake, duck, seed)
        program.run(steps)
        assert not lake.check(rows=True).problems
        return program.ways
