"""Transactions, variables, maintenance, history, and the jobs that SHOW and CANCEL ALTER name."""

from __future__ import annotations

import re
from decimal import Decimal

from shelduck.model.changes.modify import RewriteOlderFiles
from shelduck.text.query.expressions import skip_expression, take_target
from shelduck.text.query.rewriting import Rewriting
from shelduck.text.query.travel import read_time
from shelduck.text.statements import upkeep_statements as up
from shelduck.text.statements.statement_values import AlterTableStatement
from shelduck.text.tokens.arguments import read_argument, read_call, read_properties
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import TokenKind
from shelduck.text.tokens.parts import Call
from shelduck.write.statement.edit_clauses import selection


def read_begin(cursor: Cursor) -> up.BeginTransaction:
    """Read the statement behind ``BEGIN`` or ``START TRANSACTION``."""
    if cursor.at == 1:
        cursor.accept_any("TRANSACTION", "WORK")
    cursor.end()
    return up.BeginTransaction()


def read_commit(cursor: Cursor) -> up.CommitTransaction:
    """Read the statement behind ``COMMIT``."""
    cursor.accept_any("TRANSACTION", "WORK")
    if cursor.sees("MESSAGE"):
        raise cursor.refusal("COMMIT MESSAGE", "use CALL set_commit_message('author', 'message')")
    cursor.end()
    return up.CommitTransaction()


def read_rollback(cursor: Cursor) -> up.RollbackTransaction:
    """Read the statement behind ``ROLLBACK``."""
    cursor.accept_any("TRANSACTION", "WORK")
    if cursor.sees("TO"):
        raise cursor.refusal("ROLLBACK TO", "there are no savepoints; use ROLLBACK")
    cursor.end()
    return up.RollbackTransaction()


def read_call_statement(cursor: Cursor) -> Call:
    """Read the statement behind ``CALL``."""
    call = read_call(cursor, cursor.path("a procedure"), "procedure")
    cursor.end()
    return call


def read_optimize(cursor: Cursor) -> up.Optimize | AlterTableStatement:
    """Read the statement behind ``OPTIMIZE``; FULL writes all files in today's layout."""
    start = cursor.at
    name = cursor.table_name()
    if cursor.accept("FULL"):
        cursor.end()
        return AlterTableStatement(name, (RewriteOlderFiles(),))
    cursor.at = start
    found, _ = take_target(cursor, "WHERE", alias=False)
    return up.Optimize(selection(cursor, found, None, ends=("ZORDER",)))


def read_reorg(cursor: Cursor) -> up.Reorg:
    """Read the statement behind ``REORG TABLE``."""
    name = cursor.table_name()
    cursor.expect("APPLY", "(", "PURGE", ")")
    cursor.end()
    return up.Reorg(name)


def read_vacuum(cursor: Cursor) -> up.Vacuum:
    """Read the statement behind ``VACUUM``."""
    name = None
    retains = cursor.sees("RETAIN") and cursor.peek(1).kind is TokenKind.NUMBER
    if cursor.peek().may_name and not retains and not cursor.sees("DRY", "RUN"):
        name = cursor.table_name()
    hours = None
    # Delta's words for how it looks for files: a lake asks its catalog.
    cursor.accept_any("LITE", "FULL")
    if cursor.accept("RETAIN"):
        hours = _hours(cursor)
    dry_run = cursor.accept("DRY", "RUN")
    cursor.end()
    return up.Vacuum(name, hours, dry_run)


def read_restore(cursor: Cursor) -> up.Restore:
    """Read the statement behind ``RESTORE``."""
    if cursor.peek(1).may_name and not (cursor.sees("TABLE", "TO") and cursor.peek(3).key == "AS"):
        cursor.accept("TABLE")
    name = cursor.table_name()
    cursor.accept("TO")
    if not (cursor.sees("VERSION", "AS", "OF") or cursor.sees("TIMESTAMP", "AS", "OF")):
        raise cursor.failure("TO VERSION AS OF n or TO TIMESTAMP AS OF '...'")
    version, timestamp = read_time(cursor)
    cursor.end()
    return up.Restore(name, version, timestamp)


def read_history(cursor: Cursor) -> up.DescribeHistory:
    """Read the statement behind ``DESCRIBE HISTORY``."""
    name = cursor.table_name()
    limit = cursor.whole() if cursor.accept("LIMIT") else None
    cursor.end()
    return up.DescribeHistory(name, limit)


def read_checkpoint(cursor: Cursor) -> up.Checkpoint:
    """Read the statement behind ``CHECKPOINT``."""
    cursor.end()
    return up.Checkpoint()


def _hours(cursor: Cursor) -> float:
    value = read_argument(cursor)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or value < 0:
        cursor.at -= 1
        raise cursor.failure("a number of hours")
    if not cursor.accept_any("HOURS", "HOUR"):
        raise cursor.failure("HOURS")
    return float(value)


def read_set_variable(cursor: Cursor) -> up.SetVariable:
    """Read the statement behind ``SET VARIABLE``."""
    name = cursor.name("a variable")
    cursor.expect("=")
    value = skip_expression(cursor, what="a value")
    cursor.end()
    return up.SetVariable(name, Rewriting(cursor, [value]).expression(value))


def read_reset_variable(cursor: Cursor) -> up.SetVariable:
    """Read the statement behind ``RESET VARIABLE``."""
    name = cursor.name("a variable")
    cursor.end()
    return up.SetVariable(name, None)


_TAILS = ("WHERE", "ORDER", "LIMIT")
# Doris' LIMIT says first how many rows to leave out.
_LIMIT = re.compile(r"\bLIMIT\s+(\d+)\s*,\s*(\d+)\s*$", re.IGNORECASE)


def read_show_jobs(cursor: Cursor) -> up.ShowJobs:
    """Read the statement behind ``SHOW ALTER TABLE``.

    What chooses and orders rows is Spark SQL over the statement's own columns.
    """
    rollups = _are_rollups(cursor)
    schema = cursor.schema_name() if cursor.accept_any("FROM", "IN") else None
    if cursor.peek().kind is not TokenKind.END and cursor.peek().key not in _TAILS:
        raise cursor.failure("FROM and a schema, WHERE, ORDER BY or LIMIT")
    start = cursor.peek().start
    while cursor.peek().kind is not TokenKind.END:
        cursor.take()
    tail = cursor.text[start : cursor.peek().start].strip()
    return up.ShowJobs(schema, _LIMIT.sub(r"LIMIT \2 OFFSET \1", tail), rollups)


def read_cancel(cursor: Cursor) -> up.CancelJob:
    """Read the statement behind ``CANCEL``."""
    if not cursor.accept("ALTER", "TABLE"):
        raise cursor.failure("ALTER TABLE COLUMN FROM and a table, or ROLLUP for COLUMN")
    rollups = _are_rollups(cursor)
    cursor.expect("FROM")
    name = cursor.table_name()
    jobs = cursor.in_brackets(Cursor.job) if cursor.sees("(") else ()
    cursor.end()
    return up.CancelJob(name, jobs, rollups)


def read_alter_job(cursor: Cursor) -> up.AlterJob:
    """Read the statement behind ``ALTER JOB``."""
    job = cursor.job()
    action = cursor.accept_any("PAUSE", "RESUME", "SET")
    if not action:
        raise cursor.failure("PAUSE, RESUME or SET (tasks = 2, bytes_per_second = '50 MB')")
    pace = read_properties(cursor) if action == "SET" else {}
    cursor.end()
    return up.AlterJob(job, action, pace)


def _are_rollups(cursor: Cursor) -> bool:
    """Take COLUMN, ROLLUP or MATERIALIZED VIEW; tell whether it was one of the last two."""
    if cursor.accept("COLUMN"):
        return False
    if cursor.accept("ROLLUP") or cursor.accept("MATERIALIZED", "VIEW"):
        return True
    raise cursor.failure("COLUMN, ROLLUP or MATERIALIZED VIEW")
