"""A view shows the same after the tables and columns that it reads got other names, everywhere."""

from __future__ import annotations

import pytest

import shelduck
from shelduck import InvalidRequest
from tests.support.lakes import newest
from tests.support.normal import duckdb_rows, spark_rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    (
        "CREATE TABLE t (id INT, a INT, s STRUCT<x: INT, y: STRUCT<z: STRING>>,"
        " l ARRAY<STRUCT<x: INT>>)"
    ),
    (
        "INSERT INTO t SELECT n, n * 10, named_struct('x', n, 'y', named_struct('z', 'Z')),"
        " array(named_struct('x', n)) FROM VALUES (1), (2), (3) AS v(n)"
    ),
    "CREATE TABLE u (id INT, c INT, note STRING)",
    "INSERT INTO u VALUES (1, 5, 'one'), (2, 6, 'two'), (4, 7, 'four')",
]
# What DuckDB has no translation of: it gets a view that fails there.
ONLY_SPARK = {
    "higher": "SELECT id, exists(l, e -> e.x > 1) AS found, a FROM t",
    "times": "SELECT a, s.y.z AS z, date_add(DATE'2026-01-01', a) AS day FROM t",
}
VIEWS = {
    "plain": "SELECT id, a FROM t WHERE a > 10 ORDER BY a",
    "summed": "SELECT sum(a), count(*), a AS key FROM t GROUP BY a HAVING max(a) > 5",
    "joined": "SELECT t.a, c, note FROM t JOIN u ON t.id = u.id WHERE t.a > 1",
    "by_name": "SELECT id, a, c FROM t JOIN u USING (id)",
    "aliased": "SELECT w.a AS a2, w.s AS whole FROM main.t AS w",
    "nested": "SELECT q.a FROM (SELECT * FROM t) q WHERE q.a < 30",
    "derived": "SELECT q.b2 FROM (SELECT a AS b2, id FROM t) q",
    "common": "WITH c AS (SELECT a, id FROM t) SELECT c.a, u.c FROM c LEFT JOIN u ON c.id = u.id",
    "stacked": "SELECT a FROM t UNION ALL SELECT c FROM u",
    "correlated": "SELECT c FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.id = u.id AND a > 10)",
    "unqualified": "SELECT c FROM u WHERE EXISTS (SELECT 1 FROM t WHERE a = c * 2)",
    "chosen": "SELECT id FROM t WHERE a IN (SELECT a FROM t WHERE id > 1)",
    "ranked": "SELECT id, row_number() OVER (ORDER BY a DESC) AS n FROM t",
    "cased": "SELECT CASE WHEN a > 10 THEN 'big' ELSE 'small' END AS size FROM t",
    "over": "SELECT a FROM plain",
    "everything": "SELECT * FROM u",
    "above": "SELECT note FROM everything",
}
STATEMENTS += [f"CREATE VIEW {n} AS {query}" for n, query in {**VIEWS, **ONLY_SPARK}.items()]


def shown(lake, view):
    """The names of a view's columns, and its rows in Spark."""
    frame = lake.sql(f"SELECT * FROM {view}")
    return frame.columns, sorted(map(str, spark_rows(frame)))


def in_duckdb(catalog, views=tuple(VIEWS)):
    """The same of those views that are there, in DuckDB."""
    found = {}
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        there = {name for (name,) in oracle.sql("SELECT view_name FROM duckdb_views()")}
        for view in sorted(there & {*views}):
            names = [name for name, _ in oracle.columns(view)]
            found[view] = names, sorted(map(str, duckdb_rows(oracle, view, "*")))
    return found


def seen(catalog, lake, views):
    """What both engines show of views."""
    theirs = in_duckdb(catalog, views)
    ours = {view: shown(lake, view) for view in views if view in theirs}
    assert ours == {view: found for view, found in theirs.items() if view in ours}
    return ours


def test_views_show_the_same_after_every_change_of_names(copied):
    """One after another; a name may come back, and mean something else."""
    catalog, lake = copied
    lake.execute("DROP VIEW by_name")
    first = seen(catalog, lake, VIEWS)
    for n, change in enumerate(
        [
            "RENAME COLUMN a TO b",
            "ADD COLUMN (note STRING, a INT)",
            "RENAME COLUMN id TO number, RENAME COLUMN a TO id",
            'RENAME COLUMN b TO `of "two" ``words```',
            "RENAME TO elsewhere",
        ]
    ):
        lake.execute(f"ALTER TABLE {'t' if n < 5 else 'elsewhere'} {change}")
        assert in_duckdb(catalog) == {v: first[v] for v in VIEWS if v != "by_name"}, change
    lake.execute("ALTER TABLE elsewhere ALTER COLUMN id TYPE BIGINT, RENAME COLUMN s.y.z TO zz")
    # Every column of the view keeps its name; the fields inside the struct have their own.
    assert seen(catalog, lake, [v for v in VIEWS if v != "aliased"]) == {
        view: found for view, found in first.items() if view != "aliased"
    }


@pytest.mark.parametrize("change", ["RENAME COLUMN a TO c", "ADD COLUMN (note STRING, c INT)"])
def test_a_name_that_another_table_has_stays_with_it(copied, change):
    catalog, lake = copied
    first = seen(catalog, lake, VIEWS)
    lake.execute(f"ALTER TABLE t {change}")
    assert seen(catalog, lake, VIEWS) == first


def test_views_that_duckdb_cannot_read_follow_too(copied):
    _, lake = copied
    first = {view: shown(lake, view) for view in ONLY_SPARK}
    lake.execute("ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN s.y TO why")
    lake.execute("ALTER TABLE t RENAME TO x")
    lake.execute("ALTER VIEW plain RENAME TO plainer")
    assert {view: shown(lake, view) for view in ONLY_SPARK} == first
    assert shown(lake, "over")[0] == ["a"]
    with pytest.raises(InvalidRequest, match=r"view main.higher: e.x may be a field"):
        lake.execute("ALTER TABLE x RENAME COLUMN l.element.x TO y")


def test_a_column_that_a_view_reads_is_not_dropped_by_chance(copied):
    _, lake = copied
    before = newest(lake)
    told = r"view main.plain: it reads a.*view main.summed.*CASCADE"
    with pytest.raises(InvalidRequest, match=told):
        lake.execute("ALTER TABLE t DROP COLUMN a")
    with pytest.raises(InvalidRequest, match=told):
        lake.table("t").alter(shelduck.drop_column("a"))
    assert newest(lake) == before
    assert "view main.plain would fail: it reads a" in str(
        lake.table("t").plan_alter(shelduck.drop_column("a"))
    )
    lake.execute("ALTER TABLE t DROP COLUMN a CASCADE")
    left = [row.viewName for row in lake.sql("SHOW VIEWS").collect()]
    # These two read another table. `over` reads a view that is gone.
    assert left == ["above", "everything"]
    assert newest(lake) == before + 1


def test_a_macro_that_only_spark_reads_follows(copied):
    _, lake = copied
    for view in (*VIEWS, *ONLY_SPARK):
        lake.execute(f"DROP VIEW {view}")
    lake.execute("CREATE MACRO half() AS (SELECT max(a) / 2 FROM t)")
    table = lake.table("t")
    told = "macro main.half gets the new names", "macro main.half would fail: it reads a"
    assert told[0] in str(table.plan_alter(shelduck.rename_column("a", "b")))
    assert told[1] in str(table.plan_alter(shelduck.drop_column("a")))
    lake.execute("ALTER TABLE t RENAME COLUMN a TO b")
    assert lake.sql("SELECT half() AS h").collect() == [(15.0,)]


def test_a_job_publishes_its_names_to_views(copied):
    catalog, lake = copied
    lake.execute(
        "ALTER TABLE t ALTER COLUMN a TYPE STRING USING concat('#', a), RENAME COLUMN a TO tag"
    )
    assert shown(lake, "derived") == (["b2"], ["('#10',)", "('#20',)", "('#30',)"])
    assert in_duckdb(catalog, ["derived"])["derived"] == shown(lake, "derived")
    with pytest.raises(InvalidRequest, match=r"view main\.derived: it reads tag"):
        lake.execute("ALTER TABLE t DROP COLUMN tag, ALTER COLUMN id TYPE STRING")
    plan = str(lake.table("t").plan_alter(shelduck.change_type("tag", "INT")))
    assert "view main.derived reads a column of a new type" in plan


def test_a_transaction_sees_views_follow(copied):
    catalog, lake = copied
    first = shown(lake, "plain")
    with lake.transaction() as tx:
        tx.sql("CREATE VIEW fresh AS SELECT a FROM t")
        tx.sql("ALTER TABLE t RENAME COLUMN a TO b")
        assert shown(tx, "plain") == first
        assert shown(tx, "fresh")[0] == ["a"]
        tx.sql("ALTER TABLE t RENAME TO s")
        assert shown(tx, "plain") == first
    assert shown(lake, "plain") == first
    assert shown(lake, "fresh")[0] == ["a"]
    assert in_duckdb(catalog, ["plain"])["plain"] == first


def test_a_table_that_takes_the_name_is_what_views_read(copied):
    catalog, lake = copied
    lake.execute("CREATE TABLE better AS SELECT id, a + 1 AS a, s, l FROM t")
    with lake.transaction() as tx:
        tx.sql("ALTER TABLE t RENAME TO older")
        tx.sql("ALTER TABLE better RENAME TO t")
    assert shown(lake, "derived") == (["b2"], ["(11,)", "(21,)", "(31,)"])
    lake.execute("CREATE OR REPLACE TABLE t AS SELECT 7 AS a, 8 AS id")
    assert shown(lake, "derived") == (["b2"], ["(7,)"])
    assert in_duckdb(catalog, ["derived"])["derived"] == (["b2"], ["(7,)"])


def test_what_is_taken_back_comes_back_in_views(copied):
    catalog, lake = copied
    first = seen(catalog, lake, VIEWS)
    before = newest(lake)
    lake.execute("ALTER TABLE t RENAME COLUMN a TO b")
    lake.execute(f"RESTORE TABLE t TO VERSION AS OF {before}")
    assert seen(catalog, lake, VIEWS) == first
    assert shown(lake, f"plain VERSION AS OF {before + 1}") == first["plain"]


def test_views_of_duckdb_follow(copied):
    catalog, lake = copied
    lake.execute("DROP VIEW by_name")
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        oracle.execute("CREATE VIEW theirs AS SELECT a, a + 1, sum(a) OVER (ORDER BY id) FROM t")
        oracle.execute("CREATE SCHEMA z")
        oracle.execute("CREATE VIEW z.far AS SELECT lake.main.t.a, t.id FROM lake.main.t")
        first = [oracle.columns("theirs"), oracle.rows("theirs"), oracle.rows("z.far")]
    lake.execute("ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN id TO a")
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        now = [oracle.columns("theirs"), oracle.rows("theirs"), oracle.rows("z.far")]
    assert now == first
