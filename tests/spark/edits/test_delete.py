"""DELETE and TRUNCATE: what is left, what DuckDB sees, what the files and the catalog hold."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F  # noqa: N812

import shelduck
from shelduck import InvalidRequest, Unchanged
from shelduck.write.deletes import delete_files
from tests.support.lakes import newest, rows
from tests.support.no_bridge import without_bridge
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', '0')",
    "CREATE TABLE t (id INT, name STRING)",
    "INSERT INTO t SELECT /*+ COALESCE(1) */ id, concat('n', id) FROM range(0, 100)",
    "INSERT INTO t SELECT /*+ COALESCE(1) */ id, concat('n', id) FROM range(100, 200)",
]


@pytest.fixture(params=["here", "by Spark"])
def written(request, monkeypatch):
    """Both ways to write delete files: positions are collected, or Spark writes them."""
    if request.param == "by Spark":
        monkeypatch.setattr(delete_files, "_MOST_COLLECTED", -1)


def duckdb(catalog, inline=0):
    return DuckDBOracle(f"sqlite:///{catalog}", None, {"DATA_INLINING_ROW_LIMIT": inline})


def ids(lake, version=None):
    return sorted(r[0] for r in lake.table("t").read(version=version).select("id").collect())


@pytest.mark.slow
@pytest.mark.usefixtures("written")
def test_deleted_rows_are_gone_here_and_in_duckdb(copied):
    catalog, lake = copied

    done = lake.table("t").delete("id % 3 = 0")

    left = [n for n in range(200) if n % 3]
    assert (done.snapshot, done.deleted, done.rows) == (4, 67, 67)
    assert ids(lake) == left
    assert ids(lake, version=3) == list(range(200))
    assert lake.snapshots()[-1].changes_made == "deleted_from_table:1"
    with duckdb(catalog) as oracle:
        assert [r[0] for r in oracle.rows("t")] == left
        assert oracle.sql("SELECT count(*), min(id), max(id) FROM t") == [(133, 1, 199)]
        assert oracle.sql("SELECT rowid FROM t ORDER BY id") == [(n,) for n in left]
        assert len(oracle.rows("t", version=3)) == 200
        kept = oracle.dump_metadata()["ducklake_delete_file"]
        assert [(d["data_file_id"], d["delete_count"], d["end_snapshot"]) for d in kept] == [
            (0, 34, None),
            (1, 33, None),
        ]


@pytest.mark.slow
@pytest.mark.usefixtures("written")
def test_a_second_delete_writes_all_positions_and_ends_the_first(copied):
    catalog, lake = copied
    table = lake.table("t")
    table.delete("id < 10")
    table.delete(F.col("id").between(5, 14) | (F.col("id") == 150))

    left = [n for n in range(15, 200) if n != 150]
    assert ids(lake) == left
    assert ids(lake, version=4) == list(range(10, 200))
    with duckdb(catalog) as oracle:
        assert [r[0] for r in oracle.rows("t")] == left
        assert [r[0] for r in oracle.rows("t", version=4)] == list(range(10, 200))
        assert oracle.sql("SELECT count(*), min(id), max(id) FROM t") == [(184, 15, 199)]
        kept = oracle.dump_metadata()["ducklake_delete_file"]
        assert [
            (d["data_file_id"], d["delete_count"], d["begin_snapshot"], d["end_snapshot"])
            for d in kept
        ] == [(0, 10, 4, 5), (0, 15, 5, None), (1, 1, 5, None)]


@pytest.mark.slow
def test_a_file_below_a_path_with_letters_of_patterns_is_deleted_from_again(spark, tmp_path):
    url, data = f"sqlite:///{tmp_path}/c.db", f"{tmp_path}/lake[1]{{a,b}}*/"
    with shelduck.connect(url, data, spark, progress=False) as lake:
        lake.sql("CALL set_option('data_inlining_row_limit', 0)")
        lake.sql("CREATE TABLE t (id BIGINT)")
        lake.sql("INSERT INTO t SELECT /*+ COALESCE(1) */ id FROM range(50)")
        for end in (10, 20):
            lake.sql(f"DELETE FROM t WHERE id < {end}")
        assert sorted(rows(lake.table("t").read())) == [(n,) for n in range(20, 50)]
    with DuckDBOracle(url) as duckdb:
        assert duckdb.sql("SELECT count(*), min(id) FROM t") == [(30, 20)]


@pytest.mark.slow
@pytest.mark.usefixtures("written")
def test_a_delete_file_names_the_data_file_and_rising_positions(copied, base):
    catalog, lake = copied
    lake.table("t").delete("id IN (7, 3, 5)")
    with duckdb(catalog) as oracle:
        [file] = oracle.dump_metadata()["ducklake_delete_file"]
        [data, _] = oracle.dump_metadata()["ducklake_data_file"]
        place = f"{base.folder}/data/main/t/"
        found = oracle.sql(f"SELECT file_path, pos FROM '{place}{file['path']}'")
        assert found == [(place + data["path"], n) for n in (3, 5, 7)]
        schema = oracle.sql(
            f"SELECT name, field_id, type FROM parquet_schema('{place}{file['path']}')"
            " WHERE field_id IS NOT NULL"
        )
        assert schema == [("file_path", 2147483646, "BYTE_ARRAY"), ("pos", 2147483645, "INT64")]


@pytest.mark.slow
@pytest.mark.usefixtures("written")
def test_a_file_whose_rows_are_all_dead_ends(copied):
    catalog, lake = copied
    table = lake.table("t")
    table.delete("id < 40")
    table.delete("id < 100")
    assert ids(lake) == list(range(100, 200))
    with duckdb(catalog) as oracle:
        assert [r[0] for r in oracle.rows("t")] == list(range(100, 200))
        assert oracle.sql("SELECT count(*), min(id), max(id) FROM t") == [(100, 100, 199)]
        [deleted] = oracle.dump_metadata()["ducklake_delete_file"]
        assert (deleted["begin_snapshot"], deleted["end_snapshot"]) == (4, 5)
        ended = [f["end_snapshot"] for f in oracle.dump_metadata()["ducklake_data_file"]]
        assert ended == [5, None]


def test_nothing_that_matches_makes_no_snapshot(copied):
    _, lake = copied
    assert lake.table("t").delete("id > 1000") == Unchanged(3)
    assert newest(lake) == 3


def test_null_is_not_true(copied):
    _, lake = copied
    lake.sql("INSERT INTO t VALUES (NULL, 'x')")
    assert lake.table("t").delete("id >= 0").deleted == 200
    assert rows(lake.table("t").read()) == [(None, "x")]


def test_what_is_no_condition_is_refused_in_words(copied):
    _, lake = copied
    with pytest.raises(InvalidRequest, match="a condition must be SQL text or a Spark column"):
        lake.table("t").delete(True)


@pytest.mark.slow
def test_truncate_ends_all_files_and_writes_none(copied):
    catalog, lake = copied
    lake.table("t").delete("id < 10")
    done = lake.table("t").truncate()
    assert (done.deleted, done.files) == (190, 0)
    assert ids(lake) == []
    assert len(ids(lake, version=4)) == 190
    with duckdb(catalog) as oracle:
        assert oracle.rows("t") == []
        assert oracle.sql("SELECT count(*), min(id), max(id) FROM t") == [(0, None, None)]
    assert lake.table("t").truncate() == Unchanged(5)


@pytest.mark.slow
def test_deletes_of_duckdb_and_ours_come_together(copied):
    catalog, lake = copied
    with duckdb(catalog) as oracle:
        oracle.execute("DELETE FROM t WHERE id < 5")
        oracle.execute("DELETE FROM t WHERE id < 10")  # a file of three columns
    lake.table("t").delete("id < 20")
    assert ids(lake) == list(range(20, 200))
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT count(*), min(id) FROM t") == [(180, 20)]
        oracle.execute("DELETE FROM t WHERE id < 30")
        assert oracle.sql("SELECT count(*), min(id) FROM t") == [(170, 30)]
        for version, first in ((3, 0), (4, 5), (5, 10), (6, 20), (7, 30)):
            found = oracle.rows("t", version=version)
            assert [r[0] for r in found] == list(range(first, 200))
    for version, first in ((3, 0), (4, 5), (5, 10), (6, 20), (7, 30)):
        assert ids(lake, version=version) == list(range(first, 200))


@pytest.mark.slow
@pytest.mark.usefixtures("written")
def test_positions_that_duckdb_keeps_in_the_catalog_stay_dead(copied):
    catalog, lake = copied
    with duckdb(catalog, inline=10) as oracle:
        oracle.execute("DELETE FROM t WHERE id < 5")
    lake.table("t").delete("id < 20")
    assert ids(lake) == list(range(20, 200))
    with duckdb(catalog, inline=10) as oracle:
        assert oracle.sql("SELECT count(*), min(id) FROM t") == [(180, 20)]
        oracle.execute("DELETE FROM t WHERE id < 22")
        assert oracle.sql("SELECT count(*), min(id) FROM t") == [(178, 22)]
    lake.table("t").delete("id < 100")
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT count(*), min(id) FROM t") == [(100, 100)]
        assert [f["end_snapshot"] for f in oracle.dump_metadata()["ducklake_data_file"]] == [
            7,
            None,
        ]


@pytest.mark.slow
@pytest.mark.usefixtures("written")
def test_deletion_vectors_of_duckdb_become_delete_files(copied):
    catalog, lake = copied
    with duckdb(catalog) as oracle:
        oracle.execute("CALL lake.set_option('write_deletion_vectors', true)")
        oracle.execute("DELETE FROM t WHERE id < 5")
    lake.table("t").delete("id BETWEEN 3 AND 20")
    assert ids(lake) == list(range(21, 200))
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT count(*), min(id) FROM t") == [(179, 21)]
        formats = [d["format"] for d in oracle.dump_metadata()["ducklake_delete_file"]]
        assert formats == ["puffin", "parquet"]


@pytest.mark.slow
def test_a_transaction_deletes_from_what_it_wrote(copied, spark):
    catalog, lake = copied
    with lake.transaction() as tx:
        table = tx.table("t")
        table.delete("id < 50")
        table.append(
            spark.range(300, 310).selectExpr("cast(id as int) id", "'new' name").coalesce(1)
        )
        assert table.delete("id IN (60, 305)").deleted == 2
        assert table.delete("id IN (61, 306)").deleted == 2
        assert table.read().count() == 156
        assert table.delete("id >= 300").deleted == 8
    left = [n for n in range(50, 200) if n not in (60, 61)]
    assert ids(lake) == left
    with duckdb(catalog) as oracle:
        assert [r[0] for r in oracle.rows("t")] == left
        assert oracle.sql("SELECT count(*) FROM t") == [(148,)]
        assert len(oracle.dump_metadata()["ducklake_data_file"]) == 2
        assert len(oracle.dump_metadata()["ducklake_delete_file"]) == 1


@pytest.mark.usefixtures("written")
def test_a_rolled_back_delete_leaves_no_file(copied, base):
    _, lake = copied
    place = base.folder / "data/main/t"
    before = set(place.rglob("*"))

    tx = lake.transaction()
    tx.table("t").delete("id < 50")
    tx.table("t").delete("id < 60")
    tx.rollback()

    assert set(place.rglob("*")) == before
    assert len(ids(lake)) == 200


@pytest.mark.usefixtures("written")
def test_without_a_way_into_the_jvm_deletes_are_the_same(copied, monkeypatch):
    catalog, lake = copied
    without_bridge(monkeypatch)
    with duckdb(catalog) as oracle:
        oracle.execute("DELETE FROM t WHERE id IN (1, 101)")
        oracle.execute("DELETE FROM t WHERE id IN (2, 3)")
    lake.table("t").delete("id < 10")
    lake.table("t").delete("id < 20 OR id >= 100")
    assert ids(lake) == list(range(20, 100))
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT count(*), min(id), max(id) FROM t") == [(80, 20, 99)]
        [live] = [
            d for d in oracle.dump_metadata()["ducklake_delete_file"] if d["end_snapshot"] is None
        ]
        assert (live["data_file_id"], live["delete_count"]) == (0, 20)


def test_a_few_deletes_go_to_the_catalog_and_no_file_is_left(copied, base):
    catalog, lake = copied
    place = base.folder / "data/main/t"
    before = set(place.rglob("*"))
    lake.table("t").delete("id < 20")
    lake.set_option("data_inlining_row_limit", 10)
    written = set(place.rglob("*"))
    assert written != before
    assert lake.table("t").delete("id IN (20, 30, 150)").deleted == 3
    assert lake.table("t").delete("id IN (21, 150, 151)").deleted == 2
    assert lake.snapshots()[-1].changes_made == "deleted_from_table:1,inlined_delete:1"
    assert set(place.rglob("*")) == written
    assert lake.table("t").delete("id < 50").deleted == 27
    left = [n for n in range(50, 200) if n not in (150, 151)]
    assert ids(lake) == left
    assert len(ids(lake, version=5)) == 177
    with duckdb(catalog, inline=10) as oracle:
        assert [r[0] for r in oracle.rows("t")] == left
        assert oracle.sql("SELECT count(*), min(id), max(id) FROM t") == [(148, 50, 199)]
        assert len(oracle.rows("t", version=5)) == 177
        oracle.execute("DELETE FROM t WHERE id = 50")
        oracle.execute("CALL ducklake_flush_inlined_data('lake')")
        assert oracle.sql("SELECT count(*), min(id), max(id) FROM t") == [(147, 51, 199)]
    assert lake.table("t").delete("id IN (51, 199)").deleted == 2
    assert lake.table("t").delete("id < 80").deleted == 28
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT count(*), min(id), max(id) FROM t") == [(117, 80, 198)]
    assert ids(lake)[0] == 80


@pytest.mark.usefixtures("written")
def test_the_last_rows_of_a_file_end_it_however_few_they_are(copied):
    catalog, lake = copied
    lake.table("t").delete("id < 95")
    lake.set_option("data_inlining_row_limit", 10)
    lake.table("t").delete("id IN (96, 97)")
    lake.table("t").delete("id < 100")
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT count(*), min(id) FROM t") == [(100, 100)]
        assert [f["end_snapshot"] for f in oracle.dump_metadata()["ducklake_data_file"]] == [
            6,
            None,
        ]


def test_rows_that_the_catalog_holds_are_deleted_there(copied):
    catalog, lake = copied
    with duckdb(catalog, inline=10) as oracle:
        oracle.execute("INSERT INTO t VALUES (300, 'a'), (301, 'b'), (302, NULL)")
    assert lake.table("t").delete("id IN (7, 301)").deleted == 2
    assert lake.table("t").delete("name IS NULL").deleted == 1
    left = [n for n in range(200) if n != 7] + [300]
    assert ids(lake) == left
    with duckdb(catalog, inline=10) as oracle:
        assert [r[0] for r in oracle.rows("t")] == left
        assert oracle.sql("SELECT count(*) FROM t") == [(200,)]
        assert len(oracle.rows("t", version=4)) == 203
    assert lake.table("t").truncate().deleted == 200
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT count(*) FROM t") == [(0,)]


@pytest.mark.slow
def test_many_files_and_tasks_give_one_delete_file_each(spark, copied):
    catalog, lake = copied
    lake.table("t").append(
        spark.range(1000, 60_000).repartition(7).selectExpr("cast(id as int) id", "'x' name")
    )
    assert lake.table("t").delete("id % 10 = 3").deleted == 5920
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT count(*) FROM t") == [(53_280,)]
        assert oracle.sql("SELECT count(*) FROM t WHERE id % 10 = 3") == [(0,)]
        dead = oracle.dump_metadata()["ducklake_delete_file"]
        assert len({d["data_file_id"] for d in dead}) == len(dead) == 9
        assert sum(d["delete_count"] for d in dead) == 5920
