"""ADD and DROP ROLLUP, and Doris' materialized views of one table, which are rollups."""

from __future__ import annotations

import pytest

from shelduck.doors.sql.parse import parse
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.jobs.rollup_statement import AlterRollups
from shelduck.materialized.statement import CreateMaterializedView
from shelduck.model.tables.rollup import AddRollup, DropRollup, Measure, MeasureSpec, RollupSpec
from shelduck.text.tokens.parts import NamedTable

T = NamedTable(("t",))
ST = NamedTable(("s", "t"))


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("t ADD ROLLUP r (a, b)", AlterRollups(T, (AddRollup(RollupSpec("r", ("a", "b"))),))),
        (
            (
                "IF EXISTS s.t ADD ROLLUP `a r` (a, `b c`) DUPLICATE KEY (a) FROM r0"
                ' PROPERTIES ("timeout" = "60"), r2 (b)'
            ),
            AlterRollups(
                ST,
                (
                    AddRollup(RollupSpec("a r", ("a", "b c"), duplicate_keys=("a",)), "r0"),
                    AddRollup(RollupSpec("r2", ("b",))),
                ),
                if_exists=True,
                properties={"timeout": "60"},
            ),
        ),
        ("t DROP ROLLUP r", AlterRollups(T, (DropRollup("r"),))),
        (
            "t DROP ROLLUP r, r2, ADD ROLLUP r (a), `drop` (b), DROP ROLLUP r3",
            AlterRollups(
                T,
                (
                    DropRollup("r"),
                    DropRollup("r2"),
                    AddRollup(RollupSpec("r", ("a",))),
                    AddRollup(RollupSpec("drop", ("b",))),
                    DropRollup("r3"),
                ),
            ),
        ),
    ],
)
def test_rollups_are_added_and_dropped(text, statement):
    assert parse(f"ALTER TABLE {text}") == [statement]


@pytest.mark.parametrize(
    ("query", "spec"),
    [
        ("SELECT k1, `k 2` FROM t", RollupSpec("mv", ("k1", "k 2"))),
        (
            "SELECT k1, k2, v FROM t ORDER BY k1, k2",
            RollupSpec("mv", ("k1", "k2", "v"), duplicate_keys=("k1", "k2")),
        ),
        (
            (
                "select k1, k2, sum(v) as x, COUNT(*), COUNT(v), MIN(v), MAX(`v w`) most"
                " FROM t GROUP BY k2, K1 ORDER BY k1, k2"
            ),
            RollupSpec(
                "mv",
                ("k1", "k2"),
                (
                    MeasureSpec("x", Measure.SUM, "v"),
                    MeasureSpec("count", Measure.COUNT),
                    MeasureSpec("count_v", Measure.COUNT, "v"),
                    MeasureSpec("min_v", Measure.MIN, "v"),
                    MeasureSpec("most", Measure.MAX, "v w"),
                ),
            ),
        ),
        (
            "SELECT sum, COUNT(sum) FROM t GROUP BY sum",
            RollupSpec("mv", ("sum",), (MeasureSpec("count_sum", Measure.COUNT, "sum"),)),
        ),
    ],
)
def test_a_materialized_view_of_one_table_is_a_rollup(query, spec):
    made = AlterRollups(T, (AddRollup(spec),))
    assert parse(f"CREATE MATERIALIZED VIEW mv AS {query}") == [made]

    made = AlterRollups(T, (AddRollup(spec),), properties={"timeout": "5"})
    properties = 'PROPERTIES ("timeout" = "5")'
    assert parse(f"CREATE MATERIALIZED VIEW mv AS {query} {properties}") == [made]
    assert parse(f"CREATE MATERIALIZED VIEW mv {properties} AS {query}") == [made]


def test_a_materialized_view_is_dropped_from_its_table():
    assert parse("DROP MATERIALIZED VIEW mv ON s.t") == [AlterRollups(ST, (DropRollup("mv"),))]
    assert parse("DROP MATERIALIZED VIEW IF EXISTS mv ON t") == [
        AlterRollups(T, (DropRollup("mv"),), if_exists=True)
    ]


MIXED = "changes of columns and of rollups cannot be in one statement; write two statements"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ADD COLUMN a INT, ADD ROLLUP r (a)", MIXED),
        ("DROP COLUMN a, DROP ROLLUP r", MIXED),
        ("ADD ROLLUP r (a), ADD COLUMN a INT", MIXED),
        ("ADD ROLLUP r (a), ADD (a INT)", MIXED),
        ("DROP ROLLUP r, DROP a", MIXED),
        ("DROP ROLLUP r, ORDER BY (a)", MIXED),
        ("ADD rollup INT", "write COLUMN before a column that is called rollup"),
        ("ADD ROLLUP (r (a))", "expected a rollup"),
        ("ADD ROLLUP r ()", "expected a column"),
        ("ADD ROLLUP r (a, a)", "expected each column only once"),
        ("ADD ROLLUP r (s.a)", "expected a top-level column"),
        ("DROP ROLLUP", "expected a rollup"),
        ("DROP ROLLUP r s", "expected the end of the statement"),
        (
            "ADD ROLLUP r (a) PROPERTIES (a = 1), s (b) PROPERTIES (a = 1)",
            "expected PROPERTIES only once",
        ),
    ],
)
def test_a_change_of_rollups_that_cannot_be_read_is_named(text, told):
    with pytest.raises(InvalidRequest) as refused:
        parse(f"ALTER TABLE t {text}")
    assert told in str(refused.value)


@pytest.mark.parametrize("text", ["RENAME ROLLUP r s", "RENAME ROLLUP r TO s", "MODIFY ROLLUP INT"])
def test_other_changes_of_rollups_are_not_supported(text):
    with pytest.raises(
        Unsupported,
        match="use ADD ROLLUP or DROP ROLLUP; for a column with that name, write COLUMN",
    ):
        parse(f"ALTER TABLE t {text}")


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT k, j, SUM(v) FROM t GROUP BY k, j ORDER BY j", "write ORDER BY in that order"),
        ("SELECT k, K FROM t", "expected another name than K, which an earlier column has"),
        (
            "SELECT k, SUM(v) AS k FROM t GROUP BY k",
            "another name than k, which an earlier column has",
        ),
        (
            "SELECT count, COUNT(*) FROM t GROUP BY count",
            "another name than count, which an earlier column has",
        ),
        ("SELECT k FROM", "expected a table"),
    ],
)
def test_a_query_that_cannot_be_read_is_named(query, told):
    with pytest.raises(InvalidRequest) as refused:
        parse(f"CREATE MATERIALIZED VIEW mv AS {query}")
    assert told in str(refused.value)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t",
        "SELECT DISTINCT k FROM t",
        "SELECT k + 1 FROM t",
        "SELECT 1 FROM t",
        "SELECT k AS j FROM t",
        "SELECT t.k FROM t",
        "SELECT upper(k) FROM t",
        "SELECT k, SUM(v), AVG(v) FROM t GROUP BY k",
        "SELECT k, SUM(v + 1) FROM t GROUP BY k",
        "SELECT k, SUM(*) FROM t GROUP BY k",
        "SELECT k, COUNT(DISTINCT v) FROM t GROUP BY k",
        "SELECT k, SUM(v) + 1 FROM t GROUP BY k",
        "SELECT SUM(v), k FROM t GROUP BY k",
        "SELECT SUM(v) FROM t",
        "SELECT k FROM t GROUP BY k",
        "SELECT k FROM t WHERE k > 1",
        "SELECT k FROM t JOIN u",
        "SELECT k FROM t, u",
        "SELECT k FROM t x",
        "SELECT k FROM (SELECT 1 AS k)",
        "SELECT k, SUM(v) FROM t GROUP BY k HAVING k > 1",
        "SELECT k, SUM(v) FROM t GROUP BY ROLLUP (k)",
        "SELECT k, SUM(v) FROM t GROUP BY 1",
        "SELECT k FROM t ORDER BY k DESC",
        "SELECT k FROM t ORDER BY k LIMIT 1",
        "VALUES (1)",
        "SELECT k, SUM(v) FROM t GROUP BY k, j",
    ],
)
def test_a_query_that_is_more_is_refreshed_on_demand(query):
    [found] = parse(f"CREATE MATERIALIZED VIEW mv AS {query}")
    assert isinstance(found, CreateMaterializedView)
    assert found.query.text == query or found.query.relations


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        (
            "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT a FROM t",
            InvalidRequest,
            "write REFRESH ON DEMAND before AS",
        ),
        (
            "CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT a FROM t",
            InvalidRequest,
            "write REFRESH ON DEMAND before AS",
        ),
        (
            "CREATE MATERIALIZED VIEW v BUILD IMMEDIATE AS SELECT a FROM t",
            InvalidRequest,
            "expected AS",
        ),
        ("CREATE MATERIALIZED VIEW v REFRESH ON COMMIT AS SELECT 1", InvalidRequest, "ON DEMAND"),
        ("REFRESH MATERIALIZED VIEW v NOW", InvalidRequest, "expected the end"),
        ("CREATE MATERIALIZED x", Unsupported, "CREATE MATERIALIZED is not supported"),
    ],
)
def test_what_materialized_views_do_not_have(text, error, told):
    with pytest.raises(error) as refused:
        parse(text)
    assert told in str(refused.value)
