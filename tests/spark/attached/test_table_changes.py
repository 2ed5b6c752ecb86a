"""The changes of tables by Spark's Scala and Java API, which no statement tells."""

from __future__ import annotations

import json
from functools import partial

import pytest

import shelduck
from tests.support.attaching import attached_lake, duck, url_of
from tests.support.lakes import rows


@pytest.fixture
def lake(spark, tmp_path):
    with attached_lake(
        spark,
        tmp_path,
        "CREATE TABLE t (id INT NOT NULL, name STRING, s STRUCT<a INT, `b c` INT>)",
        "INSERT INTO t VALUES (1, '17', named_struct('a', 1, 'b c', 2))",
        "CREATE TABLE keyed (id INT) CLUSTER BY (id)",
    ) as found:
        yield found


CATALOG = "org.apache.spark.sql.connector.catalog"


def java(spark, name):
    found = spark.sparkContext._jvm
    for part in name.split("."):
        found = getattr(found, part)
    return found


def array(spark, kind, values):
    made = spark.sparkContext._gateway.new_array(java(spark, kind), len(values))
    for place, value in enumerate(values):
        made[place] = value
    return made


def strings(spark, *values):
    return array(spark, "java.lang.String", values)


def kind(spark, text):
    return java(spark, "org.apache.spark.sql.types.DataType").fromJson(json.dumps(text))


@pytest.fixture
def alter(spark, lake):
    """Alters a table as Java does, by the names of methods of `TableChange` and their arguments."""
    session = spark._jsparkSession
    catalog = session.sessionState().catalogManager().catalog("lake")
    changes = java(spark, f"{CATALOG}.TableChange")

    def act(*asked, table="t"):
        name = java(spark, f"{CATALOG}.Identifier").of(strings(spark, "main"), table)
        made = [getattr(changes, how)(*values) for how, *values in asked]
        catalog.alterTable(name, array(spark, f"{CATALOG}.TableChange", made))

    return act


def test_each_change_of_spark_is_one_of_alter_table(spark, lake, alter, tmp_path):
    name = partial(strings, spark)
    place = java(spark, f"{CATALOG}.TableChange").ColumnPosition
    before = lake.snapshots()[-1].id

    alter(
        ("addColumn", name("n"), kind(spark, "integer"), True, "it's new"),
        ("addColumn", name("s", "d.e"), kind(spark, "string")),
        ("renameColumn", name("s", "b c"), "c"),
        ("updateColumnNullability", name("id"), True),
        ("updateColumnComment", name("s", "a"), "an `a`"),
        ("updateColumnPosition", name("n"), place.first()),
        ("updateColumnPosition", name("s"), place.after("id")),
        ("updateColumnType", name("id"), kind(spark, "long")),
        ("setProperty", "owner.team", "ducks"),
        ("setProperty", "comment", "a table"),
    )

    assert len(lake.snapshots()) == before + 2
    found = [(name, kind, null) for name, kind, null, *_ in duck(url_of(tmp_path), "DESCRIBE t")]
    struct = 'STRUCT(a INTEGER, c INTEGER, "d.e" VARCHAR)'
    assert found == [
        ("id", "BIGINT", "YES"),
        ("n", "INTEGER", "YES"),
        ("name", "VARCHAR", "YES"),
        ("s", struct, "YES"),
    ]
    assert spark.table("lake.main.t").columns == ["n", "id", "s", "name"]
    told = lake.sql("SHOW CREATE TABLE t").collect()[0][0]
    assert all(text in told for text in ("'it\\'s new'", "'an `a`'", "'a table'", "'ducks'")), told


def test_a_heavy_change_is_done_when_the_call_returns(spark, lake, alter):
    alter(("updateColumnType", strings(spark, "name"), kind(spark, "integer")))

    assert rows(spark.sql("SELECT name FROM lake.main.t")) == [(17,)]


def test_no_change_makes_no_snapshot(spark, lake, alter):
    before = lake.snapshots()

    alter()

    assert lake.snapshots() == before


def test_what_goes(spark, lake, alter):
    alter(
        ("setProperty", "owner.team", "ducks"),
        ("updateColumnDefaultValue", strings(spark, "id"), "7"),
    )
    alter(
        ("updateColumnComment", strings(spark, "s"), None),
        ("removeProperty", "owner.team"),
        ("removeProperty", "unknown"),
        ("deleteColumn", strings(spark, "name"), False),
        ("deleteColumn", strings(spark, "nothing"), True),
    )
    assert "owner.team" not in lake.sql("SHOW CREATE TABLE t").collect()[0][0]
    assert spark.table("lake.main.t").columns == ["id", "s"]
    spark.sql("INSERT INTO lake.main.t (s) VALUES (NULL)")
    assert sorted(rows(spark.sql("SELECT id FROM lake.main.t"))) == [(1,), (7,)]
    alter(("updateColumnDefaultValue", strings(spark, "id"), ""))
    assert "DEFAULT" not in lake.sql("SHOW CREATE TABLE t").collect()[0][0]
    with pytest.raises(shelduck.NotFound, match="nothing"):
        alter(("deleteColumn", strings(spark, "nothing"), False))


def test_a_table_says_by_what_it_is_clustered(spark, lake):
    found = {c.name: c.isCluster for c in spark.catalog.listColumns("lake.main.keyed")}

    assert found == {"id": True}
