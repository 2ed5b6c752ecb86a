"""Deletes, updates and merges beside other writers, and what they cost."""

from __future__ import annotations

import uuid
from contextlib import contextmanager

import pytest

import shelduck
from shelduck import Conflict, InvalidRequest
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', '0')",
    "CREATE TABLE t (id INT NOT NULL, n INT)",
    "INSERT INTO t SELECT /*+ COALESCE(1) */ cast(id AS INT), 0 FROM range(0, 100)",
    "INSERT INTO t SELECT /*+ COALESCE(1) */ cast(id AS INT), 0 FROM range(100, 200)",
]


@pytest.fixture
def other(copied, base):
    """Another connection to the same lake."""
    with base.connect(copied[0]) as lake:
        yield lake


def duckdb(catalog):
    return DuckDBOracle(f"sqlite:///{catalog}", None, {"DATA_INLINING_ROW_LIMIT": 0})


def counts(lake):
    return rows(lake.sql("SELECT count(*), sum(n) FROM t"))[0]


@contextmanager
def jobs(spark):
    """Counts the Spark jobs of this thread."""
    group, found = f"test-{uuid.uuid4()}", []
    spark.sparkContext.setJobGroup(group, group)
    try:
        yield found
    finally:
        found.extend(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_two_that_change_one_file_exclude_each_other(lake, other, base):
    tx = lake.transaction()
    tx.table("t").delete("id = 5")
    other.table("t").delete("id = 6")
    files = set((base.folder / "data").rglob("*.parquet"))
    told = r"change rows of table main\.t .*another commit deleted rows from data file 0;"
    with pytest.raises(Conflict, match=told):
        tx.commit()
    assert counts(lake) == (199, 0)
    # What was written for it is gone.
    assert len(set((base.folder / "data").rglob("*.parquet")) ^ files) == 1


def test_two_that_change_different_files_both_land(lake, other):
    with lake.transaction() as tx:
        tx.table("t").delete("id = 5")
        other.table("t").delete("id = 106")
    assert counts(lake) == (198, 0)


def test_rows_that_come_meanwhile_are_a_conflict_of_those_that_chose(lake, other, spark):
    for change in (
        lambda table: table.update({"n": "1"}, where="id = 5"),
        lambda table: table.delete("id = 6"),
        lambda table: table.overwrite(table.read().limit(1)),
    ):
        tx = lake.transaction()
        change(tx.table("t"))
        other.sql("INSERT INTO t VALUES (1000, 0)")
        with pytest.raises(Conflict, match="inserted_into_table"):
            tx.commit()
    assert counts(lake) == (203, 0)


def test_deletes_of_duckdb_that_hide_in_an_older_file_are_a_conflict(copied):
    catalog, lake = copied
    with duckdb(catalog) as oracle:
        oracle.execute("DELETE FROM t WHERE id = 1")
    tx = lake.transaction()
    assert tx.table("t").read().count() == 199
    with duckdb(catalog) as oracle:
        # Replaces the delete file by one that seems to be as old.
        oracle.execute("DELETE FROM t WHERE id = 2")
    with pytest.raises(Conflict, match="read the table again"):
        tx.table("t").update({"n": "1"}, where="id < 10")
    tx.rollback()
    lake.set_option("data_inlining_row_limit", 10)
    assert lake.table("t").delete("id = 3").deleted == 1
    assert counts(lake) == (197, 0)


def test_a_merge_enforces_not_null_and_types(lake, spark):
    source = spark.sql("SELECT 5 AS id, CAST(NULL AS INT) AS other, 3000000000L AS big")
    table = lake.table("t")
    with pytest.raises(InvalidRequest, match=r"column id of main\.t is NOT NULL, got NULL"):
        table.merge(source, ["id"], shelduck.when_matched_update({"id": "s.other"}))
    with pytest.raises(InvalidRequest, match=r"column n of main\.t is int32"):
        table.merge(source, ["id"], shelduck.when_matched_update({"n": "s.big"}))
    with pytest.raises(InvalidRequest, match="id is missing: it is NOT NULL and has no default"):
        table.merge(source, "false", shelduck.when_not_matched_insert({"n": "1"}))
    # A clause that takes no row asks nothing of its values.
    done = table.merge(
        source,
        ["id"],
        shelduck.when_matched_update({"id": "s.other"}, condition="t.n = 1"),
        shelduck.when_matched_update({"n": "7"}),
    )
    assert done.updated == 1
    assert counts(lake) == (200, 7)


def test_what_verbs_cost_in_spark_jobs(lake, spark):
    table = lake.table("t")
    with jobs(spark) as first:
        table.delete("id IN (1, 101)")
    with jobs(spark) as second:
        table.delete("id = 2")
    with jobs(spark) as updated:
        table.update({"n": "1"}, where="id = 3")
    with jobs(spark) as truncated:
        table.truncate()
    # Positions are collected, or written beside the new rows; older delete files are read without
    # a job.
    assert [len(ids) for ids in (first, second, updated, truncated)] == [1, 1, 1, 0]


def test_what_small_loads_cost_in_spark_jobs(lake, spark):
    lake.sql("CREATE TABLE u (k INT, v INT) UNIQUE KEY (k)")
    lake.set_option("data_inlining_row_limit", "0", table="u")
    table = lake.table("u")
    with jobs(spark) as first:
        table.append(spark.createDataFrame([(1, 1), (2, 1)], "k int, v int"))
    with jobs(spark) as second:
        table.append(spark.createDataFrame([(2, 2), (3, 2)], "k int, v int"))
    # Rows of several parts are brought together by key, then by range: sampled, moved, written.
    assert len(first) == 4
    # Brought together and kept; their keys looked at; those of the table joined by a broadcast and
    # kept; positions collected; two writes, of which one joins by a broadcast.
    assert len(second) == 9
    assert lake.sql("SELECT k, v FROM u ORDER BY k").collect() == [(1, 1), (2, 2), (3, 2)]


def test_a_delete_asks_as_much_of_the_catalog_however_many_files_there_are(lake, spark):
    table = lake.table("t")

    def asked(condition):
        before = lake._state.store.statements
        table.delete(condition)
        return lake._state.store.statements - before

    asked("id = 1")
    few = asked("id IN (2, 102)")
    more = spark.range(200, 1000).selectExpr("cast(id as int) id", "0 n")
    table.append(more.repartition(20))
    assert asked("id % 50 = 3") <= few
