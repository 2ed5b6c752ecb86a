"""CREATE MACRO, and the text that a call of a macro stands for."""

from __future__ import annotations

import pytest

from shelduck.doors.sql.parse import parse
from shelduck.errors import InvalidRequest
from shelduck.model.tables.view import MacroKind, MacroParameter
from shelduck.text.query.macro_calls import Macro, MacroForm, expanded, qualified

SCALARS = {
    "inc": Macro("main.inc", (MacroForm((("x", None),), (), "x + 1"),)),
    "whole": Macro("main.whole", (MacroForm((("x", "int"),), ("'7'",), "x"),)),
    "two": Macro("main.two", (MacroForm((("a", None), ("b", None)), ("5",), "inc(a) * b"),)),
    "loop": Macro("main.loop", (MacroForm((("x", None),), (), "1 + LOOP(x)"),)),
    "field": Macro("main.field", (MacroForm((("s", None),), (), "s.a + t.s"),)),
    "low": Macro(
        "main.low", (MacroForm((("n", None),), (), "(SELECT min(k) FROM u WHERE k > n)"),)
    ),
}
TABLES = {
    "rows": Macro("main.rows", (MacroForm((("n", None),), (), "SELECT a AS n FROM t LIMIT n"),))
}


def lookup(parts, kind):
    return (TABLES if kind is MacroKind.TABLE else SCALARS).get(parts[-1].lower())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT a FROM t", "SELECT a FROM t"),
        ("SELECT inc(a) FROM t", "SELECT (a + 1) AS `inc(a)` FROM t"),
        ("SELECT INC(a) AS b FROM t", "SELECT (a + 1) AS b FROM t"),
        ("SELECT inc(a) b, 2 FROM t", "SELECT (a + 1) b, 2 FROM t"),
        ("SELECT f(inc(inc(1)), 2)", "SELECT f((((1 + 1)) + 1), 2)"),
        ("SELECT main.inc(a - 1) * 2", "SELECT ((a - 1) + 1) * 2"),
        ("SELECT two(1), 3", "SELECT ((1 + 1) * 5) AS `two(1)`, 3"),
        ("SELECT two(b => 1, a := 2) x", "SELECT ((2 + 1) * 1) x"),
        (
            "SELECT whole(1 + 1) x, whole() y",
            "SELECT ((CAST(1 + 1 AS int))) x, ((CAST('7' AS int))) y",
        ),
        ("SELECT 'inc(1)', `inc`, inc FROM inc", "SELECT 'inc(1)', `inc`, inc FROM inc"),
        ("SELECT field(v) x FROM t", "SELECT (v.a + t.s) x FROM t"),
        ("DELETE FROM t WHERE inc(a) = 2", "DELETE FROM t WHERE (a + 1) = 2"),
        ("SELECT * FROM rows(2)", "SELECT * FROM (SELECT a AS n FROM t LIMIT 2) AS `rows`"),
        ("SELECT * FROM rows(2) r", "SELECT * FROM (SELECT a AS n FROM t LIMIT 2) r"),
        (
            "SELECT * FROM u, rows(2) WHERE x",
            "SELECT * FROM u, (SELECT a AS n FROM t LIMIT 2) AS `rows` WHERE x",
        ),
        ("SELECT rows(2)", "SELECT rows(2)"),
        ("SELECT extract(day FROM inc(d)) x", "SELECT extract(day FROM (d + 1)) x"),
        ("SELECT a IS DISTINCT FROM inc(b)", "SELECT a IS DISTINCT FROM (b + 1)"),
        ("SELECT low(v.k) x FROM v", "SELECT ((SELECT min(k) FROM u WHERE k > (v.k))) x FROM v"),
    ],
)
def test_a_call_becomes_the_text_of_its_macro(text, found):
    assert expanded(text, lookup) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT inc()", r"macro main.inc does not take \(\); its parameters are \(x\)"),
        ("SELECT inc(1, 2)", r"does not take \(1, 2\)"),
        ("SELECT inc(y := 2)", r"does not take \(y := 2\)"),
        ("SELECT two(1, 2, 3)", r"its parameters are \(a, b := 5\)"),
        ("SELECT loop(1)", "main.loop → main.loop; change one of these"),
        ("SELECT low(k)", "may take the column k of its argument"),
        ("SELECT low(1 + u.k) FROM u", "may take the column u.k of its argument"),
    ],
)
def test_a_call_that_does_not_fit_is_refused(text, said):
    with pytest.raises(InvalidRequest, match=said):
        expanded(text, lookup)


def test_tables_of_a_body_get_a_schema_and_a_catalog():
    text = "SELECT * FROM t JOIN s.u x ON t.a = x.a, c.s.w"
    assert qualified(text, "main") == (
        "SELECT * FROM `main`.t AS `t` JOIN s.u x ON t.a = x.a, c.s.w"
    )
    assert qualified(text, "main", "lake") == (
        "SELECT * FROM `lake`.`main`.t AS `t` JOIN `lake`.s.u x ON t.a = x.a, c.s.w"
    )


def test_changes_in_a_body_are_those_of_its_schema():
    text = "SELECT t.a FROM t CHANGES FROM VERSION 1 EXCLUSIVE, table_changes('t', 1) c"
    assert qualified(text, "main") == (
        "SELECT t.a FROM `main`.t CHANGES FROM VERSION 1 EXCLUSIVE AS `t`, table_changes('t', 1) c"
    )


def test_forms_and_parameters_are_read():
    [made] = parse(
        "CREATE OR REPLACE MACRO s.m(a, b INT, c TEXT := 'x', d := -1.5) AS concat(a, (b)),"
        " (a) AS (SELECT a, (b) AS c FROM t)"
    )
    assert made.or_replace
    assert made.kind is MacroKind.SCALAR
    assert [form.text for form in made.forms] == ["concat(a, (b))", "(SELECT a, (b) AS c FROM t)"]
    assert made.forms[0].parameters == (
        MacroParameter("a"),
        MacroParameter("b", "int32"),
        MacroParameter("c", "varchar", "x", "varchar"),
        MacroParameter("d", default="-1.5", default_type="decimal(2,1)"),
    )
    [made] = parse("CREATE FUNCTION m() AS TABLE SELECT 1, (2) AS b FROM t")
    assert made.kind is MacroKind.TABLE
    assert [form.text for form in made.forms] == ["SELECT 1, (2) AS b FROM t"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CREATE MACRO m(a, A) AS 1", "each column only once"),
        ("CREATE MACRO m(a := 1, b) AS 1", "parameters with defaults last"),
        ("CREATE MACRO m(a := f(1)) AS 1", "a literal"),
        ("CREATE MACRO m(a := NULL) AS 1", "a constant"),
        ("CREATE MACRO m(a) AS", "an expression"),
        ("CREATE MACRO m(a) AS TABLE", "a query"),
        ("CREATE MACRO m(a) AS 1, (b) AS 2", "another number of parameters"),
        ("CREATE MACRO m(a) AS 1, (a, b) AS TABLE SELECT 2", "a form of a scalar macro"),
        ("DROP MACRO", "a table"),
    ],
)
def test_what_is_no_macro_is_refused(text, said):
    with pytest.raises(InvalidRequest, match=said):
        parse(text)
