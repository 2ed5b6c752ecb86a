"""What Delta's and Iceberg's own tests say of MERGE and INSERT: rows with and without evolution.

The facts are in ``tests/data/evolving_writes.txt``, with what a lake does else, and why.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

import shelduck
from tests.support.lakes import Base, rows

pytestmark = pytest.mark.guard

FILE = Path(__file__).parents[2] / "data" / "evolving_writes.txt"
STATEMENTS = ["CREATE TABLE nothing (a INT)"]


@dataclass
class Fact:
    """A statement over a target and a source; ``told`` has rows, None for an error, by mark."""

    name: str
    parts: dict[str, str] = field(default_factory=dict)
    told: dict[str, list[str] | None] = field(default_factory=dict)

    def take(self, line: str) -> None:
        mark, _, rest = line.partition(" ")
        if mark.endswith("!"):
            self.told[mark[:-1]] = None
        elif mark in ("=", "-", "~=", "~-"):
            found = self.told.setdefault(mark, [])
            assert found is not None
            found.append(rest)
        else:
            self.parts[mark] = rest

    def expected(self, mark: str) -> list[str] | None:
        return self.told[f"~{mark}" if f"~{mark}" in self.told else mark]


def facts():
    found = []
    for line in FILE.read_text().splitlines():
        if line.startswith("["):
            found.append(Fact(line.strip("[]")))
        elif line and not line.startswith("#"):
            found[-1].take(line)
    return found


FACTS = facts()
CASES = [(fact, mark) for fact in FACTS for mark in ("=", "-") if mark in fact.told]


@pytest.fixture(autouse=True)
def no_view_stays(spark):
    yield
    spark.catalog.dropTempView("s")


@pytest.fixture(scope="module")
def base(spark, tmp_path_factory):
    return Base(tmp_path_factory.mktemp("facts"), spark, STATEMENTS)


def statement_of(fact, *, evolves):
    with_evolution = "WITH SCHEMA EVOLUTION " if evolves else ""
    if "i" in fact.parts:
        return f"INSERT {with_evolution if 'BY NAME' in fact.parts['i'] else ''}{fact.parts['i']}"
    return f"MERGE {with_evolution}INTO t USING s ON t.key = s.key {fact.parts['m']}"


def shown(value):
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize(
    ("fact", "mark"),
    [
        pytest.param(
            *case, id=f"{case[0].name} {case[1]}", marks=() if n % 12 == 0 else pytest.mark.slow
        )
        for n, case in enumerate(CASES)
    ],
)
def test_a_statement_of_their_tests_gives_their_rows(spark, base, fact, mark):
    _, lake = base.copy()
    columns, values = fact.parts["t"].split(": (", 1)
    lake.sql(f"CREATE TABLE t ({columns})")
    lake.sql(f"INSERT INTO t VALUES ({values}")
    columns, values = fact.parts["s"].split(": (", 1)
    given = spark.sql(f"SELECT * FROM VALUES ({values}")
    names = [part.split(" ")[0].strip("`") for part in top_level(columns)]
    given.toDF(*names).createOrReplaceTempView("s")
    wanted = fact.expected(mark)
    statement = statement_of(fact, evolves=mark == "=")
    if wanted is None:
        with pytest.raises(shelduck.ShelduckError):
            lake.sql(statement)
        return
    lake.sql(statement)

    found = sorted(" | ".join(map(shown, row)) for row in rows(lake.sql("SELECT * FROM t")))
    assert found == sorted(wanted)


def top_level(columns):
    depth, parts = 0, [""]
    for c in columns:
        depth += (c == "<") - (c == ">")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts]


def test_most_facts_are_the_same_here_and_each_other_one_says_why():
    others = [f for f in FACTS if any(mark.startswith("~") for mark in f.told)]

    assert len(CASES) >= 120
    assert all("~" in fact.parts for fact in others)
    assert len([1 for f in others for mark in f.told if mark[0] == "~"]) <= 12
