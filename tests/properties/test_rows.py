"""Random programs of statements over rows and columns, transactions and upkeep, on one table.

After each step Shelduck and DuckDB's extension read the rows, their row ids and their counts; at
the end every snapshot that is left is read by both.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import shelduck
from shelduck.catalog.read import read
from shelduck.lake.state import LakeState
from shelduck.read.scan.scan_frames import Origin
from shelduck.read.table_rows import table_rows
from tests.properties.test_evolution import SETTINGS
from tests.support.ducklakepy_oracle import drawn_form, oracle_at
from tests.support.lengths import long
from tests.support.oracle import at
from tests.support.program import Author, State, Step

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

STEPS = 8
# Any verb writes such files, and everybody reads them.
OPTIONS = {
    "parquet_compression": ["snappy", "uncompressed", "gzip", "zstd", "lz4", "lz4_raw"],
    "parquet_version": [1, 2],
}


class Program:
    """One run: the lake, the author of its statements, and the rows of every snapshot."""

    def __init__(
        self, data: st.DataObject, spark: SparkSession, url: str, folder: Path, **form: bool
    ) -> None:
        self.author = Author(data, st)
        self.url = url
        self.spark = spark
        how = drawn_form(self.author.pick, **form)
        self.is_newer = how["ducklake_version"] == "1.1"
        self.lake = shelduck.connect(url, str(folder / "data"), spark, progress=False, **how)
        self.versions: dict[int, State] = {}
        self.used: set[int] = set()
        limit = self.author.pick([0, 10])
        note(f"up to {limit} rows stay in the catalog")
        self.lake.set_option("data_inlining_row_limit", limit)
        for name, values in OPTIONS.items():
            value = self.author.pick(values)
            note(f"{name} is {value}")
            self.lake.set_option(name, value)
        self.lake.sql("CREATE TABLE t (id INT, v BIGINT, s STRING)")
        self.remember()

    def run(self) -> None:
        for _ in range(STEPS):
            kinds = [self.one] * 5 + [self.shape, self.transaction, self.rolled_back]
            kinds += [self.upkeep, self.upkeep, self.expire, self.restore]
            self.author.pick(kinds)()
            self.remember()
        self.check_versions()
        self.lake.close()

    def one(self) -> None:
        self.say(self.author.rows_statement())

    def shape(self) -> None:
        self.say(self.author.shape_statement())

    def say(self, step: Step) -> None:
        # ducklakepy, which writes DuckLake 1.1 here, has no MERGE.
        others = step.by == "both" and not (self.is_newer and step.statement.startswith("MERGE"))
        duckdb = others and self.author.number(0, 2) == 0
        note(f"{'duckdb' if duckdb else 'shelduck'}: {step.statement}")
        if duckdb:
            with oracle_at(self.url) as oracle:
                oracle.execute(step.statement)
        else:
            self.lake.sql(step.statement)

    def transaction(self) -> None:
        note("begin")
        with self.lake.transaction(message="several") as tx:
            for _ in range(self.author.number(2, 3)):
                step = self.author.rows_statement()
                note(f"  {step.statement}")
                tx.sql(step.statement)
                self.same_rows(tx.sql("SELECT * FROM t"))
        note("commit")

    def rolled_back(self) -> None:
        before, next_key = self.author.copy(), self.author.next_key
        tx = self.lake.transaction()
        for _ in range(2):
            step = self.author.rows_statement()
            note(f"  (to be rolled back) {step.statement}")
            tx.sql(step.statement)
        tx.rollback()
        self.author.state, self.author.next_key = before, next_key

    def upkeep(self) -> None:
        table = self.lake.table("t")
        works: dict[str, Callable[[], object]] = {
            "compact": lambda: table.compact(target_file_size=10**8),
            "rewrite": lambda: table.rewrite_deletes(delete_threshold=0.1),
            "flush": table.flush_inlined_data,
            "clean up": lambda: self.lake.cleanup_old_files(cleanup_all=True),
        }
        name = self.author.pick(sorted(works))
        note(name)
        works[name]()

    def expire(self) -> None:
        gone = self.author.pick(sorted(self.versions))
        note(f"expire {gone}")
        if gone != max(self.versions):
            self.lake.expire_snapshots(versions=[gone])
            del self.versions[gone]

    def restore(self) -> None:
        number = self.author.pick(sorted(self.versions))
        note(f"restore {number}")
        self.lake.table("t").restore(version=number)
        then = self.versions[number]
        self.author.state = State(
            dict(then.names),
            dict(then.defaults),
            {k: dict(v) for k, v in then.rows.items()},
            dict(then.row_ids),
        )

    def remember(self) -> None:
        """Reads the newest snapshot, by both, and keeps what must stay true of it."""
        state = self.author.state
        self.same_rows(self.lake.sql("SELECT * FROM t"))
        seen = self.row_ids()
        for key, number in seen.items():
            if key in state.row_ids:
                assert number == state.row_ids[key], f"row {key} has another row id"
            else:
                assert number not in self.used, f"the id of row {key} was another row's"
        self.used.update(seen.values())
        state.row_ids = seen
        with oracle_at(self.url) as oracle:
            assert dict(oracle.sql("SELECT id, rowid FROM t")) == seen
            [(count, low, high)] = oracle.sql("SELECT count(*), min(id), max(id) FROM t")
            keys = sorted(state.rows)
            edges = (keys[0], keys[-1]) if keys else (None, None)
            assert (count, low, high) == (len(keys), *edges)
            assert oracle.sql("SELECT * FROM t ORDER BY id") == state.expected()
        self.versions[self.lake.snapshots()[-1].id] = self.author.copy()

    def same_rows(self, found: Any) -> None:
        state = self.author.state
        assert found.columns == list(state.names.values())
        assert sorted(map(tuple, found.collect()), key=lambda row: row[0]) == state.expected()

    def row_ids(self) -> dict[int, int]:
        lake: LakeState = self.lake._state
        with lake.store.read() as connection:
            table = read.table(connection, read.snapshot(connection), "main", "t", lake.info)
        rows = table_rows(lake.store, table, lake.layouts)
        found = rows.frame(self.spark, ["id"], [Origin.ROW_ID]).collect()
        assert len({row[1] for row in found}) == len(found)
        return {row[0]: row[1] for row in found}

    def check_versions(self) -> None:
        with oracle_at(self.url) as oracle:
            for number, state in self.versions.items():
                ours = self.lake.table("t").read(version=number)
                assert ours.columns == list(state.names.values()), f"snapshot {number}"
                rows = sorted(map(tuple, ours.collect()), key=lambda row: row[0])
                assert rows == state.expected(), f"snapshot {number}"
                theirs = oracle.sql(f"SELECT * FROM {at('t', number)} ORDER BY id")
                assert theirs == state.expected(), f"DuckDB at snapshot {number}"
                counted = oracle.sql(f"SELECT count(*) FROM {at('t', number)}")
                assert counted == [(len(rows),)], f"DuckDB's count at snapshot {number}"


@given(st.data())
@settings(SETTINGS, max_examples=2, derandomize=True)
def test_random_programs_leave_the_rows_that_they_say(spark, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("program")
    Program(data, spark, f"sqlite:///{folder}/lake.db", folder).run()
    shutil.rmtree(folder)


@pytest.mark.slow
@given(st.data())
@settings(SETTINGS, max_examples=long(100, 8))
def test_many_random_programs_leave_the_rows_that_they_say(spark, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("program")
    Program(data, spark, f"sqlite:///{folder}/lake.db", folder).run()
    shutil.rmtree(folder)


@pytest.mark.slow
@given(st.data())
@settings(SETTINGS, max_examples=long(25, 4))
def test_random_programs_on_postgresql(spark, postgres_server, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("program")
    with postgres_server.fresh_database() as url:
        Program(data, spark, url, folder).run()
    shutil.rmtree(folder)


@pytest.mark.slow
@given(st.data())
@settings(SETTINGS, max_examples=long(25, 3))
def test_random_programs_on_encrypted_lakes_on_postgresql(
    spark, postgres_server, tmp_path_factory, data
):
    folder = tmp_path_factory.mktemp("program")
    with postgres_server.fresh_database() as url:
        Program(data, spark, url, folder, encrypted=True).run()
    shutil.rmtree(folder)
