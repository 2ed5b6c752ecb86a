"""Texts of views that go from one schema to another, and back."""

from __future__ import annotations

import pytest

from shelduck.errors import Unsupported
from shelduck.model.text.names import schema_word
from shelduck.text.query.translate import Move, moved

THERE = Move("main", "b", {"left"})
BACK = Move("b", "main")
OWN = "{DUCKLAKE_CATALOG}"
DUCKDB = {
    "SELECT * FROM t": "SELECT * FROM t",
    "SELECT * FROM MAIN.t": 'SELECT * FROM "b".t',
    f"SELECT * FROM {OWN}.t": f'SELECT * FROM {OWN}."b".t',
    f'SELECT "t"."x" FROM {OWN}."main"."t" AS "t"': f'SELECT "t"."x" FROM {OWN}."b"."t" AS "t"',
    "SELECT main.t.x FROM main.t": 'SELECT "b".t.x FROM "b".t',
    "SELECT main.s.x FROM main.t": 'SELECT main.s.x FROM "b".t',
    "SELECT * FROM left, main.left": 'SELECT * FROM "main".left, main.left',
    "SELECT * FROM 'x.csv', t": "SELECT * FROM 'x.csv', t",
    "SELECT * FROM other.t, db.main.t": "SELECT * FROM other.t, db.main.t",
    "WITH left AS (FROM main.t) FROM left": 'WITH left AS (FROM "b".t) FROM left',
    "SELECT main.f(x) FROM t AT (VERSION => 2)": 'SELECT main.f(x) FROM "main".t AT (VERSION => 2)',
    "SELECT 'main.t', error('FROM main.t')": "SELECT 'main.t', error('FROM main.t')",
    "SELECT * FROM (PIVOT main.t ON x IN (1) USING sum(y))": (
        'SELECT * FROM (PIVOT "b".t ON x IN (1) USING sum(y))'
    ),
}
SPARK = {
    "SELECT * FROM `main`.`t` AS `t`": "SELECT * FROM `b`.`t` AS `t`",
    "SELECT * FROM main.t VERSION AS OF 2": "SELECT * FROM main.t VERSION AS OF 2",
    "SELECT * FROM t VERSION AS OF 2": "SELECT * FROM `main`.t VERSION AS OF 2",
    "WITH q AS (FROM main.t) SELECT * FROM q JOIN left": (
        "WITH q AS (FROM `b`.t) SELECT * FROM q JOIN `main`.left"
    ),
    "SELECT 1 WHERE 1 IN (SELECT x FROM other.t, main.t)": (
        "SELECT 1 WHERE 1 IN (SELECT x FROM other.t, `b`.t)"
    ),
}


@pytest.mark.parametrize("text", DUCKDB)
def test_duckdbs_text_names_tables_of_the_other_schema(text):
    assert moved(text, "duckdb", THERE) == DUCKDB[text]


@pytest.mark.parametrize("text", SPARK)
def test_sparks_text_names_tables_of_the_other_schema(text):
    assert moved(text, "spark", THERE) == SPARK[text]


def test_a_text_comes_back_as_it_was_if_it_was_written_so():
    for dialect, text in (
        ("duckdb", f'SELECT "t"."x" FROM {OWN}."main"."t" AS "t"'),
        ("spark", "SELECT * FROM `main`.`t` AS `t`"),
    ):
        assert moved(moved(text, dialect, THERE), dialect, BACK) == text
    assert moved("SELECT b.t.x FROM b.t", "duckdb", BACK) == "SELECT main.t.x FROM main.t"


def test_schemas_may_be_inside_schemas():
    move = Move(schema_word(["a", "b"]), "c")
    assert moved("SELECT * FROM `a`.b.t, b.t", "spark", move) == "SELECT * FROM `c`.t, b.t"
    assert moved(f"SELECT * FROM {OWN}.a.b.t", "duckdb", move) == f'SELECT * FROM {OWN}."c".t'


def test_a_scalar_expression_is_a_text_of_its_own():
    text = "(x + (SELECT max(y) FROM main.t))"
    found = '(x + (SELECT max(y) FROM "b".t))'
    assert moved(text, "duckdb", THERE, is_scalar=True) == found


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("SELECT FROM WHERE", "duckdb"),
        ("SELECT (1", "spark"),
        ("SELECT * FROM snapshots()", "spark"),
    ],
)
def test_a_text_that_nobody_reads_goes_nowhere(text, dialect):
    with pytest.raises(Unsupported, match="its text cannot be read"):
        moved(text, dialect, THERE)
