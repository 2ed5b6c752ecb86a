"""Undoing a job after any writes leaves what these writes alone leave."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import shelduck
from tests.properties.test_evolution import SETTINGS
from tests.support.lengths import long
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

# What the job makes of them is below 100, and what is written later is above: a value that is
# written again as it was counts as unchanged.
TEXTS = ["007", "7", "x", "", None, "42"]
CHANGES = {
    "ALTER COLUMN v TYPE INT ON ERROR NULL": TEXTS,
    "ALTER COLUMN v TYPE INT USING coalesce(try_cast(v AS INT), -1)": TEXTS,
    "ALTER COLUMN v TYPE INT": ["007", "7", None, "42"],
    "ALTER COLUMN v TYPE BIGINT, ALTER COLUMN u TYPE FLOAT": ["7", None, "+42"],
}
STEPS = 7


class Worlds:
    """Two lakes with the same rows: in one of them a job converts a column, and is undone."""

    def __init__(self, data: st.DataObject, spark: SparkSession, folder: Path) -> None:
        self._data = data
        self.change = self.pick(list(CHANGES))
        self.urls = [f"sqlite:///{folder}/{name}.db" for name in ("changed", "plain")]
        self.lakes = [
            shelduck.connect(url, f"{folder}/data-{n}", spark, progress=False)
            for n, url in enumerate(self.urls)
        ]
        limit = self.pick([0, 3])
        self._next = 0
        self._has_updates = False
        for lake in self.lakes:
            lake.set_option("data_inlining_row_limit", limit)
            lake.sql("CREATE TABLE t (id INT, v STRING, u DOUBLE, w STRING)")

    def pick(self, options: list[Any]) -> Any:
        return options[self._data.draw(st.integers(0, len(options) - 1))]

    def run(self) -> None:
        for _ in range(self.pick([1, 2])):
            values = ", ".join(self.row(self.pick(CHANGES[self.change])) for _ in range(4))
            self.both(f"INSERT INTO t VALUES {values}")
        note(self.change)
        self.lakes[0].sql(f"ALTER TABLE t {self.change}")
        for _ in range(STEPS):
            self.step()
        note("undo")
        job = self.lakes[0].undo(1)
        for _ in range(self.pick([0, 1, 3])):
            self.step()
        job.wait()
        self.compare()
        # Its files are ordinary ones again.
        self.lakes[0].table("t").rewrite()
        self.compare()
        assert self.lakes[0].check(rows=True).problems == ()
        for lake in self.lakes:
            lake.close()

    def row(self, value: str | None) -> str:
        self._next += 1
        text = "NULL" if value is None else value if value.startswith("#") else f"'{value}'"
        return f"({self._next}, {text}, {self._next / 8}, 'w')"

    def new_value(self) -> str:
        """A number, which is a text where nothing was converted."""
        return f"#{self.pick([100, 2000, 123456])}#"

    def step(self) -> None:
        number = self.pick([*range(1, self._next + 1)])
        change = self.pick(
            [
                f"INSERT INTO t VALUES {self.row(self.new_value())}",
                f"UPDATE t SET w = concat(w, '+') WHERE id % 3 = {number % 3}",
                f"UPDATE t SET v = {self.new_value()} WHERE id = {number}",
                f"DELETE FROM t WHERE id = {number}",
                (
                    f"MERGE INTO t USING (SELECT {number} AS k) AS s ON t.id = s.k"
                    f" WHEN MATCHED THEN UPDATE SET w = 'm', v = {self.new_value()}"
                ),
                "CALL rewrite_data_files('t')",
                "OPTIMIZE t",
                "",
            ]
        )
        if change:
            self.both(change)
        else:
            self.by_duckdb(number)

    def both(self, statement: str) -> None:
        note(statement)
        self._has_updates |= statement.startswith(("UPDATE", "MERGE"))
        for lake, quote in zip(self.lakes, ("", "'"), strict=True):
            lake.sql(statement.replace("#", quote))

    def by_duckdb(self, number: int) -> None:
        statement = self.pick(
            [
                f"INSERT INTO lake.t VALUES {self.row(self.new_value())}",
                f"UPDATE lake.t SET w = 'd' WHERE id = {number}",
                f"DELETE FROM lake.t WHERE id = {number}",
                # It gives updated rows new ids: see test_undo.py of the jobs.
                "FROM lake.t"
                if self._has_updates
                else "CALL ducklake_merge_adjacent_files('lake')",
            ]
        )
        self._has_updates |= statement.startswith("UPDATE")
        note(f"duckdb: {statement}")
        for url, quote in zip(self.urls, ("", "'"), strict=True):
            with DuckDBOracle(url) as duckdb:
                duckdb.execute(statement.replace("#", quote))

    def compare(self) -> None:
        query = "SELECT * FROM t ORDER BY id"
        changed, plain = ([tuple(r) for r in lake.sql(query).collect()] for lake in self.lakes)
        assert changed == plain
        seen = []
        for url in self.urls:
            with DuckDBOracle(url) as duckdb:
                seen.append((duckdb.columns("t"), duckdb.sql("FROM lake.t ORDER BY id")))
        assert seen[0] == seen[1]


@pytest.mark.slow
@settings(SETTINGS, max_examples=long(60, 6))
@given(data=st.data())
def test_an_undone_change_leaves_a_world_without_it(spark, tmp_path, data):
    folder = tmp_path / "worlds"
    folder.mkdir()
    try:
        Worlds(data, spark, folder).run()
    finally:
        shutil.rmtree(folder)
