"""Whole stories of lakes on S3; DuckDB reads what each of them leaves, over httpfs."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import shelduck
from shelduck.model.text.names import write_directory
from tests.stories.smoke import run_story
from tests.support.lakes import rows
from tests.support.odd_names import FEW, ODD
from tests.support.oracle import at
from tests.support.s3 import BUCKET

pytestmark = pytest.mark.s3

NO_INLINING = {"DATA_INLINING_ROW_LIMIT": 0}


def clean(lake):
    """Expire all but the newest snapshot, clean up, and return the orphans that were deleted."""
    lake.expire_snapshots(versions=[s.id for s in lake.snapshots()[:-1]])
    assert lake.cleanup_old_files(cleanup_all=True).files
    return lake.remove_orphans(older_than="0 seconds", duckdb_files=True).files


def test_the_smoke_story_on_s3(sqlite_url, data_path, spark, duckdb):
    run_story(sqlite_url, data_path, spark, duckdb)


def test_partitions_of_any_name_are_written_and_found(lake, sqlite_url, duckdb, objects):
    lake.sql("CREATE TABLE t (id BIGINT, city STRING) PARTITIONED BY (city)")
    made = lake.spark.createDataFrame(list(enumerate(ODD)), "id BIGINT, city STRING")
    lake.table("t").append(made.coalesce(1))

    read = lake.table("t").read()
    assert rows(read.orderBy("id")) == list(enumerate(ODD))
    for n in range(0, len(ODD), 9):
        assert rows(read.where(F.col("city").eqNullSafe(ODD[n]))) == [(n, ODD[n])]
    assert len(objects.named()) == len(ODD) > 40
    assert objects.there() == objects.named()
    with duckdb(sqlite_url) as oracle:
        for n, value in enumerate(ODD):
            query = "SELECT id FROM t WHERE city IS NOT DISTINCT FROM ?"
            assert oracle.sql(query, [value]) == [(n,)], value


WRITTEN = [(start + n, value) for start in (0, 1000) for n, value in enumerate(FEW)]
CHANGED = sorted(
    (n + 5000 if n < 1000 and n % 3 == 0 else n, value) for n, value in WRITTEN if n < 1000 or n % 2
)


@pytest.mark.slow
def test_partitions_of_any_name_are_changed_compacted_and_cleaned(
    lake, sqlite_url, duckdb, objects
):
    lake.sql("CREATE TABLE t (id BIGINT, city STRING) PARTITIONED BY (city)")
    for start in (0, 10):
        made = lake.spark.createDataFrame(WRITTEN[start : start + 10], "id BIGINT, city STRING")
        lake.table("t").append(made)
    lake.sql("DELETE FROM t WHERE id >= 1000 AND id % 2 = 0")
    lake.sql("UPDATE t SET id = id + 5000 WHERE id < 1000 AND id % 3 = 0")
    lake.table("t").compact()

    assert clean(lake) == ()
    assert rows(lake.sql("SELECT id, city FROM t ORDER BY id")) == CHANGED
    assert objects.there() == objects.named()
    with duckdb(sqlite_url) as oracle:
        assert oracle.rows("t") == CHANGED
        assert oracle.sql("SELECT id FROM t WHERE city = 'A+B'") == [(5000,)]


HISTORY = (
    "CREATE TABLE t(id BIGINT, v VARCHAR)",
    *(f"INSERT INTO t SELECT i, 'v' || i FROM range({n}, {n + 30}) r(i)" for n in (0, 30, 60)),
    "UPDATE t SET v = 'updated' WHERE id IN (3, 33)",
    "DELETE FROM t WHERE id BETWEEN 65 AND 88",
    "INSERT INTO t SELECT i, 'e' || i FROM range(120, 150) r(i)",
)


def states(oracle):
    """What DuckDB reads of each snapshot: row ids and rows."""
    every = [v for (v,) in oracle.sql("SELECT snapshot_id FROM ducklake_snapshots('lake')")]
    return {v: oracle.sql(f"SELECT rowid, * FROM {at('t', v)} ORDER BY ALL") for v in every if v}


@pytest.mark.slow
def test_upkeep_of_a_table_that_duckdb_wrote(spark, sqlite_url, data_path, duckdb, objects):
    with duckdb(sqlite_url, data_path, NO_INLINING) as oracle:
        for statement in HISTORY:
            oracle.execute(statement)
        before = states(oracle)
    newest = max(before)

    with shelduck.connect(sqlite_url, spark=spark) as lake:
        table = lake.table("t")
        assert (table.compact().files, table.rewrite_deletes(0).files) == (2, 3)
        with duckdb(sqlite_url) as oracle:
            after = states(oracle)
        assert {version: after[version] for version in before} == before
        assert after[max(after)] == before[newest]

        unique = lake.sql("SELECT table_uuid FROM ducklake_table_info('lake')").first()[0]
        lost = objects.put(f"main/t/{write_directory(unique, 0, 0)}/part-0.parquet")
        strange = objects.put("main/t/of-somebody.parquet")
        assert clean(lake) == (f"s3://{BUCKET}/{lost}",)
        assert objects.there() == sorted([*objects.named(), strange])
        expected = [row[1:] for row in before[newest]]
        assert sorted(rows(table.read())) == sorted(expected)
    with duckdb(sqlite_url) as oracle:
        assert states(oracle) == {max(after): before[newest]}
