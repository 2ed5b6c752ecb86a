"""INSERT with its modes, DELETE, TRUNCATE and UPDATE."""

from __future__ import annotations

import pytest

from shelduck.doors.sql.parse import parse
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.text.tokens.arguments import text_of
from shelduck.text.tokens.parts import (
    Assignment,
    Expression,
    NamedTable,
    Query,
    Relation,
    Selection,
    Target,
)
from shelduck.write.merge.merge_clauses import MergeAction, When
from shelduck.write.statement.delete_and_update import (
    Delete,
    DeleteUsing,
    Truncate,
    Update,
    UpdateFrom,
)
from shelduck.write.statement.insert_into import Insert, PartitionValue
from shelduck.write.statement.merge_into import WrittenClause
from shelduck.write.statement.returning import Returning

T = NamedTable(("t",))
ROWS = Target(T, "__lake_target__", "t")


def relations(*names):
    return tuple(
        Relation(NamedTable(tuple(n.split("."))), f"__lake_{i}__") for i, n in enumerate(names)
    )


def expression(text, *names):
    return Expression(text, relations(*names))


def one(text):
    (found,) = parse(text)
    return found


STATEMENTS = [
    ("DELETE FROM t", Delete(Selection(ROWS))),
    ("delete from t where id = 1 -- all", Delete(Selection(ROWS, expression("id = 1")))),
    (
        "DELETE FROM main.t AS a WHERE a.id IN (SELECT id FROM u)",
        Delete(
            Selection(
                Target(NamedTable(("main", "t")), "__lake_target__", "a"),
                expression("a.id IN (SELECT id FROM __lake_0__ AS `u`)", "u"),
            )
        ),
    ),
    (
        "DELETE FROM main.t WHERE main.t.id = 1 OR t.id = 2",
        Delete(
            Selection(
                Target(NamedTable(("main", "t")), "__lake_target__", "t"),
                expression("`t`.id = 1 OR t.id = 2"),
            )
        ),
    ),
    (
        "DELETE FROM t WHERE id > (SELECT max(id) FROM t)",
        Delete(Selection(ROWS, expression("id > (SELECT max(id) FROM __lake_0__ AS `t`)", "t"))),
    ),
    (
        "DELETE FROM t WHERE limit > 5 AND x IS DISTINCT FROM order",
        Delete(Selection(ROWS, expression("limit > 5 AND x IS DISTINCT FROM order"))),
    ),
    ("TRUNCATE t", Truncate(NamedTable(("t",)))),
    ("TRUNCATE main.t", Truncate(NamedTable(("main", "t")))),
    ("TRUNCATE table", Truncate(NamedTable(("table",)))),
    ("TRUNCATE TABLE main.t", Truncate(NamedTable(("main", "t")))),
    (
        "UPDATE t SET a = 1, s.f = CASE WHEN b THEN 'x, y' ELSE f(a, 2) END, c = DEFAULT",
        Update(
            Selection(ROWS),
            (
                Assignment(("a",), expression("1")),
                Assignment(("s", "f"), expression("CASE WHEN b THEN 'x, y' ELSE f(a, 2) END")),
                Assignment(("c",), None),
            ),
        ),
    ),
    (
        "UPDATE t x SET x.a = (SELECT max(a) FROM u) WHERE x.b = DEFAULT",
        Update(
            Selection(Target(T, "__lake_target__", "x"), expression("x.b = DEFAULT")),
            (Assignment(("x", "a"), expression("(SELECT max(a) FROM __lake_0__ AS `u`)", "u")),),
        ),
    ),
    (
        "UPDATE t SET a = b IS DISTINCT FROM c, d = 2",
        Update(
            Selection(ROWS),
            (
                Assignment(("a",), expression("b IS DISTINCT FROM c")),
                Assignment(("d",), expression("2")),
            ),
        ),
    ),
    (
        "INSERT WITH SCHEMA EVOLUTION INTO t BY NAME SELECT 1 AS a",
        Insert(T, Query("SELECT 1 AS a"), by_name=True, schema_evolution=True),
    ),
    (
        "INSERT OVERWRITE TABLE t PARTITION (p = DATE '2024-01-01', n = -1, q) (a, b) SELECT 1, 2",
        Insert(
            T,
            Query("SELECT 1, 2"),
            columns=("a", "b"),
            mode="overwrite",
            partition=(
                PartitionValue("p", "DATE '2024-01-01'"),
                PartitionValue("n", "-1"),
                PartitionValue("q"),
            ),
        ),
    ),
    (
        "INSERT INTO t PARTITION (p = NULL) VALUES (1)",
        Insert(T, Query("VALUES (1)"), partition=(PartitionValue("p", "NULL"),)),
    ),
    (
        "INSERT INTO t REPLACE WHERE a IN (SELECT x FROM u) AND b = 1 SELECT * FROM v",
        Insert(
            T,
            Query("SELECT * FROM __lake_1__ AS `v`", relations("u", "v")[1:]),
            mode="replace_where",
            replaced=Selection(
                ROWS, expression("a IN (SELECT x FROM __lake_0__ AS `u`) AND b = 1", "u")
            ),
        ),
    ),
    (
        "INSERT INTO t BY NAME REPLACE WHERE a = 1 (SELECT 1 AS a)",
        Insert(
            T,
            Query("(SELECT 1 AS a)"),
            by_name=True,
            mode="replace_where",
            replaced=Selection(ROWS, expression("a = 1")),
        ),
    ),
    (
        "INSERT INTO t REPLACE WHERE a IS NOT DISTINCT FROM 1 FROM u SELECT a",
        Insert(
            T,
            Query("FROM __lake_0__ AS `u` SELECT a", relations("u")),
            mode="replace_where",
            replaced=Selection(ROWS, expression("a IS NOT DISTINCT FROM 1")),
        ),
    ),
    (
        "INSERT INTO t REPLACE WHERE a = 1 WITH x AS (SELECT 1) SELECT * FROM x",
        Insert(
            T,
            Query("WITH x AS (SELECT 1) SELECT * FROM x"),
            mode="replace_where",
            replaced=Selection(ROWS, expression("a = 1")),
        ),
    ),
]


@pytest.mark.parametrize(("text", "statement"), STATEMENTS)
def test_a_statement_is_read(text, statement):
    assert parse(text) == [statement]


def test_time_travel_inside_a_condition_is_a_relation_of_its_own():
    found = one("DELETE FROM t WHERE EXISTS (SELECT 1 FROM t VERSION AS OF 3 o WHERE o.id = t.id)")
    assert found.rows.condition == Expression(
        "EXISTS (SELECT 1 FROM __lake_0__ o WHERE o.id = t.id)",
        (Relation(T, "__lake_0__", version=3),),
    )


def test_two_tables_of_one_name_stay_apart_by_their_schemas():
    found = one("DELETE FROM a.t WHERE EXISTS (SELECT 1 FROM b.t WHERE b.t.x = a.t.x)")
    assert found.rows.target.source == "__lake_target__ AS `a.t`"
    assert found.rows.condition.text == (
        "EXISTS (SELECT 1 FROM __lake_0__ AS `b.t` WHERE `b.t`.x = `a.t`.x)"
    )


def test_expressions_of_one_statement_share_no_placeholder():
    found = one("UPDATE t SET a = (SELECT max(x) FROM u), b = (SELECT max(x) FROM v) WHERE c")
    assert [a.value.relations for a in found.assignments] == [
        (Relation(NamedTable(("u",)), "__lake_0__"),),
        (Relation(NamedTable(("v",)), "__lake_1__"),),
    ]


def test_a_selection_is_a_query_over_the_target_and_what_its_condition_reads():
    found = one("DELETE FROM main.t AS `a b` WHERE id = 1 OR id IN (TABLE u)")
    assert found.rows.query("id, 2") == Query(
        "SELECT id, 2 FROM __lake_target__ AS `a b` WHERE (id = 1 OR id IN (TABLE __lake_0__))",
        relations("u"),
    )
    assert one("DELETE FROM t").rows.query() == Query("SELECT * FROM __lake_target__ AS `t`")


def test_a_path_is_told_from_alias_and_table_as_spark_does():
    target = one("DELETE FROM main.t WHERE t.id = 1").rows.target
    assert target.column(("t", "ID"), ["id"]) == ("ID",)
    assert target.column(("main", "t", "id", "f"), ["id"]) == ("id", "f")
    assert target.column(("t", "id"), ["t", "x"]) == ("t", "id")
    assert target.column(("t",), ["t"]) == ("t",)
    aliased = one("DELETE FROM main.t a WHERE a.id = 1").rows.target
    assert aliased.column(("a", "id"), ["id"]) == ("id",)
    assert aliased.column(("t", "id"), ["id"]) == ("t", "id")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DELETE t", "expected FROM at line 1, column 8, but found 't'"),
        ("DELETE FROM t WHERE", "expected a condition at line 1, column 20, but the statement"),
        ("DELETE FROM t WHERE (a", "expected a closing bracket at line 1, column 23"),
        ("DELETE FROM t WHERE a)", "the ')' at line 1, column 22 has no opening bracket"),
        ("DELETE FROM t WHERE CASE WHEN a THEN b", "expected END of CASE"),
        ("DELETE FROM t x y", "expected the end of the statement at line 1, column 17"),
        (
            "DELETE FROM t VERSION AS OF 3",
            "expected a table without VERSION AS OF or TIMESTAMP AS OF (old versions cannot be",
        ),
        ("TRUNCATE", "expected a table at line 1, column 9"),
        ("UPDATE t WHERE a = 1", "expected SET at line 1, column 16"),
        ("UPDATE t SET", "expected a column at line 1, column 13"),
        ("UPDATE t SET a", "expected = at line 1, column 15"),
        ("UPDATE t SET a = , b = 2", "expected a value at line 1, column 18, but found ','"),
        ("UPDATE t SET a = 1, A = 2", "expected each column only once at line 1, column 21"),
        ("UPDATE t SET s.f = 1, s = NULL", "expected each column only once"),
        ("UPDATE t SET a = 1 WHERE", "expected a condition"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(text, message):
    with pytest.raises(InvalidRequest) as caught:
        parse(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DELETE FROM t USING u, v WHERE t.a = u.a", "more than one source is not supported"),
        ("DELETE FROM t WHERE a = 1 LIMIT 5", "select the rows in a subquery"),
        ("DELETE FROM t WHERE a IN (1) ORDER BY b", "select the rows in a subquery"),
        ("DELETE FROM t AS x (a, b) WHERE a = 1", "an alias with columns is not supported"),
        ("UPDATE t SET a = u.a FROM u JOIN v ON true", "write them as a query: (SELECT"),
        ("DELETE FROM t WHERE a FROM u", "FROM after an expression is not supported"),
    ],
)
def test_what_is_not_supported_says_so(text, message):
    with pytest.raises(Unsupported) as caught:
        parse(text)
    assert message in str(caught.value)


def test_update_from_is_a_merge_that_updates():
    found = one("UPDATE t AS x SET a = u.b, c = DEFAULT FROM u AT (VERSION => 3) WHERE x.k = u.k")
    assert isinstance(found, UpdateFrom)
    assert found.target.alias == "x"
    assert found.source == Query(
        "SELECT * FROM __lake_0__", (Relation(NamedTable(("u",)), "__lake_0__", 3),)
    )
    assert (found.source_alias, found.condition) == ("u", Expression("x.k = u.k"))
    values = (Assignment(("a",), Expression("u.b")), Assignment(("c",), None))
    made = WrittenClause(When.MATCHED, MergeAction.UPDATE, assignments=values)
    assert found.clauses == (made,)


def test_from_of_a_comparison_is_no_source():
    found = one("UPDATE t SET a = b IS DISTINCT FROM c, d = extract(year FROM e) WHERE f")
    assert isinstance(found, Update)
    assert [a.value.text for a in found.assignments] == [
        "b IS DISTINCT FROM c",
        "extract(year FROM e)",
    ]


def test_delete_using_is_a_merge_that_deletes():
    found = one("DELETE FROM s.t USING (VALUES (1)) AS u(k) WHERE t.k = u.k")
    assert isinstance(found, DeleteUsing)
    assert found.source == Query("SELECT * FROM (VALUES (1)) AS `u`(`k`)")
    assert found.clauses == (WrittenClause(When.MATCHED, MergeAction.DELETE),)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("INSERT INTO s.t SELECT 1 RETURNING *", "SELECT * FROM __lake_0__ AS `t`"),
        (
            "DELETE FROM t x WHERE a RETURNING x.a, b + 1 AS c",
            "SELECT x.a, b + 1 AS c FROM __lake_0__ AS `x`",
        ),
        ("UPDATE t SET a = 1 RETURNING a", "SELECT a FROM __lake_0__ AS `t`"),
        (
            (
                "MERGE INTO t USING u USING (a) WHEN MATCHED THEN DELETE"
                " RETURNING merge_action, t.*, a * 2"
            ),
            "SELECT merge_action, t.* EXCEPT (merge_action), a * 2 FROM __lake_0__ AS `t`",
        ),
    ],
)
def test_returning_is_a_query_over_the_changed_rows(text, rows):
    found = one(text)
    assert isinstance(found, Returning)
    assert found.rows.text == rows
    assert [str(r.name) for r in found.rows.relations] == [found.changed]


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET returning = 1",
        "INSERT INTO t SELECT returning FROM u",
        "DELETE FROM t WHERE t.returning",
        "INSERT INTO t SELECT a AS returning FROM u",
        "DELETE FROM t WHERE (a RETURNING b)",
    ],
)
def test_a_column_may_be_called_returning(text):
    assert not isinstance(one(text), Returning)


@pytest.mark.parametrize(
    ("statement", "targets"),
    [
        ("INSERT INTO t SELECT 1, 2, 3", ("k", "p", "v")),
        ("INSERT INTO t PARTITION (p) SELECT 1, 2, 3", ("k", "p", "v")),
        ("INSERT INTO t PARTITION (P = 1) SELECT 1, 3", ("k", "v")),
        ("INSERT INTO t PARTITION (p = 1, k) SELECT 1, 3", ("k", "v")),
        ("INSERT INTO t PARTITION (p = 1) (v) SELECT 3", ("v",)),
    ],
)
def test_a_partition_clause_moves_no_column_of_a_query(statement, targets):
    [found] = parse(statement)
    assert found.targets(("k", "p", "v")) == targets


@pytest.mark.parametrize(
    ("literal", "text"), [("'7'", "7"), ("7", None), ("-1", None), ("DATE '2026-01-31'", None)]
)
def test_a_literal_may_be_a_text(literal, text):
    assert text_of(literal) == text
