"""Whose a statement is in a session with lakes, and what its names mean there."""

from __future__ import annotations

import pytest

from shelduck.doors.sql.catalogs import LakeNames, owner, temporary_view, within, without_catalog
from shelduck.doors.sql.parse import parse
from shelduck.text.tokens.parts import SessionName

ELSEWHERE = LakeNames({"lake", "two"}, "spark_catalog", lambda name: name == "tv")
INSIDE = LakeNames({"lake", "two"}, "lake", lambda name: name == "tv")
REMOTE = LakeNames({"lake"}, "spark_catalog", lambda _: False, reads=False)


def only(text):
    [statement] = parse(text)
    return statement


@pytest.mark.parametrize(
    ("text", "elsewhere", "inside"),
    [
        ("UPDATE lake.main.t SET a = 1", "lake", "lake"),
        ("UPDATE LAKE.main.t SET a = 1", "lake", "lake"),
        ("UPDATE two.main.t SET a = (SELECT max(a) FROM lake.main.t)", "two", "two"),
        ("UPDATE main.t SET a = 1", None, "lake"),
        ("UPDATE t SET a = 1", None, "lake"),
        ("DELETE FROM spark_catalog.default.t", None, None),
        ("INSERT INTO lake.main.t SELECT * FROM s", "lake", "lake"),
        ("CREATE TABLE d.t AS SELECT * FROM lake.main.t", None, "lake"),
        ("CREATE TABLE other.d.t AS SELECT * FROM lake.main.t", None, None),
        ("ALTER TABLE lake.main.t RENAME TO lake.main.u", "lake", "lake"),
        ("CREATE SCHEMA lake.s", "lake", "lake"),
        ("CREATE SCHEMA s", None, "lake"),
        ("DROP SCHEMA two.s CASCADE", "two", "two"),
        ("DESCRIBE lake.main.t", "lake", "lake"),
        ("SHOW CREATE TABLE two.main.t", "two", "two"),
        ("CALL lake.system.compact('t')", "lake", "lake"),
        ("CALL compact('t')", None, "lake"),
        # Spark's own are right, and are what its users know.
        ("SELECT * FROM lake.main.t", None, None),
        ("SHOW TABLES IN lake.main", None, None),
        ("USE lake.main", None, None),
        ("EXPLAIN SELECT * FROM lake.main.t", None, None),
        ("SELECT * FROM table_changes('lake.main.t', 1)", "lake", "lake"),
        ("SELECT * FROM table_changes('main.t', 1)", None, "lake"),
        ("SELECT * FROM lake.main.t CHANGES FROM VERSION 1", "lake", "lake"),
    ],
)
def test_the_lake_of_the_target_runs_what_spark_cannot(text, elsewhere, inside):
    statement = only(text)
    assert (owner(statement, ELSEWHERE), owner(statement, INSIDE)) == (elsewhere, inside)


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO {} VALUES (1)",
        "UPDATE {} SET a = 1",
        "DELETE FROM {}",
        "MERGE INTO {} AS x USING t ON x.a = t.a WHEN MATCHED THEN DELETE",
        "TRUNCATE TABLE {}",
        "ALTER TABLE {} ADD COLUMN b INT",
        "ALTER TABLE {} RENAME TO u",
        "ALTER VIEW {} AS SELECT 1 AS a",
        "ALTER VIEW {} RENAME TO u",
        "COMMENT ON TABLE {} IS 'x'",
        "COMMENT ON VIEW {} IS 'x'",
        "DROP TABLE {}",
        "DROP VIEW IF EXISTS {}",
        "DESCRIBE {}",
        "DESCRIBE EXTENDED {}",
        "SHOW COLUMNS IN {}",
        "SHOW CREATE TABLE {}",
        "SHOW TBLPROPERTIES {}",
        "SHOW PARTITIONS {}",
        "DESCRIBE HISTORY {}",
        "OPTIMIZE {}",
        "VACUUM {}",
        "RESTORE TABLE {} TO VERSION AS OF 1",
        "CANCEL ALTER TABLE COLUMN FROM {}",
        "ALTER TABLE {} ADD ROLLUP r (a)",
        "INSERT INTO {} VALUES (1) RETURNING *",
    ],
)
def test_a_temporary_view_comes_before_a_table_of_the_lake(text):
    for name in ("tv", "global_temp.g", "session.tv"):
        statement = only(text.format(name))
        assert owner(statement, INSIDE) is None
        assert str(temporary_view(statement, INSIDE)) == name
    for name in ("t", "main.tv", "lake.main.tv"):
        statement = only(text.format(name))
        assert owner(statement, INSIDE) == "lake"
        assert temporary_view(statement, INSIDE) is None
    assert temporary_view(only(text.format("tv")), ELSEWHERE) is None


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE tv (a INT)",
        "CREATE OR REPLACE TABLE tv AS SELECT 1 AS a",
        "CREATE VIEW tv AS SELECT 1 AS a",
        "CREATE MACRO tv(a) AS a + 1",
    ],
)
def test_what_is_made_under_the_name_of_a_temporary_view_is_the_lakes(text):
    statement = only(text)
    assert owner(statement, INSIDE) == "lake"
    assert temporary_view(statement, INSIDE) is None


def test_queries_are_the_lakes_where_spark_does_not_find_it():
    assert owner(only("SELECT * FROM s JOIN lake.main.t USING (a)"), REMOTE) == "lake"
    assert owner(only("SELECT * FROM s"), REMOTE) is None


@pytest.mark.parametrize(
    ("names", "kinds"),
    [
        (ELSEWHERE, {"a": ("main", "a"), "tv": None, "d.b": None, "two.main.c": None}),
        (INSIDE, {"a": ("main", "a"), "tv": None, "d.b": ("d", "b"), "two.main.c": None}),
    ],
)
def test_names_of_other_catalogs_stay_the_sessions(names, kinds):
    text = (
        "INSERT INTO lake.main.t SELECT * FROM lake.main.a, tv, d.b, two.main.c"
        " WHERE EXISTS (SELECT 1 FROM lake.main.a)"
    )
    found = within(only(text), "lake", names)
    assert found.name.parts == ("main", "t")
    relations = {
        r.name if isinstance(r.name, SessionName) else r.name.parts for r in found.source.relations
    }
    kept = {parts for parts in kinds.values() if parts is not None}
    assert {r for r in relations if not isinstance(r, SessionName)} == kept
    others = {str(r) for r in relations if isinstance(r, SessionName)}
    assert others == {name for name, parts in kinds.items() if parts is None}


def test_what_names_nothing_of_the_lake_stays_the_very_statement():
    statement = only("UPDATE main.t SET a = 1")
    assert within(statement, "lake", INSIDE) == statement


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT * FROM lake.main.t", "SELECT * FROM main.t"),
        ("SELECT lake.main.t.a FROM `lake`.main.t", "SELECT main.t.a FROM main.t"),
        ("SELECT 'lake.main.t', x.lake.main.t FROM main.t", None),
        ("SELECT lake.a FROM main.t AS lake", None),
        ("SELECT * FROM two.main.t -- lake.main.t", None),
    ],
)
def test_the_text_of_a_view_loses_the_catalog(text, wanted):
    assert without_catalog(text, "lake") == (wanted or text)
