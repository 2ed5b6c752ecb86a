"""Random transactions over tables and schemas that they make, rename, swap, drop and fill.

A plain Python model says what each statement does, or which refusal it ends in. Afterwards Shelduck
and the oracle of the lake's version read what the model says, and the files that are there are the
catalog's.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from shelduck.ducklake.format import FORMATS
from tests.properties.test_evolution import SETTINGS
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.lakes import Base, catalog_files
from tests.support.lengths import long
from tests.support.transacting import Author, Lake, Row, Said, Table, in_order

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    import shelduck

STATEMENTS = [
    "CREATE SCHEMA s",
    "CREATE TABLE a (id INT, v INT)",
    "INSERT INTO a VALUES (1, 0), (2, 1)",
    "CREATE TABLE s.b AS SELECT CAST(id AS INT) AS id, CAST(id % 2 AS INT) AS v FROM range(3, 6)",
    "DELETE FROM s.b WHERE id = 5",
]
A = [{"id": 1, "v": 0}, {"id": 2, "v": 1}]
B = [{"id": 3, "v": 1}, {"id": 4, "v": 0}]


def beginning() -> Lake:
    """What STATEMENTS leave: rows in the catalog, and rows in a file of which one is deleted."""
    tables = {("main", "a"): Table("a", rows=A), ("s", "b"): Table("b", rows=B)}
    return Lake({"main": "main", "s": "s"}, tables).copied()


@pytest.fixture(scope="module")
def bases(spark, tmp_path_factory):
    """One for each version of DuckLake."""
    return [
        Base(tmp_path_factory.mktemp("transactions"), spark, STATEMENTS, version=version)
        for version in FORMATS
    ]


class Program:
    """One transaction over a copy of the base."""

    def __init__(self, random: Random, bases: list[Base]) -> None:
        self.author = Author(random, beginning())
        base = self.author.pick(bases)
        note(f"DuckLake {base.version}")
        self.data_path = base.folder / "data"
        self.catalog, self.lake = base.copy()
        self.files = files(self.data_path)

    def run(self) -> None:
        with self.lake:
            if self.author.number(0, 1):
                # Few rows stay in the catalog else, and what is lost with a file is not seen.
                note("every row goes into a file")
                self.lake.set_option("data_inlining_row_limit", "0")
            self.transaction()
            self.check()

    def transaction(self) -> None:
        before = self.author.lake.copied()
        self.lake.sql("BEGIN")
        for _ in range(self.author.number(4, 10)):
            self.say(self.author.statement())
        if self.author.number(0, 3) == 0:
            assert read_by_shelduck(self.lake) == self.author.lake.expected()
        if self.author.number(0, 9):
            self.lake.sql("COMMIT")
            return
        note("ROLLBACK")
        self.lake.sql("ROLLBACK")
        self.author.lake = before

    def say(self, said: Said) -> None:
        note(f"{said.text}{f'  -- {said.refused.__name__}' if said.refused else ''}")
        if said.refused is None:
            self.lake.sql(said.text)
            return
        with pytest.raises(said.refused) as caught:
            self.lake.sql(said.text)
        assert type(caught.value) is said.refused, caught.value

    def check(self) -> None:
        wanted = self.author.lake
        assert {s.lower() for s in self.lake.schemas()} == set(wanted.schemas)
        assert read_by_shelduck(self.lake) == wanted.expected()
        assert read_by_oracle(self.catalog, wanted) == wanted.expected()
        named = {self.data_path / path for path in catalog_files(self.catalog, live=False)}
        assert files(self.data_path) - self.files <= named
        assert all(file.is_file() for file in named)


def read_by_shelduck(lake: shelduck.Lake) -> dict[tuple[str, str], list[Row]]:
    """All that is there, with one query."""
    names = [(r[0], r[1]) for s in show(lake, "SHOW SCHEMAS") for r in relations(lake, s[0])]
    found: dict[tuple[str, str], list[Row]] = {name: [] for name in names}
    if not names:
        return found
    parts = [
        f"SELECT '{s}' AS s, '{n}' AS n, to_json(struct(*), map('ignoreNullFields', 'false')) AS r"
        f" FROM `{s}`.`{n}`"
        for s, n in names
    ]
    for schema, name, text in lake.sql(" UNION ALL ".join(parts)).collect():
        found[schema, name].append(tuple(json.loads(text).values()))
    return {name: in_order(rows) for name, rows in found.items()}


def show(lake: shelduck.Lake, text: str) -> list[Any]:
    return lake.sql(text).collect()


def relations(lake: shelduck.Lake, schema: str) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in show(lake, f"SHOW TABLES IN {schema}")]


def read_by_oracle(catalog: Path, wanted: Lake) -> dict[tuple[str, str], list[Row]]:
    with oracle_at(f"sqlite:///{catalog}") as duckdb:
        schemas = duckdb.sql("SELECT schema_name FROM duckdb_schemas() WHERE database_name='lake'")
        assert {s.lower() for (s,) in schemas} >= set(wanted.schemas)
        names = duckdb.sql(
            "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'lake'"
            " UNION ALL SELECT schema_name, view_name FROM duckdb_views()"
            " WHERE database_name = 'lake' AND NOT internal"
        )
        return {(s, n): in_order(duckdb.sql(f'SELECT * FROM "{s}"."{n}"')) for s, n in names}


def files(folder: Path) -> set[Path]:
    return set(folder.rglob("*.parquet"))


@given(st.randoms(use_true_random=True))
@settings(SETTINGS, max_examples=8, derandomize=True)
def test_random_transactions_leave_what_they_say(bases, random):
    Program(random, bases).run()


@pytest.mark.slow
@given(st.randoms(use_true_random=True))
@settings(SETTINGS, max_examples=long(1000, 30))
def test_a_thousand_random_transactions_leave_what_they_say(bases, random):
    Program(random, bases).run()
