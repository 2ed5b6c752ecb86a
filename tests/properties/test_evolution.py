"""Random sequences of ALTER and INSERT, against rows kept in memory by column identity.

Every snapshot of each sequence is read by Shelduck and by DuckDB's extension, and filtered at the
seams: names that were swapped or came again, values between those that an old type could hold.
"""

from __future__ import annotations

import operator
import shutil
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import shelduck
from tests.support.ducklakepy_oracle import drawn_form, oracle_at
from tests.support.evolving import (
    VALUES,
    WIDER,
    Column,
    EvolvingTable,
    Version,
    dotted,
    float32,
    order_key,
    sql_value,
)
from tests.support.lengths import long
from tests.support.oracle import DuckDBOracle, at

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

NAMES = ["a", "b", "c", "x y", "größe", "d.e"]
LEAVES = sorted(VALUES)
STEPS = 6

SETTINGS = settings(
    deadline=None,
    # A sequence takes seconds: what failed is told by its statements, not by a smaller one.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)


@dataclass(frozen=True)
class Filter:
    """A condition in Spark's SQL, in DuckDB's (None where it is known wrong), and its rows."""

    condition: str
    duckdb: str | None
    ids: list[int]


class Author:
    """Draws the next statement of a sequence."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.ids = 0
        inside = [Column("f", "int"), Column("g", "string")]
        self.table = EvolvingTable(
            [
                Column("id", "int"),
                Column("a", "int"),
                Column("b", "float"),
                Column("s", "struct", inside),
                Column("l", "array", [Column("element", "struct", [Column("e", "int")])]),
                Column("m", "map", [Column("key", "string"), Column("value", "smallint")]),
            ]
        )

    def pick(self, values: list[Any]) -> Any:
        return self.data.draw(st.sampled_from(values))

    def maybe(self) -> bool:
        return self.data.draw(st.booleans())

    def take_step(self, lake: shelduck.Lake, step: int) -> None:
        """Runs the next statement, the first of which makes the table, and remembers the rows."""
        if not step:
            # Statements have few rows: with 10, all of them stay in the catalog.
            lake.set_option("data_inlining_row_limit", self.pick([0, 10]))
        text = self.statement() if step else self.table.create_statement()
        note(text)
        lake.sql(text)
        self.table.remember(lake.snapshots()[-1].id)

    def statement(self) -> str:
        if self.data.draw(st.integers(0, 9)) < 4:
            return self.insert()
        changes: list[str] = []
        for _ in range(self.data.draw(st.integers(1, 3))):
            changes += self.pick(
                [self.add, self.drop, self.rename, self.swap, self.renew, self.widen, self.default,
                 self.move, self.widen]
            )()  # fmt: skip
        return f"ALTER TABLE t {', '.join(changes)}" if changes else self.insert()

    def insert(self) -> str:
        left_out = frozenset(
            node.identity
            for path, node in self.table.nodes()
            if len(path) > 1
            and node.name not in ("element", "key", "value")
            and len(self.table.siblings(path)) > 1
            and self.table.siblings(path)[0] is not node
            and self.data.draw(st.integers(0, 4)) == 0
        )
        given = [c for c in self.table.columns if c.name == "id" or not self._rarely()]
        rows = []
        for _ in range(self.data.draw(st.integers(1, 3))):
            self.ids += 1
            rows.append([self.ids if c.name == "id" else self.value(c, left_out) for c in given])
        return self.table.insert(given, rows, left_out)

    def value(self, column: Column, left_out: frozenset[int]) -> Any:
        if self._rarely():
            return None
        if column.kind == "struct":
            return {
                c.identity: self.value(c, left_out)
                for c in column.children
                if c.identity not in left_out
            }
        if column.kind == "array":
            size = self.data.draw(st.integers(0, 2))
            return [self.value(column.children[0], left_out) for _ in range(size)]
        if column.kind == "map":
            key, item = column.children
            keys = [k for k in VALUES[key.kind][:2] if self.maybe()]
            return [(k, self.value(item, left_out)) for k in keys]
        return self.pick(VALUES[column.kind])

    def add(self) -> list[str]:
        above, siblings = self.pick(self.table.places())
        free = [n for n in NAMES if n not in [c.name for c in siblings]]
        if not free:
            return []
        after = None
        if self._rarely():
            after = self.pick(["", *(c.name for c in siblings)])
        return [self.table.add(above, self.new(self.pick(free)), after)]

    def new(self, name: str) -> Column:
        kind = self.pick([*LEAVES, *LEAVES, "struct", "array", "map"])
        if kind == "struct":
            return Column(name, kind, [Column("f", self.pick(LEAVES)), Column("g", "int")])
        if kind == "array":
            return Column(name, kind, [Column("element", self.pick(LEAVES))])
        if kind == "map":
            inside = Column("value", "struct", [Column("v", self.pick(LEAVES))])
            return Column(name, kind, [Column("key", "int"), inside])
        default = self.pick(VALUES[kind]) if self.maybe() else None
        return Column(name, kind, default=default)

    def drop(self) -> list[str]:
        paths = [p for p in self.table.named() if len(self.table.siblings(p)) > 1]
        return [self.table.drop(self.pick(paths))] if paths else []

    def rename(self) -> list[str]:
        paths = self.table.named()
        if not paths:
            return []
        path = self.pick(paths)
        taken = [c.name for c in self.table.siblings(path)]
        return [self.table.rename(path, self.pick([n for n in [*NAMES, "z"] if n not in taken]))]

    def swap(self) -> list[str]:
        paths = [p for p in self.table.named() if len(self._others(p)) > 0]
        if not paths:
            return []
        path = self.pick(paths)
        name = path[-1]
        other = self.pick(self._others(path))
        return [
            self.table.rename(path, "tmp"),
            self.table.rename((*path[:-1], other), name),
            self.table.rename((*path[:-1], "tmp"), other),
        ]

    def renew(self) -> list[str]:
        """Another column under the name of a dropped one."""
        paths = [p for p in self.table.named() if len(self.table.siblings(p)) > 1]
        if not paths:
            return []
        path = self.pick(paths)
        return [self.table.drop(path), self.table.add(path[:-1], self.new(path[-1]))]

    def widen(self) -> list[str]:
        found = [(path, node) for path, node in self.table.nodes() if node.kind in WIDER]
        if not found:
            return []
        path, node = self.pick(found)
        return [self.table.widen(path, self.pick(list(WIDER[node.kind])))]

    def default(self) -> list[str]:
        paths = [p for p in self.table.named() if self.table.find(p).is_leaf]
        if not paths:
            return []
        path = self.pick(paths)
        value = None if self._rarely() else self.pick(VALUES[self.table.find(path).kind])
        return [self.table.set_default(path, value)]

    def move(self) -> list[str]:
        paths = self.table.named()
        return [self.table.move_first(self.pick(paths))] if paths else []

    def filter(self, version: Version) -> Filter:
        chain = self.pick(version.leaves())
        column = chain[-1]
        path = dotted(tuple(c.name for c in chain))
        symbol = self.pick([*_OPERATORS, "IS NULL", "IS NOT NULL"])
        if symbol.startswith("IS"):
            is_null = symbol == "IS NULL"
            ids = version.ids_where(chain, lambda v: (v is None) == is_null)
            return Filter(f"{path} {symbol}", _for_duckdb(f"{path} {symbol}"), ids)
        value = self.pick(VALUES[column.kind])
        test = _OPERATORS[symbol]
        ids = version.ids_where(
            chain, lambda v: v is not None and test(order_key(v), order_key(value))
        )
        condition = f"{path} {symbol} {sql_value(column, value, frozenset())}"
        # DuckDB 1.5.5 filters old files of a column wrongly that was a float, or an integer and is
        # a decimal now, and escapes text otherwise.
        is_shared = column.kind not in ("double", "decimal(20,2)", "string", "binary")
        return Filter(condition, _for_duckdb(condition) if is_shared else None, ids)

    def _others(self, path: tuple[str, ...]) -> list[str]:
        names = [c.name for c in self.table.siblings(path)]
        return [n for n in names if n not in (path[-1], "id")]

    def _rarely(self) -> bool:
        return self.data.draw(st.integers(0, 4)) == 0


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "<>": operator.ne,
}


def _for_duckdb(condition: str) -> str:
    words = {"`": '"', "TIMESTAMP_NTZ": "TIMESTAMP", "timestamp_ntz": "timestamp"}
    for spark_word, duckdb_word in words.items():
        condition = condition.replace(spark_word, duckdb_word)
    return condition


def run_sequence(
    data: st.DataObject, spark: SparkSession, folder: Path, url: str = "", **form: bool
) -> None:
    author = Author(data)
    versions = author.table.versions
    url = url or f"sqlite:///{folder}/lake.db"
    how = drawn_form(author.pick, **form)
    with shelduck.connect(url, f"{folder}/data", spark, progress=False, **how) as lake:
        for step in range(STEPS + 1):
            author.take_step(lake, step)
        # An ALTER that changes nothing makes no snapshot, all others make one each.
        assert [s.id for s in lake.snapshots()] == [0, *versions]
        newest = versions[max(versions)]
        filters = [author.filter(newest) for _ in range(4)]
        shelduck_agrees(lake.table("t"), versions, filters)
        assert lake.table("t").read().count() == len(newest.rows)
    with oracle_at(url) as duckdb:
        duckdb_agrees(duckdb, versions, filters)


def shelduck_agrees(
    table: shelduck.Table, versions: dict[int, Version], filters: list[Filter]
) -> None:
    """Reads every snapshot and every filter in one Spark job, which is what makes this cheap."""
    parts = []
    for snapshot, version in versions.items():
        found = table.read(version=snapshot)
        assert found.columns == [c.name for c in version.columns]
        parts.append(found.select(F.lit(f"read {snapshot}").alias("part"), F.struct("*")))
        parts[-1] = parts[-1].toDF("part", f"rows {snapshot}")
    for n, wanted in enumerate(filters):
        found = table.read().where(wanted.condition)
        parts.append(found.select(F.lit(f"filter {n}").alias("part"), F.col("id").alias("found")))
    whole = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
    rows = whole.collect()
    for snapshot, version in versions.items():
        read = [row[f"rows {snapshot}"] for row in rows if row.part == f"read {snapshot}"]
        read.sort(key=lambda row: row.id)
        assert version.normal(read) == version.expected(), f"snapshot {snapshot}"
    for n, wanted in enumerate(filters):
        ids = sorted(row.found for row in rows if row.part == f"filter {n}")
        assert ids == wanted.ids, wanted.condition


def duckdb_agrees(
    duckdb: DuckDBOracle, versions: dict[int, Version], filters: list[Filter]
) -> None:
    for snapshot, version in versions.items():
        rows = duckdb.sql(f"SELECT * FROM {at('t', snapshot)} ORDER BY id")
        assert version.normal(rows) == version.expected(), f"DuckDB at snapshot {snapshot}"
    for wanted in filters:
        if wanted.duckdb is not None:
            found = duckdb.sql(f"SELECT id FROM t WHERE {wanted.duckdb} ORDER BY id")
            assert [i for (i,) in found] == wanted.ids, f"DuckDB: {wanted.duckdb}"


@given(st.data())
@settings(SETTINGS, max_examples=5, derandomize=True)
def test_random_changes_and_inserts_read_as_rows_by_identity(spark, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("evolution")
    run_sequence(data, spark, folder)
    shutil.rmtree(folder)


@pytest.mark.slow
@given(st.data())
@settings(SETTINGS, max_examples=long(200, 15))
def test_many_random_changes_and_inserts_read_as_rows_by_identity(spark, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("evolution")
    run_sequence(data, spark, folder)
    shutil.rmtree(folder)


@pytest.mark.slow
@given(st.data())
@settings(SETTINGS, max_examples=long(50, 5))
def test_random_changes_of_encrypted_lakes_on_postgresql(
    spark, postgres_server, tmp_path_factory, data
):
    folder = tmp_path_factory.mktemp("evolution")
    with postgres_server.fresh_database() as url:
        run_sequence(data, spark, folder, url, encrypted=True)
    shutil.rmtree(folder)


def test_values_between_those_of_the_old_type_are_among_the_filters():
    assert 1.1 in VALUES["double"]
    assert float32(1.1) in VALUES["double"]
    assert float32(1.1) != 1.1
