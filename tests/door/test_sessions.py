"""Sessions of one driver find the same lakes, each with names of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support import door
from tests.support.attaching import duck

pytestmark = pytest.mark.slow


def test_connections_have_names_of_their_own_and_write_at_the_same_time(spark, tmp_path):
    url = f"sqlite:///{tmp_path}/lake.db"
    conf = door.settings(spark, tmp_path, url, f"{tmp_path}/data/")
    with door.thrift_server(tmp_path / "server", conf) as server:
        # Hive closes the loader of the driver's JARs with the first session.
        first = server.connect(spark)
        assert first.ask("SELECT 1").rows == (("1",),)
        first.java.close()
        one, other = server.connect(spark), server.connect(spark)
        one.ask("USE lake.main")
        one.ask("CREATE TABLE t (id INT, name STRING)")
        one.ask("CREATE TEMPORARY VIEW mine AS SELECT 7 AS id")
        assert one.ask("SELECT id FROM mine").rows == (("7",),)
        assert other.ask("SELECT current_catalog()").rows == (("spark_catalog",),)
        missing = other.ask("SELECT id FROM lake.main.t JOIN mine USING (id)").error
        assert missing.startswith("[TABLE_OR_VIEW_NOT_FOUND]")
        other.ask("USE lake.main")
        other.ask("CREATE TEMPORARY VIEW mine AS SELECT 8 AS id")
        assert [one.ask("SELECT id FROM mine").rows, other.ask("SELECT id FROM mine").rows] == [
            (("7",),),
            (("8",),),
        ]
        # No user has a transaction, so what one writes is there for the other.
        assert "lake.transaction()" in one.ask("BEGIN TRANSACTION").error
        one.ask("INSERT INTO t VALUES (100, 'x')")
        assert other.ask("SELECT name FROM t").rows == (("x",),)
        assert "lake.transaction()" in other.ask("ROLLBACK").error
        assert one.ask("DELETE FROM t").error == ""

        def write(number):
            client = server.connect(spark)
            return client.ask(f"INSERT INTO lake.main.t VALUES ({number}, 'n')").error

        with ThreadPoolExecutor(6) as threads:
            assert list(threads.map(write, range(12))) == [""] * 12
        [[plan]] = one.ask("EXPLAIN SELECT id FROM t WHERE id = 3").rows
        assert plan.startswith("== Physical Plan ==\nLocalTableScan")
        assert one.ask("SELECT count(*) FROM t").rows == (("12",),)
        assert server.sidecar() > 0
    assert duck(url, "SELECT count(*), sum(id) FROM lake.t") == [(12, 66)]


def test_a_driver_without_its_python_says_what_is_missing(spark, tmp_path):
    url = f"sqlite:///{tmp_path}/lake.db"
    conf = door.settings(spark, tmp_path, url, f"{tmp_path}/data/")
    conf["spark.shelduck.python"] = "/nowhere/python"
    one, lake = door.spark_sql(tmp_path / "cli", conf, ["SELECT 1", "SELECT * FROM lake.main.t"])
    assert one.rows == (("1",),)
    [[told]] = lake.rows
    assert told == (
        'cannot start Python for the lakes: Cannot run program "/nowhere/python": error=2, No such'
        " file or directory; set spark.shelduck.python to a Python that has Shelduck"
    )


ATTACHED = """
import sys
import shelduck
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
try:
    spark.sql("SELECT * FROM lake.main.t").show()
except Exception as error:
    print(error)
shelduck.attach(spark)
spark.sql("CREATE TABLE lake.main.t AS SELECT 1 AS id")
spark.sql("UPDATE lake.main.t SET id = id + 1")
print(spark.sql("SELECT id FROM lake.main.t").collect())
print(spark.newSession().sql("SELECT count(*) AS n FROM lake.main.t").collect())
started = spark._jvm.java.lang.ProcessHandle.current().descendants().toList()
commands = [process.info().commandLine().orElse("") for process in started]
print(["program.py" in " ".join(commands), "shelduck.doors.sidecar" in " ".join(commands)])
"""


def test_a_python_driver_with_the_same_lines_attaches_and_has_no_sidecar(spark, tmp_path):
    url = f"sqlite:///{tmp_path}/lake.db"
    conf = door.settings(spark, tmp_path, url, f"{tmp_path}/data/")
    told, *rows = door.spark_submit(tmp_path / "driver", conf, ATTACHED)
    assert told == (
        "NotFound: the lake 'lake' is not attached in this session; call shelduck.attach(spark,"
        " 'lake', ...)"
    )
    assert rows == ["[Row(id=2)]", "[Row(n=1)]", "[True, False]"]
