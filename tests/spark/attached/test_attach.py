"""A lake as a catalog of the user's session: one suite of statements through Spark's own doors."""

from __future__ import annotations

import threading

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.streaming.readwriter import DataStreamWriter
from sqlalchemy import Engine, event

import shelduck
from shelduck import AlreadyExists, InvalidRequest, NotFound
from shelduck.doors.attached import attached_catalog as attached
from shelduck.engine.named_errors import as_sparks, condition_of
from tests.support.attaching import attached_lake, duck, url_of
from tests.support.lakes import newest, rows
from tests.support.spark import views

pytestmark = pytest.mark.every_spark


@pytest.fixture
def url(tmp_path):
    return url_of(tmp_path)


@pytest.fixture
def lake(spark, tmp_path):
    """A lake that is catalog ``lake`` of the session, with a table and a view."""
    with attached_lake(
        spark,
        tmp_path,
        "CREATE TABLE t (id INT NOT NULL, w STRING); CREATE SCHEMA s",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)",
        "CREATE VIEW v AS SELECT id, upper(w) AS big FROM t",
    ) as found:
        yield found


@pytest.fixture
def source(spark):
    spark.createDataFrame([(3, "x"), (4, "y")], "id int, w string").createTempView("source")
    yield
    spark.catalog.dropTempView("source")


# Queries


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("SELECT * FROM lake.main.t WHERE id > 1 ORDER BY id", [(2, "b"), (3, None)]),
        ("SELECT * FROM lake.Main.T WHERE id = 1", [(1, "a")]),
        ("SELECT * FROM lake.main.v WHERE big = 'B'", [(2, "B")]),
        ("SELECT count(*) FROM lake.main.t VERSION AS OF 2", [(0,)]),
        ("SELECT count(*) FROM lake.main.t TIMESTAMP AS OF '2999-01-01'", [(3,)]),
        ("SELECT a.id FROM lake.main.t a JOIN source b USING (id)", [(3,)]),
        ("WITH x AS (SELECT max(id) AS m FROM lake.main.t) SELECT m FROM x", [(3,)]),
        ("SELECT operation FROM lake.main.t.history ORDER BY 1 LIMIT 1", None),
        ("SELECT count(*) >= 2 FROM lake.main.t.snapshots", [(True,)]),
        ("SELECT count(*) FROM table_changes('lake.main.t', 0)", [(3,)]),
        ("SHOW NAMESPACES IN lake", [("main",), ("s",)]),
        ("SHOW TABLES IN lake.main", [("main", "t", False), ("main", "v", False)]),
        ("SELECT 'lake.main.t' AS lake", [("lake.main.t",)]),
    ],
)
def test_queries_find_the_tables_by_name(spark, lake, source, query, wanted):
    found = rows(spark.sql(query))
    assert found == wanted if wanted is not None else found


@pytest.mark.slow
@pytest.mark.parametrize(
    "time",
    [
        "AT (VERSION => 2)",
        "AT (VERSION => '2')",
        "FOR VERSION AS OF 2",
        "FOR SYSTEM_VERSION AS OF 2",
        "@v2",
        "AT (TIMESTAMP => TIMESTAMP '{}')",
        "FOR SYSTEM_TIME AS OF '{}'",
    ],
)
def test_every_way_to_say_a_version_reads_it(spark, lake, time):
    lake.sql("CREATE TABLE old AS SELECT 1 AS n")
    lake.sql("INSERT INTO old VALUES (2)")
    [first, second] = [s.id for s in reversed(lake.table("old").history())][-2:]
    moment = lake.table("old").history()[-1].time
    said = time.replace("2", str(first)).format(moment)
    query = f"SELECT o.n, count(*) FROM lake.main.old {said} o GROUP BY n"
    query = query.replace("old @v", "old@v")
    assert rows(spark.sql(query)) == [(1, 1)]
    assert rows(
        spark.sql(
            f"WITH x AS (SELECT n FROM lake.main.old AT (VERSION => {second}))"
            " SELECT sum(x.n), (SELECT count(*) FROM lake.main.t) FROM x"
        )
    ) == [(3, 3)]


def test_a_version_that_cannot_be_read_is_told_once(spark, lake):
    for query in ("SELECT * FROM lake.main.t@x", "SELECT * FROM lake.main.t AT (SNAPSHOT => 2)"):
        with pytest.raises(ParseException):
            spark.sql(query)
    with pytest.raises(IllegalArgumentException, match="snapshot 99 does not exist"):
        spark.sql("SELECT * FROM lake.main.t AT (VERSION => 99)")
    with pytest.raises(AnalysisException, match="`id` cannot be resolved"):
        spark.sql("SELECT * FROM lake.main.t AT (VERSION => id)")


@pytest.mark.usefixtures("compiled")
def test_a_table_is_described(spark, lake):
    found = [tuple(row) for row in spark.sql("DESCRIBE lake.main.t").collect()]
    assert found[:2] == [("id", "int", None), ("w", "string", None)]
    assert spark.table("lake.main.t").columns == ["id", "w"]
    assert [t.name for t in spark.catalog.listTables("lake.main")] == ["t", "v"]
    assert rows(spark.sql("SHOW TBLPROPERTIES lake.main.v")) == []
    assert spark.catalog.tableExists("lake.main.t")
    assert not spark.catalog.tableExists("lake.main.nope")


@pytest.mark.slow
def test_names_without_the_catalog_mean_the_one_in_use(spark, lake):
    spark.sql("USE lake.main")
    try:
        assert rows(spark.sql("SELECT count(*) FROM t")) == [(3,)]
        assert spark.table("t").count() == 3
        spark.sql("UPDATE t SET w = 'z' WHERE id = 3")
        spark.sql("USE lake.s")
        spark.sql("CREATE TABLE t AS SELECT w FROM lake.main.t WHERE id = 3")
        assert rows(spark.sql("SELECT * FROM t")) == [("z",)]
        assert rows(spark.sql("SHOW TABLES")) == [("s", "t", False)]
    finally:
        spark.sql("USE spark_catalog.default")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM t")


@pytest.mark.slow
def test_a_query_sees_what_was_newest_when_it_was_made(spark, lake):
    frame = spark.sql("SELECT count(*) FROM lake.main.t")
    lake.sql("INSERT INTO t VALUES (4, 'd')")
    assert rows(frame) == [(3,)]
    assert rows(spark.sql("SELECT count(*) FROM lake.main.t")) == [(4,)]
    view = "CREATE TEMP VIEW seen AS SELECT * FROM lake.main.t"
    spark.sql(view)
    try:
        lake.sql("DELETE FROM t WHERE id < 4")
        assert rows(spark.sql("SELECT id FROM seen")) == [(4,)]
    finally:
        spark.catalog.dropTempView("seen")


@pytest.mark.slow
def test_all_tables_of_a_query_are_of_one_snapshot(spark, lake, monkeypatch):
    lake.sql("CREATE TABLE other (n INT)")
    real, done = attached.relation_frame, []

    def late(*arguments):
        found = real(*arguments)
        if not done:
            done.append(1)
            lake.sql("INSERT INTO t VALUES (9, 'z'); INSERT INTO other VALUES (1)")
        return found

    monkeypatch.setattr(attached, "relation_frame", late)
    query = "SELECT (SELECT count(*) FROM lake.main.t), (SELECT count(*) FROM lake.main.other)"
    assert rows(spark.sql(query)) == [(3, 0)]
    assert rows(spark.sql(query)) == [(4, 1)]


def test_a_query_by_name_asks_the_catalog_once(spark, lake):
    """On a snapshot that is known: whether there is a newer one is all that has to be found out."""
    seen = []

    def note(_connection, _cursor, statement, *_):
        seen.append(statement)

    query = "SELECT a.id FROM lake.main.t a JOIN lake.main.t b USING (id)"
    spark.sql(query)
    event.listen(Engine, "before_cursor_execute", note)
    try:
        spark.sql(query)
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert len(seen) == 1
    assert "ducklake_snapshot" in seen[0]


@pytest.mark.slow
def test_rows_and_columns_are_pruned(spark, lake):
    lake.set_option("data_inlining_row_limit", 0)
    lake.sql("CREATE TABLE big AS SELECT id, id AS n FROM range(10)")
    lake.sql("INSERT INTO big SELECT id + 10, id FROM range(10)")
    plan = spark.sql("SELECT n FROM lake.main.big WHERE id > 15")._jdf.queryExecution().toString()
    assert "PushedFilters" in plan
    assert spark.table("lake.main.big").where("id > 15").count() == 4


# Statements that the lake runs

STATEMENTS = {
    "insert": ("INSERT INTO lake.main.t SELECT * FROM source", [(1, "a"), (2, "b"), (3, "x")]),
    "by name": ("INSERT INTO lake.main.t BY NAME SELECT w, id FROM source", None),
    "overwrite": ("INSERT OVERWRITE lake.main.t SELECT * FROM source", [(3, "x"), (4, "y")]),
    "replace where": (
        "INSERT INTO lake.main.t REPLACE WHERE id = 3 SELECT * FROM source WHERE id = 3",
        [(1, "a"), (2, "b"), (3, "x")],
    ),
    "update": (
        "UPDATE lake.main.t SET w = 'q' WHERE id IN (SELECT id FROM source)",
        [(1, "a"), (2, "b"), (3, "q")],
    ),
    "delete": ("DELETE FROM lake.main.t WHERE id = 1", [(2, "b"), (3, None)]),
    "merge": (
        (
            "MERGE INTO lake.main.t t USING source s ON t.id = s.id"
            " WHEN MATCHED THEN UPDATE SET w = s.w WHEN NOT MATCHED THEN INSERT *"
        ),
        [(1, "a"), (2, "b"), (3, "x"), (4, "y")],
    ),
    "truncate": ("TRUNCATE TABLE lake.main.t", []),
    "alter": ("ALTER TABLE lake.main.t ADD COLUMN c INT DEFAULT 7, RENAME COLUMN w TO v", None),
    "heavy": ("ALTER TABLE lake.main.t ALTER COLUMN id TYPE STRING", None),
    "restore": ("RESTORE TABLE lake.main.t TO VERSION AS OF 2", []),
    "ctas": ("CREATE TABLE lake.s.n AS SELECT * FROM source", None),
    "rtas": ("CREATE OR REPLACE TABLE lake.main.t AS SELECT 1 AS one", [(1,)]),
    "rename": ("ALTER TABLE lake.main.t RENAME TO lake.main.u", None),
    "view": ("CREATE VIEW lake.main.w AS SELECT lake.main.t.id FROM lake.main.t", None),
    "drop": ("DROP TABLE lake.main.t", None),
    "schema": ("CREATE SCHEMA lake.q", None),
    "keys": ("CREATE TABLE lake.main.k (a INT, b INT) UNIQUE KEY (a)", None),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", STATEMENTS)
def test_a_statement_makes_one_snapshot(spark, lake, source, url, what):
    statement, wanted = STATEMENTS[what]
    before = newest(lake)
    spark.sql(statement)

    if what != "heavy":
        assert newest(lake) == before + 1
    if what == "insert":
        wanted = [*wanted, (3, None), (4, "y")]
    if wanted is not None:
        assert sorted(rows(spark.table("lake.main.t")), key=str) == sorted(wanted, key=str)
        assert duck(url, "SELECT * FROM t") == sorted(wanted, key=str)


def test_what_other_readers_see_of_a_view_has_no_catalog(spark, lake, url):
    spark.sql("CREATE VIEW lake.main.w AS SELECT lake.main.t.id FROM lake.main.t WHERE id > 1")
    assert rows(spark.sql("SELECT * FROM lake.main.w ORDER BY id")) == [(2,), (3,)]
    assert duck(url, "SELECT * FROM w") == [(2,), (3,)]
    spark.sql("DROP VIEW lake.main.w")
    with pytest.raises(AnalysisException):
        spark.sql("SELECT * FROM lake.main.w")


def test_a_view_is_pinned_and_read_from_the_session(spark, lake, url):
    spark.sql("CREATE VIEW lake.main.w AS SCHEMA VERSION 3 OF lake.main.t")
    spark.sql("ALTER TABLE lake.main.t RENAME COLUMN w TO word, ALTER COLUMN id TYPE BIGINT")
    assert spark.table("lake.main.w").dtypes == [("id", "int"), ("w", "string")]
    wanted = [(1, "a"), (2, "b"), (3, None)]
    assert rows(spark.sql("SELECT * FROM lake.main.w ORDER BY id")) == wanted
    assert duck(url, "SELECT * FROM w") == wanted
    assert rows(spark.sql("SHOW CREATE TABLE lake.main.w")) == [
        ("CREATE VIEW main.w AS SCHEMA VERSION 3 OF main.t",)
    ]
    spark.sql("DROP VIEW lake.main.w")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "statement",
    [
        "DESCRIBE HISTORY lake.main.t",
        "DESCRIBE EXTENDED lake.main.t",
        "SHOW CREATE TABLE lake.main.t",
        "SHOW ALTER TABLE COLUMN FROM lake.main",
        "CALL lake.system.compact('main.t')",
        "OPTIMIZE lake.main.t",
        "EXPLAIN SELECT * FROM lake.main.t",
        "SHOW COLUMNS IN lake.main.t",
        "SHOW TBLPROPERTIES lake.main.t",
    ],
)
def test_upkeep_and_looks_make_no_difference(spark, lake, statement):
    assert isinstance(spark.sql(statement).collect(), list)
    assert rows(spark.sql("SELECT count(*) FROM lake.main.t")) == [(3,)]


# DataFrames


@pytest.mark.slow
def test_frames_are_written_by_name_of_the_table(spark, lake, url):
    more = spark.createDataFrame([(4, "d")], "id int, w string")
    start = newest(lake)
    more.writeTo("lake.main.t").append()
    more.write.mode("append").saveAsTable("lake.main.t")
    more.select("w", "id").writeTo("lake.main.t").append()
    more.write.insertInto("lake.main.t")
    assert newest(lake) == start + 4
    assert spark.table("lake.main.t").where("id = 4").count() == 4
    more.writeTo("lake.main.t").overwrite(F.col("id") == 4)
    more.writeTo("lake.main.n").create()
    spark.range(2).writeTo("lake.main.n").createOrReplace()
    spark.range(3).write.mode("overwrite").saveAsTable("lake.main.n")
    spark.range(1).writeTo("lake.main.n").replace()
    assert newest(lake) == start + 9
    assert duck(url, "SELECT * FROM t") == [(1, "a"), (2, "b"), (3, None), (4, "d")]
    assert duck(url, "SELECT * FROM n") == [(0,)]


def test_a_table_is_made_with_partitions(spark, lake, url):
    frame = spark.createDataFrame([(1, "a"), (2, "b")], "id int, w string")
    frame.writeTo("lake.main.p").partitionedBy("w", F.partitioning.bucket(4, "id")).create()
    told = rows(spark.sql("SHOW CREATE TABLE lake.main.p"))[0][0]
    assert "PARTITIONED BY (w, bucket(4, id))" in told
    assert duck(url, "SELECT * FROM p") == [(1, "a"), (2, "b")]


@pytest.mark.slow
def test_what_does_not_fit_is_refused_and_leaves_nothing(spark, lake):
    before = newest(lake)
    with pytest.raises(AnalysisException, match="the table has no column other"):
        spark.range(3).selectExpr("id AS other", "id").writeTo("lake.main.t").append()
    with pytest.raises(Exception, match="NOT NULL"):
        spark.createDataFrame([(None, "d")], "id int, w string").writeTo("lake.main.t").append()
    failing = spark.range(3).selectExpr("raise_error('no') AS x")
    with pytest.raises(Exception, match="no"):
        failing.writeTo("lake.main.n").create()
    assert newest(lake) == before
    assert rows(spark.sql("SELECT count(*) FROM lake.main.t")) == [(3,)]


# Errors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "kind", "condition"),
    [
        ("SELECT * FROM lake.main.nope", AnalysisException, "TABLE_OR_VIEW_NOT_FOUND"),
        ("SELECT nope FROM lake.main.t", AnalysisException, "UNRESOLVED_COLUMN"),
        ("DROP TABLE lake.main.nope", AnalysisException, "TABLE_OR_VIEW_NOT_FOUND"),
        ("UPDATE lake.main.nope SET a = 1", AnalysisException, "TABLE_OR_VIEW_NOT_FOUND"),
        ("CREATE TABLE lake.main.t (a INT)", AnalysisException, "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE SCHEMA lake.s", AnalysisException, "SCHEMA_ALREADY_EXISTS"),
        ("CREATE TABLE lake.no.t (a INT)", AnalysisException, "SCHEMA_NOT_FOUND"),
        ("ALTER TABLE lake.main.t DROP COLUMN nope", AnalysisException, "UNRESOLVED_COLUMN"),
        ("ALTER TABLE lake.main.t ADD COLUMN w INT", AnalysisException, "FIELD_ALREADY_EXISTS"),
        ("ALTER TABLE lake.main.t FROB x", ParseException, "PARSE_SYNTAX_ERROR"),
        ("SELECT 'open FROM lake.main.t", ParseException, "PARSE_SYNTAX_ERROR"),
        ("SELECT (id FROM lake.main.t", ParseException, "PARSE_SYNTAX_ERROR"),
    ],
)
def test_errors_are_those_that_sparks_users_catch(spark, lake, statement, kind, condition):
    with pytest.raises(kind) as caught:
        spark.sql(statement)
    assert caught.value.getCondition().startswith(condition)
    assert str(caught.value)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("statement", "kind", "told"),
    [
        ("RESTORE TABLE lake.main.t TO VERSION AS OF 99", NotFound, "snapshot 99 does not exist"),
        ("SELECT * FROM table_changes('lake.main.t', 99)", InvalidRequest, "99"),
        ("SELECT * FROM lake.main.t JOIN table_changes('lake.main.t', 9, 4)", InvalidRequest, "9"),
        ("CALL lake.system.set_option('nope', 1)", NotFound, "option 'nope' does not exist"),
        ("CALL lake.system.nope()", NotFound, "procedure 'nope' does not exist"),
        ("ALTER TABLE lake.main.t DROP ROLLUP nope", NotFound, "rollup 'nope' does not exist"),
    ],
)
def test_what_spark_has_no_word_for_is_not_told_as_a_table(spark, lake, statement, kind, told):
    with pytest.raises(kind, match=told) as caught:
        spark.sql(statement)
    assert not isinstance(caught.value, AnalysisException)


def test_a_job_that_is_unknown_stays_an_error_of_ours(lake):
    with pytest.raises(NotFound) as caught:
        lake.job(99)
    assert as_sparks(caught.value) is caught.value
    assert condition_of(caught.value) == "INVALID"


def test_errors_of_queries_are_of_the_object_that_is_missing(spark, lake):
    lake.sql("CREATE TABLE gone (a INT); CREATE VIEW broken AS SELECT a FROM gone; DROP TABLE gone")
    told = {
        "SELECT * FROM lake.main.t VERSION AS OF 99": "snapshot 99 does not exist; existing",
        "SELECT * FROM lake.main.t TIMESTAMP AS OF '1999-01-01'": "no snapshot as old as 1999",
        "SELECT * FROM lake.main.broken": r"view main\.broken: table 'gone' does not exist",
    }
    for query, text in told.items():
        with pytest.raises(IllegalArgumentException, match=text) as caught:
            spark.sql(query)
        assert "TABLE_OR_VIEW_NOT_FOUND" not in str(caught.value)
    for call in (lambda: spark.table("lake.main.nope"), lambda: spark.table("lake.no.t")):
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            call()
    with pytest.raises(AnalysisException, match="SCHEMA_ALREADY_EXISTS"):
        spark._jsparkSession.sql("CREATE SCHEMA lake.s")
    with pytest.raises(AnalysisException, match="is a view, not a table") as caught:
        spark.sql("UPDATE lake.main.v SET id = 1")
    assert caught.value.getCondition() == "EXPECT_TABLE_NOT_VIEW"


def test_a_callback_that_fails_leaves_the_session_usable(spark, lake, monkeypatch):
    def broken(*_):
        raise RuntimeError("the catalog is away")

    with monkeypatch.context() as patched:
        patched.setattr(attached, "relation_frame", broken)
        lake.sql("INSERT INTO t VALUES (5, 'e')")
        with pytest.raises(Exception, match="the catalog is away"):
            spark.sql("SELECT * FROM lake.main.t")
    assert rows(spark.sql("SELECT count(*) FROM lake.main.t")) == [(4,)]


def test_parameters_of_queries_are_sparks(spark, lake):
    query = "SELECT id FROM lake.main.t WHERE w = :w"
    assert rows(spark.sql(query, {"w": "b"})) == [(2,)]
    assert rows(spark.sql("SELECT id FROM {t} WHERE id = 2", t=spark.table("lake.main.t"))) == [
        (2,)
    ]
    spark.sql("DELETE FROM lake.main.t WHERE id IN (SELECT id FROM {f})", f=spark.range(2, 3))
    assert rows(spark.sql(query, {"w": "b"})) == []
    with pytest.raises(shelduck.Unsupported, match=r"takes frames as {names}, no columns"):
        spark.sql("DELETE FROM lake.main.t WHERE id = {n}", n=F.lit(1))


def test_streams_of_other_tables_are_sparks(spark, lake):
    with pytest.raises(AnalysisException):
        spark.readStream.table("nope")


# Sessions


@pytest.mark.slow
def test_two_lakes_and_what_is_no_lake_are_joined(spark, lake, tmp_path, source):
    other = f"sqlite:///{tmp_path}/other.db"
    shelduck.attach(spark, "two", other, f"{tmp_path}/other/")
    try:
        spark.sql("CREATE TABLE two.main.t AS SELECT id FROM lake.main.t WHERE id > 1")
        join = "SELECT a.id FROM two.main.t a JOIN lake.main.t b USING (id) JOIN source USING (id)"
        assert rows(spark.sql(join)) == [(3,)]
        spark.sql("INSERT INTO lake.main.t SELECT id + 10, 'n' FROM two.main.t")
        assert duck(other, "SELECT * FROM t") == [(2,), (3,)]
        assert rows(spark.sql("SELECT max(id) FROM lake.main.t")) == [(13,)]
    finally:
        shelduck.detach(spark, "two")


def test_threads_share_the_catalog(spark, lake):
    found, failed = [], []

    def run(n):
        try:
            spark.sql(f"INSERT INTO lake.main.t VALUES ({100 + n}, 't')")
            found.append(rows(spark.sql(f"SELECT id FROM lake.main.t WHERE id = {100 + n}")))
        except Exception as error:  # noqa: BLE001 - whatever it is, the test tells it
            failed.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sorted(found) == [[(100 + n,)] for n in range(4)]


def test_a_query_reads_what_it_loaded_however_many_commits_come_between(spark, lake, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(attached.time, "monotonic", lambda: now[0])
    catalog = attached.AttachedLake(lake, spark)

    def load():
        database, view, *_ = catalog.answer(["", "load", "main", "t", "", ""], None)[0]
        return f"{database}.{view}"

    before = [load()]
    for n in range(3):
        lake.sql(f"INSERT INTO t VALUES ({10 + n}, 'x')")
        before.append(load())
    assert [spark.table(name).count() for name in before] == [3, 4, 5, 6]
    now[0] = 61.0
    lake.sql("DELETE FROM t WHERE id > 10")
    newest = load()
    there = [name for name in (*before, newest) if spark.catalog.tableExists(name)]
    assert there == [before[-1], newest]


def test_a_new_session_has_the_lakes_of_the_one_that_made_it(spark, lake, url, tmp_path):
    new = spark.newSession()
    assert new.table("lake.main.t").count() == 3
    new.sql("UPDATE lake.main.t SET w = 'z' WHERE id = 1")
    shelduck.attach(new, "lake", f"sqlite:///{tmp_path}/other.db", f"{tmp_path}/other/")
    assert rows(new.sql("SHOW TABLES IN lake.main")) == []
    shelduck.detach(new, "lake")
    assert rows(spark.sql("SELECT count(*) FROM lake.main.t")) == [(3,)]
    newer = spark.newSession()
    shelduck.detach(spark, "lake")
    with pytest.raises(shelduck.NotFound, match=r"is not attached .* shelduck\.attach"):
        newer.sql("SELECT * FROM lake.main.t")


def test_a_new_session_attaches_for_itself(spark, lake, url):
    new = spark.newSession()
    shelduck.attach(new, "mine", url)
    try:
        assert rows(new.sql("SELECT count(*) FROM mine.main.t")) == [(3,)]
        new.sql("DELETE FROM mine.main.t WHERE id = 1")
        assert rows(spark.sql("SELECT count(*) FROM lake.main.t")) == [(2,)]
    finally:
        shelduck.detach(new, "mine")


def test_a_session_is_left_as_it_was(spark, url, tmp_path):
    def state():
        return (
            {k: v for k, v in spark.conf.getAll.items() if not k.startswith("spark.app")},
            views(spark),
            views(spark, "global_temp"),
            spark.catalog.currentCatalog(),
            SparkSession.sql,
        )

    before = state()
    shelduck.attach(spark, "lake", url, f"{tmp_path}/data/", default=True)
    spark.sql("CREATE TABLE t AS SELECT 1 AS a")
    assert rows(spark.sql("SELECT * FROM t")) == [(1,)]
    assert spark.catalog.currentCatalog() == "lake"
    with pytest.raises(AlreadyExists, match="catalog 'lake' already exists in this session"):
        shelduck.attach(spark, "lake", url)
    shelduck.detach(spark, "lake")

    assert state() == before
    with pytest.raises(Exception, match="lake"):
        spark.sql("SELECT * FROM lake.main.t")
    shelduck.attach(spark, "lake", url)
    assert rows(spark.sql("SELECT * FROM lake.main.t")) == [(1,)]
    shelduck.detach(spark, "lake")
    with pytest.raises(NotFound, match="catalog 'lake' does not exist"):
        shelduck.detach(spark, "lake")


def test_what_others_replace_meanwhile_stays(spark, url, tmp_path, monkeypatch):
    seen = []

    def watched(original):
        def sql(self, text, *arguments, **more):
            seen.append(text)
            return original(self, text, *arguments, **more)

        return sql

    shelduck.attach(spark, "lake", url, f"{tmp_path}/data/")
    theirs = watched(type(spark).sql)
    monkeypatch.setattr(type(spark), "sql", theirs)
    spark.sql("CREATE TABLE lake.main.t AS SELECT 1 AS a")
    shelduck.detach(spark, "lake")
    assert type(spark).sql is theirs
    assert rows(spark.sql("SELECT 2")) == [(2,)]

    shelduck.attach(spark, "lake", url)
    spark.sql("UPDATE lake.main.t SET a = 3")
    assert rows(spark.table("lake.main.t")) == [(3,)]
    shelduck.detach(spark, "lake")
    assert type(spark).sql is theirs
    assert {"CREATE TABLE lake.main.t AS SELECT 1 AS a", "SELECT 2"} <= set(seen)


def test_calls_that_were_kept_work_with_and_without_a_lake(spark, url, tmp_path):
    shelduck.attach(spark, "lake", url, f"{tmp_path}/data/")
    sql, table = spark.sql, spark.read.table
    sql("CREATE TABLE lake.main.t AS SELECT 1 AS a")
    assert rows(table("lake.main.t")) == [(1,)]
    shelduck.detach(spark, "lake")
    assert rows(sql("SELECT 2")) == [(2,)]
    shelduck.attach(spark, "lake", url)
    assert rows(table("lake.main.t")) == [(1,)]
    shelduck.detach(spark, "lake")


def test_nothing_of_spark_stays_replaced(spark, url, tmp_path):
    def methods():
        found = (SparkSession, type(spark), type(spark.read), type(spark.range(0).write))
        found += (type(spark.range(0)), type(spark.readStream), DataStreamWriter)
        return [dict(vars(kind)) for kind in found]

    before = methods()
    shelduck.attach(spark, "lake", url, f"{tmp_path}/data/")
    assert methods() != before
    shelduck.detach(spark, "lake")
    assert methods() == before


def test_settings_of_the_session_say_where_the_lake_is(spark, url, tmp_path):
    with pytest.raises(InvalidRequest, match="cannot tell which lake to attach"):
        shelduck.attach(spark)
    spark.conf.set("spark.sql.catalog.duck.uri", url)
    spark.conf.set("spark.sql.catalog.duck.data-path", f"{tmp_path}/data/")
    try:
        shelduck.attach(spark)
        spark.sql("CREATE TABLE duck.main.t AS SELECT 5 AS a")
        assert rows(spark.sql("SELECT * FROM duck.main.t")) == [(5,)]
        shelduck.detach(spark, "duck")
    finally:
        spark.conf.unset("spark.sql.catalog.duck.uri")
        spark.conf.unset("spark.sql.catalog.duck.data-path")
