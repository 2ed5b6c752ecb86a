"""Constraints as texts and values: what is read, what is kept, and names that change."""

from __future__ import annotations

import pytest

from shelduck.doors.sql.parse import parse
from shelduck.errors import AlreadyExists, InvalidRequest, NotFound
from shelduck.model.changes.constraining import (
    AddConstraint,
    DropConstraint,
    ValidateConstraint,
    apply_constraint,
)
from shelduck.model.tables.computed import COMPUTED, computed_of, declared, follow_columns
from shelduck.model.tables.constraints import CONSTRAINTS, ConstraintKind, constraints_of
from shelduck.model.tables.schema import new_schema
from shelduck.model.types.data_types import Member, parse_type
from shelduck.text.ddl.column_clauses import written_expression

COLUMNS = new_schema(
    [
        Member("id", parse_type("int")),
        Member("s", parse_type("struct<a: int, b: struct<c: int>>")),
        Member("a b", parse_type("array<int>")),
    ]
)


def check(text: str, name: str | None = "c") -> AddConstraint:
    written = written_expression(text, "a condition", may_tell_time=True)
    return AddConstraint(ConstraintKind.CHECK, name, written)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("CREATE TABLE t (id INT CHECK (id > 0))", [(None, "CHECK (id > 0)")]),
        ("CREATE TABLE t (id INT CONSTRAINT c CHECK (id > 0))", [("c", "CHECK (id > 0)")]),
        ("CREATE TABLE t (id INT, CHECK (id > 0),)", [(None, "CHECK (id > 0)")]),
        (
            "CREATE TABLE t (id INT PRIMARY KEY RELY, b INT UNIQUE NOT ENFORCED)",
            [(None, "PRIMARY KEY (id)"), (None, "UNIQUE (b)")],
        ),
        (
            (
                "CREATE TABLE t (id INT, CONSTRAINT f FOREIGN KEY (id) REFERENCES q.u (b) MATCH"
                " FULL ON DELETE NO ACTION NOT ENFORCED NORELY)"
            ),
            [("f", "FOREIGN KEY (id) REFERENCES q.u (b)")],
        ),
        ("CREATE TABLE t (id INT REFERENCES u)", [(None, "FOREIGN KEY (id) REFERENCES u")]),
    ],
)
def test_create_table_reads_constraints(text, found):
    [statement] = parse(text)
    assert [(c.name, c.clause) for c in statement.constraints] == found


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        (
            "ADD CONSTRAINT c CHECK (id > 0) NOT VALID",
            ["ADD CONSTRAINT c CHECK (id > 0) NOT VALID"],
        ),
        ("ADD CHECK (id > 0)", ["ADD CHECK (id > 0)"]),
        ("ADD PRIMARY KEY (id)", ["ADD PRIMARY KEY (id)"]),
        (
            "ADD COLUMN n INT CHECK (n > 0), VALIDATE CONSTRAINT c, DROP CONSTRAINT IF EXISTS d",
            [
                "ADD COLUMN n INT",
                "ADD CHECK (n > 0)",
                "VALIDATE CONSTRAINT c",
                "DROP CONSTRAINT IF EXISTS d",
            ],
        ),
        ("ADD COLUMNS (n INT, CHECK (n > 0))", ["ADD COLUMN n INT", "ADD CHECK (n > 0)"]),
        ("DROP CONSTRAINT c CASCADE", ["DROP CONSTRAINT c"]),
        # A column may have any name.
        ("DROP constraint", ["DROP COLUMN constraint"]),
        ("ADD check INT", ["ADD COLUMN check INT"]),
    ],
)
def test_alter_table_reads_constraints(text, changes):
    [statement] = parse(f"ALTER TABLE t {text}")
    assert [str(c).replace("int32", "INT") for c in statement.changes] == changes


def test_a_property_keeps_constraints_by_column_ids():
    kept, checked = apply_constraint(
        {"own": "x"}, check("s.b.c > 0 AND `a b`[0] = id"), COLUMNS, "t"
    )
    assert checked == "c"
    assert kept == {
        "own": "x",
        CONSTRAINTS: (
            '{"version":1,"constraints":[{"name":"c","kind":"CHECK","expression":{"text":'
            '"s.b.c > 0 AND `a b`[0] = id","uses":[{"start":0,"end":5,"column":5},'
            '{"start":14,"end":19,"column":6},{"start":25,"end":27,"column":1}],'
            '"parts":[{"column":7,"name":"element"}]}}]}'
        ),
    }
    key = AddConstraint(ConstraintKind.FOREIGN_KEY, None, None, ("id",), "u (b)", relies=True)
    more, checked = apply_constraint(kept, key, COLUMNS, "t")
    assert checked is None
    assert more[CONSTRAINTS].endswith(
        ',{"name":"foreign_key_1","kind":"FOREIGN KEY","columns":[1],"references":"u (b)",'
        '"relies":true}]}'
    )
    assert [c.text(COLUMNS) for c in constraints_of(more, "t")] == [
        "CONSTRAINT c CHECK (s.b.c > 0 AND `a b`[0] = id)",
        "CONSTRAINT foreign_key_1 FOREIGN KEY (id) REFERENCES u (b) NOT ENFORCED RELY",
    ]
    gone = apply_constraint(more, DropConstraint("C"), COLUMNS, "t")[0]
    assert apply_constraint(gone, DropConstraint("foreign_key_1"), COLUMNS, "t")[0] == {"own": "x"}


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("id > 0", "`key` > 0"),
        ("ID IN (1, 2) AND id <> 'id'", "`key` IN (1, 2) AND `key` <> 'id'"),
        (
            "exists(`a b`, id -> id > 0) OR id IS NULL",
            "exists(`a b`, id -> id > 0) OR `key` IS NULL",
        ),
        ("s.a = upper(id) /* id */", "s.a = upper(`key`)"),
        ("s . a > id", "`s`.`a` > `key`"),
    ],
)
def test_names_in_a_condition_follow_a_rename(text, spelled):
    made = written_expression(text.split(" /*")[0], "a condition", may_tell_time=True)
    found = made.bound(COLUMNS, "t")
    renamed = COLUMNS.replace(("id",), COLUMNS.get(("id",)))
    fields = [f if f.name != "id" else type(f)(f.id, "key", f.shape) for f in renamed]
    assert found.spelled(COLUMNS.with_fields(fields)) == spelled
    assert found.spelled(COLUMNS.with_fields(fields[1:])) is None


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        (check("nope > 0", "d"), NotFound, "column 'nope' does not exist in t"),
        (check("t.id > 0", "d"), NotFound, "column 't.id' does not exist in t"),
        (check("id > 1", "C"), AlreadyExists, "constraint 'C' already exists in t"),
        (
            AddConstraint(ConstraintKind.PRIMARY_KEY, None, None, ("id",)),
            AlreadyExists,
            "already has",
        ),
        (AddConstraint(ConstraintKind.UNIQUE, None, None, ("x",)), NotFound, "column 'x' does not"),
        (
            DropConstraint("d"),
            NotFound,
            "constraint 'd' does not exist in t; existing constraints: 'c'",
        ),
        (ValidateConstraint("pk"), InvalidRequest, "cannot validate PRIMARY KEY pk of t: keys are"),
    ],
)
def test_what_cannot_be_done_is_refused(change, error, told):
    known, _ = apply_constraint({}, check("id > 0"), COLUMNS, "t")
    key = AddConstraint(ConstraintKind.PRIMARY_KEY, "pk", None, ("id",))
    known, _ = apply_constraint(known, key, COLUMNS, "t")
    with pytest.raises(error, match=told):
        apply_constraint(known, change, COLUMNS, "t")


@pytest.mark.parametrize(
    ("clause", "told"),
    [
        ("GENERATED ALWAYS AS IDENTITY", "GENERATED ALWAYS AS IDENTITY"),
        (
            "NOT NULL GENERATED BY DEFAULT AS IDENTITY (INCREMENT BY -2, START WITH 5L)",
            "GENERATED BY DEFAULT AS IDENTITY (START WITH 5 INCREMENT BY -2)",
        ),
        ("GENERATED ALWAYS AS (s.a + 1)", "GENERATED ALWAYS AS (s.a + 1)"),
    ],
)
def test_what_computes_a_column_is_read_and_shown(clause, told):
    [statement] = parse(f"CREATE TABLE t (s STRUCT<a: INT>, c BIGINT {clause})")
    columns = new_schema([Member(c.name, c.type) for c in statement.columns])
    columns, properties = declared(columns, statement.computed, {}, "t")
    [one] = computed_of(properties, "t")
    assert one.clause(columns) == told
    assert columns.get(("c",)).nullable is (one.identity is None)


def test_a_property_keeps_computed_columns_by_column_ids():
    text = (
        "CREATE TABLE t (s STRUCT<a: INT>,"
        " c BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 0),"
        " d INT GENERATED ALWAYS AS (s.a))"
    )
    [statement] = parse(text)
    columns = new_schema([Member(c.name, c.type) for c in statement.columns])
    columns, kept = declared(columns, statement.computed, {"own": "x"}, "t")
    assert kept == {
        "own": "x",
        COMPUTED: (
            '{"version":1,"columns":[{"column":3,"identity":{"start":0,"step":1}},'
            '{"column":4,"expression":{"text":"s.a","uses":[{"start":0,"end":3,"column":2}],'
            '"exact":true}}]}'
        ),
    }
    left = follow_columns(kept, columns.with_fields(columns.fields[:1]), columns, (), "t")
    assert left == {"own": "x"}
    with pytest.raises(InvalidRequest, match="a column of t from which column d of t, GENERATED"):
        follow_columns(kept, columns.with_fields(columns.fields[1:]), columns, (), "t")


@pytest.mark.parametrize(
    ("clause", "told"),
    [
        ("GENERATED BY DEFAULT AS (1)", "expected IDENTITY at line 1"),
        ("GENERATED ALWAYS AS IDENTITY (INCREMENT BY 0)", "expected a number other than 0"),
        ("GENERATED ALWAYS AS IDENTITY (START WITH x)", "expected a whole number"),
        ("GENERATED SOMETIMES AS (1)", "expected BY at line 1"),
        ("GENERATED ALWAYS AS ()", "expected a generated value at line 1"),
        ("GENERATED ALWAYS AS 1", "expected a generated value in brackets"),
    ],
)
def test_what_computes_nothing_says_what_is_missing(clause, told):
    with pytest.raises(InvalidRequest, match=told):
        parse(f"CREATE TABLE t (c BIGINT {clause})")
