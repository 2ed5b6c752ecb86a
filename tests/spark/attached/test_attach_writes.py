"""DataFrame calls that name a table of an attached lake: each does what Spark says, by the lake."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.merge import MergeIntoWriter

import shelduck
from shelduck import InvalidRequest
from shelduck.text.tokens.parameters import with_parameters
from tests.support.attaching import attached_lake, duck, url_of
from tests.support.lakes import newest, rows
from tests.support.oracle import DuckDBOracle

pytestmark = pytest.mark.every_spark

START = [(1, "a", 10), (2, "b", 20), (3, "c", 30)]
SOURCE = [(3, "x", 33), (4, "y", 44)]


@pytest.fixture
def url(tmp_path):
    return url_of(tmp_path)


@pytest.fixture
def lake(spark, tmp_path):
    """A lake that is catalog ``lake`` of the session, with a table of three rows."""
    with attached_lake(
        spark,
        tmp_path,
        "CREATE TABLE t (id INT NOT NULL, w STRING, n INT DEFAULT 5)",
        "INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20), (3, 'c', 30)",
    ) as found:
        yield found


@pytest.fixture
def source(spark):
    frame = spark.createDataFrame(SOURCE, "id int, w string, n int")
    frame.createTempView("source")
    yield spark.table("source")
    spark.catalog.dropTempView("source")


# mergeInto


def on_id():
    return F.col("t.id") == F.col("source.id")


MERGES = {
    "all": (
        lambda m: m.whenMatched().updateAll().whenNotMatched().insertAll(),
        [(1, "a", 10), (2, "b", 20), (3, "x", 33), (4, "y", 44)],
    ),
    "some": (
        lambda m: (
            m.whenMatched(F.col("source.n") > 30)
            .update({"w": F.concat("t.w", "source.w"), "t.n": F.col("lake.main.t.n") + 1})
            .whenNotMatched(F.col("id") > 3)
            .insert({"id": F.col("id"), "w": F.lit("new"), "n": F.expr("DEFAULT")})
        ),
        [(1, "a", 10), (2, "b", 20), (3, "cx", 31), (4, "new", 5)],
    ),
    "default of a column": (
        lambda m: m.whenMatched().update({"main.t.n": F.expr("default")}),
        [(1, "a", 10), (2, "b", 20), (3, "c", 5)],
    ),
    "first that holds": (
        lambda m: (
            m.whenMatched(F.col("t.id") == 9)
            .delete()
            .whenMatched(F.col("t.n") == 30)
            .update({"w": F.lit("q")})
            .whenMatched()
            .delete()
        ),
        [(1, "a", 10), (2, "b", 20), (3, "q", 30)],
    ),
    "insert alone": (
        lambda m: m.whenNotMatched().insertAll(),
        [(1, "a", 10), (2, "b", 20), (3, "c", 30), (4, "y", 44)],
    ),
    "by source": (
        lambda m: (
            m.whenMatched()
            .delete()
            .whenNotMatchedBySource(F.col("t.id") == 1)
            .update({"n": F.col("n") + 1})
            .whenNotMatchedBySource()
            .delete()
        ),
        [(1, "a", 11)],
    ),
    "everything": (
        lambda m: (
            m.whenMatched()
            .updateAll()
            .whenNotMatched()
            .insertAll()
            .whenNotMatchedBySource()
            .update({"w": F.lit("gone")})
        ),
        [(1, "gone", 10), (2, "gone", 20), (3, "x", 33), (4, "y", 44)],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", MERGES)
def test_a_frame_is_merged_in_one_snapshot(spark, lake, url, source, what):
    clauses, wanted = MERGES[what]
    before = newest(lake)
    writer = source.mergeInto("lake.main.t", on_id())
    assert isinstance(writer, MergeIntoWriter)
    clauses(writer).merge()

    assert newest(lake) == before + 1
    assert sorted(rows(spark.table("lake.main.t"))) == wanted
    assert duck(url, "SELECT * FROM t") == wanted


CONDITIONS = {
    "names of all": lambda s: F.col("lake.main.t.id") == F.col("source.id"),
    "quoted": lambda s: F.col("`main`.`t`.`id`") == F.col("`source`.`id`"),
    "a column of the frame": lambda s: F.col("t.id") == s["id"],
    "text": lambda s: F.expr("t.id = source.id AND t.id IN (1, 2, 3)"),
    "another case": lambda s: F.col("T.ID") == F.col("Source.Id"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("what", CONDITIONS)
def test_columns_of_a_condition_are_found_as_in_spark(spark, lake, source, what):
    writer = source.where("id < 9").mergeInto("lake.main.t", CONDITIONS[what](source))
    writer.whenMatched().update({"w": source["w"]}).whenNotMatched().insert(
        {"id": source["id"], "w": F.col("source.w")}
    ).merge()
    assert sorted(rows(spark.table("lake.main.t"))) == [
        (1, "a", 10),
        (2, "b", 20),
        (3, "x", 30),
        (4, "y", 5),
    ]


# However the rows come: in the plan, from Python, from a table, and too many to keep.
FRAMES = {
    "in the plan": lambda spark: spark.sql("SELECT 3 AS id, 'x' AS w UNION ALL SELECT 4, 'y'"),
    "of Python": lambda spark: spark.createDataFrame([(3, "x"), (4, "y")], "id int, w string"),
    "of a table": lambda spark: spark.table("lake.main.t").selectExpr("id + 2 AS id", "'x' AS w"),
    "many": lambda spark: spark.range(3, 9_000_003).selectExpr("id", "'x' AS w"),
}


@pytest.mark.parametrize("what", FRAMES)
def test_the_alias_of_a_source_names_its_columns(spark, lake, what):
    source = FRAMES[what](spark).alias("s")
    source.mergeInto("lake.main.t", F.expr("t.id = s.id")).whenMatched().update(
        {"w": F.expr("s.w || t.w")}
    ).merge()
    assert (3, "xc", 30) in rows(spark.table("lake.main.t"))


@pytest.mark.slow
def test_a_source_may_be_any_frame(spark, lake, url, source):
    """Under an alias, of the table itself, and a join whose sides have columns of one name."""
    source.alias("s").mergeInto("lake.main.t", F.col("t.id") == F.col("s.id")).whenMatched().update(
        {"w": F.col("s.w")}
    ).merge()
    own = spark.table("lake.main.t").where("id < 3").alias("own")
    own.mergeInto("lake.main.t", F.col("lake.main.t.id") == F.col("own.id")).whenMatched().update(
        {"n": F.col("own.n") * 2}
    ).merge()
    other = spark.createDataFrame([(4, "z")], "id int, more string").alias("o")
    joined = source.alias("s").join(other, F.col("s.id") == F.col("o.id"), "left")
    joined.mergeInto("lake.main.t", F.col("t.id") == F.col("s.id")).whenNotMatched().insert(
        {"id": F.col("s.id"), "w": F.col("o.more")}
    ).whenMatched(F.col("o.id").isNull()).update({"n": F.lit(0)}).merge()
    assert duck(url, "SELECT * FROM t") == [(1, "a", 20), (2, "b", 40), (3, "x", 0), (4, "z", 5)]


@pytest.mark.slow
def test_names_without_the_catalog_mean_the_one_in_use(spark, lake, source):
    spark.sql("USE lake.main")
    try:
        source.mergeInto("t", on_id()).whenNotMatched().insertAll().merge()
        spark.sql("CREATE SCHEMA lake.s")
        spark.sql("CREATE TABLE lake.s.t AS SELECT 4 AS id")
        spark.sql("USE lake.s")
        source.mergeInto("t", on_id()).whenMatched().delete().merge()
    finally:
        spark.sql("USE spark_catalog.default")
    assert spark.table("lake.main.t").count() == 4
    assert spark.table("lake.s.t").count() == 0


def test_a_merge_evolves_the_schema(spark, lake, url, source):
    before = newest(lake)
    wider = source.withColumn("extra", F.lit("e"))
    with pytest.raises(InvalidRequest, match="extra"):
        wider.mergeInto("lake.main.t", on_id()).whenMatched().update({"extra": F.lit("e")}).merge()
    writer = wider.mergeInto("lake.main.t", on_id()).withSchemaEvolution()
    writer.whenMatched().updateAll().whenNotMatched().insertAll().merge()
    assert newest(lake) == before + 1
    assert duck(url, "SELECT * FROM t") == [
        (1, "a", 10, None),
        (2, "b", 20, None),
        (3, "x", 33, "e"),
        (4, "y", 44, "e"),
    ]


def test_a_merge_that_cannot_be_is_told_and_changes_nothing(spark, lake, source):
    before = newest(lake)
    into = source.mergeInto
    twice = source.union(source)
    told = {
        "no source row to take all": lambda: (
            into("lake.main.t", on_id()).whenNotMatchedBySource().updateAll().merge()
        ),
        "match several rows": lambda: (
            twice.mergeInto("lake.main.t", on_id()).whenMatched().updateAll().merge()
        ),
        "can refer only to the source: .*t`.`n": lambda: (
            into("lake.main.t", on_id()).whenNotMatched(F.col("t.n") > 1).insertAll().merge()
        ),
        "no column is set": lambda: into("lake.main.t", on_id()).whenMatched().update({}).merge(),
    }
    for text, call in told.items():
        with pytest.raises(InvalidRequest, match=text):
            call()
    with pytest.raises(PySparkException, match="NO_MERGE_ACTION_SPECIFIED"):
        into("lake.main.t", on_id()).merge()
    with pytest.raises(AnalysisException, match="AMBIGUOUS_REFERENCE"):
        into("lake.main.t", F.col("id") == 1).whenMatched().delete().merge()
    with pytest.raises(AnalysisException, match="nope") as caught:
        into("lake.main.nope", on_id()).whenMatched().delete().merge()
    assert caught.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
    assert newest(lake) == before


@pytest.mark.slow
def test_a_merge_means_what_it_means_in_sql(spark, lake):
    """Two tables, one story each way: rows, row ids, defaults and nested fields are the same."""
    for name in ("one", "two"):
        lake.sql(f"CREATE TABLE {name} (id INT, s STRUCT<a: INT, b: STRING>, n INT DEFAULT 5)")
        lake.sql(f"INSERT INTO {name} SELECT id, named_struct('a', id, 'b', 'x'), id FROM range(6)")
    text = "SELECT id * 2 AS id, named_struct('a', 9, 'b', 'y', 'c', 1.5D) AS s FROM range(4)"
    spark.sql(
        f"MERGE WITH SCHEMA EVOLUTION INTO lake.main.one t USING ({text}) q ON t.id = q.id"
        " WHEN MATCHED AND t.n = 0 THEN DELETE"
        " WHEN MATCHED AND t.n = 2 THEN UPDATE SET s.b = q.s.b, n = DEFAULT"
        " WHEN MATCHED THEN UPDATE SET *"
        " WHEN NOT MATCHED THEN INSERT *"
        " WHEN NOT MATCHED BY SOURCE AND id > 3 THEN UPDATE SET s.a = t.s.a + n"
        " WHEN NOT MATCHED BY SOURCE AND id = 1 THEN DELETE"
    )
    (
        spark.sql(text)
        .alias("q")
        .mergeInto("lake.main.two", F.col("two.id") == F.col("q.id"))
        .withSchemaEvolution()
        .whenMatched(F.col("two.n") == 0)
        .delete()
        .whenMatched(F.expr("lake.main.two.n = 2"))
        .update({"two.s.b": F.col("q.s.b"), "n": F.expr("DEFAULT")})
        .whenMatched()
        .updateAll()
        .whenNotMatched()
        .insertAll()
        .whenNotMatchedBySource(F.col("id") > 3)
        .update({"s.a": F.col("two.s.a") + F.col("n")})
        .whenNotMatchedBySource(F.col("id") == 1)
        .delete()
        .merge()
    )
    feeds = []
    for name in ("one", "two"):
        table = lake.table(name)
        newest_of = table.history()[0].id
        feed = table.changes(newest_of).drop("_commit_version", "_commit_timestamp")
        feeds.append((sorted(map(str, rows(feed))), sorted(map(str, rows(table.read())))))
    assert feeds[0] == feeds[1]
    assert len(feeds[0][0]) == 9


def test_what_is_no_lakes_is_merged_by_spark(spark, lake, source):
    writer = source.mergeInto("spark_catalog.default.t", on_id())
    assert type(writer) is MergeIntoWriter
    assert type(source.mergeInto("source", on_id())) is MergeIntoWriter
    with pytest.raises(AnalysisException):
        writer.whenMatched().delete().merge()


# Rows of a condition

OVERWRITTEN = {
    "day": lambda: F.col("day") == F.lit(date(2026, 1, 1)),
    "moment": lambda: F.col("at") >= F.lit(datetime(2026, 1, 1, 12, tzinfo=UTC)),
    "local": lambda: F.col("local") == F.lit("2026-01-01 12:00:00.5").cast("timestamp_ntz"),
    "float": lambda: F.col("f") == F.lit(0.1).cast("float"),
    "decimal": lambda: F.col("d") < F.lit(Decimal("1.50")),
    "bytes": lambda: F.col("b") == F.lit(bytearray(b"\x00'")),
    "text": lambda: F.col("w") == r"C:\new's",
    "prefix": lambda: F.col("w").startswith("C:\\n"),
    "suffix": lambda: F.col("w").endswith("w's"),
    "part": lambda: F.col("w").contains(r":\n"),
    "others": lambda: (F.col("w") != "other") & F.col("yes"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("condition", OVERWRITTEN.values(), ids=OVERWRITTEN)
def test_a_condition_means_what_it_says(spark, lake, url, condition):
    columns = "id INT, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, f FLOAT, d DECIMAL(6,2)"
    lake.sql(f"CREATE TABLE o ({columns}, b BINARY, w STRING, yes BOOLEAN)")
    new = (
        "DATE'2026-01-01', TIMESTAMP'2026-01-01 12:00:00Z', TIMESTAMP_NTZ'2026-01-01 12:00:00.5',"
        r" 0.1F, 1.49, X'0027', r'C:\new' || '\'s', true"
    )
    old = (
        "DATE'2026-01-02', TIMESTAMP'2026-01-01 11:00:00Z', TIMESTAMP_NTZ'2026-01-01 12:00:00',"
        " 0.5F, 1.50, X'00', 'other', true"
    )
    lake.sql(f"INSERT INTO o SELECT 1, {new} UNION ALL SELECT 2, {old}")
    spark.sql(f"SELECT 3, {new}").toDF(*lake.table("o").columns.names).writeTo(
        "lake.main.o"
    ).overwrite(condition())
    assert duck(url, "SELECT id FROM o") == [(2,), (3,)]


def test_a_condition_that_is_no_sql_of_the_table_is_refused(spark, lake):
    lake.sql("CREATE TABLE o (id INT); INSERT INTO o VALUES (1)")
    mine = F.udf(lambda n: n == 1, "boolean")
    for condition in (F.rand() < 2, (F.col("id") > 0) & mine("id")):
        with pytest.raises(IllegalArgumentException, match="must be SQL over the columns"):
            spark.sql("SELECT 1 AS id").writeTo("lake.main.o").overwrite(condition)
    assert [r.id for r in lake.sql("FROM o").collect()] == [1]


# Columns that are left out

DEFAULTS = (
    "CREATE TABLE d (id INT, i TINYINT NOT NULL DEFAULT 7, w STRING DEFAULT 'it\\'s \\\\ \"q\"',"
    " x DECIMAL(6,2) DEFAULT 1.50, f FLOAT DEFAULT 'NaN', day DATE DEFAULT DATE'2024-07-01',"
    " moment TIMESTAMP DEFAULT '2024-07-01 12:00:00+02:00', b BINARY DEFAULT X'00ff27',"
    " plain TIMESTAMP_NTZ DEFAULT TIMESTAMP_NTZ'2024-07-01 12:00:00.5', yes BOOLEAN DEFAULT true,"
    " made INT DEFAULT 1 + 2, joined STRING DEFAULT 'a' || 'b', none INT)"
)
SPARKS_OWN = {
    "writeTo": lambda rows: rows.writeTo("lake.main.d").append(),
    "saveAsTable": lambda rows: rows.write.mode("append").saveAsTable("lake.main.d"),
    "with": lambda rows: rows.sparkSession.sql(
        "WITH s AS (SELECT 3 AS id) INSERT INTO lake.main.d (id) SELECT id FROM s"
    ),
    "from": lambda rows: rows.sparkSession.sql(
        "FROM (SELECT 4 AS id) INSERT INTO lake.main.d (id) SELECT id"
    ),
    "overwrite": lambda rows: rows.writeTo("lake.main.d").overwrite(F.col("id") == 5),
}


def test_columns_that_sparks_writers_leave_out_get_their_defaults(spark, lake, url):
    lake.sql(DEFAULTS)
    lake.table("d").append(spark.sql("SELECT 0 AS id"))
    for n, write in enumerate(SPARKS_OWN.values(), 1):
        write(spark.sql(f"SELECT {n} AS id"))
    [own, *others] = duck(url, "SELECT id, d::VARCHAR FROM d")
    assert "nan" in own[1]
    assert [row[0] for row in others] == [1, 2, 3, 4, 5]
    wanted = own[1].partition(",")[2]
    assert {row[1].partition(",")[2] for row in others} == {wanted}
    assert spark.table("lake.main.d").schema["i"].metadata == {}


def test_a_moment_that_is_the_default_is_that_of_the_write(spark, lake, url):
    lake.sql("CREATE TABLE m (id INT, t TIMESTAMP DEFAULT now(), day DATE DEFAULT current_date())")
    spark.sql("SELECT 1 AS id").writeTo("lake.main.m").append()
    recent = "t BETWEEN now() - INTERVAL 5 MINUTE AND now() + INTERVAL 1 MINUTE"
    assert duck(url, f"SELECT {recent}, day IS NULL FROM m") == [(True, False)]


def test_a_default_that_is_no_constant_is_filled_in(spark, lake, url):
    lake.sql("CREATE TABLE u (id INT, key STRING DEFAULT uuid())")
    spark.range(3).selectExpr("CAST(id AS INT) AS id").writeTo("lake.main.u").append()
    spark.sql("WITH q AS (SELECT 3 AS id) INSERT INTO lake.main.u (id) SELECT id FROM q")
    assert duck(url, "SELECT count(DISTINCT key), min(length(key)) FROM u") == [(4, 36)]


def test_a_default_that_spark_cannot_fill_in_is_no_null(spark, lake, url):
    with DuckDBOracle(url) as oracle:
        oracle.execute("CREATE TABLE o (id INT, k INT DEFAULT least(3, 4))")
    with pytest.raises(Exception, match="column k is missing and its default fails"):
        spark.sql("SELECT 1 AS id").writeTo("lake.main.o").append()
    assert duck(url, "SELECT * FROM o") == []
    spark.sql("SELECT 1 AS id, 5 AS k").writeTo("lake.main.o").append()
    assert duck(url, "SELECT id, k FROM o") == [(1, 5)]


# Partitions

PARTS = [(1, "a", 1), (2, "a", 2), (3, "b", 3), (4, "c", 4)]


@pytest.fixture
def parts(spark, lake):
    lake.set_option("data_inlining_row_limit", 0)
    lake.sql("CREATE TABLE p (id INT, k STRING, n INT) PARTITIONED BY (k)")
    spark.createDataFrame(PARTS, "id int, k string, n int").writeTo("lake.main.p").append()
    return "lake.main.p"


@pytest.mark.slow
def test_the_partitions_of_the_rows_are_replaced(spark, lake, url, parts):
    before = newest(lake)
    new = spark.createDataFrame([("a", 9), ("d", 10)], "k string, id int")
    new.writeTo(parts).overwritePartitions()
    assert newest(lake) == before + 1
    wanted = [(10, "d", None), (3, "b", 3), (4, "c", 4), (9, "a", None)]
    assert duck(url, "SELECT * FROM p") == wanted
    assert sorted(rows(spark.table(parts)), key=str) == wanted

    spark.table(parts).where("k = 'b'").withColumn("n", F.col("n") * 2).writeTo(
        table=parts
    ).overwritePartitions()
    assert newest(lake) == before + 2
    assert duck(url, "SELECT id, n FROM p WHERE k = 'b'") == [(3, 6)]
    new.limit(0).writeTo(parts).overwritePartitions()
    assert newest(lake) == before + 2


def test_partitions_of_a_transform_are_replaced(spark, lake, url):
    lake.sql("CREATE TABLE days (at TIMESTAMP, n INT) PARTITIONED BY (day(at))")
    lake.sql(
        "INSERT INTO days VALUES (TIMESTAMP '2026-01-01 10:00:00', 1),"
        " (TIMESTAMP '2026-01-01 11:00:00', 2), (TIMESTAMP '2026-01-02 10:00:00', 3)"
    )
    new = spark.sql("SELECT 7 AS n, TIMESTAMP '2026-01-01 23:00:00' AS at")
    new.writeTo("lake.main.days").overwritePartitions()
    assert duck(url, "SELECT n FROM days") == [(3,), (7,)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("said", ["setting", "option"])
def test_insert_into_replaces_partitions_where_spark_would(spark, lake, url, parts, said):
    new = spark.createDataFrame([(9, "a", 0)], "x int, y string, z int")
    writer = new.write.mode("overwrite")
    if said == "setting":
        spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    else:
        writer = writer.option("partitionOverwriteMode", "dynamic")
    before = newest(lake)
    try:
        writer.insertInto(parts)
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert newest(lake) == before + 1
    assert duck(url, "SELECT * FROM p") == [(3, "b", 3), (4, "c", 4), (9, "a", 0)]
    new.write.insertInto(tableName=parts, overwrite=True)
    assert duck(url, "SELECT * FROM p") == [(9, "a", 0)]


def test_what_has_no_partitions_is_replaced_as_a_whole(spark, lake, source, parts):
    spark.sql("SELECT 9 AS id, 'z' AS w, 9 AS n").writeTo("lake.main.u").create()
    source.writeTo("lake.main.u").overwritePartitions()
    assert sorted(rows(spark.table("lake.main.u"))) == sorted(SOURCE)

    before = newest(lake)
    with pytest.raises(AnalysisException, match="nope"):
        source.writeTo("lake.main.nope").overwritePartitions()
    with pytest.raises(AnalysisException, match="the table has no column extra"):
        spark.table(parts).withColumn("extra", F.lit(1)).writeTo(parts).overwritePartitions()
    assert newest(lake) == before


# mergeSchema

APPENDS = {
    "writeTo": lambda f, name: f.writeTo(name).option("mergeSchema", "true").append(),
    "options": lambda f, name: f.writeTo(name).options(mergeSchema=True).append(),
    "saveAsTable": lambda f, name: (
        f.write.option("mergeSchema", "true").mode("append").saveAsTable(name)
    ),
    "arguments": lambda f, name: f.write.saveAsTable(name, None, "append", mergeSchema=True),
    "evolve": lambda f, name: f.writeTo(name).option("evolve", "add, widen").append(),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("how", APPENDS)
def test_new_columns_are_added_in_the_same_snapshot(spark, lake, url, how):
    before = newest(lake)
    new = spark.createDataFrame([("e", 5, 1 << 40)], "extra string, id int, n bigint")
    APPENDS[how](new, "lake.main.t")
    assert newest(lake) == before + 1
    wanted = [*[(*row, None) for row in START], (5, None, 1 << 40, "e")]
    assert sorted(rows(spark.table("lake.main.t"))) == wanted
    assert duck(url, "SELECT * FROM t") == wanted
    assert spark.table("lake.main.t").columns == ["id", "w", "n", "extra"]


OVERWRITES = {
    "saveAsTable": lambda w, frame, name: w(frame.write).mode("overwrite").saveAsTable(name),
    "partitions": lambda w, frame, name: w(frame.writeTo(name)).overwritePartitions(),
    "condition": lambda w, frame, name: w(frame.writeTo(name)).overwrite(F.col("id") >= 5),
    "replaceWhere": lambda w, frame, name: (
        w(frame.write).mode("overwrite").option("replaceWhere", "id >= 5").saveAsTable(name)
    ),
    "dynamic": lambda w, frame, name: (
        w(frame.write)
        .mode("overwrite")
        .option("partitionOverwriteMode", "dynamic")
        .saveAsTable(name)
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("option", [("mergeSchema", "true"), ("rescuedDataColumn", "extra")])
@pytest.mark.parametrize("how", OVERWRITES)
def test_rows_that_replace_others_may_change_columns_too(spark, lake, url, how, option):
    lake.sql("ALTER TABLE t SET PARTITIONED BY (id)")
    before = newest(lake)
    new = spark.createDataFrame([("e", 5, 1)], "extra string, id int, n int")
    if option[0] == "rescuedDataColumn":
        new = new.withColumnRenamed("extra", "odd")
    OVERWRITES[how](lambda writer: writer.option(*option), new, "lake.main.t")
    assert newest(lake) == before + 1
    kept = [] if how == "saveAsTable" else [(*row, None) for row in START]
    value = "e" if option[0] == "mergeSchema" else '{"odd":"e"}'
    assert duck(url, "SELECT * FROM t ORDER BY id") == [*kept, (5, None, 1, value)]
    assert lake.table("t").read(version=before).columns == ["id", "w", "n"]


def test_columns_are_not_added_unasked(spark, lake, source):
    before = newest(lake)
    wider = source.withColumn("extra", F.lit(1))
    calls = (
        lambda: wider.writeTo("lake.main.t").append(),
        lambda: wider.writeTo("lake.main.t").option("mergeSchema", "false").append(),
        lambda: wider.write.mode("append").saveAsTable("lake.main.t"),
        lambda: wider.write.option("mergeSchema", False).saveAsTable("lake.main.t", mode="append"),
    )
    for call in calls:
        with pytest.raises(AnalysisException, match="the table has no column extra") as caught:
            call()
        assert caught.value.getCondition() == "INCOMPATIBLE_DATA_FOR_TABLE"
    with pytest.raises(AnalysisException, match="already exists"):
        wider.write.option("mergeSchema", "true").saveAsTable("lake.main.t")
    assert newest(lake) == before


def test_options_say_what_rows_change_and_where_the_rest_goes(spark, lake, url):
    before = newest(lake)
    odd = spark.createDataFrame([("many", 5, "e")], "n string, id int, extra string")
    odd.writeTo("lake.main.t").option("rescuedDataColumn", "_rescued").append()
    odd.write.options(evolve="add", rescuedDataColumn="_rescued").saveAsTable(
        "lake.main.t", mode="append"
    )
    assert newest(lake) == before + 2
    found = duck(
        url, "SELECT id, n, _rescued, extra FROM t WHERE id = 5 ORDER BY extra NULLS FIRST"
    )
    assert found == [(5, None, '{"n":"many","extra":"e"}', None), (5, None, '{"n":"many"}', "e")]
    with pytest.raises(InvalidRequest, match="one or several of none, add, widen, all, not 'drop'"):
        odd.writeTo("lake.main.t").option("evolve", "drop").append()
    with pytest.raises(AnalysisException, match="string cannot be stored as int32"):
        odd.writeTo("lake.main.t").option("evolve", "none").append()
    assert newest(lake) == before + 2


@pytest.mark.slow
def test_a_table_that_is_not_there_is_made_by_the_same_call(spark, lake, url, source):
    before = newest(lake)
    source.write.option("mergeSchema", "true").mode("append").saveAsTable("lake.main.made")
    assert newest(lake) == before + 1
    assert duck(url, "SELECT * FROM made") == SOURCE
    with pytest.raises(AnalysisException, match="nope"):
        source.writeTo("lake.main.nope").option("mergeSchema", "true").append()
    source.write.saveAsTable("lake.main.with_keys", partitionBy="w", mode="append")
    assert "PARTITIONED BY (w)" in rows(spark.sql("SHOW CREATE TABLE lake.main.with_keys"))[0][0]


@pytest.mark.slow
def test_other_tables_are_written_by_spark(spark, lake, source, tmp_path):
    source.write.saveAsTable("own", path=f"{tmp_path}/own", format="parquet")
    try:
        source.write.insertInto("own", overwrite=True)
        source.write.mode("append").option("mergeSchema", "true").saveAsTable(name="own")
        assert spark.table("own").count() == 4
        with pytest.raises(AnalysisException):
            source.writeTo("own").overwritePartitions()
    finally:
        spark.sql("DROP TABLE own")


# Parameters

VALUES = [
    3,
    1 << 40,
    -1.5,
    1e300,
    float("inf"),
    Decimal("1.50"),
    "it's \\ \n 'quoted' :id ?",
    "",
    None,
    True,
    b"\x01\xff",
    date(2026, 1, 2),
    datetime(2026, 1, 2, 3, 4, 5, 6),  # noqa: DTZ001 - Spark takes one without a zone, too
    datetime(2026, 1, 2, 3, 4, 5, 6, UTC),
    timedelta(days=-1, microseconds=2),
    [1, 2],
]


def test_values_are_those_that_spark_makes_of_them(spark):
    """Spark itself is the oracle of what a parameter means."""
    names = [f"p{n}" for n in range(len(VALUES))]
    text = f"SELECT {', '.join(f':{name}' for name in names)}"
    given = dict(zip(names, VALUES, strict=True))
    [theirs] = spark.sql(text, given).collect()
    [ours] = spark.sql(with_parameters(text, given)).collect()
    assert tuple(ours) == tuple(theirs)


@pytest.mark.slow
def test_statements_of_the_lake_take_parameters(spark, lake, url):
    before = newest(lake)
    spark.sql("DELETE FROM lake.main.t WHERE id = :id", args={"id": 3})
    spark.sql("UPDATE lake.main.t SET w = :w WHERE id IN (?, ?)".replace(":w", "?"), ["x'", 1, 9])
    spark.sql("INSERT INTO lake.main.t VALUES (:id, :w, :n)", {"id": 7, "w": "?", "n": None})
    spark.sql(
        "MERGE INTO lake.main.t t USING (SELECT :id AS id) s ON t.id = s.id"
        " WHEN MATCHED AND t.w = :w THEN UPDATE SET n = t.n -:less",
        {"id": 2, "w": "b", "less": -1},
    )
    assert newest(lake) == before + 4
    assert duck(url, "SELECT * FROM t") == [(1, "x'", 10), (2, "b", 21), (7, "?", None)]
    changes = "SELECT count(*) FROM table_changes('lake.main.t', :first)"
    assert rows(spark.sql(changes, {"first": before + 1})) == [(6,)]


def test_parameters_that_are_missing_are_told(spark, lake):
    before = newest(lake)
    with pytest.raises(InvalidRequest, match="parameter :id, but args has ID"):
        spark.sql("DELETE FROM lake.main.t WHERE id = :id", {"ID": 3})
    with pytest.raises(InvalidRequest, match=r"has 1 \?, but args has 2 value"):
        spark.sql("DELETE FROM lake.main.t WHERE id = ?", [3, 4])
    with pytest.raises(InvalidRequest, match=r"parameter id of type Column has no SQL literal"):
        spark.sql("DELETE FROM lake.main.t WHERE id = :id", {"id": F.lit(3)})
    assert newest(lake) == before
    assert rows(spark.sql("SELECT :a + id FROM lake.main.t WHERE id = 1", {"a": F.lit(1)})) == [
        (2,)
    ]


# Batches of a stream, whose session is a copy of the one that attached the lake


def run_batches(spark, folder, function):
    """Run a query of one batch, of the rows of ``SOURCE``, to its end."""
    spark.createDataFrame(SOURCE, "id int, w string, n int").write.json(f"{folder}/source")
    stream = spark.readStream.schema("id int, w string, n int").json(f"{folder}/source")
    query = (
        stream.writeStream.foreachBatch(function)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def merge_by_sql(batch, _number):
    batch.createOrReplaceTempView("batch")
    batch.sparkSession.sql(
        "MERGE INTO lake.main.t t USING batch b ON t.id = b.id"
        " WHEN MATCHED THEN UPDATE SET w = b.w WHEN NOT MATCHED THEN INSERT *"
    )


def merge_by_frame(batch, _number):
    writer = batch.alias("b").mergeInto("lake.main.t", F.expr("t.id = b.id"))
    writer.whenMatched().update({"w": F.col("b.w")}).whenNotMatched().insertAll().merge()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("function", [merge_by_sql, merge_by_frame])
def test_a_batch_of_a_stream_is_merged(spark, lake, url, tmp_path, function):
    before = newest(lake)
    run_batches(spark, tmp_path, function)
    assert newest(lake) == before + 1
    assert duck(url, "SELECT * FROM t") == [(1, "a", 10), (2, "b", 20), (3, "x", 30), (4, "y", 44)]
    assert not spark.catalog.tableExists("batch")


@pytest.mark.slow
def test_a_batch_of_a_stream_replaces_partitions(spark, lake, url, parts, tmp_path):
    def replace(batch, _number):
        batch.selectExpr("id", "'a' AS k", "n").writeTo(parts).overwritePartitions()

    run_batches(spark, tmp_path, replace)
    assert duck(url, "SELECT * FROM p") == [(3, "a", 33), (3, "b", 3), (4, "a", 44), (4, "c", 4)]


# toTable


@pytest.fixture
def stream(spark, tmp_path):
    """A stream of the JSON files in a directory, one in each batch, and what puts one there."""
    folder = tmp_path / "stream"
    folder.mkdir()

    def put(name, *lines):
        (folder / f".{name}").write_text("\n".join(json.dumps(line) for line in lines))
        (folder / f".{name}").rename(folder / f"{name}.json")

    def read(schema):
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.json(str(folder)).writeStream.trigger(availableNow=True)

    read.put = put
    return read


@pytest.mark.slow
def test_a_stream_goes_into_a_table_once(spark, lake, url, stream, tmp_path):
    before = newest(lake)
    stream.put("a", {"id": 7, "w": "x", "n": 1})
    stream.put("b", {"id": 8, "w": "y"})
    kept = {"checkpointLocation": f"{tmp_path}/kept"}
    query = stream("n int, w string, id int").toTable("lake.main.t", queryName="into_t", **kept)
    query.awaitTermination()
    assert query.name == "into_t"
    assert newest(lake) == before + 2
    stream.put("c", {"id": 9, "w": "z", "n": 3})
    stream("n int, w string, id int").options(**kept).toTable("lake.main.t").awaitTermination()
    assert newest(lake) == before + 3
    wanted = [*START, (7, "x", 1), (8, "y", None), (9, "z", 3)]
    assert duck(url, "SELECT * FROM t") == wanted


def test_a_stream_of_all_rows_takes_the_place_of_those_before(spark, lake, url, stream, tmp_path):
    folder = tmp_path / "stream"
    spark.sql("CREATE TABLE lake.main.counts (w STRING, n BIGINT)")
    for name, ids in (("a", (1, 2)), ("b", (3,))):
        stream.put(name, *({"id": i, "w": "x"} for i in ids))
    counted = spark.readStream.schema("id int, w string").json(str(folder)).groupBy("w")
    before = newest(lake)
    query = (
        counted.agg(F.count("*").alias("n"))
        .writeStream.trigger(availableNow=True)
        .outputMode("complete")
        .option("checkpointLocation", f"{tmp_path}/kept")
        .toTable("lake.main.counts")
    )
    query.awaitTermination()
    assert newest(lake) == before + 1
    stream.put("c", {"id": 4, "w": "x"}, {"id": 5, "w": "y"})
    counted.agg(F.count("*").alias("n")).writeStream.trigger(availableNow=True).toTable(
        "lake.main.counts", outputMode="complete", checkpointLocation=f"{tmp_path}/kept"
    ).awaitTermination()
    assert duck(url, "SELECT * FROM counts") == [("x", 4), ("y", 1)]


def test_a_stream_makes_its_table_and_adds_columns_when_asked(spark, lake, url, stream, tmp_path):
    stream.put("a", {"id": 7, "w": "x", "n": 1})
    kept = {"checkpointLocation": f"{tmp_path}/kept"}
    stream("id int, w string").toTable(
        "lake.main.made", None, "append", "w", **kept
    ).awaitTermination()
    assert "PARTITIONED BY (w)" in rows(spark.sql("SHOW CREATE TABLE lake.main.made"))[0][0]
    stream.put("b", {"id": 8, "w": "y", "n": 2})
    stream("id int, w string, n int").option("mergeSchema", "true").partitionBy("w").options(
        **kept
    ).toTable("lake.main.made").awaitTermination()
    assert duck(url, "SELECT id, w, n FROM made") == [(7, "x", None), (8, "y", 2)]


def test_a_stream_that_cannot_go_into_a_table_is_told(spark, lake, stream, tmp_path):
    before = newest(lake)
    writer = stream("id int, w string")
    with pytest.raises(InvalidRequest, match=r"checkpointLocation.*path"):
        writer.toTable("lake.main.made")
    with pytest.raises(
        shelduck.Unsupported, match=r"does not support output mode 'update' for main.t"
    ):
        writer.outputMode("update").toTable("lake.main.t", checkpointLocation=f"{tmp_path}/kept")
    with pytest.raises(InvalidRequest, match="replaces all rows and keeps the columns; leave out"):
        stream("id int").option("evolve", "add").outputMode("complete").toTable(
            "lake.main.t", checkpointLocation=f"{tmp_path}/kept"
        )
    with pytest.raises(AnalysisException, match="no_lake"):
        stream("id int").toTable("no_lake.main.t", checkpointLocation=f"{tmp_path}/kept")
    assert newest(lake) == before
    assert not spark.catalog.tableExists("lake.main.made")


def test_a_boolean_partition_takes_the_same_values_through_every_door(lake, spark):
    lake.sql("CREATE TABLE p (id INT, ok BOOLEAN) PARTITIONED BY (ok)")
    clause, source = "lake.main.p PARTITION (ok = {})", "(SELECT 1 AS id)"
    doors = (
        f"INSERT INTO {clause} VALUES (1)",
        f"INSERT OVERWRITE {clause} SELECT 1",
        f"WITH w AS {source} INSERT INTO {clause} SELECT * FROM w",
        f"FROM {source} INSERT INTO {clause} SELECT id",
    )
    every = [("1", True, door) for door in doors]
    for literal, value, door in (*every, ("0L", False, doors[0]), ("'no'", False, doors[3])):
        lake.execute("TRUNCATE TABLE p")
        spark.sql(door.format(literal))
        assert rows(lake.table("p").read()) == [(1, value)], (door, literal)
    for door in doors:
        with pytest.raises(Exception, match="2"):
            spark.sql(door.format("2"))
    with pytest.raises(InvalidRequest, match="'2' is not a value of type boolean"):
        lake.sql("INSERT INTO p PARTITION (ok = 2) VALUES (1)")
