"""Doris' statements about jobs, and type changes that convert values."""

from __future__ import annotations

import pytest

from shelduck.alter.statement import AlterTableStatement
from shelduck.doors.sql.parse import parse
from shelduck.errors import InvalidRequest
from shelduck.jobs.statement import AlterJob, CancelJob, ShowJobs
from shelduck.model.changes.schema_change import ChangeType, DuplicateKeys, RenameColumn
from shelduck.model.types.data_types import parse_type
from shelduck.text.tokens.parts import NamedTable

T = NamedTable(("t",))
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
        (
            "c TYPE INT ON DUPLICATE KEYS REFUSE",
            ChangeType(("c",), INT, on_duplicate_keys=DuplicateKeys.REFUSE),
        ),
        (
            "c TYPE INT USING a ON ERROR NULL ON DUPLICATE KEYS KEEP NEWEST",
            ChangeType(("c",), INT, "a", True, DuplicateKeys.KEEP_NEWEST),
        ),
    ],
)
def test_a_type_change_says_how_values_are_converted(text, change):
    assert parse(f"ALTER TABLE t ALTER COLUMN {text}") == [AlterTableStatement(T, (change,))]
    assert parse(f"ALTER TABLE t {change}") == [AlterTableStatement(T, (change,))]


def test_a_type_change_says_nothing_else_of_equal_keys():
    with pytest.raises(InvalidRequest, match="REFUSE or KEEP NEWEST"):
        parse("ALTER TABLE t ALTER COLUMN c TYPE INT ON DUPLICATE KEYS KEEP OLDEST")


def test_a_statement_says_how_its_job_is_done():
    first, second = "ADD COLUMN a INT", "MODIFY COLUMN b INT"
    for text in (
        f"{first}, {second} PROPERTIES ('timeout' = '60', \"wait\" = 'false')",
        f"{first} PROPERTIES ('timeout' = '60', wait = false), {second}",
    ):
        [found] = parse(f"ALTER TABLE t {text}")
        assert len(found.changes) == 2
        assert found.properties == {"timeout": "60", "wait": "false"}
    with pytest.raises(InvalidRequest, match="PROPERTIES only once"):
        parse(f"ALTER TABLE t {first} PROPERTIES ('a' = '1'), {second} PROPERTIES ('a' = '1')")


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("REWRITE", ["RewriteOlderFiles"]),
        ("SET SORTED BY (a) REWRITE", ["SetSorting", "RewriteOlderFiles"]),
        ("RESET PARTITIONED BY REWRITE", ["ResetPartitioning", "RewriteOlderFiles"]),
        ("ORDER BY (a, `b c`)", ["OrderColumns"]),
        ("MODIFY COLUMN a COMMENT 'x'", ["SetComment"]),
        ("MODIFY COMMENT 'x'", ["SetComment"]),
        ("ADD COLUMN z INT, ORDER BY (z, k)", ["AddColumn", "OrderColumns"]),
        ("DROP COLUMN z, ORDER BY (k)", ["DropColumn", "OrderColumns"]),
        ("ALTER COLUMN z TYPE LONG, ORDER BY (k)", ["ChangeType", "OrderColumns"]),
        ("DROP COLUMN a, REWRITE", ["DropColumn", "RewriteOlderFiles"]),
        ("ADD COLUMN z INT DEFAULT 1 PROPERTIES (timeout = 1)", ["AddColumn"]),
        ("ADD COLUMN z INT DEFAULT '5' NULL", ["AddColumn"]),
        ("RENAME COLUMN a b", ["RenameColumn"]),
        ("ALTER COLUMN a TYPE INT USING f(b) PROPERTIES ('timeout' = '1')", ["ChangeType"]),
    ],
)
def test_what_jobs_do_is_written_so(text, kinds):
    [found] = parse(f"ALTER TABLE t {text}")

    assert [type(change).__name__ for change in found.changes] == kinds


def test_an_expression_ends_at_the_next_change():
    text = "ALTER TABLE t ALTER COLUMN a TYPE INT USING f(a, 1), RENAME COLUMN b TO c"

    assert parse(text) == [
        AlterTableStatement(T, (ChangeType(("a",), INT, "f(a, 1)"), RenameColumn(("b",), "c")))
    ]


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("SHOW ALTER TABLE COLUMN", ShowJobs(None)),
        ("show alter table column from s where State = 'RUNNING' order by JobId limit 2, 1", None),
        ("CANCEL ALTER TABLE COLUMN FROM s.t", CancelJob(NamedTable(("s", "t")))),
        ("CANCEL ALTER TABLE COLUMN FROM t (1, 22)", CancelJob(T, (1, 22))),
        ("ALTER JOB 3 PAUSE", AlterJob(3, "PAUSE")),
        ("alter job 3 resume", AlterJob(3, "RESUME")),
        (
            "ALTER JOB 3 SET (tasks = 2, bytes_per_second = '50 MB')",
            AlterJob(3, "SET", {"tasks": "2", "bytes_per_second": "50 MB"}),
        ),
        ("SHOW ALTER TABLE ROLLUP LIMIT 1", ShowJobs(None, "LIMIT 1", rollups=True)),
        ("SHOW ALTER TABLE MATERIALIZED VIEW", ShowJobs(None, rollups=True)),
        ("CANCEL ALTER TABLE ROLLUP FROM t (1)", CancelJob(T, (1,), rollups=True)),
        ("CANCEL ALTER TABLE MATERIALIZED VIEW FROM t", CancelJob(T, rollups=True)),
    ],
)
def test_statements_about_jobs(text, statement):
    [found] = parse(text)
    if statement is None:
        assert found.schema.schema == "s"
        assert found.tail == "where State = 'RUNNING' order by JobId LIMIT 1 OFFSET 2"
    else:
        assert found == statement


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SHOW ALTER TABLE COLUMN t", "expected FROM and a schema, WHERE, ORDER BY or LIMIT"),
        ("SHOW ALTER TABLE t", "expected COLUMN, ROLLUP or MATERIALIZED VIEW"),
        ("CANCEL ALTER TABLE COLUMN t", "expected FROM"),
        ("CANCEL ALTER TABLE x", "expected COLUMN, ROLLUP or MATERIALIZED VIEW"),
        ("CANCEL ALTER TABLE COLUMN FROM t (x)", "expected the id of a job"),
        ("ALTER JOB t PAUSE", "expected the id of a job"),
        ("ALTER JOB 3 STOP", "expected PAUSE, RESUME or SET (tasks = 2"),
        ("ALTER JOB 3 PAUSE now", "expected the end"),
        ("CANCEL x", "expected ALTER TABLE COLUMN FROM and a table"),
        ("ALTER TABLE t ALTER COLUMN a TYPE INT USING", "expected an expression"),
    ],
)
def test_what_cannot_be_read_is_named(text, told):
    with pytest.raises(InvalidRequest) as refused:
        parse(text)
    assert told in str(refused.value)
