"""A DataFrame holds its snapshot; a temporary view of it reads the newest tables."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

from tests.support.attaching import attached_lake
from tests.support.lakes import rows

pytestmark = pytest.mark.every_spark

NAMES = (
    "whole",
    "chosen",
    "grouped",
    "twice",
    "inside",
    "common",
    "union",
    "over",
    "old",
    "of_lake",
)


@pytest.fixture
def lake(spark, tmp_path):
    with attached_lake(
        spark,
        tmp_path,
        "CREATE TABLE t (id INT NOT NULL, name STRING, x INT)",
        "INSERT INTO t VALUES (1, 'a', 1)",
        "CREATE TABLE u AS SELECT 2 AS id UNION ALL SELECT 1",
        "CREATE VIEW v AS SELECT id, upper(name) AS big FROM t",
    ) as found:
        yield found
    for name in NAMES:
        spark.catalog.dropTempView(name)
    spark.catalog.dropGlobalTempView("everywhere")


def make_views(spark):
    t = spark.table("lake.main.t")
    t.createOrReplaceTempView("whole")
    t.where("id > 0").select("id", "name").createTempView("chosen")
    joined = t.join(spark.table("lake.main.u"), "id")
    joined.groupBy("name").count().createOrReplaceTempView("grouped")
    t.alias("a").join(t.alias("b"), "id").selectExpr("a.id").createOrReplaceTempView("twice")
    query = "SELECT id FROM lake.main.t WHERE id IN (SELECT id FROM lake.main.t WHERE name <> 'z')"
    spark.sql(query).createOrReplaceTempView("inside")
    query = "WITH c AS (SELECT id FROM lake.main.t) SELECT a.id FROM c a JOIN c b USING (id)"
    spark.sql(query).createOrReplaceTempView("common")
    t.union(t).createOrReplaceTempView("union")
    spark.table("whole").where("id < 9").createOrReplaceTempView("over")
    spark.sql("SELECT * FROM lake.main.t VERSION AS OF 2").createOrReplaceTempView("old")
    spark.table("lake.main.v").createOrReplaceTempView("of_lake")
    t.createOrReplaceGlobalTempView("everywhere")
    return t


def counts(spark, names):
    return {name: spark.table(name).count() for name in names}


def test_views_of_frames_read_the_newest_rows_and_frames_their_own(spark, lake):
    frame = make_views(spark)
    assert set(counts(spark, NAMES).values()) == {1, 2}
    lake.sql("INSERT INTO t VALUES (2, 'b', 2)")

    assert counts(spark, (*NAMES, "global_temp.everywhere")) == {
        "whole": 2,
        "chosen": 2,
        "grouped": 2,
        "twice": 2,
        "inside": 2,
        "common": 2,
        "union": 4,
        "over": 2,
        "old": 1,
        "of_lake": 2,
        "global_temp.everywhere": 2,
    }
    assert rows(
        spark.sql("SELECT a.name FROM whole a JOIN whole b ON a.id = b.id WHERE a.id = 2")
    ) == [("b",)]
    assert frame.count() == 1
    assert rows(spark.sql("SELECT count(*) FROM {f}", f=frame)) == [(1,)]


def test_a_table_that_is_made_again_is_the_one_that_a_view_reads(spark, lake):
    frame = spark.table("lake.main.t")
    frame.createOrReplaceTempView("whole")
    frame.selectExpr("id", "name IS NULL AS missing").createOrReplaceTempView("chosen")
    lake.sql("DROP TABLE t")
    for name in ("whole", "chosen"):
        with pytest.raises(AnalysisException, match=r"TABLE_OR_VIEW_NOT_FOUND.*`t`"):
            spark.table(name)
    lake.sql("CREATE TABLE t (name STRING, y INT, id INT, x INT)")
    lake.sql("INSERT INTO t VALUES (NULL, 5, NULL, 7)")

    assert rows(spark.table("whole")) == [(None, None, 7)]
    assert rows(spark.table("chosen").where("id IS NULL")) == [(None, True)]


def test_a_view_whose_column_is_gone_says_so(spark, lake):
    frame = spark.table("lake.main.t")
    frame.createOrReplaceTempView("whole")
    frame.union(frame).createOrReplaceTempView("union")
    frame.select("id").createOrReplaceTempView("chosen")
    told = r"(?s)view {} .* column {} cannot be resolved.* new DataFrame of `lake`.`main`.`t`"
    lake.sql("ALTER TABLE t DROP COLUMN x")
    for name in ("whole", "union"):
        with pytest.raises(AnalysisException, match=told.format(name, "x")):
            spark.sql(f"SELECT * FROM {name} ORDER BY 1")
    assert rows(spark.table("chosen")) == [(1,)]
    lake.sql("ALTER TABLE t ADD COLUMN x STRING")
    with pytest.raises(AnalysisException, match=told.format("whole", "x as it was")):
        spark.table("whole")

    # Spark can drop and make again what it cannot read.
    spark.table("lake.main.t").createOrReplaceTempView("whole")
    assert spark.table("whole").columns == ["id", "name", "x"]
    assert spark.catalog.dropTempView("union")


def test_a_cached_view_and_the_cache_of_a_frame_are_used_until_rows_come(spark, lake):
    frame = spark.table("lake.main.t").where("id > 0").cache()
    try:
        frame.createOrReplaceTempView("chosen")
        spark.table("lake.main.t").createOrReplaceTempView("whole")
        spark.catalog.cacheTable("whole")
        for name in ("chosen", "whole"):
            assert "InMemoryRelation" in explained(spark.table(name))
        lake.sql("INSERT INTO t VALUES (2, 'b', 2)")

        assert counts(spark, ("chosen", "whole")) == {"chosen": 2, "whole": 2}
    finally:
        spark.catalog.clearCache()


def explained(frame):
    return frame._jdf.queryExecution().optimizedPlan().toString()


def test_sessions_without_lakes_keep_sparks_own_views(spark, lake):
    spark.range(3).createOrReplaceTempView("whole")
    catalog = spark._jsparkSession.sessionState().catalog()
    kinds = [catalog.getRawTempView(name).get().getClass().getName() for name in ("whole",)]
    spark.table("lake.main.t").createOrReplaceTempView("chosen")
    kinds.append(catalog.getRawTempView("chosen").get().getClass().getName())

    assert kinds == [
        "org.apache.spark.sql.catalyst.catalog.TemporaryViewRelation",
        "shelduck.bridge.catalog.LatestView",
    ]
