"""Doris' statements about jobs, and type changes that convert values."""

from __future__ import annotations

import pytest

from shelduck.errors import InvalidRequest
from shelduck.model.schema_change import ChangeType, RenameColumn
from shelduck.model.types import parse_type
from shelduck.sql.parse import parse
from shelduck.sql.statements import AlterTable, TableName
from shelduck.sql.upkeep_statements import CancelJob, ShowJobs

T = TableName(("t",))
INT = parse_type("int")


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("c TYPE INT USING CAST(trim(c) AS INT)", ChangeType(("c",), INT, "CAST(trim(c) AS INT)")),
        ("c TYPE INT ON ERROR NULL", ChangeType(("c",), INT, None, on_error_null=True)),
        (
            "c SET DATA TYPE INT USING CASE WHEN a = 'ON' THEN 1 END ON ERROR NULL",
            ChangeType(("c",), INT, "CASE WHEN a = 'ON' THEN 1 END", on_error_null=True),
        ),
    ],
)
def test_a_type_change_says_how_values_are_converted(text, change):
    assert parse(f"ALTER TABLE t ALTER COLUMN {text}") == [AlterTable(T, (change,))]
    assert parse(f"ALTER TABLE t {change}") == [AlterTable(T, (change,))]


def test_an_expression_ends_at_the_next_change():
    text = "ALTER TABLE t ALTER COLUMN a TYPE INT USING f(a, 1), RENAME COLUMN b TO c"

    assert parse(text) == [
        AlterTable(T, (ChangeType(("a",), INT, "f(a, 1)"), RenameColumn(("b",), "c")))
    ]


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("SHOW ALTER TABLE COLUMN", ShowJobs(None)),
        (
            "show alter table column from s where State = 'RUNNING' order by JobId limit 2, 1",
            None,
        ),
        ("CANCEL ALTER TABLE COLUMN FROM s.t", CancelJob(TableName(("s", "t")))),
        ("CANCEL ALTER TABLE COLUMN FROM t (1, 22)", CancelJob(T, (1, 22))),
    ],
)
def test_statements_about_jobs(text, statement):
    [found] = parse(text)
    if statement is None:
        assert found.schema.schema == "s"
        assert found.tail == "where State = 'RUNNING' order by JobId limit 2, 1"
    else:
        assert found == statement


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SHOW ALTER TABLE COLUMN t", "expected FROM and a schema, WHERE, ORDER BY or LIMIT"),
        ("CANCEL ALTER TABLE COLUMN t", "expected FROM"),
        ("CANCEL ALTER TABLE COLUMN FROM t (x)", "expected the id of a job"),
        ("CANCEL x", "expected ALTER TABLE COLUMN FROM and a table"),
        ("ALTER TABLE t ALTER COLUMN a TYPE INT USING", "expected an expression"),
    ],
)
def test_what_cannot_be_read_is_named(text, told):
    with pytest.raises(InvalidRequest) as refused:
        parse(text)
    assert told in str(refused.value)
