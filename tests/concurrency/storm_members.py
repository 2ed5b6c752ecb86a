"""What the members of a storm's crew do to a lake; each touches rows of its own only."""

from __future__ import annotations

import random
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import duckdb

import shelduck
from shelduck import add_column, change_type, drop_column, rename_column, set_comment, set_default
from tests.concurrency.storm_log import (
    BEGUN,
    FAILED,
    LANDED,
    MARKERS,
    REFUSED,
    UNKNOWN,
    Log,
    changed,
    drawn,
)
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from collections.abc import Callable

TABLES = ("t0", "t1", "t2")
PLAIN = "t0"
"""The table whose columns have no defaults."""
KEYS = 40
_LOSES = (shelduck.Conflict, shelduck.CatalogUnavailable)
_LOST_IN_DUCKDB = ("conflict", "locked")
_OF_ROWS = ("update", "delete")
_FEW, _MANY = 3, 40
# Snapshots and files go while others read: whoever was stopped for seconds must still find them.
_KEPT_SNAPSHOTS = 25
_KEPT_FILES = "90 seconds"

Act = tuple["dict[str, Any]", "Callable[[], object]"]


class Refused(Exception):
    """Somebody else was faster, or there was nothing to do."""


class Member:
    """Draws acts, carries them out, and notes what became of each."""

    LONGEST_PAUSE = 0.3
    VERBS: tuple[str, ...] = ()

    def __init__(self, lake: shelduck.Lake, folder: Path, url: str) -> None:
        self.lake, self.folder, self.url = lake, folder, url
        self.random = random.Random()
        self._begin()

    def _begin(self) -> None:
        self.log = Log(self.folder)
        self.owner = self.log.owner
        self.held: dict[str, dict[int, int]] = {name: {} for name in TABLES}
        self.next = 0

    def run(self) -> None:
        while not (self.folder / "stop").exists():
            verb = drawn(self.random, self.VERBS, self.folder)
            self.step("append" if verb in _OF_ROWS and not any(self.held.values()) else verb)
            time.sleep(self.random.uniform(0, self.LONGEST_PAUSE))

    def step(self, verb: str) -> None:
        """One act; whatever it raises is noted."""
        try:
            facts, act = getattr(self, verb.replace(" ", "_"))()
        except shelduck.CatalogUnavailable:
            # The database restarts while the act looks around; nothing has begun.
            return
        self.log.note(BEGUN, verb, **facts)
        try:
            act()
        except (*_LOSES, Refused) as error:
            self.log.note(REFUSED, verb, told=type(error).__name__, text=str(error)[:300])
        except duckdb.Error as error:
            if any(word in str(error) for word in _LOST_IN_DUCKDB):
                self.log.note(REFUSED, verb, told=type(error).__name__)
            else:
                # DuckDB does not tell whether a broken connection has committed.
                self._leave(verb)
        except shelduck.OutcomeUnknown:
            self._leave(verb)
        except Exception:  # noqa: BLE001 - the test shows it
            self.log.note(FAILED, verb, told=traceback.format_exc())
            self.log.close()
            self._begin()
        else:
            self.log.note(LANDED, verb)
            if "table" in facts:
                changed(self.held[facts["table"]], facts)

    def _leave(self, verb: str) -> None:
        """Leave the rows as they are, whatever they are, and begin with others."""
        self.log.note(UNKNOWN, verb)
        self.log.close()
        self._begin()

    def ids(self, count: int) -> list[int]:
        """Ids that no row of this writer had."""
        self.next += count
        return list(range(self.next - count, self.next))

    def filled(self) -> str:
        """A table in which there are rows of this writer."""
        return self.random.choice([name for name, rows in self.held.items() if rows])

    def some(self, table: str, count: int) -> list[int]:
        """Ids of rows that are there; one that is not, if there are none."""
        there = sorted(self.held[table])
        return self.random.sample(there, min(count, len(there))) or [-1]


class Sparks(Member):
    """A thread of a process with a JVM."""

    VERBS = (
        *("append", "update", "delete", "merge", "load", "transfer"),
        *("read", "compact", "rewrite", "flush", "job"),
    )

    def append(self) -> Act:
        table, ids = self.random.choice(TABLES), self.ids(_MANY)
        rows = self.lake.spark.range(ids[0], ids[-1] + 1, 1, 1)
        rows = rows.selectExpr("id", f"{self.owner}L AS owner", "id AS v")
        facts = {"table": table, "put": {i: i for i in ids}}
        return facts, lambda: self.lake.table(table).append(rows)

    def update(self) -> Act:
        table, rest = self.filled(), self.random.randrange(3)
        put = {i: v + 1 for i, v in self.held[table].items() if i % 3 == rest}
        where = f"owner = {self.owner} AND id % 3 = {rest}"
        facts = {"table": table, "put": put}
        return facts, lambda: self._made(self.lake.table(table).update({"v": "v + 1"}, where=where))

    def delete(self) -> Act:
        table = self.filled()
        gone = self.some(table, _FEW)
        where = f"owner = {self.owner} AND id IN ({', '.join(map(str, gone))})"
        facts = {"table": table, "removed": gone}
        return facts, lambda: self._made(self.lake.table(table).delete(where))

    def merge(self) -> Act:
        table = self.random.choice(TABLES)
        known = [i for i in self.some(table, _FEW) if i >= 0]
        put = {i: self.random.randrange(1000) for i in [*known, *self.ids(_FEW)]}
        values = ", ".join(f"({i}L, {self.owner}L, {v}L)" for i, v in put.items())
        source = self.lake.spark.sql(f"SELECT * FROM VALUES {values} AS s(id, owner, v)")
        clauses = (
            shelduck.when_matched_update({"v": "s.v"}),
            shelduck.when_not_matched_insert({"id": "s.id", "owner": "s.owner", "v": "s.v"}),
        )
        facts = {"table": table, "put": put}
        return facts, lambda: self.lake.table(table).merge(source, ["id", "owner"], *clauses)

    def load(self) -> Act:
        keys = self.random.sample(range(KEYS), 8)
        sums = {key: self.random.randrange(1, 100) for key in keys}
        marker = MARKERS + self.owner * 1000 + self.ids(1)[0]
        values = ", ".join(f"({key}L, {key % 4}L, {n}L)" for key, n in {**sums, marker: 1}.items())
        rows = self.lake.spark.sql(f"SELECT * FROM VALUES {values} AS s(k, g, n)")
        return {"sums": sums, "marker": marker}, lambda: self.lake.table("keyed").append(rows)

    def transfer(self) -> Act:
        number, amount = self.owner * 1000 + self.ids(1)[0], self.random.randrange(1, 1000)

        def act() -> None:
            with self.lake.transaction() as tx:
                tx.sql(f"INSERT INTO debit SELECT {number}L, {-amount}L")
                tx.sql(f"INSERT INTO credit SELECT {number}L, {amount}L")

        return {"id": number, "amount": amount}, act

    def read(self) -> Act:
        """The writer finds the rows that it noted, and all transfers add up."""
        table = self.random.choice(TABLES)

        def act() -> None:
            found = self.lake.table(table).read().where(f"owner = {self.owner}")
            seen = {row.id: row.v for row in found.select("id", "v").collect()}
            assert seen == self.held[table], (table, self.owner, seen, self.held[table])
            version = self.lake.snapshots()[-1].id
            both = [self.lake.table(n).read(version=version) for n in ("debit", "credit")]
            total = both[0].unionByName(both[1]).selectExpr("coalesce(sum(amount), 0)").first()[0]
            assert total == 0, (version, total)

        return {}, act

    def compact(self) -> Act:
        table = self.random.choice((*TABLES, "keyed", "debit", "credit"))
        return {}, lambda: self._snapshots(self.lake.table(table).compact(min_files=2))

    def rewrite(self) -> Act:
        table = self.random.choice((*TABLES, "keyed"))
        return {}, lambda: self._snapshots(self.lake.table(table).rewrite_deletes(0.05))

    def flush(self) -> Act:
        table = self.random.choice((*TABLES, "keyed"))
        return {}, lambda: self._made(self.lake.table(table).flush_inlined_data())

    def job(self) -> Act:
        def act() -> None:
            done = [job for job in self.lake.run_jobs() if job.state.value == "FINISHED"]
            if not done:
                raise Refused

        return {}, act

    def _made(self, result: object) -> None:
        if not isinstance(result, shelduck.Committed):
            raise Refused

    def _snapshots(self, result: Any) -> None:
        if not result.snapshots:
            raise Refused


class Inserter(Member):
    """Puts literal rows into the catalog, without Java."""

    LONGEST_PAUSE = 2.0
    VERBS = ("insert",)

    def insert(self) -> Act:
        # Spark computes defaults, so only a table without any takes rows without Java.
        table, ids = PLAIN, self.ids(_FEW)
        values = ", ".join(f"({i}, {self.owner}, {i})" for i in ids)
        facts = {"table": table, "put": {i: i for i in ids}}
        text = f"INSERT INTO {table} (id, owner, v) VALUES {values}"
        return facts, lambda: self.lake.execute(text)


class Shaper(Member):
    """Changes columns, and submits heavy changes for others to work on, without Java."""

    LONGEST_PAUSE = 2.0
    VERBS = ("alter", "submit")
    HEAVY: ClassVar[dict[str, tuple[str, str]]] = {"x": ("int", "string"), "n": ("int", "bigint")}

    def alter(self) -> Act:
        table = self.lake.table(self.random.choice((*TABLES, "keyed")))
        names = [name for name in table.columns.names if name.startswith("c")]
        fresh = f"c{self.owner}_{self.ids(1)[0]}"
        changes = [set_comment(None, fresh)]
        if table.name.name != "keyed":
            default = None if table.name.name == PLAIN else 7
            changes.append(add_column(fresh, "int", default=default))
        if names:
            name = self.random.choice(names)
            changes.append(rename_column(name, fresh))
            changes += [] if table.name.name == PLAIN else [set_default(name, 8)]
            changes.append(drop_column(name))
        # Columns come sooner than they go, but they do go.
        wanted = changes[-1] if len(names) > 4 else self.random.choice(changes)
        return {}, lambda: self._unless_gone(lambda: table.alter(wanted))

    def submit(self) -> Act:
        name = self.random.choice((*TABLES, "keyed"))
        column = "n" if name == "keyed" else "x"

        def act() -> None:
            jobs = [job.look() for job in self.lake.jobs()]
            if any(job.is_open and job.table_name == f"main.{name}" for job in jobs):
                raise Refused
            table = self.lake.table(name)
            now = str(table.columns.get((column,), name).type)
            first, second = self.HEAVY[column]
            table.alter(change_type(column, second if now == "int32" else first))

        return {}, act

    def _unless_gone(self, act: Callable[[], object]) -> None:
        try:
            act()
        except (shelduck.NotFound, shelduck.AlreadyExists) as error:
            raise Refused from error


class Keeper(Member):
    """Forgets snapshots, deletes files that nobody needs, and looks for faults, without Java."""

    LONGEST_PAUSE = 6.0
    VERBS = ("expire", "clean up", "orphans", "check")

    def expire(self) -> Act:
        def act() -> None:
            if not self.lake.expire_snapshots(retain_last=_KEPT_SNAPSHOTS).snapshots:
                raise Refused

        return {}, act

    def clean_up(self) -> Act:
        return {}, lambda: self.lake.cleanup_old_files(older_than=_KEPT_FILES)

    def orphans(self) -> Act:
        return {}, lambda: self.lake.remove_orphans(older_than=_KEPT_FILES)

    def check(self) -> Act:
        def act() -> None:
            found = self.lake.check()
            assert found.is_sound, str(found)

        return {}, act


class Ducks(Member):
    """Writes and reads through DuckDB's own extension."""

    LONGEST_PAUSE = 3.0
    VERBS = ("duckdb insert", "duckdb transfer", "duckdb read")

    def duckdb_insert(self) -> Act:
        table, ids = self.random.choice(TABLES), self.ids(_FEW)
        values = ", ".join(f"({i}, {self.owner}, {i})" for i in ids)
        facts = {"table": table, "put": {i: i for i in ids}}
        return facts, lambda: self._tell(f"INSERT INTO {table} (id, owner, v) VALUES {values}")

    def duckdb_transfer(self) -> Act:
        number, amount = self.owner * 1000 + self.ids(1)[0], self.random.randrange(1, 1000)
        return {"id": number, "amount": amount}, lambda: self._tell(
            "BEGIN",
            f"INSERT INTO debit VALUES ({number}, {-amount})",
            f"INSERT INTO credit VALUES ({number}, {amount})",
            "COMMIT",
        )

    def duckdb_read(self) -> Act:
        def act() -> None:
            with DuckDBOracle(self.url) as found:
                found.execute("BEGIN")
                [(total,)] = found.sql("SELECT sum(amount) FROM (FROM debit UNION ALL FROM credit)")
                assert total in (None, 0), total
                for table in TABLES:
                    rows = found.sql(f"SELECT id, v FROM {table} WHERE owner = {self.owner}")
                    assert dict(rows) == self.held[table], (table, rows)

        return {}, act

    def _tell(self, *statements: str) -> None:
        with DuckDBOracle(self.url) as found:
            for statement in statements:
                found.execute(statement)


class Loader(Sparks):
    """Loads rows of the same few keys as others, into tables that sum them or keep the last."""

    LONGEST_PAUSE = 0.5
    VERBS = ("load", "replace")

    def replace(self) -> Act:
        keys = self.random.sample(range(KEYS), 8)
        marker = MARKERS + self.owner * 1000 + self.ids(1)[0]
        values = ", ".join(f"({key}L, {key % 4}L, {marker}L)" for key in (*keys, marker))
        rows = self.lake.spark.sql(f"SELECT * FROM VALUES {values} AS s(k, g, n)")
        return {"marker": marker, "keys": keys}, lambda: self.lake.table("last").append(rows)
