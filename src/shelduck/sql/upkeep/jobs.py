"""SHOW ALTER TABLE and CANCEL ALTER TABLE, of columns and of rollups, as Doris has them."""

from __future__ import annotations

import re

from shelduck.sql.statements.upkeep_statements import CancelJob, ShowJobs
from shelduck.sql.tokens.cursor import Cursor
from shelduck.sql.tokens.lexer import Kind

_TAILS = ("WHERE", "ORDER", "LIMIT")
# Doris' LIMIT says first how many rows to leave out.
_LIMIT = re.compile(r"\bLIMIT\s+(\d+)\s*,\s*(\d+)\s*$", re.IGNORECASE)


def read_show_jobs(cursor: Cursor) -> ShowJobs:
    """Read the statement behind ``SHOW ALTER TABLE``.

    What chooses and orders rows is Spark SQL over the statement's own columns.
    """
    rollups = _are_rollups(cursor)
    schema = cursor.schema_name() if cursor.accept_any("FROM", "IN") else None
    if cursor.peek().kind is not Kind.END and cursor.peek().key not in _TAILS:
        raise cursor.failure("FROM and a schema, WHERE, ORDER BY or LIMIT")
    start = cursor.peek().start
    while cursor.peek().kind is not Kind.END:
        cursor.take()
    tail = cursor.text[start : cursor.peek().start].strip()
    return ShowJobs(schema, _LIMIT.sub(r"LIMIT \2 OFFSET \1", tail), rollups)


def read_cancel(cursor: Cursor) -> CancelJob:
    """Read the statement behind ``CANCEL``."""
    if not cursor.accept("ALTER", "TABLE"):
        raise cursor.failure("ALTER TABLE COLUMN FROM and a table, or ROLLUP for COLUMN")
    rollups = _are_rollups(cursor)
    cursor.expect("FROM")
    name = cursor.table_name()
    jobs: list[int] = []
    if cursor.accept("("):
        jobs.append(_job(cursor))
        while cursor.accept(","):
            jobs.append(_job(cursor))
        cursor.expect(")")
    cursor.end()
    return CancelJob(name, tuple(jobs), rollups)


def _are_rollups(cursor: Cursor) -> bool:
    """Take COLUMN, ROLLUP or MATERIALIZED VIEW; tell whether it was one of the last two."""
    if cursor.accept("COLUMN"):
        return False
    if cursor.accept("ROLLUP") or cursor.accept("MATERIALIZED", "VIEW"):
        return True
    raise cursor.failure("COLUMN, ROLLUP or MATERIALIZED VIEW")


def _job(cursor: Cursor) -> int:
    token = cursor.peek()
    if token.kind is not Kind.NUMBER or not token.text.isdigit():
        raise cursor.failure("the id of a job")
    return int(cursor.take().text)
