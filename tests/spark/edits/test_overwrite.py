"""INSERT OVERWRITE, REPLACE WHERE and PARTITION: rows that take the place of others."""

from __future__ import annotations

import pytest

from shelduck import InvalidRequest, Unchanged
from tests.support.lakes import newest, rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', '0')",
    "CREATE TABLE t (id INT, region STRING, n INT DEFAULT 7)",
    "INSERT INTO t SELECT /*+ COALESCE(1) */ cast(id AS INT), 'eu', 0 FROM range(10)",
    "INSERT INTO t SELECT /*+ COALESCE(1) */ cast(id AS INT), 'us', 0 FROM range(10, 20)",
    "CREATE TABLE p (id INT, region STRING, n INT) PARTITIONED BY (region, bucket(4, id))",
    "INSERT INTO p SELECT cast(id AS INT), if(id % 2 = 0, 'eu', NULL), 0 FROM range(40)",
]


@pytest.fixture
def new(spark):
    return spark.sql("SELECT * FROM VALUES (100, 'eu', 1), (101, 'eu', 2) AS v(id, region, n)")


def duckdb(catalog):
    return DuckDBOracle(f"sqlite:///{catalog}", None, {"DATA_INLINING_ROW_LIMIT": 0})


def found(lake, table="t"):
    return rows(lake.table(table).read().orderBy("id"))


@pytest.mark.slow
def test_a_whole_table_is_replaced_in_one_snapshot(copied, new):
    catalog, lake = copied
    before = newest(lake)
    done = lake.table("t").overwrite(new)
    assert (done.snapshot, done.inserted, done.deleted, done.files) == (before + 1, 2, 20, 2)
    assert found(lake) == [(100, "eu", 1), (101, "eu", 2)]
    assert lake.table("t").read(version=before).count() == 20
    assert lake.snapshots()[-1].changes_made == "inserted_into_table:1,deleted_from_table:1"
    with duckdb(catalog) as oracle:
        assert oracle.rows("t") == [(100, "eu", 1), (101, "eu", 2)]
        assert oracle.sql("SELECT count(*), min(id), max(id) FROM t") == [(2, 100, 101)]
        assert oracle.sql("SELECT rowid FROM t ORDER BY id") == [(20,), (21,)]


def test_a_table_is_overwritten_by_what_it_holds(copied):
    catalog, lake = copied
    table = lake.table("t")
    table.overwrite(table.read().where("id >= 15").drop("n"))
    want = [(n, "us", 7) for n in range(15, 20)]
    assert found(lake) == want
    lake.sql("INSERT OVERWRITE t SELECT id + 1, region, n FROM t WHERE id > 17")
    with duckdb(catalog) as oracle:
        assert oracle.rows("t") == [(19, "us", 7), (20, "us", 7)]


@pytest.mark.slow
def test_no_rows_replace_all_and_nothing_replaces_nothing(copied, new):
    _, lake = copied
    done = lake.table("t").overwrite(new.where("false"))
    assert (done.inserted, done.deleted) == (0, 20)
    assert found(lake) == []
    assert lake.table("t").overwrite(new.where("false")) == Unchanged(done.snapshot)


@pytest.mark.slow
def test_rows_of_a_condition_are_replaced(copied, new):
    catalog, lake = copied
    done = lake.table("t").overwrite(new, where="region = 'eu'")
    assert (done.inserted, done.deleted) == (2, 10)
    want = [(n, "us", 0) for n in range(10, 20)] + [(100, "eu", 1), (101, "eu", 2)]
    assert found(lake) == want
    with duckdb(catalog) as oracle:
        assert oracle.rows("t") == want
        assert oracle.sql("SELECT count(*) FROM t") == [(12,)]


def test_new_rows_beside_the_condition_are_counted_and_refused(copied, base, new):
    _, lake = copied
    before, files = newest(lake), set((base.folder / "data").rglob("*"))
    beside = new.selectExpr("id", "'us'", "n").unionAll(new.selectExpr("1", "NULL", "n"))
    both = new.unionAll(beside)
    with pytest.raises(InvalidRequest, match=r"^4 of the rows for main\.t do not satisfy"):
        lake.table("t").overwrite(both, where="region = 'eu'")
    assert newest(lake) == before
    assert set((base.folder / "data").rglob("*")) == files
    assert len(found(lake)) == 20


def test_sql_replaces_where_with_subqueries_and_defaults(copied):
    catalog, lake = copied
    done = lake.sql(
        "INSERT INTO t REPLACE WHERE t.id IN (SELECT max(id) FROM t) OR n > 5"
        " VALUES (19, 'x', DEFAULT), (50, 'y', 6)"
    ).first()
    assert (done.operation, done.inserted, done.deleted) == ("INSERT", 2, 1)
    with duckdb(catalog) as oracle:
        assert oracle.rows("t")[-2:] == [(19, "x", 7), (50, "y", 6)]
        assert oracle.sql("SELECT count(*) FROM t") == [(21,)]


@pytest.mark.slow
def test_only_the_partitions_of_new_rows_are_replaced(copied, spark):
    catalog, lake = copied
    kept = {r[0]: r for r in found(lake, "p")}
    # DuckDB's buckets of 0 and 2 tell which rows go.
    with duckdb(catalog) as oracle:
        files = oracle.dump_metadata()["ducklake_data_file"]
        assert len({f["data_file_id"] for f in files if f["table_id"] == 2}) == 8
    new = spark.sql("SELECT * FROM VALUES (0, 'eu', 1), (1, NULL, 1) AS v(id, region, n)")
    done = lake.table("p").overwrite_partitions(new)
    after = found(lake, "p")
    assert {r[0] for r in after} >= {0, 1}
    assert len(after) == 40 - done.deleted + 2
    assert all(r == kept[r[0]] for r in after if r[2] == 0)
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT * FROM p ORDER BY id") == after
        live = [
            f
            for f in oracle.dump_metadata()["ducklake_data_file"]
            if f["table_id"] == 2 and f["end_snapshot"] is None
        ]
        assert len(live) == 8
        values = oracle.dump_metadata()["ducklake_file_partition_value"]
        of_new = [v for v in values if v["data_file_id"] > 9]
        assert len(of_new) == 4
        dead = oracle.dump_metadata()["ducklake_delete_file"]
        assert dead == []


@pytest.mark.slow
def test_rows_that_were_written_under_other_keys_are_replaced_too(copied, spark):
    catalog, lake = copied
    lake.sql("ALTER TABLE t SET PARTITIONED BY (region)")
    lake.sql("INSERT INTO t VALUES (30, 'us', 3), (31, 'eu', 3)")
    done = lake.table("t").overwrite_partitions(spark.sql("SELECT 1 AS id, 'us' AS region, 1 AS n"))
    assert (done.inserted, done.deleted) == (1, 11)
    with duckdb(catalog) as oracle:
        want = [(1, "us", 1), (31, "eu", 3)]
        assert oracle.sql("SELECT * FROM t WHERE n > 0 ORDER BY id") == want
        assert oracle.sql("SELECT count(*) FROM t WHERE region = 'us'") == [(1,)]


@pytest.mark.slow
def test_insert_overwrite_follows_the_sessions_mode(copied, spark):
    catalog, lake = copied
    lake.sql("ALTER TABLE t SET PARTITIONED BY (region)")
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        lake.sql("WITH a AS (SELECT 2 AS n) INSERT OVERWRITE t SELECT n, 'us', n FROM a")
        lake.sql("INSERT OVERWRITE t VALUES (1, 'us', 1)")
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert found(lake) == sorted([(n, "eu", 0) for n in range(10)] + [(1, "us", 1)])
    lake.sql("INSERT OVERWRITE t PARTITION (region = 'eu') VALUES (5, 5), (6, 6)")
    assert found(lake) == [(1, "us", 1), (5, "eu", 5), (6, "eu", 6)]
    lake.sql("INSERT INTO t PARTITION (region = 'asia') (id) VALUES (7)")
    lake.sql("INSERT INTO t PARTITION (region) VALUES (8, 'us', 8)")
    assert found(lake)[3:] == [(7, "asia", 7), (8, "us", 8)]
    lake.sql("INSERT OVERWRITE t VALUES (1, 'us', 1)")
    with duckdb(catalog) as oracle:
        assert oracle.rows("t") == [(1, "us", 1)]


def test_a_table_without_partitions_is_one_partition(lake, new):
    assert lake.table("t").overwrite_partitions(new).inserted == 2
    assert found(lake) == [(100, "eu", 1), (101, "eu", 2)]
    lake.table("t").overwrite_partitions(new.limit(0))
    assert found(lake) == []


def test_what_is_no_partition_is_refused(lake):
    with pytest.raises(InvalidRequest, match="is not partitioned by region itself"):
        lake.sql("INSERT OVERWRITE t PARTITION (region = 'eu') VALUES (1, 1)")
    with pytest.raises(InvalidRequest, match=r"main\.t: expected a Spark DataFrame, got list"):
        lake.table("t").overwrite([1])


@pytest.mark.slow
def test_a_transaction_overwrites_what_it_wrote(copied, new):
    catalog, lake = copied
    with lake.transaction() as tx:
        tx.table("t").append(new)
        assert tx.table("t").overwrite(new.where("id = 100"), where="id >= 15").deleted == 7
        assert tx.table("t").read().count() == 16
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT count(*), max(id) FROM t") == [(16, 100)]
