"""Who can write the catalog runs no code in the session of a reader or a worker."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import shelduck
from shelduck import ShelduckError, Unsupported
from shelduck.text.query.harmless import FUNCTIONS
from tests.support.attaching import attached_lake

# Functions of Spark that stored text must not call; a new one of Spark fails this test.
DANGEROUS = {
    *("from_avro", "from_protobuf", "from_xml", "java_method", "python_worker_logs", "reflect"),
    *("schema_of_avro", "schema_of_xml", "to_avro", "to_protobuf", "try_reflect", "xpath"),
    *("xpath_boolean", "xpath_double", "xpath_float", "xpath_int", "xpath_long", "xpath_number"),
    *("xpath_short", "xpath_string"),
}


def test_every_function_of_spark_is_allowed_or_dangerous(spark):
    known = {row.function for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    words = {name for name in known if name.isidentifier()}
    assert words - FUNCTIONS == DANGEROUS


class Lake:
    def __init__(self, spark, folder):
        self.path = folder / "lake.db"
        self.url = f"sqlite:///{self.path}"
        self.spark = spark
        self.data = f"{folder}/data"
        with self.connect(data_path=self.data) as lake:
            lake.sql("CREATE TABLE t (id INT, name STRING)")
            lake.sql("INSERT INTO t VALUES (1, 'a')")
            lake.sql("CREATE VIEW v AS SELECT id, initcap(name) AS name FROM t")
            lake.sql("CREATE MACRO shout(x) AS concat(x, '!')")

    def connect(self, **more):
        return shelduck.connect(self.url, spark=self.spark, **more)

    def say(self, statement, *values):
        with closing(sqlite3.connect(self.path)) as connection, connection:
            assert connection.execute(statement, values).rowcount > 0

    def tag(self, text):
        self.say("UPDATE ducklake_tag SET value = ? WHERE key = 'shelduck.spark_sql'", text)


@pytest.fixture
def lake(spark, tmp_path):
    return Lake(spark, tmp_path)


def rows(frame):
    return [tuple(row) for row in frame.collect()]


def test_a_view_of_ordinary_sql_is_read(lake):
    with lake.connect() as found:
        assert rows(found.sql("SELECT * FROM v")) == [(1, "A")]


VIEWS = {
    "SELECT 1 AS id, reflect('java.lang.System', 'getProperty', 'user.home') AS name": "reflect()",
    "SELECT id, spy(name) AS name FROM main.t": "spy()",
    "SELECT 1 AS id, value AS name FROM text.`{secret}`": "reads the file",
    "SELECT 1 AS id, x.value AS name FROM main.t JOIN LATERAL (FROM text.`{secret}`) x": "the file",
    "SELECT 1 AS id, '${{env:HOME}}' AS name": "Spark puts a setting",
    "SELECT TRANSFORM(id, name) USING 'cat' AS (id, name) FROM main.t": "runs a script",
}


@pytest.mark.parametrize(("text", "told"), VIEWS.items())
def test_a_view_that_does_more_is_refused(lake, spark, tmp_path, text, told):
    secret = tmp_path / "secret.txt"
    secret.write_text("of the reader")
    called = []
    spark.udf.register("spy", lambda name: called.append(name) or name)
    lake.tag(text.format(secret=secret))
    with lake.connect() as found, pytest.raises(Unsupported) as caught:
        found.sql("SELECT * FROM v").collect()
    assert told in str(caught.value)
    assert "view main.v: " in str(caught.value)
    assert "connect with trust_views=True" in str(caught.value)
    spark.sql("DROP TEMPORARY FUNCTION spy")
    assert called == []


def test_an_attached_lake_refuses_too(spark, tmp_path):
    with attached_lake(spark, tmp_path, "CREATE TABLE t (id INT)") as found:
        found.sql("CREATE VIEW v AS SELECT id FROM t")
        for path in tmp_path.rglob("*"):
            if path.is_file() and path.read_bytes()[:6] == b"SQLite":
                with closing(sqlite3.connect(path)) as connection, connection:
                    connection.execute(
                        "UPDATE ducklake_tag SET value = 'SELECT reflect(''a'', ''b'') AS id'"
                    )
        with pytest.raises(Exception, match=r"calls reflect\(\)"):
            spark.sql("SELECT * FROM lake.main.v").collect()


def test_who_trusts_the_catalog_reads_it_all(lake):
    lake.tag("SELECT 1 AS id, reflect('java.lang.Integer', 'toHexString', 255) AS name")
    with lake.connect(trust_views=True) as found:
        assert rows(found.sql("SELECT * FROM v")) == [(1, "ff")]


def test_a_view_that_nobody_could_read_is_not_created(lake):
    with lake.connect() as found, pytest.raises(Unsupported, match=r"create view main\.w: it"):
        found.sql("CREATE VIEW w AS SELECT reflect('java.lang.Integer', 'toHexString', 255) AS n")


def test_a_macro_that_does_more_is_refused(lake):
    lake.say(
        "UPDATE ducklake_tag SET value = ? WHERE key LIKE 'shelduck.spark_sql.%'",
        "reflect('java.lang.System', 'getProperty', x)",
    )
    with lake.connect() as found, pytest.raises(Unsupported, match=r"shout.*calls reflect\(\)"):
        found.sql("SELECT shout('user.home')").collect()


@pytest.mark.parametrize(
    ("using", "told"),
    [
        ("reflect('java.lang.System', 'getProperty', name)", "calls reflect"),
        ("'${env:HOME}'", "Spark puts a setting"),
        ("spy(name)", "calls spy"),
    ],
)
def test_the_expression_of_a_job_is_checked_by_the_worker(lake, using, told):
    with lake.connect() as found:
        found.sql(
            "ALTER TABLE t ALTER COLUMN name TYPE INT USING length(name)"
            " PROPERTIES ('wait' = 'false')"
        )
    with closing(sqlite3.connect(lake.path)) as connection, connection:
        tables = [
            n for (n,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        changed = 0
        for table in tables:
            for _, column, *_ in connection.execute(f"PRAGMA table_info({table})").fetchall():
                text = using.replace('"', '\\"')
                changed += connection.execute(
                    f'UPDATE {table} SET "{column}" = replace("{column}", ?, ?)'
                    f' WHERE "{column}" LIKE ?',
                    ("length(name)", text, "%length(name)%"),
                ).rowcount
    assert changed
    with lake.connect() as found:
        found.run_jobs()
        [job] = found.sql("SHOW ALTER TABLE COLUMN").collect()
        assert job.State == "CANCELLED"
        assert told in job.Msg


# What a catalog stores and Spark evaluates: how it is made, where its text is, and what runs it.
# Views, macros and USING have tests of their own above.
STORED = {
    "CHECK": (
        "CREATE TABLE r (n STRING, CHECK (1 + 1 > 0))",
        "UPDATE ducklake_tag SET value = replace(value, '1 + 1 > 0', ?)",
        "{} > ''",
        ("INSERT INTO r VALUES ('a')", "UPDATE r SET n = 'b'"),
    ),
    "generated column": (
        "CREATE TABLE r (n STRING, g INT GENERATED ALWAYS AS (40 + 2))",
        "UPDATE ducklake_tag SET value = replace(value, '40 + 2', ?)",
        "{}",
        ("INSERT INTO r (n) VALUES ('a')", "INSERT INTO r (n) SELECT name FROM t"),
    ),
    "default": (
        "CREATE TABLE r (n STRING, m TIMESTAMP DEFAULT now())",
        "UPDATE ducklake_column SET default_value = ? WHERE default_value LIKE 'now%'",
        "{}",
        ("INSERT INTO r (n) VALUES ('a')", "INSERT INTO r (n) SELECT name FROM t"),
    ),
    "sort key": (
        "CREATE TABLE r (n STRING) SORTED BY (n)",
        "UPDATE ducklake_sort_expression SET expression = ?",
        "{}",
        ("INSERT INTO r SELECT name FROM t",),
    ),
}  # fmt: skip
SPIED = "reflect('java.lang.System', 'setProperty', 'shelduck.spied', 'yes')"


@pytest.mark.guard
@pytest.mark.parametrize("kind", STORED)
def test_no_stored_text_runs_code(lake, spark, kind):
    made, forged, text, acts = STORED[kind]
    with lake.connect() as found:
        found.execute("CALL set_option('data_inlining_row_limit', 0)")
        found.execute(made)
    lake.say(forged, text.format(SPIED))
    with lake.connect() as found:
        for act in acts:
            with pytest.raises(ShelduckError, match=r"reflect\("):
                found.execute(act)
        found.check(rows=True)
    assert spark._jvm.java.lang.System.getProperty("shelduck.spied") is None
