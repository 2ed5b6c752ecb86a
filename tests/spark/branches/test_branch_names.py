"""Tables of branches and tags in Iceberg's words: by name, as a version, and by a setting."""

from __future__ import annotations

from functools import partial

import pytest

import shelduck
from shelduck import Conflict, InvalidRequest, NotFound, Unsupported
from tests.support.attaching import attached_lake
from tests.support.jobs import jobs_of
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle

OLD, NEW = (1, "old"), (2, "new")


@pytest.fixture
def lake(spark, tmp_path):
    """A table `t`, its branch `b` with one more row, and its tag `x`."""
    with attached_lake(
        spark,
        tmp_path,
        "CREATE TABLE t (id INT, v STRING)",
        "INSERT INTO t VALUES (1, 'old')",
        "ALTER TABLE t CREATE BRANCH b",
        "ALTER TABLE t CREATE TAG x",
        "INSERT INTO t.branch_b VALUES (2, 'new')",
    ) as found:
        yield found
        for setting in ("shelduck.branch", "spark.wap.branch"):
            spark.conf.unset(setting)


@pytest.fixture
def frame(spark):
    return spark.sql("SELECT 3 AS id, 'more' AS v")


def told(spark, text):
    return sorted(rows(spark.sql(text)))


BRANCH = [
    "SELECT * FROM lake.main.t.branch_b",
    "SELECT * FROM lake.main.T.Branch_B",
    "SELECT * FROM lake.main.t VERSION AS OF 'b'",
    "SELECT * FROM lake.main.t FOR VERSION AS OF 'B'",
    "SELECT b.* FROM lake.main.t.branch_b AS b JOIN lake.main.t VERSION AS OF 'b' AS c USING (id)",
    "SELECT id, v FROM lake.b.t",
]
TAG = [
    "SELECT * FROM lake.main.t.tag_x",
    "SELECT * FROM lake.main.t VERSION AS OF 'x'",
    "SELECT * FROM lake.main.t FOR SYSTEM_VERSION AS OF 'x'",
    "SELECT * FROM lake.main.t",
]


def test_a_branch_and_a_tag_are_read_by_name(spark, lake):
    for text in BRANCH:
        assert told(spark, text) == [OLD, NEW], text
        assert sorted(rows(lake.sql(text.replace("lake.", "")))) == [OLD, NEW], text
    for text in TAG:
        assert told(spark, text) == [OLD], text
        assert rows(lake.sql(text.replace("lake.", ""))) == [OLD], text
    assert lake.table("t.branch_b").read().count() == 2
    assert spark.table("lake.main.t.branch_b").count() == 2
    for option in ("branch", "versionAsOf"):
        assert spark.read.option(option, "b").table("lake.main.t").count() == 2
    assert spark.read.option("tag", "x").table("lake.main.t").count() == 1
    changes = lake.table("t.branch_b").changes(5).select("_change_type", "id")
    assert rows(changes) == [("insert", 2)]
    refs = told(spark, "SELECT name, type FROM lake.main.t.refs")
    assert refs == [("b", "BRANCH"), ("main", "BRANCH"), ("x", "TAG")]


def test_names_without_a_catalog_mean_branches_too(spark, lake):
    spark.sql("USE lake.main")
    try:
        for text in BRANCH + TAG:
            wanted = [OLD, NEW] if text in BRANCH else [OLD]
            assert told(spark, text.replace("lake.main.", "")) == wanted, text
            assert told(spark, text.replace("lake.", "")) == wanted, text
        spark.sql("UPDATE main.t.branch_b SET v = 'changed' WHERE id = 2")
        spark.sql("INSERT INTO main.t.branch_b VALUES (4, 'four')")
        spark.sql("DELETE FROM t.branch_b WHERE id = 1")
        assert told(spark, "SELECT * FROM t.branch_b") == [(2, "changed"), (4, "four")]
    finally:
        spark.sql("USE spark_catalog.default")
    with DuckDBOracle(lake._state.store.where) as duck:
        assert sorted(duck.sql("FROM b.t")) == [(2, "changed"), (4, "four")]
        assert duck.sql("FROM t") == duck.sql("FROM x.t") == [OLD]


def test_a_branch_is_written_by_name(spark, lake, frame):
    frame.writeTo("lake.main.t.branch_b").append()
    frame.write.mode("append").saveAsTable("lake.main.t.branch_b")
    frame.write.insertInto("lake.main.t.branch_b")
    lake.table("t.branch_b").append(frame)
    assert spark.table("lake.b.t").count() == 6
    spark.sql(
        "MERGE INTO lake.main.t.branch_b AS t USING (SELECT 2 AS id, 'm' AS v UNION SELECT 9, 'n')"
        " AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql("DELETE FROM lake.main.t.branch_b WHERE id = 3")
    assert told(spark, "SELECT * FROM lake.b.t") == [OLD, (2, "m"), (9, "n")]
    spark.sql("ALTER TABLE lake.main.t.branch_b ADD COLUMN more INT DEFAULT 5")
    spark.sql("INSERT OVERWRITE lake.main.t.branch_b SELECT 7, 'seven', 7")
    assert told(spark, "SELECT * FROM lake.main.t.branch_b") == [(7, "seven", 7)]
    assert told(spark, "SELECT * FROM lake.main.t") == [OLD]


WRITES = [
    "INSERT INTO {t} VALUES (3, 'more')",
    "INSERT OVERWRITE {t} SELECT 3, 'more'",
    "UPDATE {t} SET v = 'more'",
    "DELETE FROM {t}",
    "MERGE INTO {t} AS t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE {t}",
    "ALTER TABLE {t} ALTER COLUMN id TYPE STRING",
    "CREATE VIEW {s}.more AS SELECT 1 AS id",
    "CREATE TABLE {s}.more AS SELECT 1 AS id",
    "CREATE FUNCTION {s}.more(n INT) RETURNS INT RETURN n + 1",
    "CREATE TABLE {s}.more SHALLOW CLONE {t}",
]


LARGE = [
    "INSERT INTO {t} SELECT id, 'x' FROM range(100000)",
    "INSERT OVERWRITE {t} SELECT id, 'x' FROM range(100000)",
    "INSERT INTO {t} REPLACE WHERE id = 1 SELECT 1, 'x' FROM range(100000)",
    "UPDATE {t} SET v = 'x' WHERE id IN (SELECT id FROM range(100000))",
    "DELETE FROM {t} WHERE id IN (SELECT id FROM range(100000))",
    (
        "MERGE INTO {t} AS t USING (SELECT id FROM range(100000)) AS s ON t.id = s.id"
        " WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    ),
    "CREATE TABLE x.more AS SELECT id FROM range(100000)",
]


def test_a_large_write_into_a_tag_is_refused_before_spark_runs_a_job(lake, spark):
    def refused(statement):
        with pytest.raises(Unsupported, match="a tag, which nobody changes"):
            lake.sql(statement.format(t="x.t"))

    found = {text: jobs_of(spark, partial(refused, text)) for text in LARGE}
    assert found == dict.fromkeys(LARGE, 0)


def test_nobody_writes_a_tag(spark, lake, frame):
    for text in WRITES:
        for t in ("lake.main.t.tag_x", "lake.x.t"):
            with pytest.raises(Unsupported, match="a tag, which nobody changes"):
                spark.sql(text.format(t=t, s="lake.x"))
    for name in ("lake.main.t.tag_x", "lake.x.t"):
        with pytest.raises(Unsupported, match="a tag, which nobody changes"):
            frame.writeTo(name).append()
    lake.execute("CALL set_option('data_inlining_row_limit', 0)")
    lake.sql("INSERT INTO t VALUES (2, 'two'); INSERT INTO t VALUES (3, 'three')")
    lake.sql("ALTER TABLE t CREATE TAG y")
    assert lake.table("y.t").compact(min_files=2).new_files == 1
    lake.checkpoint()
    assert told(spark, "SELECT id FROM lake.main.t.tag_y") == [(1,), (2,), (3,)]
    assert told(spark, "SELECT * FROM lake.main.t.tag_x") == [OLD]
    assert lake.jobs() == []
    assert not lake.check(rows=True).problems


def test_a_table_and_its_twin_belong_together_by_id(spark, lake):
    spark.sql("ALTER TABLE lake.main.t RENAME TO renamed")
    assert told(spark, "SELECT * FROM lake.main.renamed.branch_b") == [OLD, NEW]
    assert told(spark, "SELECT * FROM lake.main.renamed VERSION AS OF 'x'") == [OLD]
    spark.sql("CREATE TABLE lake.main.t (other INT)")
    with pytest.raises(NotFound, match=r"branch 'b' of main\.t does not exist"):
        lake.table("t.branch_b").columns  # noqa: B018
    # A schema of that name comes first.
    spark.sql("CREATE SCHEMA lake.renamed")
    spark.sql("CREATE TABLE lake.renamed.branch_b AS SELECT 'mine' AS own")
    assert told(spark, "SELECT * FROM lake.renamed.branch_b") == [("mine",)]
    assert told(spark, "SELECT * FROM lake.main.renamed.branch_b") == [OLD, NEW]
    spark.sql("DROP TABLE lake.main.renamed")
    assert told(spark, "SELECT * FROM lake.b.t") == [OLD, NEW]


def test_names_that_need_quotes(spark, lake):
    spark.sql("CREATE TABLE lake.main.`a b` AS SELECT 1 AS id")
    spark.sql("ALTER TABLE lake.main.`a b` CREATE BRANCH `audit-branch`")
    spark.sql("INSERT INTO lake.main.`a b`.`branch_audit-branch` VALUES (2)")
    assert spark.table("lake.main.`a b`.`branch_audit-branch`").count() == 2
    assert spark.sql("SELECT * FROM lake.main.`a b` VERSION AS OF 'audit-branch'").count() == 2
    assert spark.table("lake.main.`a b`").count() == 1


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("SELECT * FROM lake.main.t.branch_x", r"branch 'x' of main\.t does not exist"),
        ("SELECT * FROM lake.main.t.tag_b", r"tag 'b' of main\.t does not exist"),
        ("SELECT * FROM lake.main.t VERSION AS OF 'none'", r"branch or tag 'none' of main\.t"),
        ("INSERT INTO lake.main.t.branch_none VALUES (1)", r"branch 'none' of main\.t does not"),
    ],
)
def test_what_is_not_there_is_told(spark, lake, text, what):
    with pytest.raises(InvalidRequest, match=what):
        spark.sql(text)


@pytest.mark.parametrize("setting", ["shelduck.branch", "spark.wap.branch"])
def test_a_session_works_on_a_branch(spark, lake, frame, setting):
    spark.sql("CREATE VIEW lake.main.seen AS SELECT max(id) AS id FROM lake.main.t")
    spark.sql("CREATE TABLE lake.main.u AS SELECT 1 AS id")
    spark.sql(f"SET {setting} = b")
    assert told(spark, "SELECT * FROM lake.main.t") == [OLD, NEW]
    assert told(spark, "SELECT * FROM lake.main.seen") == [(2,)]
    spark.sql("INSERT INTO lake.main.t VALUES (4, 'four')")
    frame.writeTo("lake.main.t").append()
    spark.sql("UPDATE lake.main.t SET v = 'changed' WHERE id = 4")
    spark.sql("ALTER TABLE lake.main.t ADD COLUMN more INT")
    spark.sql("INSERT INTO lake.main.u VALUES (2)")
    read = spark.read.format("shelduck").option("catalog", "lake").load("main.t")
    assert read.count() == spark.table("lake.main.t").count() == 4
    # Another session works on no branch.
    assert spark.newSession().table("lake.main.t").count() == 1
    # These words are about the table itself.
    spark.sql("ALTER TABLE lake.main.t CREATE TAG before")
    spark.conf.unset(setting)
    assert told(spark, "SELECT * FROM lake.main.t") == [OLD]
    assert told(spark, "SELECT * FROM lake.main.t.tag_before") == [OLD]
    assert told(spark, "SELECT * FROM lake.main.seen") == [(1,)]
    assert told(spark, "SELECT * FROM lake.main.u") == [(1,), (2,)]

    [published] = spark.sql("CALL lake.system.fast_forward('main.t', 'main', 'b')").collect()
    assert published.branch_updated == "main"
    found = told(spark, "SELECT id, v FROM lake.main.t")
    assert found == [OLD, NEW, (3, "more"), (4, "changed")]
    assert spark.table("lake.main.t").columns == ["id", "v", "more"]


def test_a_stream_stays_on_the_branch_of_its_session(spark, lake, tmp_path):
    lake.sql("CREATE TABLE s AS SELECT 3 AS id, 'three' AS v")
    spark.conf.set("shelduck.branch", "b")
    writer = spark.readStream.table("lake.main.s").writeStream
    writer = writer.trigger(processingTime="0 seconds")
    query = writer.option("checkpointLocation", f"{tmp_path}/state").toTable("lake.main.t")
    reader = spark.readStream.table("lake.main.t").writeStream.format("memory")
    read = reader.queryName("on_branch").start()
    try:
        spark.conf.unset("shelduck.branch")
        query.processAllAvailable()
        lake.sql("INSERT INTO s VALUES (4, 'four')")
        query.processAllAvailable()
        read.processAllAvailable()
    finally:
        query.stop()
        read.stop()
    on_branch = [OLD, NEW, (3, "three"), (4, "four")]
    assert told(spark, "SELECT * FROM lake.b.t") == on_branch
    assert told(spark, "SELECT * FROM on_branch") == on_branch
    assert told(spark, "SELECT * FROM lake.main.t") == [OLD]


def test_a_setting_for_no_branch_is_refused(spark, lake, frame):
    spark.conf.set("shelduck.branch", "typo")
    for act in (
        lambda: spark.sql("SELECT * FROM lake.main.t"),
        lambda: spark.sql("INSERT INTO lake.main.t VALUES (4, 'four')"),
        lambda: frame.writeTo("lake.main.t").append(),
        lambda: spark.table("lake.main.t"),
    ):
        with pytest.raises(InvalidRequest, match="branch 'typo' does not exist; make it with"):
            act()
    spark.sql("ALTER TABLE lake.main.t CREATE BRANCH typo")
    frame.writeTo("lake.main.t").append()
    spark.conf.unset("shelduck.branch")
    assert told(spark, "SELECT * FROM lake.main.t") == [OLD]


def test_a_table_that_moved_is_not_fast_forwarded(spark, lake):
    spark.sql("INSERT INTO lake.main.t VALUES (5, 'five')")
    with pytest.raises(Conflict, match="it was changed after branch 'b' began; use MERGE BRANCH b"):
        spark.sql("CALL lake.system.fast_forward(table => 'main.t', branch => 'main', to => 'b')")
    assert told(spark, "SELECT * FROM lake.main.t") == [OLD, (5, "five")]
    spark.sql("MERGE BRANCH lake.b")
    assert told(spark, "SELECT * FROM lake.main.t") == [OLD, NEW, (5, "five")]
    # Neither the merge nor a compaction counts as a change of main.
    spark.sql("INSERT INTO lake.b.t VALUES (6, 'six')")
    spark.sql("OPTIMIZE lake.main.t")
    spark.sql("CALL lake.system.fast_forward('main.t', 'main', 'b')")
    assert (6, "six") in told(spark, "SELECT * FROM lake.main.t")


def test_a_fast_forward_is_of_one_table(spark, lake):
    spark.sql("CREATE TABLE lake.main.u AS SELECT 1 AS id")
    call = "CALL lake.system.fast_forward('main.{}', '{}', '{}')".format
    for text, error, what in (
        (call("u", "main", "b"), NotFound, r"branch 'b' of main\.u does not exist"),
        (call("t", "main", "none"), NotFound, "branch 'none' does not exist"),
        (call("t", "main", "x"), InvalidRequest, "'x' is a tag, which nobody changes"),
        (call("t", "dev", "b"), InvalidRequest, "is in schema 'main', not 'dev'"),
    ):
        with pytest.raises(error, match=what):
            spark.sql(text)
    spark.sql("ALTER TABLE lake.main.u CREATE BRANCH b")
    spark.sql("INSERT INTO lake.main.u.branch_b VALUES (2)")
    with pytest.raises(Unsupported, match=r"branch 'b' has changed main\.u, too; use MERGE BRANCH"):
        spark.sql(call("t", "main", "b"))
    assert told(spark, "SELECT * FROM lake.main.t") == [OLD]


def test_a_branch_of_a_lake_with_schemas_inside_schemas(spark, tmp_path):
    where = f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data"
    with shelduck.connect(*where, spark, ducklake_version="1.1") as lake:
        lake.sql("CREATE SCHEMA a; CREATE SCHEMA a.b; CREATE TABLE a.b.t AS SELECT 1 AS id")
        lake.sql("ALTER TABLE a.b.t CREATE BRANCH c")
        lake.sql("INSERT INTO a.b.t.branch_c VALUES (2)")
        assert lake.sql("SELECT * FROM a.b.t.branch_c").count() == 2
        assert lake.sql("SELECT * FROM a.b.t").count() == 1
        lake.merge_branch("c")
        assert lake.sql("SELECT * FROM a.b.t").count() == 2
