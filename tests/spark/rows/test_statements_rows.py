"""INSERT and SELECT through `lake.sql`: what lands, what is read, what is refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from shelduck import InvalidRequest, NotFound
from tests.support.lakes import everything, newest, refusal, rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    (
        "CREATE TABLE t (id INT NOT NULL, kind STRING DEFAULT 'web', tiny TINYINT,"
        " s STRUCT<a: INT, b: STRING>)"
    ),
    "INSERT INTO t VALUES (1, 'shop', 7, named_struct('a', 1, 'b', 'x'))",
    "CREATE SCHEMA other",
    "CREATE TABLE other.t (id INT, label STRING)",
    "INSERT INTO other.t VALUES (1, 'one'), (2, 'two')",
    "ALTER TABLE t RENAME COLUMN kind TO channel",
]


ONE = (1, "shop", 7, (1, "x"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "added"),
    [
        ("INSERT INTO t VALUES (2, 'a', 1, NULL)", [(2, "a", 1, None)]),
        (
            "INSERT INTO TABLE t (ID) VALUES (2), (3)",
            [(2, "web", None, None), (3, "web", None, None)],
        ),
        ("INSERT INTO t (tiny, id) VALUES (5, 2)", [(2, "web", 5, None)]),
        ("INSERT INTO t VALUES (2, DEFAULT, DEFAULT, NULL)", [(2, "web", None, None)]),
        ("INSERT INTO t (id, channel) VALUES (2, DEFAULT)", [(2, "web", None, None)]),
        ("INSERT INTO t (id, channel) VALUES (2, NULL)", [(2, None, None, None)]),
        (
            "INSERT INTO t (id, s) SELECT 2L, named_struct('b', 'y')",
            [(2, "web", None, (None, "y"))],
        ),
        (
            "INSERT INTO t BY NAME SELECT label AS channel, id + 10 AS id FROM other.t",
            [(11, "one", None, None), (12, "two", None, None)],
        ),
        ("INSERT INTO t (id) SELECT id + 1 FROM t", [(2, "web", None, None)]),
        (
            "INSERT INTO t (id, tiny) WITH x AS (SELECT 2 AS a) SELECT a, a FROM x",
            [(2, "web", 2, None)],
        ),
        ("INSERT INTO t (id, tiny) SELECT 2, 1000 - 900", [(2, "web", 100, None)]),
    ],
)
def test_an_insert_is_one_snapshot(copied, statement, added):
    catalog, lake = copied

    [result] = lake.sql(statement).collect()

    assert (result.snapshot, result.operation, result.rows) == (7, "INSERT", len(added))
    expected = [ONE, *added]
    assert rows(lake.sql("SELECT * FROM t ORDER BY id")) == expected
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.sql("SELECT id, channel, tiny FROM t ORDER BY id") == [
            r[:3] for r in expected
        ]


def test_an_insert_of_no_rows_makes_no_snapshot(copied, base):
    catalog, lake = copied
    before = everything(catalog, base.folder / "data")

    [result] = lake.sql("INSERT INTO t (id) SELECT id FROM t WHERE id > 9").collect()

    assert (result.snapshot, result.rows, result.files) == (6, 0, 0)
    assert everything(catalog, base.folder / "data") == before


@pytest.mark.sampled(13)
@pytest.mark.parametrize(
    ("statement", "kind", "message"),
    [
        ("INSERT INTO q VALUES (1)", NotFound, "table 'q' does not exist in schema 'main'"),
        ("INSERT INTO t (id, q) VALUES (1, 2)", InvalidRequest, "the table has no column q"),
        (
            "INSERT INTO t (id, tiny) VALUES (1)",
            InvalidRequest,
            "INSERT INTO main.t lists 2 column(s), but its rows have 1",
        ),
        (
            "INSERT INTO t VALUES (1, 'a')",
            InvalidRequest,
            "the table has 4 columns, but 2 are given; name the columns, or pass all of them",
        ),
        (
            "INSERT INTO t (tiny) VALUES (1)",
            InvalidRequest,
            "column id is missing: it is NOT NULL and has no default",
        ),
        (
            "INSERT INTO t (id, tiny) VALUES (2, 1), (NULL, 2)",
            InvalidRequest,
            "column id of main.t is NOT NULL, got NULL",
        ),
        ("INSERT INTO t (id, tiny) VALUES (2, 1), (3, 300)", InvalidRequest, "300"),
        ("INSERT INTO t (id, tiny) VALUES (2, 'x')", InvalidRequest, "column tiny: string"),
        (
            "INSERT INTO t (id, s) VALUES (2, 5)",
            InvalidRequest,
            "column s: int cannot be stored as",
        ),
        (
            "INSERT INTO t (id, s) SELECT 2, named_struct('a', 1, 'z', 2)",
            InvalidRequest,
            "column s has no field z",
        ),
        ("INSERT INTO t (id, ID) VALUES (1, 2)", InvalidRequest, "each column only once"),
        (
            "INSERT INTO t BY NAME SELECT 1 AS id, 2 AS ID",
            InvalidRequest,
            "column ID is given twice",
        ),
        (
            "INSERT INTO t VALUES (DEFAULT, 'a', 1, NULL)",
            InvalidRequest,
            "id of main.t is NOT NULL",
        ),
        ("SELECT * FROM q", NotFound, "table 'q' does not exist in schema 'main'"),
        ("SELECT * FROM q.t", NotFound, "schema 'q' does not exist"),
        (
            "SELECT * FROM t VERSION AS OF 99",
            NotFound,
            "snapshot 99 does not exist; existing snapshots: 0 to 6",
        ),
        (
            "SELECT * FROM t AT (VERSION => 0)",
            NotFound,
            "table 't' does not exist in schema 'main'",
        ),
        (
            "SELECT * FROM t TIMESTAMP AS OF '2001-01-01'",
            NotFound,
            "no snapshot as old as 2001-01-01",
        ),
        ("SELECT * FROM t TIMESTAMP AS OF 'soon'", InvalidRequest, "'soon' is not a timestamp"),
    ],
)
def test_a_statement_that_cannot_be_changes_nothing(copied, base, statement, kind, message):
    catalog, lake = copied

    assert message in refusal(kind, lambda: lake.sql(statement), catalog, base.folder / "data")


def test_a_default_may_be_an_expression_that_each_new_row_computes(copied):
    catalog, lake = copied
    lake.sql("ALTER TABLE t ALTER COLUMN channel SET DEFAULT uuid()")
    lake.sql("INSERT INTO t (id) VALUES (2), (3)")
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        duckdb.execute("INSERT INTO t (id) VALUES (4)")

    found = dict(rows(lake.sql("SELECT id, channel FROM t")))

    assert found[1] == "shop"
    made = {found[i] for i in (2, 3, 4)}
    assert len(made) == 3
    assert {len(text) for text in made} == {36}


def test_queries_join_tables_of_several_schemas(lake):
    joined = lake.sql(
        "SELECT t.id, t.channel, o.label FROM t JOIN other.t AS o ON o.id = t.id"
        " UNION ALL SELECT id, NULL, label FROM other.t WHERE id NOT IN (SELECT id FROM main.t)"
        " ORDER BY id"
    )

    assert rows(joined) == [(1, "shop", "one"), (2, None, "two")]


def test_a_table_joins_itself_as_it_was(lake):
    lake.sql("INSERT INTO t (id) VALUES (2)")
    joined = lake.sql(
        "SELECT now.id, old.kind, now.channel FROM t now"
        " LEFT JOIN t AT (VERSION => 2) old ON old.id = now.id ORDER BY now.id"
    )

    assert rows(joined) == [(1, "shop", "shop"), (2, None, "web")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "when",
    [
        "AT (VERSION => 2)",
        "VERSION AS OF 2",
        "FOR VERSION AS OF '2'",
        "@v2",
        "AT (TIMESTAMP => '{at}')",
        "AT (TIMESTAMP => TIMESTAMP '{at}')",
        "TIMESTAMP AS OF '{at}'",
        "FOR SYSTEM_TIME AS OF TIMESTAMP '{at}'",
    ],
)
def test_every_way_to_travel_in_time_reads_the_columns_of_then(lake, when):
    at = lake.snapshots()[2].time
    found = lake.sql(f"SELECT * FROM t {when.format(at=at.isoformat(sep=' '))}")

    assert found.columns == ["id", "kind", "tiny", "s"]
    assert rows(found) == [ONE]


def test_a_time_without_an_offset_is_utc(lake):
    then = lake.snapshots()[2].time.astimezone(UTC).replace(tzinfo=None)

    assert rows(lake.sql(f"SELECT kind FROM t TIMESTAMP AS OF '{then}'")) == [("shop",)]


def test_a_time_to_come_is_now(lake):
    assert rows(lake.sql("SELECT channel FROM t TIMESTAMP AS OF '2999-01-01'")) == [("shop",)]
    assert datetime.now(UTC) > lake.snapshots()[-1].time


def test_a_dataframe_keeps_its_snapshot_whatever_happens_to_the_table(lake):
    found = lake.sql("SELECT * FROM t")
    lake.sql("ALTER TABLE t DROP COLUMN tiny; INSERT INTO t (id) VALUES (2)")

    assert rows(found) == [ONE]
    assert newest(lake) == 8


def test_several_statements_run_in_order_and_give_the_rows_of_the_last(lake):
    found = lake.sql(
        "CREATE TABLE u (a INT); INSERT INTO u VALUES (1), (2); -- and now\n SELECT sum(a) FROM u;"
    )

    assert rows(found) == [(3,)]
    assert newest(lake) == 8


def test_a_refused_statement_leaves_those_before_it(lake):
    with pytest.raises(NotFound):
        lake.sql("CREATE TABLE u (a INT); DROP TABLE q; CREATE TABLE w (a INT)")

    assert [str(t) for t in lake.tables("main")] == ["main.t", "main.u"]


def test_a_query_may_name_a_temporary_view_beside_tables(lake, spark):
    lake.sql("CREATE TABLE beside (id INT)")
    lake.sql("INSERT INTO beside VALUES (1), (2)")
    spark.sql("SELECT 2 AS id, 'seen' AS word").createOrReplaceTempView("of_the_session")
    try:
        found = lake.sql("SELECT b.id, word FROM beside b JOIN of_the_session USING (id)")
        assert [tuple(row) for row in found.collect()] == [(2, "seen")]
    finally:
        spark.catalog.dropTempView("of_the_session")


def test_time_travel_never_means_a_temporary_view(lake, spark):
    lake.sql("CREATE TABLE travelled (id INT)")
    spark.sql("SELECT 7 AS id").createOrReplaceTempView("travelled")
    try:
        with pytest.raises(NotFound, match="snapshot"):
            lake.sql("SELECT * FROM travelled VERSION AS OF 999")
    finally:
        spark.catalog.dropTempView("travelled")
