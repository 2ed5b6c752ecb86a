"""Rules of a Delta table from version to version, as rules of the lake's columns."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from shelduck.formats.delta.delta_columns import NO_COLUMNS, next_columns
from shelduck.formats.delta.import_plan import notes_of_columns
from shelduck.formats.delta.log import Metadata
from shelduck.model.tables.computed import Identity, computed_of
from shelduck.model.tables.constraints import constraints_of


def version(*columns, **checks):
    """A version with columns (name, type, metadata) and CHECK constraints."""
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": dict(more[0] if more else {})}
        for name, kind, *more in columns
    ]
    settings = {f"delta.constraints.{name}": text for name, text in checks.items()}
    return Metadata("id", json.dumps({"type": "struct", "fields": fields}), (), settings)


def generated(text):
    return {"delta.generationExpression": text}


def numbers(**more):
    told = {"start": 1, "step": 1, "allowExplicitInsert": False} | more
    return {f"delta.identity.{key}": value for key, value in told.items()}


def checks(columns):
    found = constraints_of(columns.properties, "t")
    return {one.name: one.expression.spelled(columns.schema) for one in found}


def computed(columns):
    found = computed_of(columns.properties, "t")
    return {
        columns.schema.by_id(one.column).name: one.identity or one.expression.text for one in found
    }


A, B = ("a", "integer"), ("b", "integer")


def test_a_version_has_rules_over_its_columns():
    made = next_columns(
        NO_COLUMNS,
        version(
            A, ("g", "integer", generated("a * 2")), ("id", "long", numbers(step=-5)), c="a > 0"
        ),
    )

    # NULL breaks a condition in Delta only.
    assert checks(made) == {"c": "(a > 0) IS TRUE"}
    assert computed(made) == {"g": "a * 2", "id": Identity(1, -5, always=True)}
    assert [f.nullable for f in made.schema] == [True, True, False]
    assert notes_of_columns([made]) == []


def test_what_differs_between_two_versions_is_carried_and_nothing_else():
    first = next_columns(NO_COLUMNS, version(A, B, c="a > 0", d="b > 0"), "Europe/Berlin")
    own = next_columns(NO_COLUMNS, version(A, B, c="a > 0", mine="a < b")).properties
    # Somebody dropped d here, and added a constraint.
    changed = replace(first, properties=own)
    second = next_columns(changed, version(A, B, c="a > 5", d="b > 0", e="b < 9"), "UTC")

    mine = {"mine": "(a < b) IS TRUE"}
    assert checks(second) == mine | {"c": "(a > 5) IS TRUE", "e": "(b < 9) IS TRUE"}
    assert notes_of_columns([second]) == [
        "CHECK constraint 'd' (b > 0) is not enforced: the table here has no such rule"
    ]
    third = next_columns(second, version(A, B, e="b < 9"), "Europe/Berlin")
    assert checks(third) == mine | {"e": "(b < 9) IS TRUE"}
    assert [one.expression.zone for one in constraints_of(third.properties, "t")] == ["", "UTC"]


def test_a_constraint_of_the_same_name_that_is_of_somebody_else_stays():
    first = next_columns(NO_COLUMNS, version(A))
    mine = replace(first, properties=next_columns(NO_COLUMNS, version(A, c="a < 7")).properties)
    after = next_columns(mine, version(A, C="a > 0"))

    assert checks(after) == {"c": "(a < 7) IS TRUE"}
    [note] = notes_of_columns([after])
    assert note == "CHECK constraint 'C' (a > 0) is not enforced: the table here has no such rule"


def test_the_same_text_over_another_column_is_another_rule():
    first = next_columns(NO_COLUMNS, version(A, ("g", "integer", generated("a + 1")), c="a > 0"))
    text = next_columns(first, version(("a", "string"), ("g", "integer"), c="a > 0"))

    assert computed(text) == {}
    [one] = constraints_of(text.properties, "t")
    assert {use.column for use in one.expression.uses} == {text.schema.find(("a",)).id} != {1}


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        (generated("rand()"), "has another value each time; use an expression over the columns"),
        (generated("nope + 1"), "column 'nope' does not exist in"),
        (generated("a +"), "cannot parse a generated value 'a +'"),
        (generated("a + 1") | {"CURRENT_DEFAULT": "7"}, "is computed, and cannot have a DEFAULT"),
        (numbers(), "is an identity, so it must be BIGINT, not int32"),
    ],
)
def test_what_no_column_here_can_compute_is_told(told, wanted):
    made = next_columns(NO_COLUMNS, version(A, ("g", "integer", told)))

    assert computed(made) == {}
    [note] = notes_of_columns([made])
    assert note.startswith("column 'g': ")
    assert wanted in note


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("id > 0", "uses its identity, whose numbers come after the check"),
        ("EXISTS (SELECT 1)", "looks at other rows"),
        ("reflect('java.lang.System', 'exit', 1)", "reflect"),
    ],
)
def test_conditions_that_are_not_enforced_are_told(text, wanted):
    made = next_columns(NO_COLUMNS, version(A, ("id", "long", numbers()), c=text))

    assert checks(made) == {}
    [note] = notes_of_columns([made])
    assert note.startswith(f"CHECK constraint 'c' ({text}) is not enforced: ")
    assert wanted in note


def test_numbers_with_null_among_them_are_plain():
    made = next_columns(NO_COLUMNS, version(A, ("id", "long", numbers())), has_nulls=True)

    assert computed(made) == {}
    assert made.schema.find(("id",)).nullable
    assert notes_of_columns([made]) == [
        "column 'id': it is an identity in Delta, and plain here: files have NULL in it"
    ]


def test_a_value_that_asks_for_the_time_zone_is_told():
    day = ("d", "date", generated("CAST(t AS DATE)"))
    made = next_columns(
        NO_COLUMNS, version(("t", "timestamp"), day, c="t < now() is not false"), "Europe/Berlin"
    )

    assert notes_of_columns([made]) == [
        f"{what}: its time zone is Europe/Berlin here, and that of the session in Delta"
        for what in ("column 'd'", "CHECK constraint 'c' (t < now() is not false)")
    ]
