"""MODIFY COLUMN and ORDER BY: which simpler changes they mean, and what only others may change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shelduck.doors.sql.parse import parse
from shelduck.errors import InvalidRequest, NotFound, Unsupported
from shelduck.lake.evolution.plan import plan_alter
from shelduck.model.changes.definition import Position
from shelduck.model.changes.modify import ModifyColumn, OrderColumns
from shelduck.model.changes.schema_change import AddColumn, ChangeType
from shelduck.model.tables.schema import Default, new_field
from shelduck.model.types.data_types import parse_type
from tests.support.scans import column, table

INT, TEXT, BIG, DOUBLE = (parse_type(t) for t in ("int", "string", "bigint", "double"))
PLAIN = table(
    column("id", "int32", 1),
    column("v", "varchar", 2),
    replace(column("d", "int32", 3), default=Default("7")),
    replace(column("n", "int32", 4), nullable=False),
    new_field("s", parse_type("struct<a: int, b: string>"), 5),
)


def planned(*changes):
    return plan_alter(PLAIN, changes)


def modified(text):
    [statement] = parse(f"ALTER TABLE t MODIFY COLUMN {text}")
    return planned(*statement.changes)


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        ("id BIGINT", "light"),
        ("v INT", "heavy"),
        ("v INT COMMENT 'x' AFTER n", "heavy"),
        ("v STRING FIRST", "light"),
        ("n INT NULL", "light"),
        ("n INT", "light"),
        ("d BIGINT DEFAULT '7'", "light"),
        ("d BIGINT DEFAULT 07", "light"),
        ("id INT COMMENT 'of somebody'", "light"),
        ("s STRUCT<a: BIGINT, b: STRING, c: DATE>", "light"),
        ("s STRUCT<a: INT, b: INT>", "heavy"),
        ("id DOUBLE", "heavy"),
    ],
)
def test_a_column_is_said_anew(text, weight):
    plan = modified(text)

    assert [step.weight for step in plan.steps] == [weight]
    assert plan.change is not None


def test_all_that_differs_changes():
    change = modified("n BIGINT COMMENT 'x' AFTER id").change

    assert [(f.name, str(f.type), f.nullable) for f in change.columns][:2] == [
        *[("id", "int32", True), ("n", "int64", True)]
    ]
    assert change.comments == {4: "x"}


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        (
            "id INT",
            InvalidRequest,
            "changes nothing in main.t: the column already has this definition",
        ),
        (
            "s STRUCT<a: INT>",
            InvalidRequest,
            "cannot drop, rename or reorder the fields of s of main.t",
        ),
        ("s STRUCT<b: STRING, a: INT>", InvalidRequest, "which can only add fields at the end"),
        ("s STRUCT<a: INT, c: STRING>", InvalidRequest, "RENAME COLUMN"),
        ("id INT NOT NULL", InvalidRequest, "from nullable to NOT NULL with MODIFY COLUMN"),
        ("d BIGINT", InvalidRequest, "it has the default '7'; repeat that, or use"),
        ("d BIGINT DEFAULT 8", InvalidRequest, "it has the default '7'; repeat that, or use"),
        ("id INT DEFAULT 8", InvalidRequest, "it has no default; repeat that, or use"),
        ("x INT", NotFound, "column 'x' does not exist"),
        ("v INT AFTER x", InvalidRequest, "cannot place a column after 'x', which does not exist"),
        ("v INT AFTER v", InvalidRequest, "cannot move column"),
    ],
)
def test_what_a_restatement_may_not_change_is_told(text, error, told):
    with pytest.raises(error) as caught:
        modified(text)
    assert told in str(caught.value)


def test_the_length_of_text_is_kept():
    with pytest.raises(InvalidRequest, match="texts of STRING have any length"):
        modified("v VARCHAR(20)")
    assert modified("v STRING COMMENT 'x'").change.comments == {2: "x"}


def test_a_promotion_that_the_table_does_not_allow_is_a_job():
    widening = {"delta.enableTypeWidening": "true"}
    light = plan_alter(replace(PLAIN, properties=widening), [ModifyColumn(("id",), DOUBLE)])

    assert [s.weight for s in light.steps] == ["light"]
    [heavy] = planned(ModifyColumn(("id",), DOUBLE)).steps
    assert heavy.reason.startswith("float64 holds every int32, but DuckDB")
    assert "type widening is not enabled; a job rewrites the files" in heavy.reason
    with pytest.raises(Unsupported, match="type widening is not enabled"):
        planned(ChangeType(("id",), DOUBLE))


def test_a_column_that_the_statement_adds_may_be_modified():
    added = AddColumn(("x",), INT, default=Default("7"))
    change = planned(added, ModifyColumn(("x",), TEXT, default=Default("7"))).change

    made = change.columns.get(("x",))
    assert (str(made.type), made.initial_default, made.default) == ("varchar", "7", Default("7"))


def test_columns_are_put_in_order():
    change = planned(OrderColumns(("n", "D", "v", "s", "id"))).change

    assert change.columns.names == ["n", "d", "v", "s", "id"]
    assert planned(OrderColumns(("id", "v", "d", "n", "s"))).change is None


@pytest.mark.parametrize(
    ("names", "error", "told"),
    [
        (("id", "v", "d", "s"), InvalidRequest, "'n' is missing"),
        (("id", "v", "d", "n", "V"), InvalidRequest, "lists column 'v' of main.t twice"),
        (("id", "v", "d", "x"), NotFound, "column 'x' does not exist"),
    ],
)
def test_an_order_names_each_column_once(names, error, told):
    with pytest.raises(error) as caught:
        planned(OrderColumns(names))
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        ModifyColumn(("a", "b c"), TEXT, Default("it's"), False, "x", Position("a b")),
        ModifyColumn(("a",), BIG, position=Position()),
        OrderColumns(("a", "b c")),
    ],
)
def test_the_text_of_a_restatement_reads_back(change):
    [statement] = parse(f"ALTER TABLE t {change}")

    assert statement.changes == (change,)
