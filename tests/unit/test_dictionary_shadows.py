"""Which conversions dictionaries of files may prove: those of texts and floats that may fail."""

from __future__ import annotations

import pytest

from shelduck.lake.evolution.plan import plan_alter
from shelduck.model.changes.schema_change import ChangeType
from shelduck.model.shadows.shadows import of_dictionaries
from shelduck.model.types.data_types import parse_type
from tests.support.scans import column, table

KINDS = ("varchar", "json", "float32", "float64", "blob", "int64", "date")
TABLE = table(
    *(column(kind, kind, number) for number, kind in enumerate(KINDS, 1)),
    column("s", "struct", 20, column("a", "varchar", 21)),
)


def judged(path: tuple[str, ...], kind: str, using: str | None = None, *, null: bool = False):
    plan = plan_alter(TABLE, [ChangeType(path, parse_type(kind), using, null)])
    assert plan.is_heavy
    return [s.old.name for s in of_dictionaries(plan.shadows)]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("varchar", "int"),
        ("varchar", "date"),
        ("varchar", "json"),
        ("float64", "varchar(5)"),
        ("json", "boolean"),
        ("float64", "int"),
        ("float64", "float"),
        ("float32", "json"),
    ],
)
def test_conversions_that_may_fail_are_looked_at(source, target):
    assert judged((source,), target) == [source]
    assert judged((source,), target, null=True) == [source]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("varchar", "binary"),
        ("json", "string"),
        ("float64", "string"),
        # Their dictionaries are not read.
        ("int64", "string"),
        ("int64", "int"),
        ("date", "string"),
        ("blob", "string"),
    ],
)
def test_other_conversions_are_not(source, target):
    assert judged((source,), target) == []


def test_an_expression_may_always_fail():
    assert judged(("varchar",), "binary", "CAST(varchar AS BINARY)") == ["varchar"]
    assert judged(("int64",), "string", "CAST(int64 AS STRING)") == []


def test_fields_and_columns_that_become_nested_are_not_looked_at():
    assert judged(("s", "a"), "int") == []
    assert judged(("varchar",), "array<int>", "from_json(varchar, 'array<int>')") == []
