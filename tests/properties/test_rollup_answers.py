"""The law of all shortcuts: an answer is the one that the table's own files give.

Tables, partitions, rollups and queries are drawn at random. What a query finds with the hint
NO_ROLLUP, without answers from metadata and without partition columns, it finds with them too, by
`lake.sql`, over `Table.read` and in `spark.sql` of an attached lake, before and after columns
change. Whatever else may answer a query some day is asked here, too.
"""

from __future__ import annotations

import contextlib
import random
import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import shelduck
from shelduck import AlreadyExists, InvalidRequest, NotFound, Unsupported
from shelduck.read.scan.rollup_rule import collecting_choices
from tests.properties.test_evolution import SETTINGS
from tests.support.answers import (
    MODELS,
    Drawing,
    Queries,
    Table,
    answers,
    as_one,
    columns_of,
    drawn_rows,
    drawn_table,
    rollup_columns,
)
from tests.support.lengths import long

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

Draw = Callable[[int], int]
Note = Callable[[str], object]
HINT = "/*+ NO_ROLLUP */"
SWITCHES = (
    "spark.shelduck.metadataAnswers",
    "spark.shelduck.localAnswers",
    "spark.shelduck.partitionColumns",
)


class World:
    """A lake, attached too, with two tables that have rollups."""

    def __init__(
        self, drawing: Drawing, note: Note, spark: SparkSession, folder: Path, model: str
    ) -> None:
        self.drawing, self.note, self.spark = drawing, note, spark
        self.url = f"sqlite:///{folder}/lake.db"
        self.lake = shelduck.attach(spark, "law", self.url, f"{folder}/data/")
        self.tables = [
            drawn_table(drawing, "t", model),
            drawn_table(drawing, "u", drawing.one(MODELS)),
        ]
        self.taken = 0
        self.asked = 0
        for table in self.tables:
            for statement in table.create():
                self.do(statement)
            self.divide(table)
            self.do(drawn_rows(drawing, table, 16))

    def do(self, statement: str) -> None:
        self.note(statement)
        self.lake.sql(statement)

    def divide(self, table: Table) -> None:
        """Partition half of the tables by a column that may be a key of partitions."""
        if self.drawing.draw(2):
            key = self.drawing.one([*table.keys])
            with contextlib.suppress(InvalidRequest, Unsupported):
                self.do(f"ALTER TABLE {table.name} SET PARTITIONED BY ({key})")

    def change(self) -> None:
        """Rows go or change, and then columns do, if that is allowed."""
        table = self.tables[0]
        key = self.drawing.one([*table.keys])
        self.do(f"DELETE FROM {table.name} WHERE {key} IS NULL")
        for _ in range(2):
            try:
                self.do(self.alteration(table))
            except (AlreadyExists, InvalidRequest, NotFound, Unsupported):
                continue

    def alteration(self, table: Table) -> str:
        """A change of columns; some are refused, which changes nothing."""
        columns = [*table.keys, *table.values]
        rollup = f"r{self.drawing.draw(2)}"
        value = self.drawing.one([*table.values]) if table.values else columns[-1]
        kind, how = table.values.get(value, ("int32", ""))
        clause = self.drawing.one(
            [
                f"DROP COLUMN {self.drawing.one([*table.keys])} FROM {rollup}",
                f"DROP COLUMN {value} FROM {rollup}",
                f"DROP COLUMN {value}",
                f"RENAME COLUMN {self.drawing.one(columns)} TO renamed",
                f"MODIFY COLUMN {value} {'BIGINT' if kind == 'int32' else 'INT'} {how}",
                f"ADD COLUMN more INT {'KEY ' if table.model != 'DUPLICATE' else ''}TO {rollup}",
                f"DROP ROLLUP {rollup}",
                f"ADD ROLLUP other ({', '.join(reversed(table.keys))})",
            ]
        )
        return f"ALTER TABLE {table.name} {clause}"

    def ask(self, count: int) -> None:
        """Ask some queries in all ways."""
        names = [t.name for t in self.tables]
        columns, rollups = columns_of(self.lake, names), rollup_columns(self.lake, names)
        drawn = Queries(self.drawing, columns, rollups)
        queries = [drawn.drawn() for _ in range(count)]
        for switch in SWITCHES:
            self.spark.conf.set(switch, "false")
        try:
            wanted = answers(self.lake.sql(as_one(queries, HINT)), count)
        finally:
            for switch in SWITCHES:
                self.spark.conf.unset(switch)
        with collecting_choices(self.spark) as taken:
            for way in (self.by_sql, self.by_read, self.by_catalog):
                found = answers(way(queries), count)
                wrong = [
                    (query, a, b)
                    for query, a, b in zip(queries, found, wanted, strict=True)
                    if a != b
                ]
                assert not wrong, (way.__name__, wrong)
        self.taken += len(taken)
        self.asked += count

    def by_sql(self, queries: list[str]) -> object:
        return self.lake.sql(as_one(queries))

    def by_read(self, queries: list[str]) -> object:
        for table in self.tables:
            self.lake.table(table.name).read().createOrReplaceTempView(table.name)
        try:
            return self.spark.sql(as_one(queries))
        finally:
            for table in self.tables:
                self.spark.catalog.dropTempView(table.name)

    def by_catalog(self, queries: list[str]) -> object:
        self.spark.sql("USE law.main")
        try:
            return self.spark.sql(as_one(queries))
        finally:
            self.spark.catalog.setCurrentCatalog("spark_catalog")

    def close(self) -> None:
        shelduck.detach(self.spark, "law")


def tell(
    draw: Draw, note: Note, spark: SparkSession, folder: Path, model: str, *, count: int
) -> World:
    """Ask half of the queries before columns change, and half after it."""
    world = World(Drawing(draw), note, spark, folder, model)
    try:
        world.ask(count // 2)
        world.change()
        world.ask(count - count // 2)
    finally:
        world.close()
        shutil.rmtree(folder)
    return world


@pytest.mark.parametrize(("model", "seed"), [("AGGREGATE", 2)])
def test_a_few_queries_have_one_answer(spark, tmp_path, model, seed):
    folder = tmp_path / "law"
    folder.mkdir()
    world = tell(random.Random(seed).randrange, print, spark, folder, model, count=6)
    assert world.taken


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@settings(SETTINGS, max_examples=long(7, 1))
@given(data=st.data())
def test_a_thousand_queries_have_one_answer(spark, tmp_path_factory, model, data):
    def draw(options: int) -> int:
        return data.draw(st.integers(0, options - 1))

    tell(draw, note, spark, tmp_path_factory.mktemp("law"), model, count=50)
