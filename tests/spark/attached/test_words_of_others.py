"""What people type for Delta Lake and Iceberg means the same for a table of a lake."""

from __future__ import annotations

import pyspark
import pytest

from shelduck.errors import InvalidRequest, NotFound, Unsupported
from tests.support.attaching import attached_lake, duck, url_of

pytestmark = pytest.mark.every_spark


@pytest.fixture
def lake(spark, tmp_path):
    """A lake that is catalog ``lake`` of the session; its table has all that tables have."""
    with attached_lake(
        spark,
        tmp_path,
        "CREATE TABLE t (id BIGINT NOT NULL COMMENT 'key', w STRING DEFAULT 'x', at TIMESTAMP)"
        " USING delta COMMENT 'all' PARTITIONED BY (w) SORTED BY (id DESC)"
        " TBLPROPERTIES ('delta.autoOptimize.optimizeWrite' = 'true',"
        " 'write.format.default' = 'orc')",
        "INSERT INTO t SELECT id, 'a', TIMESTAMP '2026-01-31 12:00:00' FROM range(50)",
        "INSERT INTO t SELECT id, 'b', NULL FROM range(50, 60)",
    ) as found:
        yield found


def told(spark, statement):
    return [tuple(row) for row in spark.sql(statement).collect()]


def made(spark, name):
    [(text,)] = told(spark, f"SHOW CREATE TABLE lake.main.{name}")
    return text.partition("(")[2]


def test_a_copy_has_all_that_the_table_has(spark, lake, tmp_path):
    spark.sql("CREATE TABLE lake.main.empty LIKE lake.main.t")
    spark.sql("CREATE TABLE lake.main.now DEEP CLONE lake.main.t")
    spark.sql("DELETE FROM lake.main.t WHERE w = 'a'")
    before = told(spark, "SELECT count(*) FROM lake.main.now")
    spark.sql("CREATE OR REPLACE TABLE lake.main.now CLONE lake.main.t VERSION AS OF 2")
    spark.sql("CREATE TABLE IF NOT EXISTS lake.main.now DEEP CLONE lake.main.t")

    assert "'write.format.default' = 'orc'" in made(spark, "t")
    assert made(spark, "empty") == made(spark, "now") == made(spark, "t")
    assert before == [(60,)]
    counts = "SELECT (SELECT count(*) FROM lake.empty), count(*), min(w), max(w) FROM lake.now"
    assert duck(url_of(tmp_path), counts) == [(0, 50, "a", "a")]


def test_a_copy_of_a_table_with_keys_rollups_and_defaults_inside_is_the_same(spark, lake):
    lake.sql(
        "CREATE TABLE k (id INT, n BIGINT SUM) AGGREGATE KEY (id); ALTER TABLE k RESET SORTED BY;"
        " INSERT INTO k SELECT id % 3, 1 FROM range(9);"
        " CREATE TABLE s (s STRUCT<a: INT, b: INT>); ALTER TABLE s ALTER COLUMN s.a SET DEFAULT 7;"
        " CREATE TABLE v (day DATE, n INT); INSERT INTO v SELECT NULL, 1 FROM range(4);"
        " CREATE MATERIALIZED VIEW days AS SELECT day, sum(n), count(*) FROM v GROUP BY day"
    )
    for name in ("k", "s", "v"):
        spark.sql(f"CREATE TABLE lake.main.{name}2 DEEP CLONE lake.main.{name}")
        spark.sql(f"CREATE TABLE lake.main.{name}3 LIKE lake.main.{name}")
        texts = [made(spark, f"{name}{n}").replace(f"{name}{n}", name) for n in ("", "2", "3")]
        assert texts[0] == texts[1] == texts[2]
    counts = "SELECT (SELECT sum(n) FROM lake.main.k2), sum(n), count(*) FROM lake.main.v2"
    assert told(spark, counts) == [(9, 4, 4)]
    assert lake.check().problems == ()


def test_partition_fields_come_and_go(spark, lake):
    alter = "ALTER TABLE lake.main.t"
    for change in (
        "ADD PARTITION FIELD bucket(4, id) AS shard",
        "REPLACE PARTITION FIELD w WITH days(at)",
        "DROP PARTITION FIELD id_bucket_4",
    ):
        spark.sql(f"{alter} {change}")
    assert "PARTITIONED BY (year(at), month(at), day(at))" in made(spark, "t")
    with pytest.raises(NotFound, match="no partition field w; its keys are year"):
        spark.sql(f"{alter} DROP PARTITION FIELD w")
    spark.sql(f"{alter} DROP PARTITION FIELD days(at)")

    assert "PARTITIONED BY" not in made(spark, "t")


@pytest.mark.parametrize(
    ("change", "sorts"),
    [
        ("CLUSTER BY (w, id)", "(w, id)"),
        ("CLUSTER BY NONE", None),
        ("WRITE ORDERED BY w DESC NULLS LAST, id", "(w DESC, id)"),
        ("WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id", "(id)"),
        ("WRITE UNORDERED", None),
    ],
)
def test_words_for_the_order_of_rows_are_sort_keys(spark, lake, change, sorts):
    spark.sql(f"ALTER TABLE lake.main.t {change}")

    assert (f"SORTED BY {sorts}" in made(spark, "t")) == (sorts is not None)
    assert ("SORTED BY" in made(spark, "t")) == (sorts is not None)


def test_maintenance_in_their_words(spark, lake, tmp_path):
    spark.sql("DELETE FROM lake.main.t WHERE id < 5")
    [purged] = told(spark, "REORG TABLE lake.main.t APPLY (PURGE)")
    spark.sql("DELETE FROM lake.main.t WHERE id < 8")
    [rewritten] = told(spark, "CALL lake.system.rewrite_position_delete_files('main.t')")
    spark.sql("OPTIMIZE lake.main.t FULL")
    [detail] = [row.asDict() for row in spark.sql("DESCRIBE DETAIL lake.main.t").collect()]

    assert purged[:4] == rewritten[:4] == ("main", "t", 1, 1)
    assert told(spark, "VACUUM lake.main.t LITE DRY RUN") == []
    assert told(spark, "CALL lake.system.rewrite_manifests('main.t')") == [(0, 0)]
    assert told(spark, "CALL lake.system.remove_orphan_files(table => 'main.t')") == []
    assert (detail["name"], detail["partitionColumns"]) == ("main.t", ["w"])
    files = "SELECT count(*), sum(data_file_size_bytes) FROM ducklake_list_files('lake', 't')"
    assert duck(url_of(tmp_path), files) == [(detail["numFiles"], detail["sizeInBytes"])]
    assert detail["properties"]["delta.autoOptimize.optimizeWrite"] == "true"


def test_a_table_goes_back_to_a_snapshot_by_a_new_one(spark, lake):
    before = told(spark, "CALL lake.system.ancestors_of('main.t')")
    newest = before[0][0]
    moved = told(spark, "CALL lake.system.rollback_to_snapshot('main.t', 2)")
    again = f"CALL lake.system.set_current_snapshot(table => 'main.t', snapshot_id => {newest})"

    assert [number for number, _ in before] == [3, 2, 1]
    assert moved == [(3, 4)]
    assert told(spark, "SELECT count(*) FROM lake.main.t") == [(50,)]
    assert told(spark, again) == [(4, 5)]
    assert told(spark, "SELECT count(*) FROM lake.main.t") == [(60,)]
    assert told(spark, "CALL lake.system.ancestors_of('main.t', 2)") == before[1:]
    later = "TIMESTAMP '2100-01-01 00:00:00'"
    assert told(spark, f"CALL lake.system.rollback_to_timestamp('main.t', {later})") == [(5, 5)]
    with pytest.raises(NotFound, match="snapshot 99 did not change table"):
        spark.sql("CALL lake.system.ancestors_of('main.t', 99)")


@pytest.mark.parametrize(
    ("statement", "seen"),
    [
        ("UPDATE lake.main.t SET id = id * 7 WHERE w = 'a'", ["* 7", "main.t, snapshot 3"]),
        ("DELETE FROM lake.main.t AS x WHERE x.id > 55", ["> 55", "main.t, snapshot 3"]),
        (
            (
                "MERGE INTO lake.main.t USING (SELECT 3 AS id) AS s ON t.id = s.id"
                " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
            ),
            ["Join", "RightOuter"],
        ),
        ("INSERT INTO lake.main.t SELECT * FROM lake.main.t WHERE w = 'b'", ["w", "main.t"]),
        ("ALTER TABLE lake.main.t ALTER COLUMN id TYPE STRING", ["by a job", "rows: 60"]),
    ],
    ids=lambda value: value.split()[0] if isinstance(value, str) else "",
)
def test_explain_of_a_change_says_how_rows_are_found_and_changes_nothing(
    spark, lake, statement, seen
):
    [(plan,)] = told(spark, f"EXPLAIN {statement}")
    before = told(spark, "CALL lake.system.current_snapshot()")

    assert [part for part in seen if part not in plan] == []
    assert before == [(3,)]


@pytest.mark.parametrize("provider", ["delta", "iceberg"])
def test_their_formats_mean_a_table_of_the_lake(spark, lake, provider):
    rows = spark.range(3)
    rows.write.format(provider).saveAsTable("lake.main.made")
    rows.write.format(provider).mode("append").saveAsTable("lake.main.made")
    more = rows.selectExpr("id", "id * 2 AS twice").write.format(provider).mode("overwrite")
    more.option("overwriteSchema", "true").saveAsTable("lake.main.made")
    rows.writeTo("lake.main.other").using(provider).create()
    rows.selectExpr("id", "id AS n").writeTo("lake.main.sorted").clusterBy("n", "id").create()

    read = spark.read.format(provider).table("lake.main.made")
    assert (read.columns, read.count()) == (["id", "twice"], 3)
    assert spark.table("lake.main.other").count() == 3
    assert "SORTED BY (n, id)" in made(spark, "sorted")


def test_rows_that_match_new_ones_are_replaced_in_one_snapshot(spark, lake, tmp_path):
    target = "INSERT INTO lake.main.t"
    spark.sql(f"{target} REPLACE USING (id) SELECT 3L AS id, 'z' AS w, NULL AS at")
    on = "REPLACE ON x.id = s.n AND x.w = 'b'"
    spark.sql(f"{target} AS x {on} (SELECT 55L AS n, 'y' AS w, NULL AS at) AS s")
    # A random query is asked once.
    random = "SELECT CAST(floor(rand() * 50) AS BIGINT) AS id, 'r' AS w, NULL AS at"
    spark.sql(f"{target} REPLACE USING (id) {random}")

    assert told(spark, "CALL lake.system.current_snapshot()") == [(6,)]
    counts = "SELECT count(*), count(DISTINCT id), count(*) FILTER (w IN ('r', 'y', 'z')) FROM t"
    [(total, ids, new)] = duck(url_of(tmp_path), counts)
    assert (total, ids) == (60, 60)
    assert new in (2, 3)
    with pytest.raises(Unsupported, match="rows of one key are merged"):
        lake.sql(
            "CREATE TABLE k (id INT) UNIQUE KEY (id); INSERT INTO k REPLACE USING (id) SELECT 1"
        )


@pytest.mark.skipif(pyspark.__version__.startswith("4.0."), reason="no script changes a lake there")
def test_duckdb_sees_what_columns_and_dropped_tables_became(spark, lake, tmp_path):
    spark.sql("CREATE FUNCTION lake.main.twice(n INT) RETURNS INT RETURN n * 2")
    spark.sql("CREATE TABLE lake.main.c AS SELECT 1 AS id, 'a' AS name, 2.5D AS x")
    spark.sql("ALTER TABLE lake.main.c REPLACE COLUMNS (name STRING, id BIGINT, note STRING)")
    spark.sql("DROP TABLE lake.main.c")
    spark.sql("UNDROP TABLE lake.main.c")
    spark.sql("BEGIN UPDATE lake.main.c SET note = 'told' WHERE id = 1; END")

    assert duck(url_of(tmp_path), "SELECT * FROM c") == [("a", 1, "told")]
    assert told(spark, "SELECT lake.main.twice(id + 20) FROM lake.main.c") == [(42,)]


def test_a_column_that_replace_columns_keeps_gets_what_is_written_of_it(lake):
    lake.sql("CREATE TABLE kept (a INT, b STRING)")
    lake.sql("INSERT INTO kept VALUES (1, NULL)")
    with pytest.raises(InvalidRequest, match="NULL"):
        lake.sql("ALTER TABLE kept REPLACE COLUMNS (b STRING NOT NULL)")
    lake.sql("DELETE FROM kept")
    lake.sql("ALTER TABLE kept REPLACE COLUMNS (b STRING NOT NULL DEFAULT 'x')")
    lake.sql("INSERT INTO kept VALUES (DEFAULT)")
    assert lake.sql("SELECT * FROM kept").collect() == [("x",)]
    with pytest.raises(InvalidRequest, match="NULL"):
        lake.sql("INSERT INTO kept VALUES (NULL)")
