"""How the text of a kept query changes when what it reads gets other names."""

from __future__ import annotations

import pytest

from shelduck.errors import Unsupported
from shelduck.text.query.followed import followed
from shelduck.text.query.names_read import ColumnNames, ReadTable

_STRUCT = (ColumnNames("x", "y"), ColumnNames("z", "z"))
# Renamed: a, and x in s and l. Dropped: gone. Added: q and x2, which u has, too.
TABLES = {
    "t": ReadTable(
        (
            *(ColumnNames("a", "b"), ColumnNames("k", "k"), ColumnNames("gone", None)),
            ColumnNames("s", "s", _STRUCT),
            ColumnNames("l", "l", (ColumnNames("element", "element", _STRUCT),)),
            *(ColumnNames(None, "q"), ColumnNames(None, "x2")),
        )
    ),
    "u": ReadTable(tuple(ColumnNames(n, n) for n in ("k", "q", "x2"))),
    "moved": ReadTable((ColumnNames("a", "a"),), ("main", "new")),
}


def find(parts):
    return TABLES.get(parts[-1].lower())


@pytest.mark.parametrize(
    ("query", "then"),
    [
        ("SELECT a FROM main.t", "SELECT `b` AS `a` FROM main.t"),
        ("SELECT A AS c FROM t", "SELECT `b` AS c FROM t"),
        ("SELECT a + 1, k FROM t", "SELECT `b` + 1 AS `(a + 1)`, k FROM t"),
        ("SELECT (a) FROM t", "SELECT (`b`) AS `a` FROM t"),
        (
            "SELECT sum(a) FROM t WHERE a > 1 GROUP BY a HAVING max(a) > 2 ORDER BY a",
            (
                "SELECT sum(`b`) AS `sum(a)` FROM t WHERE `b` > 1 GROUP BY `b`"
                " HAVING max(`b`) > 2 ORDER BY `b`"
            ),
        ),
        ("SELECT a FROM t ORDER BY a + 1", "SELECT `b` AS `a` FROM t ORDER BY a + 1"),
        (
            "SELECT a, rank() OVER (ORDER BY a) AS r FROM t",
            "SELECT `b` AS `a`, rank() OVER (ORDER BY `b`) AS r FROM t",
        ),
        ("SELECT * FROM t WHERE a = 1", "SELECT * FROM t WHERE `b` = 1"),
        ("SELECT * EXCEPT (a), k FROM t", "SELECT * EXCEPT (`b`), k FROM t"),
        ("SELECT x.a FROM (SELECT * FROM t) x", "SELECT x.`b` AS `a` FROM (SELECT * FROM t) x"),
        ("SELECT x.a FROM (SELECT a FROM t) x", "SELECT x.a FROM (SELECT `b` AS `a` FROM t) x"),
        (
            "WITH c (d) AS (SELECT a FROM t) SELECT d FROM c",
            "WITH c (d) AS (SELECT `b` AS `a` FROM t) SELECT d FROM c",
        ),
        (
            "SELECT s.x, t.s.x AS c, l[0].x, l.x FROM t",
            "SELECT s.`y` AS `x`, t.s.`y` AS c, l[0].`y` AS `x`, l.`y` AS `x` FROM t",
        ),
        # A name that another table has stays with that table.
        ("SELECT q FROM t JOIN u ON t.k = u.k", "SELECT `u`.q FROM t JOIN u ON t.k = u.k"),
        (
            "SELECT 1 FROM u WHERE EXISTS (SELECT 1 FROM t WHERE k = q)",
            "SELECT 1 FROM u WHERE EXISTS (SELECT 1 FROM t WHERE k = `u`.q)",
        ),
        ("SELECT k FROM t JOIN u USING (k)", "SELECT k FROM t JOIN u USING (k)"),
        ("SELECT k FROM t JOIN t w USING (a)", "SELECT k FROM t JOIN t w USING (`b`)"),
        (
            "SELECT (SELECT max(a) FROM t) AS m FROM u",
            "SELECT (SELECT max(`b`) AS `max(a)` FROM t) AS m FROM u",
        ),
        (
            "SELECT a FROM t LATERAL VIEW explode(l) e AS el",
            "SELECT `t`.`b` AS `a` FROM t LATERAL VIEW explode(l) e AS el",
        ),
        ("SELECT a FROM t VERSION AS OF 3", "SELECT a FROM t VERSION AS OF 3"),
        ("SELECT a FROM elsewhere", "SELECT a FROM elsewhere"),
        (
            "SELECT main.moved.*, moved.a FROM main.moved",
            "SELECT moved.*, moved.a FROM main.`new` AS `moved`",
        ),
        ("SELECT w.a FROM main.moved AS w", "SELECT w.a FROM main.`new` AS w"),
        ("SELECT 'a', k AS a2 FROM t -- a", "SELECT 'a', k AS a2 FROM t -- a"),
    ],
)
def test_names_change_and_nothing_else(query, then):
    assert followed(query, "spark", find).text == then


@pytest.mark.parametrize(
    ("query", "then"),
    [
        (
            'SELECT a, (a + 1) FROM {DUCKLAKE_CATALOG}.main."t"',
            'SELECT "b" AS "a", ("b" + 1) AS "(a + 1)" FROM {DUCKLAKE_CATALOG}.main."t"',
        ),
        ("SELECT a FROM t ORDER BY a + 1", 'SELECT "b" AS "a" FROM t ORDER BY "b" + 1'),
        ("SELECT main.t.a AS c FROM t GROUP BY ALL", 'SELECT main.t."b" AS c FROM t GROUP BY ALL'),
        ("FROM t SELECT a", 'FROM t SELECT "b" AS "a"'),
        ("SELECT error('a') AS a WHERE error('a')", None),
    ],
)
def test_duckdbs_text_follows_too(query, then):
    assert followed(query, "duckdb", find).text == (then or query)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT transform(l, e -> e.x) FROM t", "e.x may be a field"),
        ("SELECT struct_of(s, 'x') FROM t", "the text 'x' may be"),
        ("SELECT a AS q, q + 1 FROM t", "q would be another column"),
        ("SELECT k FROM t JOIN moved USING (a)", "needs the name on both sides"),
        ("SELECT k FROM t NATURAL JOIN u", "NATURAL JOIN goes by"),
        ("SELECT * FROM t PIVOT (sum(k) FOR a IN (1))", "PIVOT goes by"),
        ("SELECT a FROM (", "cannot be read"),
    ],
)
def test_what_cannot_follow_says_why(query, why):
    with pytest.raises(Unsupported, match=why):
        followed(query, "spark", find)


def test_columns_that_go_are_named():
    assert followed("SELECT gone, a FROM t WHERE t.gone > 1", "spark", find).gone == ("gone",)
    assert followed("SELECT * FROM t", "spark", find).gone == ()


def test_the_names_of_expressions_are_those_that_the_view_has():
    found = followed("SELECT a + 1, k FROM t", "spark", find, ["plus", "k"])
    assert found.text == "SELECT `b` + 1 AS `plus`, k FROM t"
    assert [column.before for column in found.columns] == ["plus", "k"]
