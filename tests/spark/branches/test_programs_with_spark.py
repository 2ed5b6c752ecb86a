"""Laws of branches with Spark: Shelduck's own DML, merges by row ids, compaction, inlined rows."""

from __future__ import annotations

import pytest

import shelduck
from tests.support.branch_program import COLUMNS, FILES, ROWS, TABLES, Program, tell
from tests.support.lengths import one_by_one, with_slow
from tests.support.oracle import DuckDBOracle

PROGRAMS, FAST = range(4, 400), range(4)
# In an odd program the catalog itself keeps small writes.
INLINED = 10


class SparkProgram(Program):
    """A story in which Spark writes where the other one has files and commits only."""

    def insert_by_shelduck(self, side, column, keys):
        names = "id" if column is None else f"id, {side.columns[column]}"
        values = ", ".join(f"({k})" if column is None else f"({k}, {k})" for k in keys)
        self.lake.sql(f"INSERT INTO {side.name} ({names}) VALUES {values}")

    def delete_by_shelduck(self, side, condition, _):
        self.lake.sql(f"DELETE FROM {side.name} WHERE {condition}")

    def update_in(self, side, change, condition):
        run = self.one_of(self.duck.execute, self.lake.sql)
        run(f"UPDATE {side.name} SET {change} WHERE {condition}")

    def compact_by_duckdb(self, side, what):
        if self.draw.random() < 0.5:
            super().compact_by_duckdb(side, what)
        elif what == "rewrite_data_files":
            self.lake.table(side.name).rewrite_deletes(0)
        else:
            self.lake.table(side.name).compact(min_files=2)

    def unchanged(self, name):
        # A merge puts rows of the catalog into files first.
        if not self.inlines:
            super().unchanged(name)


class InliningProgram(SparkProgram):
    """The same, where the catalog keeps small writes."""

    inlines = True

    def clean_up(self):
        super().clean_up()
        self.duck.execute("CALL ducklake_flush_inlined_data('lake')")


@pytest.mark.parametrize("seed", with_slow(FAST, one_by_one(PROGRAMS, 20)))
def test_a_program_with_spark_is_as_its_model(spark, sqlite_url, data_path, seed):
    acts = ROWS + COLUMNS + FILES if seed % 3 else ROWS + FILES + TABLES
    inlines = seed % 2 == 1
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        lake.set_option("data_inlining_row_limit", INLINED if inlines else 0)
        with DuckDBOracle(sqlite_url) as duck:
            kind = InliningProgram if inlines else SparkProgram
            program = tell(lake, duck, seed, kind=kind, acts=acts)
    assert not program.refused or program.compacted
