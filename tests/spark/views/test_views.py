"""Views in SQL: what they read, what they refuse, and what a transaction sees of them."""

from __future__ import annotations

import pytest

from shelduck import AlreadyExists, Conflict, InvalidRequest, NotFound, Unsupported
from tests.support.lakes import newest, rows

STATEMENTS = [
    "CREATE TABLE t (a INT, b STRING)",
    "INSERT INTO t VALUES (1, 'x'), (2, 'y')",
    "CREATE SCHEMA s",
    "CREATE VIEW v AS SELECT a, b FROM t WHERE a > 1",
]


def test_a_view_shows_what_its_query_gives_now(lake):
    assert rows(lake.sql("SELECT * FROM v")) == [(2, "y")]
    lake.sql("INSERT INTO t VALUES (3, 'z')")

    assert sorted(rows(lake.sql("SELECT v.a, x.b FROM v JOIN main.v AS x USING (a)"))) == [
        (2, "y"),
        (3, "z"),
    ]


def test_a_view_may_name_its_columns(lake):
    lake.sql("CREATE VIEW w (x, `odd name`) AS SELECT a, a FROM t")

    assert lake.sql("SELECT * FROM w").columns == ["x", "odd name"]


def test_names_in_a_view_mean_what_they_meant_when_it_was_made(lake):
    lake.sql("CREATE TABLE s.t (k INT)")
    lake.sql("USE s")
    lake.sql("CREATE VIEW main.of_s AS SELECT * FROM t")
    lake.sql("USE main")

    assert lake.sql("SELECT * FROM of_s").columns == ["k"]


def test_a_view_at_a_snapshot_shows_its_text_and_its_tables_of_then(lake):
    then = newest(lake)
    lake.sql("INSERT INTO t VALUES (3, 'z')")
    lake.sql("CREATE OR REPLACE VIEW v AS SELECT a FROM t VERSION AS OF 1")

    assert rows(lake.sql(f"SELECT * FROM v VERSION AS OF {then}")) == [(2, "y")]
    assert len(rows(lake.sql(f"SELECT * FROM v VERSION AS OF {then + 1}"))) == 2
    assert rows(lake.sql("SELECT * FROM v")) == []
    with pytest.raises(NotFound):
        lake.sql("SELECT * FROM v VERSION AS OF 1")


def test_views_read_views_but_not_themselves(lake):
    lake.sql("CREATE VIEW w AS SELECT a FROM v")
    assert rows(lake.sql("SELECT * FROM w")) == [(2,)]

    for text in ("SELECT * FROM w", "SELECT * FROM v"):
        with pytest.raises(InvalidRequest, match=r"view main\.v reads itself: main\.v →"):
            lake.sql(f"CREATE OR REPLACE VIEW v AS {text}")
    with pytest.raises(InvalidRequest, match=r"view main\.v reads itself"):
        lake.sql("ALTER VIEW v AS SELECT a FROM w")


def test_what_a_view_reads_may_go_and_then_it_fails(lake):
    lake.sql("DROP TABLE t")

    with pytest.raises(NotFound, match=r"view main\.v: table 't' does not exist"):
        lake.sql("SELECT * FROM v")


def test_a_view_reads_nothing_but_the_lake(lake, spark):
    spark.range(3).createOrReplaceTempView("of_the_session")
    with pytest.raises(NotFound, match="'of_the_session' does not exist"):
        lake.sql("CREATE VIEW w AS SELECT * FROM of_the_session")
    with pytest.raises(Unsupported, match="cannot read table_changes"):
        lake.sql("CREATE VIEW w AS SELECT * FROM table_changes('t', 1)")


def test_a_view_of_a_metadata_table_stays_with_its_schema(lake):
    lake.sql("CREATE VIEW s.w AS SELECT file_path FROM t.files")

    assert rows(lake.sql("SELECT * FROM s.w")) == []


def test_a_view_that_is_there_is_replaced_left_or_in_the_way(lake):
    before = newest(lake)
    lake.sql("CREATE VIEW IF NOT EXISTS v AS SELECT 1 AS one")
    assert newest(lake) == before
    with pytest.raises(AlreadyExists, match=r"view main\.v already exists"):
        lake.sql("CREATE VIEW v AS SELECT 1 AS one")
    lake.sql("CREATE OR REPLACE VIEW v AS SELECT 1 AS one")

    assert (rows(lake.sql("SELECT * FROM v")), newest(lake)) == ([(1,)], before + 1)


def test_views_and_tables_are_told_apart(lake):
    with pytest.raises(AlreadyExists, match=r"table main\.t already exists"):
        lake.sql("CREATE OR REPLACE VIEW t AS SELECT 1 AS one")
    with pytest.raises(AlreadyExists, match="view 'v' already exists"):
        lake.sql("CREATE TABLE v (a INT)")
    with pytest.raises(InvalidRequest, match=r"main\.t is a table, not a view"):
        lake.sql("DROP VIEW t")
    for act in (lambda: lake.table("v"), lambda: lake.sql("DROP TABLE v")):
        with pytest.raises(NotFound, match=r"main\.v is a view, not a table; read it"):
            act()


def test_columns_have_to_be_told_apart_and_counted(lake):
    with pytest.raises(InvalidRequest, match="two columns called 'a'"):
        lake.sql("CREATE VIEW w AS SELECT a, a FROM t")
    with pytest.raises(InvalidRequest, match=r"lists 1 column\(s\), but its query has 2"):
        lake.sql("CREATE VIEW w (x) AS SELECT a, b FROM t")
    with pytest.raises(Unsupported, match="does not support comments on columns of views"):
        lake.sql("CREATE VIEW w (x COMMENT 'no') AS SELECT a FROM t")


def test_alter_and_drop(lake):
    lake.sql("CREATE OR REPLACE VIEW v (x) COMMENT 'kept' AS SELECT a FROM t")
    lake.sql("ALTER VIEW v AS SELECT b FROM t")
    assert sorted(rows(lake.sql("SELECT b FROM v"))) == [("x",), ("y",)]
    lake.sql("ALTER VIEW v RENAME TO w")
    assert rows(lake.sql("SHOW VIEWS")) == [("main", "w", False)]
    with pytest.raises(
        NotFound, match="view 'v' does not exist in schema 'main'; existing views: 'w'"
    ):
        lake.sql("ALTER VIEW v AS SELECT 1 AS one")
    lake.sql("DROP VIEW w")
    lake.sql("DROP VIEW IF EXISTS w")

    assert rows(lake.sql("SHOW VIEWS")) == []


def test_views_are_listed_by_schema_and_pattern_and_among_tables(lake):
    lake.sql("CREATE VIEW s.w AS SELECT 1 AS one")

    assert rows(lake.sql("SHOW VIEWS IN s")) == [("s", "w", False)]
    assert rows(lake.sql("SHOW VIEWS LIKE 'x*'")) == []
    assert rows(lake.sql("SHOW TABLES IN s")) == [("s", "w", False)]
    assert rows(lake.sql("SHOW TABLES LIKE 't'\\G")) == [("main", "t", False)]


def test_a_schema_goes_with_its_views(lake):
    lake.sql("CREATE VIEW s.w AS SELECT 1 AS one")
    with pytest.raises(InvalidRequest, match=r"contains 1 view\(s\), such as 'w'"):
        lake.sql("DROP SCHEMA s")
    lake.sql("DROP SCHEMA s CASCADE")

    assert lake.snapshots()[-1].changes_made == "dropped_schema:2,dropped_view:4"


@pytest.mark.slow
def test_a_transaction_sees_the_views_that_it_changes(lake):
    before = newest(lake)
    with lake.transaction() as tx:
        tx.sql("CREATE TABLE fresh (n INT)")
        tx.sql("CREATE VIEW w AS SELECT n FROM fresh")
        tx.sql("INSERT INTO fresh VALUES (7)")
        tx.sql("ALTER VIEW v RENAME TO moved")
        assert rows(tx.sql("SELECT * FROM w")) == [(7,)]
        assert rows(tx.sql("SELECT a FROM moved")) == [(2,)]
        assert [r.viewName for r in tx.sql("SHOW VIEWS").collect()] == ["moved", "w"]
        with pytest.raises(NotFound):
            tx.sql("SELECT * FROM v")
        with pytest.raises(AlreadyExists):
            tx.sql("CREATE VIEW fresh AS SELECT 1 AS one")
        tx.sql("CREATE OR REPLACE VIEW w AS SELECT n + 1 AS n FROM fresh")

    assert newest(lake) == before + 1
    assert rows(lake.sql("SELECT * FROM w")) == [(8,)]
    assert lake.snapshots()[-1].changes_made.count("created_view") == 2


def test_a_view_made_and_dropped_in_one_transaction_leaves_no_trace(lake):
    before = newest(lake)
    with lake.transaction() as tx:
        tx.sql("CREATE VIEW w AS SELECT 1 AS one")
        tx.sql("DROP VIEW w")

    assert newest(lake) == before


def test_two_transactions_that_replace_one_view_exclude_each_other(base, copied):
    catalog, lake = copied
    tx = lake.transaction()
    tx.sql("CREATE OR REPLACE VIEW v AS SELECT 1 AS one")
    with base.connect(catalog) as other:
        other.sql("CREATE OR REPLACE VIEW v AS SELECT 2 AS two")

    with pytest.raises(Conflict, match=r"dropped_view:3"):
        tx.commit()
    assert rows(lake.sql("SELECT * FROM v")) == [(2,)]
