"""`shelduck.delta.DeltaTable` does for a table of a lake what Delta's class does for its own."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.delta import DeltaTable, IdentityGenerator
from shelduck.errors import InvalidRequest, NotFound, Unsupported
from tests.support.attaching import attached_lake, duck, url_of

pytestmark = pytest.mark.every_spark


@pytest.fixture
def lake(spark, tmp_path):
    with attached_lake(
        spark,
        tmp_path,
        "CREATE TABLE events (id BIGINT, data STRING, n INT DEFAULT 5)",
        "INSERT INTO events SELECT id, concat('d', id), 1 FROM range(6)",
    ) as found:
        yield found


@pytest.fixture
def events(spark, lake):
    return DeltaTable.forName(spark, "lake.main.events")


def rows(tmp_path):
    return duck(url_of(tmp_path), "FROM lake.events")


def test_rows_are_merged_as_the_documents_of_delta_say(spark, events, tmp_path):
    updates = spark.createDataFrame([(1, "x"), (2, None), (9, "new")], "id bigint, data string")
    [counted] = (
        events.alias("events")
        .merge(updates.alias("updates"), "events.id = updates.id")
        .whenMatchedDelete(condition="updates.data IS NULL")
        .whenMatchedUpdate(set={"events.data": "updates.data", "n": "events.n + 10"})
        .whenNotMatchedInsert(values={"id": "updates.id", "data": F.col("updates.data")})
        .whenNotMatchedBySourceUpdate("events.id > 4", set={"n": "DEFAULT"})
        .whenNotMatchedBySourceDelete(F.col("events.id") == 0)
        .execute()
        .collect()
    )

    assert rows(tmp_path) == [(1, "x", 11), (3, "d3", 1), (4, "d4", 1), (5, "d5", 5), (9, "new", 5)]
    assert counted.asDict() == {
        "num_affected_rows": 5,
        "num_updated_rows": 2,
        "num_deleted_rows": 2,
        "num_inserted_rows": 1,
    }


def test_a_merge_of_all_columns_may_bring_a_new_one(spark, events, tmp_path):
    more = spark.createDataFrame(
        [(5, "y", 2, 7), (6, "z", 3, 8)], "id long, data string, n int, w int"
    )
    events.alias("t").merge(
        more.alias("s"), F.col("t.id") == F.col("s.id")
    ).withSchemaEvolution().whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    assert rows(tmp_path)[-2:] == [(5, "y", 2, 7), (6, "z", 3, 8)]


def test_rows_are_updated_deleted_and_restored(spark, events, tmp_path):
    [updated] = events.update("id = 3", {"data": "upper(data)"}).collect()
    [deleted] = events.delete(F.col("id") > 3).collect()
    assert (updated[0], deleted[0]) == (1, 2)
    assert rows(tmp_path)[3:] == [(3, "D3", 1)]
    events.restoreToVersion(2)
    assert len(rows(tmp_path)) == 6
    events.delete()

    assert events.toDF().count() == 0
    events.restoreToTimestamp("2100-01-01")
    assert [row["operation"] for row in events.history(2).collect()][:1] == ["DELETE"]


@pytest.mark.parametrize("as_given", [str, F.expr])
def test_an_alias_names_the_table_in_conditions_and_values(events, tmp_path, as_given):
    condition, values = as_given("t.id = 1"), {"t.data": as_given("concat(t.data, id)")}
    known = events.alias("t")
    assert known.toDF().where(condition).count() == 1

    known.update(condition, values)
    assert rows(tmp_path)[1] == (1, "d11", 1)
    known.update(set={"t.n": "t.n + 1"})
    known.delete(as_given("t.id = 1 OR t.n > 2"))
    assert [id_ for id_, *_ in rows(tmp_path)] == [0, 2, 3, 4, 5]


@pytest.mark.parametrize(("alias", "column"), [("t", "`t`.n"), ("t", "T.`n`"), ("a b", "`A B`.n")])
def test_an_alias_is_found_as_spark_finds_names(events, tmp_path, alias, column):
    events.alias(alias).update("id = 1", {column: "n + 1"})
    assert rows(tmp_path)[1] == (1, "d1", 2)


def test_without_an_alias_the_table_has_its_name(events, tmp_path):
    events.update("events.id = 1", {"events.n": "events.n + id"})
    events.delete(F.col("events.id") > 1)
    assert rows(tmp_path) == [(0, "d0", 1), (1, "d1", 2)]


def test_a_table_shows_its_name(events):
    assert repr(events.alias("e")) == "DeltaTable('lake.main.events')"


def test_upkeep_and_what_is_known(spark, events, lake):
    lake.set_option("data_inlining_row_limit", 0)
    for n in range(3):
        spark.sql(f"INSERT INTO lake.main.events VALUES ({n}, 'm', 2)")
    [done] = events.optimize().where("id < 100").executeCompaction().collect()

    assert (done["table_name"], done["files_created"]) == ("events", 1)
    assert events.detail().collect()[0]["numFiles"] <= 2
    assert events.vacuum(0).columns == ["path"]
    assert events.alias("e").toDF().where("e.id = 1").count() == 2


def test_a_builder_makes_computed_columns(spark, lake):
    begun = DeltaTable.create(spark).tableName("lake.main.computed")
    numbers = IdentityGenerator(start=10, step=5)
    made = (
        begun.addColumn("id", T.LongType(), False, generatedByDefaultAs=numbers, comment="a number")
        .addColumn("n", "INT")
        .addColumn("twice", "INT", generatedAlwaysAs="n * 2")
        .execute()
    )
    spark.sql("INSERT INTO lake.main.computed (n) VALUES (1)")
    spark.sql("INSERT INTO lake.main.computed (id, n) VALUES (7, 2)")
    assert sorted(made.toDF().collect()) == [(7, 2, 4), (10, 1, 2)]
    shown = spark.sql("SHOW CREATE TABLE lake.main.computed").collect()[0][0]
    assert "GENERATED BY DEFAULT AS IDENTITY (START WITH 10 INCREMENT BY 5)" in shown
    with pytest.raises(InvalidRequest, match=r"^column id of main\.computed is computed twice"):
        begun.addColumn("id", "BIGINT", True, numbers, numbers).execute()


def test_numbers_that_are_always_generated_cannot_be_given(spark, lake):
    begun = DeltaTable.create(spark).tableName("lake.main.numbered")
    begun.addColumn("id", "BIGINT", generatedAlwaysAs=IdentityGenerator()).execute()
    with pytest.raises(AnalysisException, match="id"):
        spark.sql("INSERT INTO lake.main.numbered VALUES (3)")


def test_a_builder_takes_the_columns_of_a_schema(spark, lake):
    inside = T.StructType([T.StructField("x y", T.IntegerType(), True, {"comment": "it's"})])
    columns = [
        T.StructField("a b", T.ArrayType(inside), False, {"comment": "nested"}),
        T.StructField("v", T.VarcharType(3)),
    ]
    begun = DeltaTable.create(spark).tableName("lake.main.made")
    begun.addColumns(T.StructType(columns)).execute()
    begun.tableName("lake.main.listed").addColumns(columns).execute()

    for name in ("made", "listed"):
        shown = spark.sql(f"SHOW CREATE TABLE lake.main.{name}").collect()[0][0]
        assert "`a b` ARRAY<STRUCT<`x y`: INT>> NOT NULL COMMENT 'nested'" in shown
        assert "v VARCHAR(3)" in shown
        assert "ALTER COLUMN `a b`.element.`x y` COMMENT 'it\\'s'" in shown


def test_what_a_lake_does_not_have_is_refused(spark, events):
    with pytest.raises(NotFound, match=r"lake\.main\.nix is not a table of a lake of this session"):
        DeltaTable.forName(spark, "lake.main.nix")
    with pytest.raises(
        Unsupported, match=r"no table at the path '/data/t'; use DeltaTable\.forName"
    ):
        DeltaTable.forPath(spark, "/data/t")
    with pytest.raises(Unsupported, match="SET SORTED BY"):
        events.optimize().executeZOrderBy("id")
    with pytest.raises(InvalidRequest, match="pass set="):
        events.update("id = 1")
