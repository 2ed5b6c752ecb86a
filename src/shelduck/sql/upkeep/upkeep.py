"""Transactions, maintenance and history."""

from __future__ import annotations

from decimal import Decimal

from shelduck.sql.query.expressions import take_target
from shelduck.sql.query.travel import read_time
from shelduck.sql.rows.rows import selection
from shelduck.sql.statements.upkeep_statements import (
    BeginTransaction,
    Checkpoint,
    CommitTransaction,
    DescribeHistory,
    Optimize,
    Restore,
    RollbackTransaction,
    Vacuum,
)
from shelduck.sql.tokens.arguments import read_argument, read_call
from shelduck.sql.tokens.cursor import Cursor
from shelduck.sql.tokens.lexer import Kind
from shelduck.sql.tokens.parts import Call


def read_begin(cursor: Cursor) -> BeginTransaction:
    """Read the statement behind ``BEGIN`` or ``START TRANSACTION``."""
    if cursor.at == 1:
        cursor.accept_any("TRANSACTION", "WORK")
    cursor.end()
    return BeginTransaction()


def read_commit(cursor: Cursor) -> CommitTransaction:
    """Read the statement behind ``COMMIT``."""
    cursor.accept_any("TRANSACTION", "WORK")
    if cursor.sees("MESSAGE"):
        raise cursor.refusal("COMMIT MESSAGE", "use CALL set_commit_message('author', 'message')")
    cursor.end()
    return CommitTransaction()


def read_rollback(cursor: Cursor) -> RollbackTransaction:
    """Read the statement behind ``ROLLBACK``."""
    cursor.accept_any("TRANSACTION", "WORK")
    if cursor.sees("TO"):
        raise cursor.refusal("ROLLBACK TO", "there are no savepoints; use ROLLBACK")
    cursor.end()
    return RollbackTransaction()


def read_call_statement(cursor: Cursor) -> Call:
    """Read the statement behind ``CALL``."""
    call = read_call(cursor, cursor.path("a procedure"), "procedure")
    cursor.end()
    return call


def read_optimize(cursor: Cursor) -> Optimize:
    """Read the statement behind ``OPTIMIZE``."""
    found, _ = take_target(cursor, "WHERE", alias=False)
    return Optimize(selection(cursor, found, None, ends=("ZORDER",)))


def read_vacuum(cursor: Cursor) -> Vacuum:
    """Read the statement behind ``VACUUM``."""
    name = None
    retains = cursor.sees("RETAIN") and cursor.peek(1).kind is Kind.NUMBER
    if cursor.peek().may_name and not retains and not cursor.sees("DRY", "RUN"):
        name = cursor.table_name()
    hours = None
    if cursor.accept("RETAIN"):
        hours = _hours(cursor)
    dry_run = cursor.accept("DRY", "RUN")
    cursor.end()
    return Vacuum(name, hours, dry_run)


def read_restore(cursor: Cursor) -> Restore:
    """Read the statement behind ``RESTORE``."""
    if cursor.peek(1).may_name and not (cursor.sees("TABLE", "TO") and cursor.peek(3).key == "AS"):
        cursor.accept("TABLE")
    name = cursor.table_name()
    cursor.accept("TO")
    if not (cursor.sees("VERSION", "AS", "OF") or cursor.sees("TIMESTAMP", "AS", "OF")):
        raise cursor.failure("TO VERSION AS OF n or TO TIMESTAMP AS OF '...'")
    version, timestamp = read_time(cursor)
    cursor.end()
    return Restore(name, version, timestamp)


def read_history(cursor: Cursor) -> DescribeHistory:
    """Read the statement behind ``DESCRIBE HISTORY``."""
    name = cursor.table_name()
    limit = None
    if cursor.accept("LIMIT"):
        if not cursor.peek().text.isdigit():
            raise cursor.failure("a whole number")
        limit = int(cursor.take().text)
    cursor.end()
    return DescribeHistory(name, limit)


def read_checkpoint(cursor: Cursor) -> Checkpoint:
    """Read the statement behind ``CHECKPOINT``."""
    cursor.end()
    return Checkpoint()


def _hours(cursor: Cursor) -> float:
    value = read_argument(cursor)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or value < 0:
        cursor.at -= 1
        raise cursor.failure("a number of hours")
    if not cursor.accept_any("HOURS", "HOUR"):
        raise cursor.failure("HOURS")
    return float(value)
