"""Schemas inside schemas of a lake of DuckLake 1.1 are namespaces of several parts for Spark."""

from __future__ import annotations

import json

import pytest
from pyspark.errors import AnalysisException

import shelduck
from tests.support.attaching import attached_lake, url_of
from tests.support.lakes import rows


@pytest.fixture
def lake(spark, tmp_path):
    url = url_of(tmp_path)
    shelduck.connect(url, f"{tmp_path}/data/", ducklake_version="1.1").close()
    with attached_lake(
        spark,
        tmp_path,
        "CREATE SCHEMA a",
        "CREATE SCHEMA a.b",
        "CREATE TABLE a.b.t (i INT, s STRING)",
        "INSERT INTO a.b.t VALUES (1, 'x'), (2, 'y')",
    ) as found:
        spark.sql("USE lake.main")
        yield found
        spark.sql("USE spark_catalog.default")


def test_namespaces_are_made_listed_used_and_dropped(spark, lake):
    spark.sql("CREATE NAMESPACE lake.a.b.c")
    spark.sql("CREATE SCHEMA `a.b`")

    assert rows(spark.sql("SHOW NAMESPACES IN lake")) == [("main",), ("a",), ("`a.b`",)]
    assert rows(spark.sql("SHOW NAMESPACES IN lake.a")) == [("a.b",)]
    assert rows(spark.sql("SHOW SCHEMAS IN a.b")) == [("a.b.c",)]
    assert ("Namespace Name", "a.b") in rows(spark.sql("DESCRIBE SCHEMA lake.a.b"))
    assert [d.name for d in spark.catalog.listDatabases()] == ["main", "a", "`a.b`"]
    assert rows(spark.sql("SHOW TABLES IN lake.a.b")) == [("a.b", "t", False)]
    spark.sql("DROP SCHEMA a.b.c")
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        spark.sql("USE lake.a.b.c")
    spark.sql("USE a.b")
    assert rows(spark.sql("SELECT current_schema(), count(*) FROM t")) == [("a.b", 2)]
    spark.sql("CREATE TABLE made AS SELECT 5 AS k")
    spark.sql("CREATE OR REPLACE VIEW v AS SELECT k + 1 AS k FROM made")
    spark.sql("USE lake.main")
    assert rows(spark.sql("SELECT * FROM lake.a.b.v")) == [(6,)]


def test_rows_are_read_and_changed_by_names_of_several_parts(spark, lake):
    assert rows(spark.sql("SELECT a.b.t.s, lake.a.b.t.i FROM lake.a.b.t")) == [("x", 1), ("y", 2)]
    spark.sql("UPDATE lake.a.b.t SET s = 'z' WHERE a.b.t.i = 1")
    spark.sql("DELETE FROM a.b.t WHERE i = 2")
    spark.sql(
        "MERGE INTO lake.a.b.t USING (SELECT 3 AS i, 'm' AS s) AS n ON t.i = n.i"
        " WHEN NOT MATCHED THEN INSERT *"
    )
    spark.range(4, 5).selectExpr("CAST(id AS INT) AS i", "'w' AS s").writeTo("a.b.t").append()

    assert rows(spark.table("lake.a.b.t")) == [(1, "z"), (3, "m"), (4, "w")]
    assert rows(spark.sql("SELECT * FROM a.b.t VERSION AS OF 4")) == [(1, "x"), (2, "y")]
    assert rows(lake.sql("SELECT a.b.t.i FROM a.b.t WHERE s = 'm'")) == [(3,)]
    assert lake.table("a.b.t").read(version=4).count() == 2
    assert spark.sql("SELECT * FROM lake.a.b.t.snapshots").count() == 6
    told = json.loads(spark.sql("DESCRIBE EXTENDED a.b.t AS JSON").first()[0])
    assert (told["namespace"], told["table_name"]) == (["a", "b"], "t")


def test_the_catalog_of_the_session_lists_what_is_in_such_schemas(spark, lake, compiled):
    spark.sql("CREATE TABLE a.b.v (k INT)")
    spark.sql("CREATE SCHEMA `p.q`")
    spark.sql("CREATE TABLE `p.q`.u (x INT)")

    def listed(*of):
        return [(t.catalog, t.namespace, t.name) for t in spark.catalog.listTables(*of)]

    found = [("lake", ["a", "b"], "t"), ("lake", ["a", "b"], "v")]
    assert listed("lake.a.b") == listed("a.b") == found
    assert listed("lake.a.b", "v*") == found[1:]
    assert listed("lake.a") == []
    assert listed("lake.`p.q`") == [("lake", ["p.q"], "u")]
    spark.catalog.setCurrentDatabase("a.b")
    assert listed() == found
    assert spark.catalog.currentDatabase() == "a.b"
    assert spark.catalog.getTable("lake.a.b.t").namespace == ["a", "b"]
    assert [c.name for c in spark.catalog.listColumns("lake.a.b.t")] == ["i", "s"]
    assert spark.catalog.tableExists("lake.a.b.t")
    assert not spark.catalog.tableExists("lake.b.t")
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        spark.catalog.listTables("lake.a.c")


def test_the_catalog_of_the_session_lists_views_and_partition_keys(spark, lake, compiled):
    spark.sql("CREATE SCHEMA lake.w")
    spark.sql("CREATE TABLE lake.w.t (a INT, c STRING, d DATE) PARTITIONED BY (c, year(d))")
    spark.sql("CREATE VIEW lake.w.s AS SELECT c FROM lake.w.t")

    assert [t.name for t in spark.catalog.listTables("lake.w")] == ["s", "t"]
    assert [row.tableName for row in spark.sql("SHOW TABLES IN lake.w").collect()] == ["s", "t"]
    keys = [(c.name, c.isPartition) for c in spark.catalog.listColumns("lake.w.t")]
    assert keys == [("a", False), ("c", True), ("d", False)]
    assert [c.isPartition for c in spark.catalog.listColumns("lake.w.s")] == [False]
    spark.sql("CALL lake.main.compact('w.t')")


def test_a_stream_reads_and_writes_by_such_names(spark, lake, tmp_path):
    (
        spark.readStream.table("lake.a.b.t")
        .writeStream.option("checkpointLocation", f"{tmp_path}/checkpoint")
        .trigger(availableNow=True)
        .toTable("lake.a.b.copied")
        .awaitTermination()
    )
    assert rows(spark.table("a.b.copied")) == [(1, "x"), (2, "y")]


def test_macros_and_pinned_views_are_in_such_schemas(spark, lake):
    spark.sql("CREATE MACRO a.b.plus(x) AS x + 1")
    spark.sql("CREATE MACRO lake.a.b.all_rows() AS TABLE SELECT * FROM a.b.t")
    spark.sql("CREATE VIEW a.b.pinned AS SCHEMA VERSION 4 OF a.b.t")
    spark.sql("ALTER TABLE a.b.t DROP COLUMN s")

    assert rows(spark.sql("SELECT lake.a.b.plus(3), a.b.plus(4)")) == [(4, 5)]
    assert rows(spark.sql("SELECT count(*) FROM lake.a.b.all_rows()")) == [(2,)]
    assert rows(spark.sql("SELECT * FROM lake.a.b.pinned")) == [(1, None), (2, None)]


def test_columns_of_views_have_comments(spark, lake):
    spark.sql("CREATE VIEW v (x COMMENT 'a number', y) AS SELECT i, s FROM a.b.t")
    spark.sql("COMMENT ON COLUMN lake.main.v.y IS 'a text'")
    shown = "CREATE VIEW main.v (x COMMENT 'a number', y COMMENT 'a text') AS SELECT i, s FROM"

    assert rows(spark.sql("DESCRIBE v")) == [("x", "int", "a number"), ("y", "string", "a text")]
    assert spark.table("lake.main.v").schema["y"].metadata == {"comment": "a text"}
    assert spark.sql("SHOW CREATE TABLE v").first()[0].startswith(shown)
    with pytest.raises(AnalysisException, match=r"column 'z' does not exist in main\.v"):
        spark.sql("COMMENT ON COLUMN v.z IS 'nothing'")
    spark.sql("COMMENT ON VIEW v IS 'whole'")
    spark.sql("COMMENT ON COLUMN v.i IS NULL")
    assert rows(spark.sql("DESCRIBE v")) == [("x", "int", None), ("y", "string", "a text")]
    with pytest.raises(shelduck.Unsupported, match="its query has several columns 'i', and comm"):
        spark.sql("CREATE VIEW w (p COMMENT 'one', q) AS SELECT i, i FROM a.b.t")


def test_a_folder_of_the_schema_has_schemas_in_schemas_and_comments(lake, tmp_path):
    lake.execute("CREATE VIEW a.b.v (x COMMENT 'a number', y) AS SELECT i, s FROM a.b.t")
    folder = tmp_path / "schema"

    assert sorted(p.name for p in lake.pull_schema(folder)) == ["a+b.t.sql", "a+b.v.sql"]
    assert not lake.plan(folder).tables
    other = shelduck.connect(
        f"sqlite:///{tmp_path}/other.db", f"{tmp_path}/other/", ducklake_version="1.1"
    )
    other.plan(folder).apply()
    assert [str(t) for t in other.tables()] == ["a.b.t"]
    assert not other.plan(folder).tables
