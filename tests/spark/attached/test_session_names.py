"""Names of a session whose current catalog is a lake: temporary views and functions are Spark's."""

from __future__ import annotations

import json

import pytest
from pyspark.errors import AnalysisException

from shelduck import InvalidRequest
from tests.support.attaching import attached_lake
from tests.support.lakes import rows

pytestmark = pytest.mark.every_spark


@pytest.fixture
def lake(spark, tmp_path):
    with attached_lake(
        spark,
        tmp_path,
        "CREATE TABLE t (id INT, w STRING)",
        "INSERT INTO t VALUES (1, 'a')",
        "CREATE VIEW v (a, b) AS SELECT id, upper(w) AS big FROM t",
    ) as found:
        spark.sql("USE lake.main")
        spark.sql("CREATE TEMPORARY VIEW tv AS SELECT 7 AS z")
        yield found
        spark.sql("USE spark_catalog.default")
        for name in ("tv", "t"):
            spark.catalog.dropTempView(name)


def test_a_temporary_view_is_described_changed_and_dropped(spark, lake):
    assert rows(spark.sql("DESCRIBE tv")) == [("z", "int", None)]
    assert rows(spark.sql("SHOW COLUMNS IN tv")) == [("z",)]
    spark.sql("ALTER VIEW tv AS SELECT 8 AS y")
    spark.sql("CREATE TABLE tv AS SELECT 1 AS id")
    assert rows(spark.sql("SELECT * FROM tv")) == [(8,)]
    assert rows(spark.sql("SELECT * FROM main.tv")) == [(1,)]
    spark.sql("DROP VIEW IF EXISTS tv")
    assert rows(spark.sql("SELECT * FROM tv")) == [(1,)]


def test_what_spark_makes_for_the_session_is_made_where_the_lake_is_the_current_catalog(
    spark, lake
):
    for n, made in enumerate(("", "OR REPLACE ")):
        for kind in ("TEMPORARY VIEW tv", "temp view tv", "GLOBAL TEMPORARY VIEW gv"):
            name = kind.split()[-1]
            spark.sql(f"DROP VIEW IF EXISTS {'global_temp.' * (name == 'gv')}{name}")
            spark.sql(f"create {made}{kind} AS SELECT {n} AS z")
            where = f"global_temp.{name}" if name == "gv" else name
            assert rows(spark.sql(f"SELECT z FROM {where}")) == [(n,)]
        spark.sql(f"CREATE {made}TEMPORARY FUNCTION plus{n}(x INT) RETURNS INT RETURN x + {n}")
        assert rows(spark.sql(f"SELECT plus{n}(5)")) == [(5 + n,)]
    spark.sql("DROP VIEW global_temp.gv")
    for n in range(2):
        spark.sql(f"DROP TEMPORARY FUNCTION plus{n}")


def test_a_statement_never_changes_the_table_behind_a_temporary_view(spark, lake):
    spark.sql("CREATE TEMPORARY VIEW t AS SELECT 5 AS id, 'x' AS w")
    for statement in (
        "INSERT INTO t VALUES (2, 'b')",
        "UPDATE t SET w = 'z'",
        "DELETE FROM t",
        "MERGE INTO t USING tv ON t.id = tv.z WHEN NOT MATCHED THEN INSERT (id) VALUES (tv.z)",
        "ALTER TABLE t ADD COLUMN n INT",
        "TRUNCATE TABLE t",
        "OPTIMIZE t",
        "RESTORE TABLE t TO VERSION AS OF 1",
        "INSERT INTO t VALUES (2, 'b') RETURNING *",
    ):
        with pytest.raises(AnalysisException, match=r"view"):
            spark.sql(statement)
    spark.sql("DROP TABLE t")

    assert rows(spark.sql("SELECT * FROM t")) == [(1, "a")]
    merge = "MERGE INTO t USING tv ON t.id = tv.z WHEN NOT MATCHED THEN INSERT (id) VALUES (tv.z)"
    assert spark.sql(merge).first()["inserted"] == 1


def test_a_view_of_the_lake_does_not_read_a_temporary_view(spark, lake):
    with pytest.raises(InvalidRequest, match="it reads tv, which is not in the lake"):
        spark.sql("CREATE VIEW p AS SELECT * FROM tv")


def test_a_table_is_a_table_wherever_spark_tells_of_it(spark, lake):
    [shown] = spark.sql("SHOW TABLE EXTENDED IN lake.main LIKE 't'").collect()
    told = json.loads(spark.sql("DESCRIBE EXTENDED t AS JSON").first()[0])
    view = json.loads(spark.sql("DESC TABLE EXTENDED lake.main.v AS JSON").first()[0])

    assert "VIEW" not in shown.information
    assert "__shelduck" not in f"{shown.information}{told}{view}"
    assert (told["type"], [c["name"] for c in told["columns"]]) == ("MANAGED", ["id", "w"])
    assert (view["type"], view["table_name"]) == ("VIEW", "v")


def test_a_lakes_table_has_the_name_of_its_catalog(spark, lake):
    # Spark before 4.3 takes every view for one of its own catalog.
    catalog = "lake" if spark.version >= "4.3" else "spark_catalog"
    query = f"SELECT {catalog}.main.t.id, main.t.w FROM lake.main.t"

    assert rows(spark.sql(query)) == [(1, "a")]
    with pytest.raises(AnalysisException, match=rf"`{catalog}`.`main`.`t`.`id`"):
        spark.sql("SELECT t.idd FROM lake.main.t CROSS JOIN (SELECT 1 AS id)")


def test_sparks_functions_are_listed(spark, lake):
    for place in ("", "FROM lake.main"):
        assert rows(spark.sql(f"SHOW FUNCTIONS {place} LIKE 'concat'")) == [("concat",)]
    for name in (None, "lake.main"):
        found = spark.catalog.listFunctions(name, pattern="concat")
        assert [f.name for f in found] == ["concat"]


def test_a_view_of_the_lake_is_described(spark, lake):
    assert rows(spark.sql("DESCRIBE v")) == [("a", "int", None), ("b", "string", None)]
    assert ("Type", "VIEW", None) in rows(spark.sql("DESCRIBE EXTENDED v"))
    assert rows(spark.sql("DESCRIBE v b"))[1] == ("data_type", "string")
    with pytest.raises(AnalysisException, match=r"column 'c' does not exist in main.v"):
        spark.sql("DESCRIBE v c")
    assert rows(spark.sql("SHOW COLUMNS IN v")) == [("a",), ("b",)]
    [(text,)] = rows(spark.sql("SHOW CREATE TABLE v"))
    spark.sql(text.replace("main.v", "main.w"))
    assert rows(spark.table("lake.main.w")) == [(1, "A")]
