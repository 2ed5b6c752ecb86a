"""A job that gives a key another type leaves the rows that a load into the new type would leave.

A story runs fifty programs at once: the first key is the number of the program, so that their rows
never meet. Plain dictionaries say what the tables hold, and what they hold in the new type.
"""

from __future__ import annotations

import random
import re
import shutil
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shelduck
from shelduck import InvalidRequest, JobState, change_type
from shelduck.jobs import worker
from shelduck.jobs.job_record import JobRecord
from shelduck.jobs.lots import Lots
from shelduck.keys.unique_keys import MeetingRows
from tests.properties.test_evolution import SETTINGS
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.lengths import long

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

PROGRAMS = 50
TEXTS = ["1", "01", "+1", "2", "02", "10", "0", "-0", "00", None]
TABLES = {
    "u": "(p INT, k STRING, v BIGINT) UNIQUE KEY (p, k)",
    "a": "(p INT, k STRING, v BIGINT SUM) AGGREGATE KEY (p, k)",
    "d": "(p INT, k STRING, v BIGINT) DUPLICATE KEY (p, k)",
}
DEATHS = [
    (Lots, "_land"),
    (MeetingRows, "_look"),
    (worker, "stage_converted"),
    (JobRecord, "commit"),
]
Key = tuple[int, Any]


class Story:
    """One run: a lake, three tables, and the rows of each as they came."""

    def __init__(self, seed: int, spark: SparkSession, url: str, folder: Path) -> None:
        self.random = random.Random(seed)
        self.url = url
        self.lake = shelduck.connect(url, str(folder / "data"), spark, progress=False)
        self.rows: dict[str, list[tuple[Key, int]]] = {name: [] for name in TABLES}
        self.lake.sql("CALL set_option('data_inlining_row_limit', 0)")
        for name, shape in TABLES.items():
            self.lake.sql(f"CREATE TABLE {name} {shape}")

    def run(self, before: int, beside: int) -> None:
        for _ in range(before):
            self.event()
        self.refuse()
        jobs = [
            self.lake.table("u").alter(self.change("keep newest")),
            self.lake.table("a").alter(self.change(None)),
            self.lake.table("d").alter(self.change(None)),
        ]
        for _ in range(beside):
            self.event()
            self.kill()
        self.lake.run_jobs()
        assert [job.state for job in jobs] == [JobState.FINISHED] * len(jobs)
        self.check()
        self.lake.close()

    def change(self, how: Any) -> Any:
        return change_type("k", "int", on_duplicate_keys=how)

    def event(self) -> None:
        self.random.choice([self.load, self.load, self.duckdb, self.delete])()

    def new_rows(self) -> list[tuple[int, str | None, int]]:
        """Rows whose keys are apart in the new type: a file does not keep the order of its load."""
        found = []
        for program in range(PROGRAMS):
            texts = self.random.sample(TEXTS, self.random.randint(0, 3))
            known = {number(text): text for text in texts}
            found += [(program, text, self.random.randint(0, 99)) for text in known.values()]
        return found

    def fold(self) -> None:
        """Rows that a statement folds count as written by it; folded alone, they keep an order."""
        self.lake.sql("CALL fold('u')")

    def load(self) -> None:
        self.fold()
        new = self.new_rows()
        for name in TABLES:
            self.lake.sql(f"INSERT INTO {name} VALUES {literals(new)}")
            self.came(name, new)

    def duckdb(self) -> None:
        """Rows by DuckDB, which folds nothing."""
        self.fold()
        new = self.new_rows()
        with oracle_at(self.url) as other:
            for name in TABLES:
                other.execute(f"INSERT INTO {name} VALUES {literals(new)}")
                self.came(name, new)

    def came(self, name: str, new: list[tuple[int, str | None, int]]) -> None:
        self.rows[name] += [((p, k), v) for p, k, v in new]

    def delete(self) -> None:
        text, part = self.random.choice(TEXTS), self.random.randint(0, 4)
        condition = f"p % 5 = {part} AND k <=> {literal(text)}"
        for name in TABLES:
            self.lake.sql(f"DELETE FROM {name} WHERE {condition}")
            left = [r for r in self.rows[name] if r[0][1] != text or r[0][0] % 5 != part]
            self.rows[name] = left

    def refuse(self) -> None:
        """The plan names keys that become equal exactly when there are some."""
        groups = defaultdict(set)
        for (program, text), _ in self.rows["u"]:
            groups[program, number(text)].add(text)
        count = sum(len(texts) > 1 for texts in groups.values())
        [step] = self.lake.table("u").plan_alter(self.change(None)).steps
        told = re.search(r"refused: (\d+) key\(s\)", step.proof)
        assert (0 if told is None else int(told[1])) == count
        if count:
            with pytest.raises(InvalidRequest, match=rf"become equal: {count} key"):
                self.lake.table("u").alter(self.change("refuse"))

    def kill(self) -> None:
        """A worker that dies before or after something that it does."""
        at, late = self.random.choice(DEATHS), self.random.random() < 0.5
        real = getattr(*at)

        def dying(*arguments: Any, **more: Any) -> Any:
            if late:
                real(*arguments, **more)
            raise KeyboardInterrupt

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(*at, dying)
            with suppress(KeyboardInterrupt):
                self.lake.run_jobs()

    def check(self) -> None:
        for name, expected in (("u", newest), ("a", sums), ("d", list)):
            new = [((p, number(k)), v) for (p, k), v in self.rows[name]]
            rows = sorted(((*key, v) for key, v in expected(new)), key=str)
            query = f"SELECT p, k, v FROM {name}"
            assert sorted(map(tuple, self.lake.sql(query).collect()), key=str) == rows
            with oracle_at(self.url) as oracle:
                assert sorted(oracle.sql(query), key=str) == rows
        assert self.lake.check(rows=True).problems == ()


def newest(rows: list[tuple[Key, int]]) -> Iterator[tuple[Key, int]]:
    yield from dict(rows).items()


def sums(rows: list[tuple[Key, int]]) -> Iterator[tuple[Key, int]]:
    found: dict[Key, int] = defaultdict(int)
    for key, value in rows:
        found[key] += value
    yield from found.items()


def number(text: str | None) -> int | None:
    return None if text is None else int(text)


def literal(text: str | None) -> str:
    return "NULL" if text is None else f"'{text}'"


def literals(rows: list[tuple[int, str | None, int]]) -> str:
    return ", ".join(f"({p}, {literal(k)}, {v})" for p, k, v in rows)


def test_fifty_programs_give_what_a_load_into_the_new_type_gives(spark, tmp_path):
    Story(7, spark, f"sqlite:///{tmp_path}/lake.db", tmp_path).run(2, 1)


@pytest.mark.slow
@settings(SETTINGS, max_examples=long(20, 2))
@given(seed=st.integers(0, 1 << 32))
def test_any_programs_give_what_a_load_into_the_new_type_gives(spark, tmp_path_factory, seed):
    folder = tmp_path_factory.mktemp("story")
    Story(seed, spark, f"sqlite:///{folder}/lake.db", folder).run(4, 3)
    shutil.rmtree(folder)


@pytest.mark.slow
def test_fifty_programs_give_the_same_on_postgresql(spark, postgres_url, tmp_path):
    Story(11, spark, postgres_url, tmp_path).run(3, 2)
