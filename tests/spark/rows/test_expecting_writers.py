"""Writers that say which columns they were built for: compared with the table at the commit."""

from __future__ import annotations

from functools import partial

import pytest

import shelduck
from shelduck import InvalidRequest
from shelduck.lake import unit
from shelduck.write import appending
from tests.support.attaching import attached_lake
from tests.support.lakes import newest, rows
from tests.support.meanwhile import once_after, once_before

MERGE = (
    "MERGE WITH EXPECT ({}) INTO t USING (SELECT 2 AS id, 'b' AS v, 2 AS n) s ON t.id = s.id"
    " WHEN NOT MATCHED THEN INSERT (id, v, n) VALUES (s.id, s.v, s.n)"
)
STATEMENTS = [
    "CREATE TABLE t (id INT NOT NULL, v STRING, n BIGINT DEFAULT 7)",
    "INSERT INTO t VALUES (1, 'a', 1)",
    "CREATE TABLE u (id INT, v STRING, n BIGINT) UNIQUE KEY (id)",
    "INSERT INTO u VALUES (1, 'a', 1)",
]
BUILT_FOR = "id INT NOT NULL, v STRING, n INT"


def merged(table, frame, expect):
    values = {name: f"s.{name}" for name in ("id", "v", "n")}
    return table.merge(frame, ["id"], shelduck.when_not_matched_insert(values), expect=expect)


# How each writer takes rows of ``id``, ``v`` and ``n``.
WRITERS = {
    "append": lambda table, frame, expect: table.append(frame, expect=expect),
    "merge": merged,
    "overwrite": lambda table, frame, expect: table.overwrite(frame, expect=expect),
    "replaceWhere": lambda t, frame, e: t.overwrite(frame, where="id >= 0", expect=e),
    "partitions": lambda table, frame, expect: table.overwrite_partitions(frame, expect=expect),
    "sink": lambda table, frame, expect: table.sink("q", expect=expect)(frame, 0),
}
# What somebody changes, and what the error says of it.
BREAKING = {
    "DROP COLUMN v": "column v does not exist",
    "RENAME COLUMN v TO w": "column v does not exist",
    "ALTER COLUMN v TYPE INT USING length(v)": "column v has type INT, expected STRING",
    "ALTER COLUMN n SET NOT NULL": "column n is NOT NULL, expected a nullable column",
    "ADD COLUMN more INT NOT NULL DEFAULT 1, ALTER COLUMN more DROP DEFAULT": (
        "column more is NOT NULL without a default, and is not expected"
    ),
}
HARMLESS = [
    "ADD COLUMN more INT",
    "ADD COLUMN more INT NOT NULL DEFAULT 1",
    "ALTER COLUMN v AFTER n",
    "ALTER COLUMN id TYPE BIGINT",
    "RENAME COLUMN v TO V",
]


def frame(spark, number=2):
    return spark.createDataFrame([(number, "b", 2)], "id int, v string, n int")


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("change", BREAKING)
@pytest.mark.sampled(6)
def test_a_writer_is_refused_where_its_table_is_another_one(lake, spark, writer, change):
    lake.sql(f"ALTER TABLE t {change}")
    before = newest(lake)

    with pytest.raises(InvalidRequest) as refused:
        WRITERS[writer](lake.table("t"), frame(spark), BUILT_FOR)

    assert str(refused.value).startswith("main.t is not as its writer expects it:\n  - ")
    assert BREAKING[change] in str(refused.value)
    assert newest(lake) == before


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("change", HARMLESS)
@pytest.mark.sampled(5)
def test_a_writer_goes_on_where_its_rows_fit(lake, spark, writer, change):
    lake.sql(f"ALTER TABLE t {change}")

    WRITERS[writer](lake.table("t"), frame(spark), BUILT_FOR)

    assert (2, "b", 2) in rows(lake.sql("SELECT id, v, n FROM t"))


def test_all_differences_are_in_one_error(lake, spark):
    lake.sql("ALTER TABLE t DROP COLUMN v, ALTER COLUMN n SET NOT NULL")
    with pytest.raises(InvalidRequest) as refused:
        lake.table("t").append(frame(spark), expect=BUILT_FOR)
    assert str(refused.value) == (
        "main.t is not as its writer expects it:\n"
        "  - column v does not exist\n"
        "  - column n is NOT NULL, expected a nullable column\n"
        "its columns: id, n; change the writer, or what it expects"
    )


@pytest.mark.parametrize("name", ["t", "u"])
@pytest.mark.parametrize("change", ["DROP COLUMN v", "ADD COLUMN x INT"])
def test_the_table_at_the_commit_counts(copied, spark, monkeypatch, name, change):
    catalog, lake = copied
    expect = "id INT NOT NULL, v STRING, n INT"

    def alter():
        with shelduck.connect(f"sqlite:///{catalog}") as other:
            other.sql(f"ALTER TABLE {name} {change}")

    once_before(monkeypatch, unit, "commit", alter)
    append = partial(lake.table(name).append, frame(spark), expect=expect)
    if change.startswith("ADD"):
        append()
        assert (2, "b", 2) in rows(lake.sql(f"SELECT id, v, n FROM {name}"))
        return
    with pytest.raises(InvalidRequest, match="column v does not exist"):
        append()
    assert rows(lake.sql(f"SELECT id, n FROM {name}")) == [(1, 1)]


def test_a_job_that_publishes_under_a_writer_is_seen(lake, spark, monkeypatch):
    job = lake.table("t").alter(shelduck.change_type("v", "int", using="length(v)"))
    once_after(monkeypatch, appending, "append_rows", job.wait)
    with pytest.raises(InvalidRequest, match="column v has type INT, expected STRING"):
        lake.table("t").append(frame(spark), expect=BUILT_FOR)


@pytest.fixture
def attached(spark, tmp_path):
    with attached_lake(spark, tmp_path, *STATEMENTS) as found:
        yield found


def test_spark_writers_take_it_as_an_option(attached, spark):
    attached.sql("ALTER TABLE t RENAME COLUMN n TO m")
    rows_of_t = frame(spark).withColumnRenamed("n", "m")
    rows_of_t.writeTo("lake.main.t").option("expect", "id INT NOT NULL, m INT").append()
    with pytest.raises(InvalidRequest, match="column n does not exist"):
        rows_of_t.writeTo("lake.main.t").option("expect", BUILT_FOR).append()
    with pytest.raises(InvalidRequest, match="column n does not exist"):
        rows_of_t.write.option("expect", BUILT_FOR).mode("append").saveAsTable("lake.main.t")


@pytest.mark.parametrize("expect", ["", "id INT, ID INT", "id", 7])
def test_what_is_no_list_of_columns_is_refused(lake, spark, expect):
    with pytest.raises(InvalidRequest, match="expect"):
        lake.table("t").append(frame(spark), expect=expect)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT WITH EXPECT ({}) INTO t SELECT 2, 'b', 2",
        "INSERT WITH EXPECT ({}) INTO t VALUES (2, 'b', 2)",
        "INSERT WITH EXPECT ({}) INTO t (n, v, id) VALUES (2, 'b', 2)",
        "INSERT WITH SCHEMA EVOLUTION WITH EXPECT ({}) INTO t BY NAME SELECT 2 AS id, 'b' AS v",
        "INSERT WITH EXPECT ({}) OVERWRITE t SELECT 2, 'b', 2",
        "WITH q AS (SELECT 2, 'b', 2) INSERT WITH EXPECT ({}) INTO t SELECT * FROM q",
        "INSERT WITH EXPECT ({}) INTO u SELECT 2, 'b', 2",
        MERGE,
    ],
)
@pytest.mark.parametrize("door", ["lake", "spark"])
@pytest.mark.sampled(4)
def test_statements_expect_columns_too(attached, spark, statement, door):
    run = attached.sql if door == "lake" else spark.sql
    spark.sql("USE lake.main")
    run(statement.format(BUILT_FOR)).collect()
    assert "b" in {row.v for row in spark.sql("SELECT v FROM t UNION SELECT v FROM u").collect()}
    attached.sql("ALTER TABLE t ADD COLUMN more INT NOT NULL DEFAULT 1")
    attached.sql("ALTER TABLE t ALTER COLUMN more DROP DEFAULT")
    attached.sql("ALTER TABLE u RENAME COLUMN n TO m")
    wanted = "column n does not exist" if " u " in statement else "more is NOT NULL without a"
    with pytest.raises(InvalidRequest, match=wanted):
        run(statement.format(BUILT_FOR)).collect()


@pytest.mark.parametrize("writer", ["merge", "overwrite", "replaceWhere", "partitions"])
def test_rows_that_replace_others_do_not_land_beside_a_change(copied, spark, monkeypatch, writer):
    catalog, lake = copied

    def alter():
        with shelduck.connect(f"sqlite:///{catalog}") as other:
            other.sql("ALTER TABLE t DROP COLUMN v")

    once_before(monkeypatch, unit, "commit", alter)
    with pytest.raises(shelduck.Conflict):
        WRITERS[writer](lake.table("t"), frame(spark), BUILT_FOR)
    assert rows(lake.sql("SELECT id, n FROM t")) == [(1, 1)]
