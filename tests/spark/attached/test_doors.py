"""A statement means the same at every door: the catalog's rows, or the text of the error."""

from __future__ import annotations

import re
import sqlite3

import pytest
from typer.testing import CliRunner

import shelduck
from shelduck.cli.app import app
from tests.support.attaching import attached_lake, duck
from tests.support.lakes import rows

pytestmark = pytest.mark.guard

STATEMENTS = """
CREATE TABLE a (id INT NOT NULL COMMENT 'i', s STRUCT<bar: INT COMMENT 'told', x: INT> COMMENT 's')
CREATE TABLE b (l ARRAY<STRUCT<a: INT COMMENT 'it\\'s'>>, m MAP<INT, STRUCT<v: INT COMMENT "dq">>)
CREATE OR REPLACE TABLE b (st STRUCT<`odd name`: STRUCT<c: INT COMMENT 'deep'>>) COMMENT 'whole'
REPLACE TABLE b (id INT COMMENT 'replaced', st STRUCT<c: INT COMMENT 'again'>)
REPLACE TABLE nothing (id INT)
CREATE TABLE IDENTIFIER('c') (id INT, day DATE) PARTITIONED BY (day) TBLPROPERTIES ('by' = 'me')
CREATE TABLE n (id INT, st STRUCT<bar: INT NOT NULL>)
CREATE TABLE n (id INT, l ARRAY<STRUCT<bar: INT NOT NULL COMMENT 'x'>>)
CREATE TABLE n (m MAP<STRING, STRUCT<bar: INT NOT NULL>>) COMMENT 'x'
CREATE OR REPLACE TABLE b (st STRUCT<bar: INT NOT NULL>)
REPLACE TABLE b (st STRUCT<bar: INT NOT NULL>)
ALTER TABLE a ADD COLUMN n STRUCT<a: INT COMMENT 'new', b: STRUCT<c: INT COMMENT 'c'>> COMMENT 'n'
ALTER TABLE a ADD COLUMN o STRUCT<a: INT NOT NULL>
ALTER TABLE a ADD COLUMN s.z STRUCT<q: INT COMMENT 'q'> COMMENT 'z'
ALTER TABLE a ALTER COLUMN s.bar COMMENT 'changed'
ALTER TABLE a ALTER COLUMN n TYPE STRUCT<a: INT, b: STRUCT<c: INT>, d: INT COMMENT 'd'>
ALTER TABLE a MODIFY COLUMN n STRUCT<a: INT COMMENT 'mod', b: STRUCT<c: INT>, d: INT>
ALTER TABLE a CHANGE COLUMN n m STRUCT<a: INT, b: STRUCT<c: INT COMMENT 'chg'>, d: INT>
ALTER TABLE IDENTIFIER('a') RENAME COLUMN s.bar TO baz
CREATE TABLE d (id INT DEFAULT id + 1)
CREATE TABLE d (id INT) USING csv
CREATE TABLE d (id INT) LOCATION '/x'
CREATE TABLE d LIKE a
CREATE TABLE d (id INT) OPTIONS ('x' = 'y')
CREATE TABLE d (id INT CHECK (id > 0))
CREATE TABLE d (id INT, id INT)
CREATE TABLE d (id INTERVAL DAY TO SECOND)
ALTER TABLE a ADD PARTITION (id = 1)
ALTER TABLE a SET LOCATION '/x'
TRUNCATE TABLE c PARTITION (day = DATE'2026-01-01')
MSCK REPAIR TABLE a
DROP TABLE IF EXISTS IDENTIFIER('nothing')
DROP TABLE c
""".strip().splitlines()

TABLES = {
    "ducklake_table": "table_id, begin_snapshot, end_snapshot, schema_id, table_name",
    "ducklake_column": "*",
    "ducklake_column_tag": "*",
    "ducklake_tag": "*",
    "ducklake_partition_column": "*",
    "ducklake_snapshot_changes": "snapshot_id, changes_made",
    "ducklake_metadata": "key, scope, scope_id",
}


def execute(url, _, spark):
    with shelduck.connect(url, spark=spark) as lake:
        yield from (told(lambda text=text: lake.execute(text)) for text in STATEMENTS)


def lake_sql(url, _, spark):
    with shelduck.connect(url, spark=spark) as lake:
        yield from (told(lambda text=text: lake.sql(text)) for text in STATEMENTS)


def spark_sql(url, _, spark):
    shelduck.attach(spark, "lake", url, default=True)
    try:
        yield from (told(lambda text=text: spark.sql(text)) for text in STATEMENTS)
    finally:
        shelduck.detach(spark, "lake")


def command_line(url, *_):
    def run(text):
        found = CliRunner().invoke(app, ["sql", text, "-c", url])
        if found.exception is not None:
            raise found.exception

    yield from (told(lambda text=text: run(text)) for text in STATEMENTS)


def told(act):
    try:
        act()
    except shelduck.ShelduckError as error:
        return str(error)
    return "done"


def catalog_of(folder):
    with sqlite3.connect(f"{folder}/lake.db") as catalog:
        return {
            table: sorted(catalog.execute(f"SELECT {columns} FROM {table}"), key=repr)
            for table, columns in TABLES.items()
        }


@pytest.mark.parametrize("door", [spark_sql, lake_sql, command_line])
def test_a_statement_means_the_same_at_every_door(spark, tmp_path, door):
    found = []
    for act in (execute, door):
        folder = tmp_path / act.__name__
        folder.mkdir()
        url = f"sqlite:///{folder}/lake.db"
        shelduck.connect(url, f"{folder}/data/").close()
        found.append((list(act(url, folder, spark)), catalog_of(folder)))
    expected, here = found
    assert dict(zip(STATEMENTS, here[0], strict=True)) == dict(
        zip(STATEMENTS, expected[0], strict=True)
    )
    assert here[1] == expected[1]
    refused = [text for text, said in zip(STATEMENTS, expected[0], strict=True) if said != "done"]
    assert len(refused) == 18


def test_comments_of_nested_fields_are_in_the_schema_of_rows(spark, tmp_path):
    shape = (
        "STRUCT<a: INT COMMENT 'in a', b: ARRAY<STRUCT<x: INT COMMENT 'in x'>>,"
        " m: MAP<STRING, STRUCT<y: INT COMMENT 'in y'>>>"
    )
    nested = "array(named_struct('x', 2)), 'm', map('k', named_struct('y', 3))"
    value = f"named_struct('a', 1, 'b', {nested})"

    def told():
        kind = spark.table("lake.main.t").schema["s"].dataType
        inside = (kind["b"].dataType.elementType["x"], kind["m"].dataType.valueType["y"])
        return [f.metadata.get("comment") for f in (kind.fields[0], *inside)]

    with attached_lake(spark, tmp_path, f"CREATE TABLE t (id INT, s {shape})") as lake:
        assert told() == ["in a", "in x", "in y"]
        lake.sql(f"INSERT INTO t VALUES (1, {value})")
        assert told() == ["in a", "in x", "in y"]
        lake.sql("CALL flush_inlined_data('t')")
        assert told() == ["in a", "in x", "in y"]
        plan = spark.sql("SELECT id FROM lake.main.t WHERE s.a = 1")
        assert "EqualTo(s.a,1)" in plan._jdf.queryExecution().executedPlan().toString()
        lake.sql("ALTER TABLE t RENAME COLUMN s.a TO z, ADD COLUMN s.c INT")
        assert told() == ["in a", "in x", "in y"]
        assert rows(spark.sql("SELECT s.z, s.b[0].x, s.m['k'].y FROM lake.main.t")) == [(1, 2, 3)]


def test_comments_of_fields_are_kept_shown_and_left_to_duckdb(spark, tmp_path):
    url = f"sqlite:///{tmp_path}/lake.db"
    shelduck.attach(spark, "lake", url, f"{tmp_path}/data/", default=True)
    try:
        spark.sql("CREATE TABLE t (id INT COMMENT 'top', s STRUCT<a: INT COMMENT 'told', b: INT>)")
        spark.sql("INSERT INTO t VALUES (1, named_struct('a', 1, 'b', 2))")
        assert ("s.a", "int", "told") in rows(spark.sql("DESCRIBE t"))
        assert ("comment", "told") in rows(spark.sql("DESCRIBE t s.a"))
        [(made,)] = rows(spark.sql("SHOW CREATE TABLE t"))
        assert "ALTER COLUMN s.a COMMENT 'told'" in made
        assert spark.table("t").schema["id"].metadata == {"comment": "top"}
        spark.sql(re.sub(r"main\.t\b", "main.u", made))
        assert rows(spark.sql("DESCRIBE u")) == rows(spark.sql("DESCRIBE t"))
        frame = spark.table("t").selectExpr("id AS i")
        frame.writeTo("lake.main.w").create()
        assert ("i", "int", "top") in rows(spark.sql("DESCRIBE w"))
        spark.sql("CREATE TABLE x AS SELECT id FROM t")
        assert ("id", "int", "top") in rows(spark.sql("DESCRIBE x"))
        assert duck(url, "SELECT id, s.a FROM lake.t") == [(1, 1)]
        assert duck(url, "ALTER TABLE lake.t RENAME COLUMN s.a TO z") == []
        assert ("s.z", "int", "told") in rows(spark.sql("DESCRIBE t"))
    finally:
        shelduck.detach(spark, "lake")
