"""What users of Delta, Iceberg, Hive and Spark type: it works, or one sentence says what does.

Every error is one of Shelduck's, names the object or the word, and shows nothing of Spark's.
"""

from __future__ import annotations

import re

import pytest

import shelduck
from tests.support.attaching import attached_lake
from tests.support.lakes import rows

pytestmark = pytest.mark.guard

RAW = re.compile(r"SQLSTATE|Py4J|py4j|\bat org\.|JVM|'Project|\[[A-Z_.]{8,}\]|\n")


@pytest.fixture(scope="module")
def session(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lake")
    with attached_lake(
        spark,
        folder,
        "CREATE TABLE t (id INT, name STRING, day DATE) PARTITIONED BY (day)",
        "INSERT INTO t VALUES (1, 'a', DATE'2026-01-01')",
        "CREATE TABLE n (id INT, name STRING)",
    ):
        yield spark


STATEMENTS = {
    "ALTER TABLE lake.main.t ADD IF NOT EXISTS PARTITION (day = '2026-01-05')": "PARTITION",
    "ALTER TABLE lake.main.t RECOVER PARTITIONS": "leave it out",
    "ALTER TABLE lake.main.t SET SERDE 'x'": "leave it out",
    "MSCK REPAIR TABLE lake.main.t": "leave it out",
    "DESCRIBE lake.main.t PARTITION (day = '2026-01-02')": "t.partitions",
    "GRANT SELECT ON TABLE lake.main.t TO `ada`": "give rights",
    "REVOKE ALL ON lake.main.t FROM ada": "give rights",
    "SHOW GRANTS ON TABLE lake.main.t": "give rights",
    "COPY INTO lake.main.t FROM '/dir' FILEFORMAT = PARQUET": "CALL add_files",
    "LOAD DATA INPATH '/dir' INTO TABLE lake.main.t": "CALL add_files",
    "CONVERT TO DELTA lake.main.t": "CALL add_files",
    "CREATE TABLE lake.main.x (id INT, y INT DEFAULT id + 1)": "'id + 1'",
    "CREATE TABLE lake.main.x (y INT DEFAULT (SELECT 1))": "use a literal",
    "CREATE TABLE lake.main.x USING csv AS SELECT 1 AS a": "USING csv",
    "CREATE INDEX i ON TABLE lake.main.t (id)": "SORTED BY",
    "SELECT * FROM lake.information_schema.routines": "information_schema.schemata",
    "SELECT count(*) FROM lake.main.t.manifests": "use one of files",
    "ALTER TABLE lake.main.t DROP PARTITION (name = 'a')": "not partitioned by name itself",
    "ALTER TABLE lake.main.t DROP PARTITION (day = '2030-01-01')": "no rows in a partition",
    "UNDROP TABLE lake.main.t": "table main.t exists",
    "UNDROP TABLE lake.main.nothing": "no table main.nothing was dropped",
    "ANALYZE TABLE lake.main.t COMPUTE STATISTICS FOR COLUMNS nothing": "'nothing'",
    "EXPLAIN UPDATE lake.main.t SET nothing = 1": "'nothing'",
    "SELECT 'lake' FROM delta.`/path`": "import_delta",
    "BEGIN": "lake.transaction",
    "BEGIN; INSERT INTO lake.main.n VALUES (7, 'x'); COMMIT": "lake.transaction",
    "BEGIN ALTER TABLE lake.main.n ALTER COLUMN id TYPE INT USING 1; END": "one by one",
}


def sentence(act):
    with pytest.raises(shelduck.ShelduckError) as caught:
        act()
    return str(caught.value)


@pytest.mark.parametrize(("statement", "told"), STATEMENTS.items(), ids=STATEMENTS)
def test_a_statement_that_a_lake_does_not_have_says_what_to_write(session, statement, told):
    found = sentence(lambda: session.sql(statement))
    assert told in found
    assert RAW.search(found) is None, found


CALLS = {
    "a format to append": (
        lambda s, f: f.write.format("csv").mode("append").saveAsTable("lake.main.n"),
        "main.n cannot have the format csv",
    ),
    "a format by name": (
        lambda s, f: f.write.saveAsTable("lake.main.n", format="orc", mode="overwrite"),
        "leave out USING or the writer's format",
    ),
    "a format of a new table": (
        lambda s, f: f.writeTo("lake.main.x").using("csv").create(),
        "main.x cannot have the format csv",
    ),
    "a path by format to read": (
        lambda s, f: s.read.format("iceberg").load("/x"),
        "no data source 'iceberg'; leave out the format",
    ),
    "a path by format": (lambda s, f: f.write.format("delta").save("/x"), "data source 'delta'"),
    "our format to write": (
        lambda s, f: f.write.format("shelduck").option("catalog", "lake").save("main.n"),
        "format('shelduck') only reads",
    ),
    "our format without the table": (
        lambda s, f: s.read.format("shelduck").option("catalog", "lake").load("main.nope"),
        "table 'nope' does not exist",
    ),
    "partitions of the catalog": (
        lambda s, f: s.catalog.recoverPartitions("lake.main.t"),
        "RECOVER PARTITIONS is not supported",
    ),
    "metadata of files": (
        lambda s, f: s.table("lake.main.t").select("_metadata.file_path"),
        "CALL list_files('t')",
    ),
    "other partition keys than the table's": (
        lambda s, f: f.write.mode("append").partitionBy("name").saveAsTable("lake.main.t"),
        "does not fit a table that is partitioned by",
    ),
}


@pytest.mark.parametrize(("call", "told"), CALLS.values(), ids=CALLS)
def test_a_call_that_a_lake_does_not_have_says_what_to_write(session, call, told):
    frame = session.range(1).selectExpr("CAST(id AS INT) AS id", "'x' AS name")
    found = sentence(lambda: call(session, frame))
    assert told in found
    assert RAW.search(found) is None, found


def test_a_statement_about_a_table_of_another_catalog_is_sparks_own(session):
    for statement in (
        "ANALYZE TABLE spark_catalog.default.lake COMPUTE STATISTICS",
        "ALTER TABLE spark_catalog.default.lake ADD PARTITION (x = 1)",
        "MSCK REPAIR TABLE spark_catalog.default.lake",
    ):
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND") as caught:
            session.sql(statement)
        assert not isinstance(caught.value, shelduck.ShelduckError)


def test_several_statements_are_run_in_order_and_the_last_one_answers(session):
    text = (
        "INSERT INTO lake.main.n VALUES (:id, 'a;b'); SELECT name FROM lake.main.n WHERE id = :id"
    )
    assert rows(session.sql(text, args={"id": 41})) == [("a;b",)]
    script = "BEGIN DECLARE x INT DEFAULT 1; SELECT x + count(*) FROM lake.main.t; END"
    assert rows(session.sql(script)) == [(2,)]


def test_identifiers_and_immediate_statements_reach_the_lake(session):
    session.sql("INSERT INTO IDENTIFIER(:t) VALUES (42, 'b')", args={"t": "lake.main.n"})
    session.sql("UPDATE IDENTIFIER(:t) SET name = 'c' WHERE id = 42", args={"t": "lake.main.n"})
    session.sql("EXECUTE IMMEDIATE 'UPDATE lake.main.n SET id = 43 WHERE name = ''c'''")
    assert rows(session.sql("SELECT id, name FROM lake.main.n WHERE id > 41")) == [(43, "c")]
    session.sql("DELETE FROM IDENTIFIER('lake.main.n') WHERE id = 43")
    assert rows(session.sql("SELECT id FROM lake.main.n WHERE id > 41")) == []


def test_batches_of_a_stream_find_the_tables_of_the_lake_in_use(spark, tmp_path):
    found = []

    def each(batch, _):
        batch.createOrReplaceTempView("batch")
        inside = batch.sparkSession
        inside.sql("MERGE INTO o USING batch ON o.id = batch.id WHEN NOT MATCHED THEN INSERT *")
        found.append(inside.sql("SELECT count(*) FROM o").first()[0])

    shelduck.attach(spark, "own", f"sqlite:///{tmp_path}/l.db", f"{tmp_path}/d/", default=True)
    try:
        spark.sql("CREATE TABLE i AS SELECT 1 AS id; CREATE TABLE o (id INT)")
        query = spark.readStream.table("own.main.i").writeStream.foreachBatch(each)
        query = query.option("checkpointLocation", f"{tmp_path}/c").trigger(availableNow=True)
        query.start().awaitTermination()
    finally:
        shelduck.detach(spark, "own")
    assert found == [1]
    assert spark.conf.get("spark.sql.defaultCatalog") == "spark_catalog"
