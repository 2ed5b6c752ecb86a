"""Deleted rows in a feed: of a file, only the pages with such rows are read and decoded."""

from __future__ import annotations

import random

import pytest

import shelduck
from shelduck.read.scan import change_feed, deaths
from tests.support.lakes import newest, rows
from tests.support.oracle import DuckDBOracle

_COLUMNS = (
    "id BIGINT, few INT, word STRING, text STRING, d DOUBLE, ok BOOLEAN, price DECIMAL(12, 2),"
    " day DATE, at TIMESTAMP, s STRUCT<x: BIGINT, y: STRING>, tags ARRAY<STRUCT<n: INT>>,"
    " m MAP<STRING, INT>"
)
_ROWS = (
    "SELECT id, IF(id % 3 = 0, NULL, CAST(id % 7 AS INT)), concat('w', id % 5),"
    " repeat(sha2(CAST(id AS STRING), 256), CAST(id % 3 AS INT)), id / 7D, id % 2 = 0,"
    " CAST(id AS DECIMAL(12, 2)), date_add(DATE '2020-01-01', CAST(id AS INT)),"
    " TIMESTAMP '2020-01-01 00:00:00' + make_interval(0, 0, 0, 0, CAST(id AS INT)),"
    " IF(id % 11 = 0, NULL, named_struct('x', IF(id % 2 = 0, NULL, id), 'y', concat('y', id))),"
    " IF(id % 4 = 0, array(), transform(sequence(1, CAST(id % 4 AS INT)), n -> named_struct("
    " 'n', CAST(n + id AS INT)))), IF(id % 5 = 0, NULL, map(concat('k', id), CAST(id AS INT)))"
    " FROM range(0, {}, 1, 1)"
)
COUNT = 6000
STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', 0)",
    "CALL set_option('parquet_row_group_size', 1500)",
    f"CREATE TABLE t ({_COLUMNS})",
    f"INSERT INTO t {_ROWS.format(COUNT)}",
]
DRAWN = random.Random(5)
DELETED = {
    "sparse": sorted(DRAWN.sample(range(COUNT), 60)),
    "ends of groups": [0, 1499, 1500, 2999, 4500, COUNT - 1],
    "one group": sorted(DRAWN.sample(range(3000, 4500), 20)),
    "a range and some": [*range(1400, 1700), 2000, 5000],
    "dense": [n for n in range(COUNT) if n % 3],
}


def told_of_delete(lake, ids):
    """What the feed tells of a DELETE, and what the table had before."""
    listed = ", ".join(map(str, ids))
    before = sorted(rows(lake.sql(f"SELECT * FROM t WHERE id IN ({listed})")), key=str)
    lake.sql(f"DELETE FROM t WHERE id IN ({listed})")
    at = newest(lake)
    feed = lake.table("t").changes(at, at)
    assert {row[0] for row in feed.select("_change_type").distinct().collect()} == {"delete"}
    assert sorted(r.id for r in feed.where("_row_id = id").collect()) == ids
    return sorted(rows(feed.drop(*feed.columns[-4:])), key=str), before


@pytest.mark.parametrize("which", DELETED)
def test_the_feed_has_the_rows_that_went(lake, which):
    told, before = told_of_delete(lake, DELETED[which])

    assert told == before
    assert len(told) == len(DELETED[which])


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("spark.sql.files.maxPartitionBytes", "20000"),
        ("spark.sql.parquet.enableVectorizedReader", "false"),
        ("spark.sql.codegen.wholeStage", "false"),
        ("spark.sql.parquet.columnarReaderBatchSize", "7"),
    ],
)
def test_any_reader_of_spark_finds_them(lake, spark, setting, value):
    spark.conf.set(setting, value)
    try:
        told, before = told_of_delete(lake, DELETED["sparse"])
    finally:
        spark.conf.unset(setting)

    assert told == before


@pytest.mark.parametrize("most", [0, deaths.MOST])
def test_many_positions_come_from_the_delete_files(lake, monkeypatch, most):
    monkeypatch.setattr(change_feed, "_FEW_POSITIONS", 5)
    monkeypatch.setattr(deaths, "MOST", most)
    lake.sql("DELETE FROM t WHERE id % 4 = 0")

    told, before = told_of_delete(lake, [n for n in DELETED["sparse"] if n % 4])

    assert told == before


def test_files_of_another_writer_and_older_deletes(copied):
    catalog, lake = copied
    lake.sql("DELETE FROM t WHERE id % 2 = 0")
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        duckdb.execute("CALL lake.set_option('parquet_row_group_size', '2048')")
        # It has no index of pages, and four groups of rows.
        duckdb.execute("CREATE TABLE u AS SELECT * FROM t AT (VERSION => 2)")
        duckdb.execute("DELETE FROM u WHERE id % 100 = 7")
        duckdb.execute("DELETE FROM u WHERE id % 100 = 9")
        at = newest(lake)
        asked = f"ducklake_table_changes('lake', 'main', 'u', {at - 1}, {at})"
        theirs = duckdb.sql(f"SELECT id, text, snapshot_id FROM {asked} ORDER BY id")

    feed = lake.table("u").changes(at - 1, at)
    assert sorted(rows(feed.select("id", "text", "_commit_version"))) == theirs
    assert len(theirs) == 2 * COUNT // 100
    told, before = told_of_delete(lake, [n for n in DELETED["sparse"] if n % 2])
    assert told == before


def test_encrypted_files(spark, tmp_path):
    with shelduck.connect(
        f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data/", spark, encrypted=True
    ) as lake:
        for statement in STATEMENTS:
            lake.sql(statement)
        told, before = told_of_delete(lake, DELETED["sparse"])

        assert told == before


@pytest.fixture
def bytes_read(spark):
    """Tells how many bytes Hadoop's file systems read while something runs."""

    def count():
        known = spark._jvm.org.apache.hadoop.fs.FileSystem.getAllStatistics()
        return sum(known.get(n).getBytesRead() for n in range(known.size()))

    def told(act):
        before = count()
        act()
        return count() - before

    # Vectored reads are not counted.
    vectored = "parquet.hadoop.vectored.io.enabled"
    spark.conf.set(vectored, "false")
    yield told
    spark.conf.unset(vectored)


def test_groups_and_pages_without_them_are_not_read(lake, bytes_read):
    lake.sql(f"DELETE FROM t WHERE id IN ({', '.join(map(str, DELETED['one group']))})")
    at = newest(lake)
    feed = lake.table("t").changes(at, at)
    # The plan reads the delete file itself.
    known = bytes_read(lambda: feed.select("_row_id").collect())

    some = bytes_read(lambda: feed.select("text").collect()) - known
    every = bytes_read(lambda: lake.table("t").read(version=at - 1).select("text").collect())

    assert 0 < some < every / 3


def test_of_merged_files_only_groups_of_the_snapshots_are_read(lake, bytes_read):
    for _ in range(3):
        lake.sql(f"INSERT INTO t {_ROWS.format(1500)}")
    at = newest(lake)
    table = lake.table("t")
    table.compact()
    last = table.changes(at, at)

    # A merged file begins with its oldest rows.
    assert [f.end_snapshot for f in table.files().collect() if f.end_snapshot is None] == [None]
    assert sorted(r.id for r in last.select("id").collect()) == list(range(1500))
    every = bytes_read(lambda: table.read().select("text").collect())
    assert 0 < bytes_read(lambda: last.select("text").collect()) < every / 2
    assert table.changes(at - 1, at).count() == 3000
