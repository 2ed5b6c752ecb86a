"""UPDATE: new versions of rows, under the ids that they had."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F  # noqa: N812

from shelduck import InvalidRequest, NotFound, Unchanged, Unsupported
from tests.support.lakes import newest, rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', '0')",
    (
        "CREATE TABLE t (id INT NOT NULL, name STRING DEFAULT 'nobody',"
        " s STRUCT<a: INT, b: STRUCT<c: STRING, d: DOUBLE>>, tags ARRAY<STRING>)"
    ),
    (
        "INSERT INTO t SELECT /*+ COALESCE(1) */ cast(id AS INT), concat('n', id),"
        " named_struct('a', cast(id AS INT), 'b', named_struct('c', 'x', 'd', 0.5D)), array('t')"
        " FROM range(0, 50)"
    ),
    (
        "INSERT INTO t SELECT /*+ COALESCE(1) */ cast(id AS INT), concat('n', id), NULL, NULL"
        " FROM range(50, 100)"
    ),
    "CREATE TABLE names (id INT, name STRING)",
    "INSERT INTO names VALUES (1, 'one'), (2, 'two'), (60, 'sixty')",
]


def duckdb(catalog, inline=0):
    return DuckDBOracle(f"sqlite:///{catalog}", None, {"DATA_INLINING_ROW_LIMIT": inline})


def names(lake, where="true"):
    found = lake.table("t").read().where(where).orderBy("id").select("id", "name")
    return rows(found)


@pytest.mark.slow
@pytest.mark.parametrize("value", ["c0", "v0", "c3 + 1"])
def test_a_name_that_no_column_has_is_an_error(lake, value):
    with pytest.raises(NotFound, match=f"^column '{value[:2]}' does not exist"):
        lake.sql(f"UPDATE t SET id = 1, name = {value}")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("keys", ["", "PARTITIONED BY (v)"])
@pytest.mark.parametrize("codec", ["uncompressed", "lz4", "snappy", "gzip", "zstd", "lz4_raw"])
def test_rows_are_changed_in_files_of_any_codec(copied, codec, keys):
    catalog, lake = copied
    lake.sql(f"CREATE TABLE packed (v STRING, id BIGINT, b BINARY) {keys}")
    lake.sql(f"CALL set_option('parquet_compression', '{codec}', table_name => 'packed')")
    lake.sql("CALL set_option('parquet_version', 2, table_name => 'packed')")
    lake.sql("INSERT INTO packed SELECT concat('x', id % 2), id, X'62' FROM range(5)")

    lake.sql("UPDATE packed SET v = 'x7' WHERE id = 3")
    lake.sql(
        "MERGE INTO packed USING (VALUES (4), (9)) AS s(id) ON packed.id = s.id"
        " WHEN MATCHED THEN UPDATE SET v = 'x8'"
        " WHEN NOT MATCHED THEN INSERT (v, id, b) VALUES ('x1', s.id, X'62')"
    )

    want = [("x0", 0), ("x1", 1), ("x0", 2), ("x7", 3), ("x8", 4), ("x1", 9)]
    want = [(*row, b"b") for row in want]
    assert rows(lake.sql("SELECT v, id, b FROM packed ORDER BY id")) == want
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT v, id, b FROM packed ORDER BY id") == want
        names = {"lz4": "LZ4_RAW"}.get(codec, codec.upper())
        found = oracle.sql("SELECT data_file FROM ducklake_list_files('lake', 'packed')")
        for (path,) in found:
            packed = oracle.sql(f"SELECT DISTINCT compression FROM parquet_metadata('{path}')")
            assert packed == [(names,)]


def test_a_codec_that_spark_lacks_is_named(lake):
    lake.sql("CALL set_option('parquet_compression', 'brotli', table_name => 'names')")

    with pytest.raises(Unsupported, match=r"^cannot write main\.names with brotli: Spark does not"):
        lake.sql("INSERT INTO names SELECT CAST(id AS INT), 'x' FROM range(3)")

    assert len(rows(lake.sql("FROM names"))) == 3


def test_updated_rows_keep_their_ids_and_the_others_stay(copied):
    catalog, lake = copied

    done = lake.table("t").update({"name": "upper(name)"}, where="id % 10 = 7")

    assert (done.updated, done.rows, done.inserted, done.deleted, done.files) == (10, 10, 0, 0, 1)
    want = [(n, f"N{n}" if n % 10 == 7 else f"n{n}") for n in range(100)]
    assert names(lake) == want
    assert lake.snapshots()[-1].changes_made == "inserted_into_table:1,deleted_from_table:1"
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT id, name FROM t ORDER BY id") == want
        assert oracle.sql("SELECT rowid FROM t ORDER BY id") == [(n,) for n in range(100)]
        assert oracle.sql("SELECT count(*), min(id), max(id) FROM t") == [(100, 0, 99)]
        changes = oracle.sql(
            f"SELECT change_type, count(*) FROM lake.table_changes('t', {done.snapshot},"
            f" {done.snapshot}) GROUP BY ALL ORDER BY ALL"
        )
        assert changes == [("update_postimage", 10), ("update_preimage", 10)]
    assert rows(lake.table("t").read(version=done.snapshot - 1).where("name LIKE 'N%'")) == []


@pytest.mark.slow
def test_an_update_again_and_again_keeps_the_id(copied):
    catalog, lake = copied
    table = lake.table("t")
    for n in range(3):
        table.update({"name": F.concat(F.col("name"), F.lit(str(n)))}, where="id IN (3, 70)")
    assert names(lake, "id IN (3, 70)") == [(3, "n3012"), (70, "n70012")]
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT rowid FROM t ORDER BY id") == [(n,) for n in range(100)]
        oracle.execute("UPDATE t SET name = 'duck' WHERE id = 3")
    table.update({"name": "name || 's'"}, where=F.col("id") == 3)
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT rowid, name FROM t WHERE id = 3") == [(3, "ducks")]
        assert oracle.sql("SELECT count(*), count(DISTINCT rowid) FROM t") == [(100, 100)]


@pytest.mark.slow
def test_struct_fields_are_set_and_their_siblings_stay(lake):
    lake.table("t").update({"s.b.d": "2", "S.A": "id * 10"}, where="id IN (5, 60)")
    found = lake.table("t").read().where("id IN (5, 60)").orderBy("id").select("s")
    assert rows(found) == [((50, ("x", 2.0)),), ((600, (None, 2.0)),)]


def test_default_is_the_columns_default(lake):
    lake.table("t").update({"name": " default ", "s": "NULL"}, where="id = 5")
    found = lake.table("t").read().where("id = 5").select("name", "s")
    assert rows(found) == [("nobody", None)]


def test_without_a_condition_all_rows_are_updated(copied):
    catalog, lake = copied
    assert lake.table("t").update({"id": "id + 1000"}).updated == 100
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT count(*), min(id), max(id) FROM t") == [(100, 1000, 1099)]
        assert oracle.sql("SELECT rowid FROM t ORDER BY id") == [(n,) for n in range(100)]


def test_a_row_is_chosen_once_by_a_condition_that_is_never_twice_the_same(copied):
    catalog, lake = copied
    done = lake.table("t").update({"name": "'chosen'"}, where="rand() < 0.5")
    assert 0 < done.updated < 100
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT count(*) FROM t WHERE name = 'chosen'") == [(done.updated,)]
        assert oracle.sql("SELECT rowid FROM t ORDER BY id") == [(n,) for n in range(100)]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"id": "'text'"}, "string cannot be stored as int32"),
        ({"id": "NULL"}, "column id of main.t is NOT NULL, got NULL"),
        ({"id": "3000000000"}, "column id of main.t is int32"),
        ({"tags.element": "'x'"}, "is neither a column nor a field of a struct"),
        ({"s": "NULL", "s.a": "1"}, "s.a is assigned twice"),
        ({"name": 5}, "must be set to SQL text or a Spark column"),
        ({}, "no column is set"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(copied, base, values, message):
    _, lake = copied
    before, files = newest(lake), set((base.folder / "data").rglob("*"))
    with pytest.raises(InvalidRequest, match=message):
        lake.table("t").update(values, where="id < 10")
    assert newest(lake) == before
    assert set((base.folder / "data").rglob("*")) == files


def test_an_unknown_column_is_named(lake):
    with pytest.raises(NotFound, match="name"):
        lake.table("t").update({"nam": "1"})


def test_nothing_that_matches_makes_no_snapshot(lake):
    before = newest(lake)
    assert lake.table("t").update({"name": "'x'"}, where="id > 1000") == Unchanged(before)


@pytest.mark.slow
def test_sql_updates_with_aliases_defaults_and_subqueries(copied):
    catalog, lake = copied
    lake.sql("UPDATE t SET name = DEFAULT, t.s.a = 7 WHERE t.id = 10")
    lake.sql(
        "UPDATE main.t AS x SET x.name = (SELECT max(name) FROM names n WHERE n.id = x.id)"
        " WHERE EXISTS (SELECT 1 FROM names n WHERE n.id = x.id)"
    )
    [done] = lake.sql("UPDATE t SET id = id WHERE id IN (SELECT id FROM t WHERE id < 3)").collect()
    assert (done.operation, done.rows, done.updated, done.files) == ("UPDATE", 3, 3, 1)
    want = {1: "one", 2: "two", 10: "nobody", 60: "sixty"}
    assert names(lake) == [(n, want.get(n, f"n{n}")) for n in range(100)]
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT rowid FROM t ORDER BY id") == [(n,) for n in range(100)]
        assert oracle.sql("SELECT s.a FROM t WHERE id = 10") == [(7,)]


@pytest.mark.slow
def test_a_transaction_updates_what_it_wrote_and_what_was_there(copied, spark):
    catalog, lake = copied
    with lake.transaction() as tx:
        table = tx.table("t")
        table.append(spark.range(100, 110).selectExpr("cast(id as int) id", "'new' name"))
        assert table.update({"name": "'first'"}, where="id >= 95").updated == 15
        assert table.update({"name": "name || id"}, where="id >= 98").updated == 12
        assert table.read().count() == 110
        table.delete("id = 109 OR id = 99")
    want = [(97, "first"), (98, "first98"), *[(n, f"first{n}") for n in range(100, 109)]]
    assert names(lake, "id >= 97") == want
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT id, name FROM t WHERE id >= 97 ORDER BY id") == want
        assert oracle.sql("SELECT count(*), count(DISTINCT rowid) FROM t") == [(108, 108)]
        assert oracle.sql("SELECT rowid FROM t WHERE id < 99 ORDER BY id") == [
            (n,) for n in range(99)
        ]


@pytest.mark.slow
def test_rows_that_the_catalog_holds_are_updated_into_a_file(copied):
    catalog, lake = copied
    with duckdb(catalog, inline=10) as oracle:
        oracle.execute("INSERT INTO t (id, name) VALUES (200, 'a'), (201, 'b')")
    assert lake.table("t").update({"name": "name || '!'"}, where="id IN (5, 201)").updated == 2
    assert names(lake, "id IN (5, 200, 201)") == [(5, "n5!"), (200, "a"), (201, "b!")]
    with duckdb(catalog, inline=10) as oracle:
        found = oracle.sql("SELECT id, rowid, name FROM t WHERE id IN (5, 200, 201) ORDER BY id")
        assert found == [(5, 5, "n5!"), (200, 100, "a"), (201, 101, "b!")]
        assert oracle.sql("SELECT count(*) FROM t") == [(102,)]


@pytest.mark.slow
def test_an_update_is_read_as_one_by_time_travel_after_an_alter(copied):
    catalog, lake = copied
    table = lake.table("t")
    lake.sql(
        "ALTER TABLE t ADD COLUMN extra INT DEFAULT 4; ALTER TABLE t RENAME COLUMN name TO nom"
    )
    done = table.update({"nom": "'x'", "extra": "extra + 1"}, where="id = 4")
    found = table.read().where("id IN (4, 5)").orderBy("id").select("id", "nom", "extra")
    assert rows(found) == [(4, "x", 5), (5, "n5", 4)]
    old = table.read(version=done.snapshot - 1).where("id = 4").select("nom", "extra")
    assert rows(old) == [("n4", 4)]
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT nom, extra, rowid FROM t WHERE id = 4") == [("x", 5, 4)]
