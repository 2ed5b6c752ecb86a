"""A job in Scala: statements of a lake, with parameters, and the calls that reach a catalog."""

from __future__ import annotations

import pyspark
import pytest

from tests.support import door
from tests.support.attaching import duck

pytestmark = [pytest.mark.slow, pytest.mark.every_spark]

PROGRAM = """
def told(rows: org.apache.spark.sql.DataFrame) = println("TOLD " + rows.collect().mkString(" "))
def say(what: Any) = println("TOLD " + what)
def tried(rows: => org.apache.spark.sql.DataFrame) =
  scala.util.Try(told(rows)).failed.foreach(error => say(error.getMessage))

spark.sql("CREATE TABLE lake.main.t AS SELECT id, 'a' AS name FROM range(3)").count()
tried(spark.sql("SELECT name FROM lake.main.t WHERE id = :id", Map("id" -> 2)))
tried(spark.sql("UPDATE lake.main.t SET name = ? WHERE id = ?", Array("it's", 2)).select("updated"))
spark.range(1).selectExpr("id + 10 AS id", "'w' AS name").writeTo("lake.main.t").append()
spark.range(1).selectExpr("id + 20 AS id", "'i' AS name").write.insertInto("lake.main.t")
told(spark.table("lake.main.t").orderBy("id"))
told(spark.read.format("shelduck").option("catalog", "lake").load("main.t").selectExpr("count(*)"))
val other = spark.newSession()
other.sql("USE lake.main").count()
told(other.sql("ALTER TABLE t ALTER COLUMN id TYPE STRING").select("operation"))
say(spark.table("lake.main.t").schema("id").dataType)
val error = scala.util.Try(spark.sql("ALTER TABLE lake.main.t DROP COLUMN nothing")).failed.get
say(error.isInstanceOf[org.apache.spark.sql.AnalysisException] + " " + error.getMessage)
told(spark.sql("SELECT count(*) FROM lake.main.t a JOIN lake.main.t b USING (id)"))
import org.apache.spark.sql.functions.expr
val source = spark.range(1).selectExpr("'10' AS id", "'merged' AS name").as("s")
source.mergeInto("lake.main.t", expr("t.id = s.id")).whenMatched().updateAll().merge()
told(spark.read.option("versionAsOf", 1).table("lake.main.t").selectExpr("count(*)"))
val place = java.nio.file.Files.createTempDirectory("stream").toString
import org.apache.spark.sql.streaming.Trigger.AvailableNow
val stream = READ.writeStream.trigger(AvailableNow())
stream.option("checkpointLocation", place).toTable("lake.main.copy").awaitTermination()
told(spark.table("lake.main.copy").where("id = '10'"))
System.exit(0)
"""
REFUSED = (
    f"on Spark {pyspark.__version__}, the values of parameters do not reach a lake; write them into"
    " the statement, or use Spark 4.1 or newer"
)
# What two statements with parameters answer, and what they leave.
IS_REFUSED = pyspark.__version__.startswith("4.0.")
ANSWERS, NAME = ([REFUSED, REFUSED], "a") if IS_REFUSED else (["[a]", "[1]"], "it's")
# With Hive, Spark 4.0 runs no rule before names are resolved.
BY_FORMAT = 'spark.readStream.format("shelduck").option("catalog", "lake").load("main.t")'
READ = BY_FORMAT if IS_REFUSED else 'spark.readStream.table("lake.main.t")'


def test_scala_runs_statements_and_the_calls_that_reach_a_catalog(spark, tmp_path):
    url = f"sqlite:///{tmp_path}/lake.db"
    conf = door.settings(spark, tmp_path, url, f"{tmp_path}/data/")
    assert door.spark_shell(tmp_path / "shell", conf, PROGRAM.replace("READ", READ)) == [
        *ANSWERS,
        f"[0,a] [1,a] [2,{NAME}] [10,w] [20,i]",
        "[5]",
        "[ALTER TABLE]",
        "StringType",
        "true column 'nothing' does not exist in main.t; existing columns: 'id', 'name'",
        "[5]",
        "[3]",
        "[10,merged]",
    ]
    assert duck(url, "SELECT id, name FROM lake.t WHERE id > '1'") == [
        ("10", "merged"),
        ("2", NAME),
        ("20", "i"),
    ]
