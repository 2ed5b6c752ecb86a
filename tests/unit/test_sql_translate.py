"""Queries of views: Spark's text to DuckDB's and back."""

from __future__ import annotations

import pytest

from shelduck.doors.sql.parse import parse
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.text.query.translate import duckdb_query, refusal_query, require_columns, spark_query

T = ('{DUCKLAKE_CATALOG}."main"."t"', "")


def to_duckdb(text, *names, place=T):
    [query] = parse(text)
    return duckdb_query(query, {r.placeholder: place for r in query.relations}, names)


@pytest.mark.parametrize(
    ("spark", "duckdb"),
    [
        (
            "select a, `odd name` from t where b like 'x%' and a <=> 1",
            'SELECT a, "odd name" FROM {t} AS "t" WHERE b LIKE \'x%\' AND a IS NOT DISTINCT FROM 1',
        ),
        # NULL comes first in Spark, last in DuckDB.
        (
            "select a from t order by a, b desc",
            'SELECT a FROM {t} AS "t" ORDER BY a NULLS FIRST, b DESC',
        ),
        (
            "select a from t x left join t y using (a)",
            "SELECT a FROM {t} AS x LEFT JOIN {t} AS y USING (a)",
        ),
        (
            "with q as (select a from t) select a from q union all select 1",
            'WITH q AS (SELECT a FROM {t} AS "t") SELECT a FROM q UNION ALL SELECT 1',
        ),
        (
            "select case when a > 1 then 'it\\'s' else \"q\" end as k from t",
            "SELECT CASE WHEN a > 1 THEN 'it''s' ELSE 'q' END AS k FROM {t} AS \"t\"",
        ),
        (
            "select a from t where d >= date '2020-01-01'",
            "SELECT a FROM {t} AS \"t\" WHERE d >= CAST('2020-01-01' AS DATE)",
        ),
        ("select concat(a, b) as c from t", 'SELECT a || b AS c FROM {t} AS "t"'),
        (
            "select rank() over (partition by a order by b) as r from t",
            'SELECT RANK() OVER (PARTITION BY a ORDER BY b NULLS FIRST) AS r FROM {t} AS "t"',
        ),
    ],
)
def test_what_means_the_same_in_both_is_written_for_duckdb(spark, duckdb):
    assert to_duckdb(spark) == duckdb.replace("{t}", T[0])


def test_columns_without_a_name_are_called_as_spark_calls_them():
    assert to_duckdb("select count(*), t.*, a + 1 from t", "count(1)", "a", "b", "(a + 1)") == (
        f'SELECT COUNT(*) AS "count(1)", t.*, a + 1 AS "(a + 1)" FROM {T[0]} AS "t"'
    )


def test_the_time_of_a_table_stands_behind_its_alias():
    place = ('"main"."a AT b"', "AT (VERSION => 3)")

    assert to_duckdb("select x.a from t version as of 3 x", place=place) == (
        'SELECT x.a FROM "main"."a AT b" AS x AT (VERSION => 3)'
    )


@pytest.mark.parametrize(
    "text",
    [
        "select a / 2 as h from t",
        "select a % b as m from t",
        "select cast(1.7 as int) as i from t",
        "select cast(a as string) as s from t",
        "select explode(x) as e from t",
        "select a from t lateral view explode(x) as y",
        "select x[0] as y from t",
        "select substring(b, 0, 2) as s from t",
        "select b like 'a\\\\_b' as l from t",
        "select a from t tablesample (10 percent)",
        "select /*+ broadcast(t) */ a from t",
        "values (1, 2)",
        "select round(a) as r from t",
        "select '{DUCKLAKE_CATALOG}' as c from t",
        "select * from t join t y using (a)",
        "select * from t natural join t y",
    ],
)
def test_what_may_mean_something_else_to_duckdb_is_refused(text):
    with pytest.raises(Unsupported):
        to_duckdb(text)


def test_a_refusal_keeps_the_columns_and_fails_in_every_part():
    assert refusal_query(["a", 'b"'], "it's") == (
        "SELECT error('it''s') AS \"a\", error('it''s') AS \"b\"\"\" WHERE error('it''s')"
    )


@pytest.mark.parametrize(
    ("duckdb", "spark", "names"),
    [
        ("SELECT * FROM {DUCKLAKE_CATALOG}.main.t", "SELECT * FROM {0} AS `t`", ["main.t"]),
        ("SELECT a FROM u AS z AT (VERSION => 20)", "SELECT a FROM {0} AS z", ["u"]),
        (
            "SELECT count_star(), (a + 1), sum(a) FROM u GROUP BY ALL",
            (
                "SELECT COUNT(*) AS `count_star()`, (a + 1) AS `(a + 1)`, SUM(a) AS `sum(a)`"
                " FROM {0} AS `u` GROUP BY ALL"
            ),
            ["u"],
        ),
        # NULL comes last in DuckDB, first in Spark.
        ("SELECT a FROM u ORDER BY a", "SELECT a FROM {0} AS `u` ORDER BY a NULLS LAST", ["u"]),
        ("SELECT main.u.a FROM main.u", "SELECT u.a FROM {0} AS `u`", ["main.u"]),
        (
            "WITH q AS (SELECT a FROM t) SELECT q.a FROM q , u WHERE (q.a = u.a)",
            "WITH q AS (SELECT a FROM {0} AS `t`) SELECT q.a FROM q, {1} AS `u` WHERE (q.a = u.a)",
            ["t", "u"],
        ),
    ],
)
def test_what_means_the_same_in_both_is_written_for_spark(duckdb, spark, names):
    query = spark_query(duckdb)

    by_name = {str(r.name): r.placeholder for r in query.relations}
    assert sorted(by_name) == names
    assert query.text == spark.format(*(by_name[name] for name in names))


def test_the_time_of_a_table_is_the_relations():
    [relation] = spark_query("SELECT a FROM u AS z AT (VERSION => 20)").relations

    assert (str(relation.name), relation.version) == ("u", 20)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM other.main.u",
        "SELECT * FROM read_csv('x')",
        "SELECT (a // 2) FROM u",
        "SELECT (a / 2) FROM u",
        "SELECT concat(a, b) FROM u",
        "SELECT CAST(a AS INTEGER) FROM u",
        "SELECT CAST('2020-01-01' AS TIMESTAMP) FROM u",
        "SELECT unnest(x) FROM u",
        "SELECT a FROM u AT (TIMESTAMP => now())",
        "FROM range(3)",
        "SELEC",
    ],
)
def test_what_may_mean_something_else_to_spark_is_refused(text):
    with pytest.raises(Unsupported):
        spark_query(text)


def test_the_columns_of_a_view_are_its_own_or_those_of_its_query():
    assert require_columns(["a", "b"], [], "v") == ("a", "b")
    assert require_columns(["a", "a"], ["x", "y"], "v") == ("x", "y")
    with pytest.raises(InvalidRequest, match=r"v lists 1 column\(s\), but its query has 2"):
        require_columns(["a", "b"], ["x"], "v")
    with pytest.raises(InvalidRequest, match="v has two columns called 'a'"):
        require_columns(["a", "A"], [], "v")
