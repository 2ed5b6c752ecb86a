"""MERGE INTO."""

from __future__ import annotations

import pytest

from shelduck.doors.sql.parse import parse
from shelduck.errors import InvalidRequest
from shelduck.text.tokens.parts import Assignment, Expression, NamedTable, Query, Relation, Target
from shelduck.write.merge.merge_clauses import MergeAction, When
from shelduck.write.statement.merge_into import MergeStatement, WrittenClause

MATCHED, NEW, ALONE = When.MATCHED, When.NOT_MATCHED, When.NOT_MATCHED_BY_SOURCE
UPDATE, INSERT, DELETE = MergeAction.UPDATE, MergeAction.INSERT, MergeAction.DELETE
T, S = NamedTable(("t",)), NamedTable(("s",))
ROWS = Target(T, "__lake_target__", "t")
SOURCE = Query("SELECT * FROM __lake_0__", (Relation(S, "__lake_0__"),))
HEAD = "MERGE INTO t USING s ON t.id = s.id "
ON = Expression("t.id = s.id")


def one(text):
    (found,) = parse(text)
    assert isinstance(found, MergeStatement)
    return found


def test_all_clauses_are_read_in_the_order_of_their_kind():
    found = one(
        "MERGE WITH SCHEMA EVOLUTION INTO main.t AS a USING s b ON a.id = b.id AND b.x > 0"
        " WHEN MATCHED AND b.gone THEN DELETE"
        " WHEN MATCHED AND CASE WHEN b.v = 1 THEN true ELSE false END"
        " THEN UPDATE SET a.v = CASE WHEN b.w THEN 1 END, st.f = DEFAULT"
        " WHEN MATCHED THEN UPDATE SET *"
        " WHEN NOT MATCHED AND b.v > 1 THEN INSERT (id, v) VALUES (b.id, DEFAULT)"
        " WHEN NOT MATCHED BY TARGET THEN INSERT *"
        " WHEN NOT MATCHED BY SOURCE AND a.v = 1 THEN UPDATE SET v = a.v + 1"
        " WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    assert found == MergeStatement(
        Target(NamedTable(("main", "t")), "__lake_target__", "a"),
        SOURCE,
        "b",
        Expression("a.id = b.id AND b.x > 0"),
        (
            WrittenClause(MATCHED, DELETE, Expression("b.gone")),
            WrittenClause(
                *(MATCHED, UPDATE, Expression("CASE WHEN b.v = 1 THEN true ELSE false END")),
                (
                    Assignment(("a", "v"), Expression("CASE WHEN b.w THEN 1 END")),
                    Assignment(("st", "f"), None),
                ),
            ),
            WrittenClause(MATCHED, UPDATE, assignments=None),
            WrittenClause(
                *(NEW, INSERT, Expression("b.v > 1")),
                (Assignment(("id",), Expression("b.id")), Assignment(("v",), None)),
            ),
            WrittenClause(NEW, INSERT, assignments=None),
            WrittenClause(
                *(ALONE, UPDATE, Expression("a.v = 1")),
                (Assignment(("v",), Expression("a.v + 1")),),
            ),
            WrittenClause(ALONE, DELETE),
        ),
        schema_evolution=True,
    )


@pytest.mark.parametrize(
    ("using", "source", "alias"),
    [
        ("s", SOURCE, "s"),
        ("s AS b", SOURCE, "b"),
        (
            "x.s VERSION AS OF 3",
            Query(
                "SELECT * FROM __lake_0__",
                (Relation(NamedTable(("x", "s")), "__lake_0__", version=3),),
            ),
            "s",
        ),
        (
            "s TIMESTAMP AS OF '2024-01-01' b",
            Query("SELECT * FROM __lake_0__", (Relation(S, "__lake_0__", timestamp="2024-01-01"),)),
            "b",
        ),
        (
            "(SELECT * FROM s, t WHERE s.id = t.id) AS b",
            Query(
                "SELECT * FROM __lake_0__ AS `s`, __lake_1__ AS `t` WHERE s.id = t.id",
                (Relation(S, "__lake_0__"), Relation(T, "__lake_1__")),
            ),
            "b",
        ),
        (
            "(WITH c AS (SELECT * FROM s) SELECT * FROM c)",
            Query(
                "WITH c AS (SELECT * FROM __lake_0__ AS `s`) SELECT * FROM c",
                (Relation(S, "__lake_0__"),),
            ),
            None,
        ),
        ("((SELECT 1 AS id)) b", Query("(SELECT 1 AS id)"), "b"),
        ("(VALUES (1)) b", Query("VALUES (1)"), "b"),
    ],
)
def test_a_source_is_a_table_or_a_query(using, source, alias):
    found = one(f"MERGE INTO t USING {using} ON true WHEN MATCHED THEN DELETE")
    assert (found.source, found.source_alias) == (source, alias)
    assert found.target == ROWS
    assert found.condition == Expression("true")


def test_two_tables_of_one_name_stay_apart_by_their_schemas():
    found = one(
        "MERGE INTO a.t USING b.t ON a.t.id = b.t.id WHEN MATCHED THEN UPDATE SET a.t.x = b.t.x"
    )
    assert found.target.source == "__lake_target__ AS `a.t`"
    assert found.source_alias == "b.t"
    assert found.condition.text == "`a.t`.id = `b.t`.id"
    (assignment,) = found.clauses[0].assignments
    assert assignment.value.text == "`b.t`.x"
    assert found.target.column(assignment.path, ["id", "x"]) == ("x",)


def test_the_same_table_has_one_placeholder_but_for_the_target():
    found = one(
        "MERGE INTO t USING s ON t.id = (SELECT max(id) FROM s)"
        " WHEN MATCHED AND EXISTS (TABLE t) THEN UPDATE SET x = (SELECT 1 FROM u)"
    )
    assert found.source.text == "SELECT * FROM __lake_0__"
    assert found.condition.text == "t.id = (SELECT max(id) FROM __lake_0__ AS `s`)"
    assert found.condition.relations == (Relation(S, "__lake_0__"),)
    assert found.clauses[0].condition == Expression(
        "EXISTS (TABLE __lake_1__)", (Relation(T, "__lake_1__"),)
    )
    assert found.clauses[0].assignments[0].value == Expression(
        "(SELECT 1 FROM __lake_2__ AS `u`)", (Relation(NamedTable(("u",)), "__lake_2__"),)
    )


def test_clauses_of_different_kinds_may_stand_in_any_order():
    found = one(f"{HEAD} WHEN NOT MATCHED THEN INSERT * WHEN MATCHED THEN DELETE")
    assert found.clauses == (
        WrittenClause(NEW, INSERT, assignments=None),
        WrittenClause(MATCHED, DELETE),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MERGE t", "expected INTO at line 1, column 7"),
        ("MERGE INTO t ON true", "expected USING at line 1"),
        ("MERGE INTO t USING s WHEN MATCHED THEN DELETE", "expected ON at line 1, column 27"),
        ("MERGE INTO t USING s ON WHEN MATCHED THEN DELETE", "expected a condition at line 1"),
        ("MERGE INTO t USING (s) ON true", "expected a query: SELECT, WITH, FROM, VALUES or TABLE"),
        (
            "MERGE INTO t USING range(3) ON true",
            "expected a table, or a query in brackets: (SELECT ...)",
        ),
        (HEAD, "expected WHEN MATCHED or WHEN NOT MATCHED at line 1"),
        (HEAD + "WHEN FOUND THEN DELETE", "expected MATCHED or NOT MATCHED at line 1, column 42"),
        (HEAD + "WHEN NOT MATCHED BY ME THEN DELETE", "expected TARGET or SOURCE"),
        (HEAD + "WHEN MATCHED DELETE", "expected THEN at line 1"),
        (HEAD + "WHEN MATCHED THEN INSERT *", "expected UPDATE or DELETE"),
        (HEAD + "WHEN NOT MATCHED THEN DELETE", "expected INSERT (WHEN NOT MATCHED has no row"),
        (
            HEAD + "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *",
            "expected a column (WHEN NOT MATCHED BY SOURCE has no source row for *)",
        ),
        (HEAD + "WHEN NOT MATCHED THEN INSERT VALUES 1", "expected the end of the statement"),
        (HEAD + "WHEN MATCHED THEN DO", "expected UPDATE or DELETE"),
        ("MERGE INTO t USING s USING (a, A) WHEN MATCHED THEN DELETE", "each column only once"),
        (
            HEAD + "WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)",
            "expected 2 values, one for each column",
        ),
        (HEAD + "WHEN NOT MATCHED THEN INSERT (a, A) VALUES (1, 2)", "each column only once"),
        (HEAD + "WHEN NOT MATCHED THEN INSERT (a) VALUES ()", "expected a value at line 1"),
        (
            HEAD + "WHEN MATCHED THEN DELETE WHEN MATCHED AND a THEN DELETE",
            (
                "expected no further WHEN MATCHED (the previous one has no condition and"
                " takes every row)"
            ),
        ),
        (
            HEAD + "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY TARGET THEN INSERT *",
            "expected no further WHEN NOT MATCHED (",
        ),
        (HEAD + "WHEN MATCHED THEN DELETE x", "expected the end of the statement"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(text, message):
    with pytest.raises(InvalidRequest) as caught:
        parse(text)
    assert message in str(caught.value)


def test_an_alias_may_name_the_columns():
    found = one("MERGE INTO t USING (SELECT 1) AS s (id) ON true WHEN MATCHED THEN DELETE")
    assert found.source == Query("SELECT * FROM (SELECT 1) AS `s`(`id`)")
    assert found.source_alias == "s"


@pytest.mark.parametrize(
    ("words", "action"),
    [
        ("UPDATE", (UPDATE, None, True)),
        ("UPDATE BY POSITION", (UPDATE, None, True)),
        ("UPDATE BY NAME", (UPDATE, None)),
        ("UPDATE SET *", (UPDATE, None)),
        ("DO NOTHING", (MergeAction.NOTHING, ())),
        ("ERROR", (MergeAction.ERROR, (), False, "MERGE: WHEN MATCHED")),
        ("ERROR 'no'", (MergeAction.ERROR, (), False, "no")),
    ],
)
def test_duckdbs_actions_are_read(words, action):
    found = one(f"MERGE INTO t USING s USING (id, `b c`) WHEN MATCHED THEN {words}")
    assert found.condition == ("id", "b c")
    assert found.clauses == (WrittenClause(MATCHED, action[0], None, *action[1:]),)


@pytest.mark.parametrize(
    ("words", "action"),
    [
        ("INSERT", (INSERT, None, True)),
        ("INSERT BY NAME", (INSERT, None)),
        (
            "INSERT VALUES (s.a, DEFAULT)",
            (INSERT, (Assignment((), Expression("s.a")), Assignment((), None))),
        ),
        ("DO NOTHING", (MergeAction.NOTHING, ())),
    ],
)
def test_duckdbs_insertions_are_read(words, action):
    found = one(f"{HEAD} WHEN NOT MATCHED THEN {words}")
    assert found.clauses == (WrittenClause(NEW, action[0], None, *action[1:]),)
