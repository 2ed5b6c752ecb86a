"""The pages of branches: what differs, and what a merge would refuse; no Spark runs."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.support.html import rows, words
from tests.support.oracle import DuckDBOracle

pytestmark = pytest.mark.databases("sqlite", "postgres")


def test_a_lake_without_branches_says_how_to_make_one(page):
    assert "No branch. CREATE BRANCH makes one." in words(page.tree("/branches"))
    assert "branch 'b' does not exist" in words(page.tree("/branches/diff?branch=b", 404))


def test_a_branch_shows_what_happened_and_what_a_merge_refuses(page, sql, lake):
    sql("CREATE TABLE t (id INT, v INT)", "CREATE TABLE gone (id INT)", "CREATE BRANCH `a b&c`")
    assert rows(page.tree("/branches"), "Branches") == [["a b&c", "main", "2", "2"]]
    path = "/branches/diff?branch=a%20b%26c"
    assert f'href="{path}"' in page.text("/branches")
    assert "Nothing happened on the branch." in words(page.tree(path))

    with DuckDBOracle(lake.url) as duck:
        duck.execute('INSERT INTO "a b&c".t VALUES (1, 1), (2, 2)')
        duck.execute('CREATE TABLE "a b&c".more (id INT)')
    sql(
        "ALTER TABLE `a b&c`.t RENAME COLUMN v TO w, ADD COLUMN x INT",
        "ALTER TABLE t RENAME COLUMN v TO ours",
        "DROP TABLE `a b&c`.gone",
    )
    found = page.tree(path)
    assert rows(found, "Tables that differ") == [
        ["main.gone dropped", "", ""],
        ["main.more created", "", ""],
        ["main.t", "2 added", "RENAME COLUMN v TO w ADD COLUMN x int32"],
    ]
    assert rows(found, "What both sides changed") == [["main.t", "column v.name", "v", "ours", "w"]]


def test_rows_that_both_sides_changed_are_left_to_others(page, sql, lake):
    sql("CALL set_option('data_inlining_row_limit', 0)")
    with DuckDBOracle(lake.url) as duck:
        duck.execute("CREATE TABLE t (id INT)")
        duck.execute("INSERT INTO t SELECT range FROM range(4)")
        sql("CREATE BRANCH b")
        duck.execute("DELETE FROM t WHERE id = 1")
        duck.execute("DELETE FROM b.t WHERE id = 2")
    told = words(page.tree("/branches/diff?branch=b"))
    assert "this needs Spark, which the page does not start; use the command line" in told
    assert "1 deleted" in told


def test_what_only_spark_can_tell_is_not_told(page, sql, lake):
    sql("CREATE TABLE t (id INT, v INT) UNIQUE KEY (id)", "CREATE BRANCH b")
    with DuckDBOracle(lake.url) as duck:
        duck.execute("INSERT INTO t VALUES (1, 1)")
        duck.execute("INSERT INTO b.t VALUES (1, 2)")
    found = page.tree("/branches/diff?branch=b")
    assert "this needs Spark, which the page does not start; use the command line" in words(found)
    assert rows(found, "Tables that differ") == [["main.t", "1 added", ""]]


def test_names_on_a_branch_are_escaped(page, sql, lake):
    evil = "<script>alert(1)</script>\"'&{{7*7}}"
    sql(f"CREATE TABLE `{evil}` (a INT)", f"CREATE BRANCH `{evil}`")
    for name in (f"`{evil}`.`{evil}`", f"`{evil}`"):
        sql(f"ALTER TABLE {name} RENAME COLUMN a TO `<i>{len(name)}</i>`")
    for path in ("/branches", f"/branches/diff?branch={quote(evil)}"):
        found = page.tree(path)
        assert evil in words(found)
        assert len(list(found.iter("script"))) == 1
        assert list(found.iter("i")) == []
