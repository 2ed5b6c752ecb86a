"""What `shelduck.attach` offers over Spark Connect, where nobody reaches the JVM."""

from __future__ import annotations

import pytest

import shelduck
from tests.support.connect import connect_server, remote_session
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle

pytestmark = [
    pytest.mark.connect,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

_STRUCT = "named_struct('f', CAST(id AS INT), '{}', 2) s"


def test_tables_are_read_by_format(sqlite_url, data_path, tmp_path):
    with connect_server(tmp_path / "server") as url, remote_session(url) as spark:
        with pytest.raises(Exception, match="shelduck"):
            spark.read.format("shelduck").option("catalog", sqlite_url).load("main.t").collect()
        with shelduck.connect(sqlite_url, str(data_path), spark) as lake:
            lake.sql("CREATE TABLE t AS SELECT id, id AS n FROM range(20)")
            lake.sql("ALTER TABLE t RENAME COLUMN n TO m, ADD COLUMN w STRING DEFAULT 'w'")
            lake.sql("DELETE FROM t WHERE id = 3")
        shelduck.register(spark)
        reader = spark.read.format("shelduck").option("catalog", sqlite_url)
        assert rows(reader.load("main.t").where("id < 5 AND m > 1")) == [(2, 2, "w"), (4, 4, "w")]
        old = spark.read.format("shelduck").options(catalog=sqlite_url, table="t", versionAsOf=1)
        assert old.load().columns == ["id", "n"]
        shelduck.attach(spark, "lake", sqlite_url)
        shelduck.detach(spark, "lake")
        assert spark.read.format("shelduck").options(catalog=sqlite_url).load("t").count() == 19
        assert spark.read.format("json").schema("a int").load(str(tmp_path)).columns == ["a"]
        with pytest.raises(shelduck.Unsupported, match=r"lake\.table\(name\)\.follow"):
            spark.readStream.format("shelduck").options(catalog=sqlite_url, table="t").load()


@pytest.mark.slow
def test_statements_go_to_the_lake_and_others_to_spark(sqlite_url, data_path, tmp_path):
    with connect_server(tmp_path / "server") as url, remote_session(url) as spark:
        shelduck.attach(spark, "lake", sqlite_url, str(data_path))
        spark.range(3).createOrReplaceTempView("source")
        spark.sql("CREATE TABLE lake.main.t AS SELECT id, id AS n FROM source")
        spark.sql("UPDATE lake.main.t SET n = 9 WHERE id IN (SELECT max(id) FROM source)")
        spark.sql("ALTER TABLE lake.main.t RENAME COLUMN n TO m")

        query = "SELECT t.id, m FROM lake.main.t t JOIN source USING (id) ORDER BY 1"
        assert rows(spark.sql(query)) == [(0, 0), (1, 1), (2, 9)]
        assert rows(spark.sql("SELECT count(*) FROM lake.main.t VERSION AS OF 1")) == [(3,)]
        assert rows(spark.sql("SELECT count(*) FROM lake.main.t AT (VERSION => 1)")) == [(3,)]
        assert rows(spark.sql("SELECT count(*) FROM source")) == [(3,)]
        spark.sql("DELETE FROM lake.main.t WHERE id = :id", args={"id": 0})
        assert rows(spark.sql("SELECT m FROM lake.main.t WHERE id > ? ORDER BY 1", [1])) == [(9,)]
        with pytest.raises(shelduck.Unsupported, match="over Spark Connect"):
            shelduck.attach(spark, "other", sqlite_url, default=True)
        assert rows(spark.sql("SHOW TABLES IN lake")) == [("main", "t", False)]
        exists = spark.catalog.databaseExists
        assert [exists(n) for n in ("lake.Main", "lake.s", "default", "s")] == [True, False] * 2
        assert spark.catalog.tableExists("lake.main.T")
        assert not spark.catalog.tableExists("lake.main.u")
        for act in (
            lambda: spark.table("lake.main.t").collect(),
            lambda: spark.range(1).write.mode("append").saveAsTable("lake.main.t"),
            lambda: spark.range(1).writeTo("lake.main.t").append(),
            lambda: spark.catalog.listTables("lake.main"),
            lambda: spark.sql("CACHE TABLE lake.main.t"),
            lambda: spark.sql("USE lake"),
        ):
            with pytest.raises(shelduck.Unsupported, match=r"^Spark itself .* find lake.*; use"):
                act()
        shelduck.detach(spark, "lake")
        with pytest.raises(Exception, match="lake"):
            spark.sql("SELECT * FROM lake.main.t").collect()


@pytest.mark.slow
def test_a_table_follows_another_one(sqlite_url, data_path, tmp_path):
    with (
        connect_server(tmp_path / "server") as url,
        remote_session(url) as spark,
        shelduck.connect(sqlite_url, str(data_path), spark, progress=False) as lake,
        DuckDBOracle(sqlite_url) as duck,
    ):
        lake.sql("CREATE TABLE a (id BIGINT, v INT, t STRING, s STRUCT<f: INT, g: INT>)")
        lake.table("a").append(
            spark.sql(f"SELECT id, 1 v, '7' t, {_STRUCT.format('g')} FROM range(20)")
        )
        everything, chosen = (
            lake.stream("a"),
            lake.stream("a").where("v > 0").select("id", "t", "s"),
        )
        for stream, sink in ((everything, "b"), (chosen, "c")):
            stream.to(sink)
        lake.sql("ALTER TABLE a RENAME COLUMN v TO w, ADD COLUMN n INT DEFAULT 5")
        lake.sql("ALTER TABLE a RENAME COLUMN s.g TO h")
        lake.table("a").alter(
            shelduck.change_type("t", "int", using="CAST(t AS INT) + id"), wait=True
        )
        lake.table("a").append(
            spark.sql(f"SELECT id, id w, 8 t, {_STRUCT.format('h')}, 6 n FROM range(20, 40)")
        )
        for stream, sink in ((everything, "b"), (chosen, "c")):
            stream.to(sink)
            assert stream.to(sink) is None
        assert sorted(duck.sql("FROM b")) == sorted(duck.sql("FROM a"))
        assert sorted(duck.sql("FROM c")) == sorted(duck.sql("SELECT id, t, s FROM a WHERE w > 0"))
        assert {line.source_column for line in lake.lineage("c")} == {"id", "t", "s", "s.f", "s.h"}
        keyed = lake.stream("a", key="id").where("w % 2 = 0")
        keyed.to("d")
        lake.sql("UPDATE a SET w = w + 1 WHERE id % 3 = 0; DELETE FROM a WHERE id % 5 = 0")
        keyed.to("d")
        assert sorted(duck.sql("FROM d")) == sorted(duck.sql("FROM a WHERE w % 2 = 0"))


@pytest.mark.slow
def test_materialized_views_are_refreshed(sqlite_url, data_path, tmp_path):
    with (
        connect_server(tmp_path / "server") as url,
        remote_session(url) as spark,
        shelduck.connect(sqlite_url, str(data_path), spark, progress=False) as lake,
        DuckDBOracle(sqlite_url) as duck,
    ):
        lake.sql("CREATE TABLE a (id BIGINT NOT NULL, k INT); CREATE TABLE b (k INT, name STRING)")
        lake.sql("INSERT INTO a VALUES (1, 1), (2, 2); INSERT INTO b VALUES (1, 'x'), (2, 'y')")
        queries = (
            "SELECT a.id, b.name FROM a LEFT JOIN b ON a.k = b.k",
            "SELECT b.name, count(*) AS n, sum(id) AS s FROM a JOIN b ON a.k = b.k GROUP BY b.name",
            "SELECT k, avg(id) AS mean FROM a GROUP BY k",
        )
        for name, query in zip("rsg", queries, strict=True):
            lake.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        lake.sql("INSERT INTO a VALUES (3, 1), (4, 3); UPDATE b SET name = 'z' WHERE k = 2")
        lake.sql("DELETE FROM a WHERE id = 1")
        ways = {}
        for name in "rsg":
            [(ways[name], _, _)] = lake.execute(f"EXPLAIN REFRESH MATERIALIZED VIEW {name}").rows
            lake.refresh(name)
            assert sorted(duck.sql(f"FROM {name}"), key=str) == sorted(
                duck.sql(f'FROM "{name}$now"'), key=str
            )
        assert ways == {"r": "rows", "s": "sums", "g": "groups"}
