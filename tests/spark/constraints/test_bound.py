"""Rules keep their meaning, whatever happens to columns, sessions and names around them."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from shelduck import InvalidRequest, Unsupported
from tests.support.lakes import rows

COLUMNS = "id INT, y INT, f FLOAT, s STRUCT<k: INT, v: STRING>, a ARRAY<STRUCT<k: INT>>, z INT"
GOOD = {
    "id": "1",
    "y": "2",
    "f": "0.5F",
    "s": "named_struct('k', 3, 'v', 'x')",
    "a": "array(named_struct('k', 4))",
    "z": "5",
}
OTHER, JSON = "named_struct('k', 9, 'v', 'x')", '{"k":3,"v":"x"}'
AS_OF = "TO VERSION AS OF {version}"
# Each rule with the column that it uses, a number in it, what has a place for another field, and
# what it refuses; or the value that it makes.
RULES = {
    "compares": ("CHECK (y > 0)", "y", "y", "s", {"y": "-1"}),
    "a path": ("CHECK (s.k > 0)", "s", "s.k", "s", {"s": "named_struct('k', -3, 'v', 'x')"}),
    "a lambda": ("CHECK (exists(a, e -> e.k < z))", "z", "a.element.k", "a.element", {"z": "1"}),
    "its text": ("CHECK (length(CAST(y AS STRING)) < 2)", "y", "y", "s", {"y": "22"}),
    "all text": ("CHECK (CAST(s AS STRING) = '{3, x}')", "s", "s.k", "s", {"s": OTHER}),
    "computes": ("g BIGINT GENERATED ALWAYS AS (y + 1)", "y", "y", "s", 3),
    "computes text": ("g STRING GENERATED ALWAYS AS (to_json(s))", "s", "s.k", "s", JSON),
}  # fmt: skip
NESTED = {"a lambda", "all text", "computes text"}
# What a change is, and the rules that do not follow it: the statement is refused.
CHANGES = {
    "drop": ("DROP COLUMN {top}", {*RULES}),
    "convert": ("ALTER COLUMN {number} TYPE STRING", {*RULES}),
    "widen": ("ALTER COLUMN {number} TYPE BIGINT", {"its text", *NESTED}),
    "rename": ("RENAME COLUMN {top} TO e", set()),
    "move": ("ALTER COLUMN {top} FIRST", set()),
    "rename a field": ("RENAME COLUMN {number} TO current_date", set()),
    "add a field": ("ADD COLUMN {struct}.n INT", set()),
    "move a field": ("ALTER COLUMN s.v FIRST", set()),
    "add others": ("ADD COLUMN e INT, ADD COLUMN current_date INT", set()),
    "restore": (f"RENAME COLUMN {{top}} TO e; RESTORE TABLE {{table}} {AS_OF}", set()),
    "convert another": ("ALTER COLUMN id TYPE STRING", set()),
}  # fmt: skip


def table_of(rule: str) -> str:
    return rule.replace(" ", "_")


def insert(table: str, names: dict[str, str], values: dict[str, str]) -> str:
    columns = ", ".join(f"`{names[column]}`" for column in values)
    return f"INSERT INTO {table} ({columns}) SELECT {', '.join(values.values())}"


SAME = {name: name for name in GOOD}
STATEMENTS = [
    statement
    for rule, (text, *_) in RULES.items()
    for statement in (
        f"CREATE TABLE {table_of(rule)} ({COLUMNS}, {text})",
        insert(table_of(rule), SAME, GOOD),
    )
]
STATEMENTS += [
    "CREATE TABLE captured (y INT, tags ARRAY<INT>, CHECK (exists(tags, x -> x = y)))",
    "CREATE TABLE today (y DATE, CONSTRAINT past CHECK (y <= current_date))",
    "CREATE TABLE late (y INT, current_date INT, CONSTRAINT late CHECK (y <= current_date))",
    "CREATE TABLE days (at TIMESTAMP, n INT, d DATE GENERATED ALWAYS AS (CAST(at AS DATE)))",
    "INSERT INTO days (at, n) VALUES (TIMESTAMP '2024-01-01 20:00:00Z', 1)",
    "CREATE TABLE texts (s STRING, CONSTRAINT number CHECK (CAST(s AS INT) > 0))",
    "CREATE TABLE short (d STRING, g VARCHAR(3) GENERATED ALWAYS AS (d))",
    "CREATE TABLE keyed (k INT, v INT, CONSTRAINT given CHECK (v IS NOT NULL)) UNIQUE KEY (k)",
    "INSERT INTO keyed VALUES (1, 1), (2, 2)",
    "CREATE TABLE back (a INT, g INT GENERATED ALWAYS AS (a + 1))",
    "INSERT INTO back (a) VALUES (1)",
]


def cases():
    """Every rule with every change."""
    return [pytest.param(r, c, id=f"{r}-{c}") for c in CHANGES for r in RULES]


@pytest.mark.guard
@pytest.mark.sampled(26)
@pytest.mark.parametrize(("rule", "change"), cases())
def test_a_rule_follows_a_change_or_refuses_it(lake, rule, change):
    _, top, number, struct, broken = RULES[rule]
    alter, breaks = CHANGES[change]
    table, before = table_of(rule), lake.snapshots()[-1].id
    old = lake.table(table).columns
    names = {"top": top, "number": number, "struct": struct, "table": table, "version": before}
    statement = f"ALTER TABLE {table} {alter.format(**names)}"
    if rule in breaks:
        with pytest.raises(InvalidRequest, match=r"cannot .* a column of main"):
            lake.execute(statement)
        assert lake.snapshots()[-1].id == before
        return
    lake.execute(statement)
    new = lake.table(table).columns
    now = {f.name: (new.by_id(f.id) or f).name for f in old}
    good, bad = dict(GOOD), dict(broken) if isinstance(broken, dict) else {}
    if change == "rename a field" and number != top:
        for values in (good, bad):
            values |= {
                n: v.replace("'k'", "'current_date'") for n, v in values.items() if n in number
            }
    if change == "convert another":
        good["id"] = f"'{good['id']}'"
    lake.execute(insert(table, now, good))
    if bad:
        with pytest.raises(InvalidRequest, match=r"constraint .* is not satisfied by the row"):
            lake.execute(insert(table, now, good | bad))
    else:
        assert rows(lake.sql(f"SELECT DISTINCT g FROM {table}")) == [(broken,)]


@pytest.fixture
def session(spark):
    """Settings of the session, as they were after the test."""
    names = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled")
    before = {name: spark.conf.get(name) for name in names}
    yield spark.conf
    for name, value in before.items():
        spark.conf.set(name, value)


def refused(lake, statement, told, kind=InvalidRequest):
    with pytest.raises(kind, match=told):
        lake.execute(statement)


def test_no_variable_of_a_lambda_takes_the_place_of_a_column(lake):
    lake.execute("ALTER TABLE captured RENAME COLUMN y TO x")
    refused(lake, "INSERT INTO captured VALUES (9, array(1, 2))", "is not satisfied by the row")
    lake.execute("INSERT INTO captured VALUES (2, array(1, 2))")


def test_no_column_takes_the_place_of_a_function_and_no_function_that_of_a_column(lake):
    lake.execute("ALTER TABLE today ADD COLUMN current_date DATE")
    lake.execute("INSERT INTO today VALUES (DATE '2020-01-01', DATE '2019-01-01')")
    refused(lake, "INSERT INTO today VALUES (DATE '2999-01-01', DATE '3000-01-01')", "past")
    lake.execute("ALTER TABLE late RENAME COLUMN current_date TO z")
    lake.execute("INSERT INTO late VALUES (1, 2)")
    refused(lake, "INSERT INTO late VALUES (3, 2)", r"late \(y <= `z`\)")
    lake.execute("ALTER TABLE late RENAME COLUMN y TO current_date")
    refused(lake, "INSERT INTO late VALUES (3, 2)", "is not satisfied by the row")


def test_a_rule_has_the_time_zone_that_it_was_made_in(lake, session):
    session.set("spark.sql.session.timeZone", "Asia/Tokyo")
    lake.execute("UPDATE days SET n = 2")
    lake.execute("INSERT INTO days (at, n) VALUES (TIMESTAMP '2024-01-01 20:00:00Z', 3)")
    assert rows(lake.sql("SELECT DISTINCT CAST(d AS STRING) FROM days")) == [("2024-01-01",)]
    lake.execute("CREATE TABLE here (at TIMESTAMP, d DATE GENERATED ALWAYS AS (CAST(at AS DATE)))")
    session.set("spark.sql.session.timeZone", "UTC")
    lake.execute("INSERT INTO here (at) VALUES (TIMESTAMP '2024-01-01 20:00:00Z')")
    assert rows(lake.sql("SELECT CAST(d AS STRING) FROM here")) == [("2024-01-02",)]
    assert lake.check(rows=True).is_sound


def test_a_rule_has_ansi_mode_whatever_the_session_has(lake, session):
    session.set("spark.sql.ansi.enabled", "false")
    refused(
        lake, "INSERT INTO texts VALUES ('x')", "number .* cannot be computed for a row: .*CAST"
    )
    lake.execute("INSERT INTO texts VALUES ('3')")


def test_a_generated_value_is_assigned_and_not_cast(lake):
    refused(lake, "INSERT INTO short (d) VALUES ('abcdef')", r"VARCHAR\(3\), got a text of 6")
    for kind, value in (
        ("INT", "d"),
        ("STRUCT<a: INT>", "n"),
        ("BINARY", "n"),
        ("DECIMAL(3, 1)", "d"),
    ):
        made = f"CREATE TABLE x (n INT, d DOUBLE, g {kind} GENERATED ALWAYS AS ({value}))"
        refused(lake, made, "column g: .* cannot be stored as")
    given, made = "STRUCT<a: INT, b: INT>", "STRUCT<b: INT, a: INT>"
    lake.execute(f"CREATE TABLE x (s {given}, g {made} GENERATED ALWAYS AS (s))")
    lake.execute("INSERT INTO x (s) SELECT named_struct('a', 1, 'b', 2)")
    assert rows(lake.sql("SELECT g.a, g.b FROM x")) == [(1, 2)]


def test_a_row_that_deletes_its_key_satisfies_every_rule(lake):
    lake.execute("INSERT INTO keyed (k, v, __DORIS_DELETE_SIGN__) VALUES (1, NULL, 1)")
    assert rows(lake.sql("SELECT * FROM keyed")) == [(2, 2)]


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("g BIGINT GENERATED ALWAYS AS (reflect('java.lang.Math', 'abs', a))", "calls reflect"),
        ("CHECK (java_method('java.lang.Math', 'abs', a) = '1')", "calls java_method"),
        ("g STRING GENERATED ALWAYS AS (current_user())", "asks the session"),
        ("g STRING GENERATED ALWAYS AS (current_timezone())", "asks the session"),
        ("CHECK (version() > '')", "asks the session"),
    ],
)
def test_a_rule_computes_with_its_row_and_nothing_else(lake, made, told):
    refused(lake, f"CREATE TABLE x (a INT, {made})", told, Unsupported)


def test_a_generated_column_returns_with_its_rule_or_not_at_all(lake):
    lake.execute("ALTER TABLE back DROP COLUMN g")
    lake.execute("ALTER TABLE back UNDROP COLUMN g")
    lake.execute("INSERT INTO back (a) VALUES (2)")
    assert rows(lake.sql("SELECT a, g FROM back ORDER BY a")) == [(1, 2), (2, 3)]
    lake.execute("ALTER TABLE back DROP COLUMN g")
    lake.execute("INSERT INTO back (a) VALUES (3)")
    refused(lake, "ALTER TABLE back UNDROP COLUMN g", "it is computed, and rows were written since")


def test_a_row_that_makes_a_rule_fail_is_a_finding_with_its_name(base, copied):
    catalog, lake = copied
    lake.execute("ALTER TABLE texts DROP CONSTRAINT number")
    lake.execute("INSERT INTO texts VALUES ('x')")
    told = r"CHECK constraint c \(CAST\(s AS INT\) > 0\) of main.texts cannot be computed"
    refused(lake, "ALTER TABLE texts ADD CONSTRAINT c CHECK (CAST(s AS INT) > 0)", told)
    lake.execute("ALTER TABLE texts ADD CONSTRAINT c CHECK (CAST(s AS INT) > 0) NOT VALID")
    refused(lake, "ALTER TABLE texts VALIDATE CONSTRAINT c", told)
    with closing(sqlite3.connect(catalog)) as connection, connection:
        connection.execute(
            "UPDATE ducklake_tag SET value = replace(value, ',\"unproven\":true', '')"
        )
    with base.connect(catalog) as again:
        found = again.check(rows=True).problems
    assert [problem.object for problem in found] == ["main.texts"]
    assert "c (CAST(s AS INT) > 0) of main.texts cannot be computed" in found[0].wrong
