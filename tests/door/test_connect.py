"""Clients of a Connect server that have no Shelduck: calls with names, sessions, errors."""

from __future__ import annotations

import pyspark
import pytest
from pyspark.sql import DataFrameReader

from tests.support import door
from tests.support.attaching import duck
from tests.support.connect import connect_process, plain_client

pytestmark = [pytest.mark.slow, pytest.mark.every_spark]
# Spark 4.0 does not tell their values, so they are refused there.
HAS_PARAMETERS = not pyspark.__version__.startswith("4.0.")

SAID = """
from pyspark.sql import SparkSession, functions as F
def told(frame):
    print(*[tuple(row) for row in frame.collect()])
def refused(act):
    try:
        act()
    except Exception as error:
        print(type(error).__name__, str(error).split("\\n")[0].split(";")[0])
    else:
        print("nothing is wrong")
"""


@pytest.fixture(scope="module")
def server(spark, tmp_path_factory):
    """The addresses of a server and of its lake, and the group of its processes."""
    folder = tmp_path_factory.mktemp("connect")
    url = f"sqlite:///{folder}/lake.db"
    conf = door.settings(spark, folder, url, f"{folder}/data/")
    with connect_process(folder / "server", conf) as (address, group):
        yield address, url, group


def said(server, program, **values):
    """The lines that a client prints."""
    given = "".join(f"{name} = {value!r}\n" for name, value in values.items())
    return plain_client(server[0], SAID + given + program).splitlines()


WRITES = """
spark.sql("USE lake.main")
ducks = spark.createDataFrame([(1, "a"), (2, "b")], "id INT, name STRING")
ducks.writeTo("ducks").partitionedBy(F.col("id")).create()
ducks.where("id = 2").selectExpr("3 AS id", "'c' AS name", "7 AS n").writeTo("ducks").option(
    "mergeSchema", "true").append()
spark.sql("SELECT 2 AS id, 'B' AS name").writeTo("lake.main.ducks").overwritePartitions()
spark.sql("SELECT 3, 'C', 8").write.mode("overwrite").option(
    "partitionOverwriteMode", "dynamic").insertInto("ducks")
spark.sql("SELECT 4 AS id, 'd' AS name").write.mode("append").saveAsTable("ducks")
spark.sql("SELECT 4 AS id, 'D' AS name").writeTo("ducks").overwrite(F.col("id") == 4)
told(spark.table("ducks").orderBy("id"))
source = spark.createDataFrame([(1, "x"), (5, "y")], "id INT, name STRING")
target = spark.table("ducks")
source.mergeInto("ducks", source.id == target.id).whenMatched(F.lit(True)).update(
    {"name": F.concat(target.name, source.name)}).whenNotMatched().insert(
    {"id": source.id, "name": F.upper(source.name)}).merge()
source.alias("s").mergeInto("lake.main.ducks", F.expr("ducks.id = s.id + 1")).whenMatched(
    ).delete().whenNotMatchedBySource(F.expr("ducks.id = 4")).update({"n": F.lit(4)}).merge()
told(spark.read.table("lake.main.ducks").orderBy("id"))
told(spark.read.option("versionAsOf", 1).table("ducks").orderBy("id"))
feed = spark.read.option("readChangeFeed", "true").option("startingVersion", 2)
told(feed.table("ducks").where("_commit_version = 2").select("_change_type", "id"))
told(spark.sql("SELECT name FROM ducks WHERE id = :id", {"id": 5}) if has_parameters
    else spark.sql("SELECT name FROM ducks WHERE id = 5"))
print(spark.catalog.tableExists("lake.main.ducks"), spark.catalog.currentCatalog())
spark.sql("CREATE TABLE kept (id INT NOT NULL, n INT DEFAULT 7)")
one = spark.sql("SELECT CAST(1 AS INT) AS id")
one.write.mode("overwrite").saveAsTable("kept")
told(spark.table("kept"))
one.write.mode("overwrite").option("overwriteSchema", "true").saveAsTable("kept")
told(spark.table("kept"))
"""


def test_tables_are_written_merged_and_read_by_name(server):
    assert said(server, WRITES, has_parameters=HAS_PARAMETERS) == [
        "(1, 'a', None) (2, 'B', None) (3, 'C', 8) (4, 'D', None)",
        "(1, 'ax', None) (3, 'C', 8) (4, 'D', 4) (5, 'Y', None)",
        "(1, 'a') (2, 'b')",
        "('insert', 3)",
        "('Y',)",
        "True lake",
        "(1, 7)",
        "(1,)",
    ]
    rows = [(1, "ax", None), (3, "C", 8), (4, "D", 4), (5, "Y", None)]
    assert duck(server[1], "SELECT id, name, n FROM lake.ducks") == rows


ERRORS = """
spark.sql("CREATE TABLE lake.main.strict (id INT NOT NULL)")
one = spark.range(1)
refused(lambda: spark.sql("ALTER TABLE lake.main.strict DROP COLUMN nothing"))
refused(lambda: one.selectExpr("'x' AS id").writeTo("lake.main.strict").append())
refused(lambda: one.writeTo("lake.main.strict").option("nothing", "1").append())
refused(lambda: one.mergeInto("lake.main.strict", F.expr("strict.id = 1")).whenMatched().update(
    {}).merge())
refused(lambda: spark.read.option("nothing", "1").table("lake.main.strict").collect())
refused(lambda: spark.readStream.table("lake.main.missing").schema)
refused(lambda: spark.readStream.table("lake.main.strict").writeStream.outputMode("update").option(
    "checkpointLocation", folder).toTable("lake.main.strict"))
"""


def test_an_error_is_the_sentence_of_the_lake(server, tmp_path):
    illegal, unable = "IllegalArgumentException", "does not support the option 'nothing'"
    assert said(server, ERRORS, folder=str(tmp_path)) == [
        "AnalysisException column 'nothing' does not exist in main.strict",
        "AnalysisException the rows do not fit main.strict:",
        f"{illegal} a write into main.strict {unable}",
        f"{illegal} no column is set",
        f"{illegal} a reader of main.strict {unable}",
        "AnalysisException table 'missing' does not exist in schema 'main'",
        f"{illegal} toTable does not support output mode 'update' for main.strict",
    ]


STREAMS = """
spark.sql("CREATE SCHEMA lake.flow")
spark.sql("USE lake.flow")
spark.sql("CREATE TABLE events AS SELECT id FROM range(3)")
def copied():
    stream = spark.readStream.option("maxFilesPerTrigger", 1).table("events")
    written = stream.writeStream.option("checkpointLocation", folder)
    query = written.trigger(availableNow=True).toTable("lake.flow.copies")
    query.awaitTermination(100)
    told(spark.table("copies").selectExpr("count(*)", "sum(id)"))
copied()
copied()
spark.sql("INSERT INTO events VALUES (10)")
copied()
counts = spark.readStream.table("events").groupBy().count().writeStream.outputMode("complete")
query = counts.option("checkpointLocation", folder + "-counts").trigger(availableNow=True)
query.toTable("counts").awaitTermination(100)
told(spark.table("counts"))
"""


def test_streams_have_names_and_each_batch_lands_once(server, tmp_path):
    lines = said(server, STREAMS, folder=str(tmp_path / "checkpoint"))
    assert lines == ["(3, 3)", "(3, 3)", "(4, 13)", "(4,)"]
    assert duck(server[1], "SELECT id FROM lake.flow.copies") == [(0,), (1,), (10,), (2,)]


SESSIONS = """
from concurrent.futures import ThreadPoolExecutor
spark.sql("CREATE SCHEMA lake.many")
spark.sql("USE lake.many")
spark.sql("CREATE TABLE t (id INT)")
def write(number):
    other = SparkSession.builder.remote(address).create()
    found = other.catalog.currentCatalog()
    rows = other.range(number, number + 1).selectExpr("CAST(id AS INT) AS id")
    rows.writeTo("lake.many.t").append()
    other.sql("USE lake.many")
    if has_parameters:
        other.sql("INSERT INTO t VALUES (?)", [number + 100])
    else:
        other.sql(f"INSERT INTO t VALUES ({number + 100})")
    other.stop()
    return found
with ThreadPoolExecutor(4) as threads:
    print(*set(threads.map(write, range(8))))
told(spark.table("t").selectExpr("count(*)", "sum(id)"))
"""


def test_clients_have_sessions_of_their_own_and_write_at_the_same_time(server):
    found = said(server, SESSIONS, address=server[0], has_parameters=HAS_PARAMETERS)
    assert found == ["spark_catalog", "(16, 856)"]
    assert duck(server[1], "SELECT count(*), sum(id) FROM lake.many.t") == [(16, 856)]


ENDED = """
import os, signal, subprocess
def end():
    found = subprocess.check_output(["pgrep", "-g", str(group), "-f", "shelduck.doors.sidecar"])
    os.kill(int(found.split()[0]), signal.SIGKILL)
spark.sql("CREATE TABLE lake.main.calm (id BIGINT)")
spark.range(1).writeTo("lake.main.calm").append()
end()
told(spark.table("lake.main.calm"))
end()
spark.range(1, 2).writeTo("lake.main.calm").append()
end()
print(spark.catalog.tableExists("lake.main.calm"))
told(spark.table("lake.main.calm").orderBy("id"))
"""


def test_calls_start_python_again(server):
    assert said(server, ENDED, group=server[2]) == ["(0,)", "True", "(0,) (1,)"]
    assert duck(server[1], "SELECT id FROM lake.calm") == [(0,), (1,)]


CHANGES = """
spark.sql("CREATE TABLE lake.main.changed (id INT, v STRING)")
spark.sql("INSERT INTO lake.main.changed VALUES (1, 'a'), (2, 'b')")
spark.sql("UPDATE lake.main.changed SET v = 'B' WHERE id = 2")
newest = spark.sql("SELECT max(snapshot_id) FROM lake.main.changed.snapshots").first()[0]
reader = spark.read.option("startingVersion", newest - 1).option("computeUpdates", True)
kinds = ["id", "v", "_change_type"]
updated = reader.changes("lake.main.changed").where("_change_type <> 'insert'")
told(updated.select(*kinds).orderBy("v"))
told(spark.sql(f"SELECT id, v FROM lake.main.changed CHANGES FROM VERSION {newest} ORDER BY v"))
refused(lambda: spark.read.option("startingVersion", 999).changes("lake.main.changed").schema)
stream = spark.readStream.option("startingVersion", newest).changes("lake.main.changed")
query = stream.writeStream.format("memory").queryName("seen").trigger(availableNow=True).start()
query.awaitTermination()
told(spark.table("seen").select(*kinds).orderBy("v"))
"""


@pytest.mark.skipif(
    not hasattr(DataFrameReader, "changes"), reason="Spark 4.0 and 4.1 have no such reader"
)
def test_a_client_reads_sparks_changes(server):
    assert said(server, CHANGES) == [
        "(2, 'B', 'update_postimage') (2, 'b', 'update_preimage')",
        "(2, 'B') (2, 'b')",
        "IllegalArgumentException snapshot 999 does not exist",
        "(2, 'B', 'insert') (2, 'b', 'delete')",
    ]
