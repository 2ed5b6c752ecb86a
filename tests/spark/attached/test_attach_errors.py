"""What Spark cannot do with a table of an attached lake, and what it is told of one that it makes.

One clear error each, by PySpark's class for it, and nothing taken that is not kept.
"""

from __future__ import annotations

import pytest
from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    IllegalArgumentException,
    ParseException,
    QueryExecutionException,
)

import shelduck
from shelduck import AlreadyExists, InvalidRequest, Unsupported
from shelduck.doors.attached import attached_catalog as attached
from tests.support.attaching import attached_lake, duck, url_of
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle

pytestmark = pytest.mark.every_spark


@pytest.fixture
def lake(spark, tmp_path):
    with attached_lake(
        spark,
        tmp_path,
        "CREATE TABLE t (id INT NOT NULL, w STRING)",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
    ) as found:
        yield found


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("statement", "kind", "told"),
    [
        (
            "ALTER TABLE lake.main.t ADD CONSTRAINT c CHECK (id > 1)",
            InvalidRequest,
            "c \\(id > 1\\) of main.t is not satisfied by the row \\(id = 1",
        ),
        ("ALTER TABLE lake.main.t SET LOCATION '/x'", Unsupported, "below its data path"),
        (
            "ALTER TABLE lake.main.t DROP IF EXISTS PARTITION (id = 1)",
            InvalidRequest,
            "main.t is not partitioned by id itself; use DELETE FROM t WHERE",
        ),
        ("UNDROP TABLE lake.main.t", AlreadyExists, "table main.t exists; UNDROP TABLE brings"),
        ("CREATE TABLE lake.main.t LIKE lake.main.t", AlreadyExists, "already exists"),
        ("CREATE SCHEMA lake.s COMMENT 'x'", Unsupported, "COMMENT is not supported"),
        ("DROP TABLE lake.main.t PURGE", Unsupported, "files are kept for time travel"),
        (
            "WITH x AS (SELECT 1 AS id) DELETE FROM lake.main.t WHERE id IN (TABLE x)",
            Unsupported,
            "DELETE FROM after a query is not supported",
        ),
        (
            "WITH x AS (SELECT 1 AS id) UPDATE lake.main.t AS y SET w = 'c'",
            Unsupported,
            "UPDATE after a query is not supported",
        ),
        ("UPDATE lake.main.t SET w = 'c', w = 'd'", ParseException, "each column only once"),
        (
            "ANALYZE TABLE lake.main.t PARTITION (w = 'a') COMPUTE STATISTICS FOR ALL COLUMNS",
            Unsupported,
            "values are counted for the whole table",
        ),
    ],
)
def test_a_statement_that_spark_cannot_have_done_is_refused_in_our_words(
    spark, lake, statement, kind, told
):
    with pytest.raises(kind, match=told):
        spark.sql(statement)
    assert rows(lake.table("t").read()) == [(1, "a"), (2, "b")]
    assert [t.name for t in lake.tables()] == ["t"]


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        (
            "CREATE TABLE lake.main.`${spark.x}` (id INT)",
            r"name '\$\{spark.x\}' .* contains \$\{, and",
        ),
        ("ALTER TABLE lake.main.t ADD COLUMN `${spark.x}` INT", "puts a setting in the place of"),
        (f"CREATE TABLE lake.main.{'n' * 1001} (id INT)", "is longer than 1000 characters"),
        ("SELECT '\ud800' FROM lake.main.t", "half of a character"),
    ],
)
def test_a_name_that_statements_cannot_hold_is_refused(spark, lake, statement, told):
    with pytest.raises((shelduck.InvalidRequest, IllegalArgumentException), match=told):
        spark.sql(statement)
    assert lake.table("t").columns.names == ["id", "w"]
    assert [t.name for t in lake.tables()] == ["t"]


def test_an_error_of_spark_inside_a_view_is_the_one_that_is_caught(spark, lake):
    lake.sql("CREATE VIEW v AS SELECT w FROM t")
    with DuckDBOracle(lake._state.store.where) as other:
        other.execute("ALTER TABLE t DROP COLUMN w")
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN") as caught:
        spark.sql("SELECT * FROM lake.main.v")
    assert caught.value.getCondition().startswith("UNRESOLVED_COLUMN")


def test_an_error_of_rows_that_spark_writes_is_the_one_that_is_caught(spark, lake):
    broken = spark.sql("SELECT CAST(1 / (id - id) AS INT) AS id, 'x' AS w FROM range(2)")
    with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
        broken.writeTo("lake.main.t").append()
    assert rows(lake.table("t").read()) == [(1, "a"), (2, "b")]


def test_any_other_failure_is_told_by_its_text(spark, lake, monkeypatch):
    def broken(*_):
        raise RuntimeError("the catalog is away")

    monkeypatch.setattr(attached, "relation_frame", broken)
    with pytest.raises(QueryExecutionException, match=r"^RuntimeError: the catalog is away"):
        spark.sql("SELECT * FROM lake.main.t")


def test_a_lake_that_was_detached_says_so(spark, lake):
    shelduck.detach(spark, "lake")
    with pytest.raises(IllegalArgumentException, match="'lake' is not attached in this session"):
        spark.sql("SELECT * FROM lake.main.t")


# What Spark tells of a table that it makes


def test_properties_of_a_new_table_are_kept(spark, lake, tmp_path):
    frame = spark.createDataFrame([(1, "a")], "id int, w string")
    writer = frame.writeTo("lake.main.n").using("parquet")
    writer.tableProperty("delta.enableTypeWidening", "true").tableProperty("by", "me").create()
    assert rows(spark.sql("SHOW TBLPROPERTIES lake.main.n")) == [
        ("by", "me"),
        ("delta.enableTypeWidening", "true"),
        ("delta.feature.typeWidening", "supported"),
    ]
    lake.sql("ALTER TABLE n ALTER COLUMN id TYPE DOUBLE")
    assert duck(url_of(tmp_path), "SELECT * FROM lake.n") == [(1.0, "a")]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda w: w.option("path", "/tmp/x").saveAsTable("lake.main.n"), "below the lake's data"),
        (lambda w: w.format("csv").saveAsTable("lake.main.n"), "cannot have the format csv"),
    ],
)
def test_a_place_or_format_of_its_own_is_refused(spark, lake, make, told):
    frame = spark.createDataFrame([(1, "a")], "id int, w string")
    with pytest.raises(Unsupported, match=told):
        make(frame.write)
    with pytest.raises(Unsupported, match="LOCATION"):
        spark.sql("CREATE TABLE lake.main.n (id INT) LOCATION '/tmp/x'")
    assert [t.name for t in lake.tables()] == ["t"]


def test_views_and_jobs_are_listed_wherever_the_lake_is_named(spark, lake):
    lake.sql("CREATE VIEW v AS SELECT w FROM t")
    listed = [("main", "v", False)]
    assert rows(spark.sql("SHOW VIEWS IN lake")) == listed
    assert rows(spark.sql("SHOW VIEWS IN lake.main")) == listed
    assert listed[0] not in rows(spark.sql("SHOW VIEWS"))
    before = spark.catalog.currentCatalog()
    spark.sql("USE lake")
    try:
        assert rows(spark.sql("SHOW VIEWS")) == listed
        assert rows(spark.sql("SHOW VIEWS LIKE 'x*'")) == []
        assert rows(spark.sql("SHOW ALTER TABLE COLUMN")) == []
    finally:
        spark.catalog.setCurrentCatalog(before)


def test_the_version_of_a_lake_that_is_attached_is_made_or_refused(spark, tmp_path):
    url, data = url_of(tmp_path), f"{tmp_path}/data/"
    for version in ("1.2", "", 1.1):
        with pytest.raises(InvalidRequest, match=r"is not one of '1\.0' and '1\.1'"):
            shelduck.attach(spark, "other", url, data, ducklake_version=version)
        with pytest.raises(InvalidRequest, match=r"is not one of '1\.0' and '1\.1'"):
            shelduck.session(url, data, name="other", ducklake_version=version)
    assert not (tmp_path / "lake.db").exists()
    assert spark.conf.get("spark.sql.catalog.other", None) is None

    for _ in range(2):
        assert shelduck.session(url, data, name="other", ducklake_version="1.1") is spark
        assert spark.catalog.currentCatalog() == "other"
        spark.sql("USE spark_catalog.default")
    with pytest.raises(AlreadyExists, match="catalog 'other' already exists"):
        shelduck.session(f"{url}2", data, name="other")
    spark.sql("USE other.main")
    spark.sql("CREATE SCHEMA other.a")
    spark.sql("CREATE SCHEMA other.a.b")
    with pytest.raises(InvalidRequest, match=r"has DuckLake version '1\.1', not '1\.0'"):
        shelduck.attach(spark, "third", url, ducklake_version="1.0")
    assert spark.conf.get("spark.sql.catalog.third", None) is None
    spark.sql("USE spark_catalog.default")
    shelduck.detach(spark, "other")
