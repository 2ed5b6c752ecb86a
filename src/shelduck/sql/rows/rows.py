"""DELETE, TRUNCATE and UPDATE."""

from __future__ import annotations

from shelduck.sql.query.expressions import (
    expression_of,
    skip_expression,
    take_assignments,
    take_target,
)
from shelduck.sql.query.relations import Found
from shelduck.sql.query.rewriting import Rewriting, Span
from shelduck.sql.statements.row_statements import Delete, Truncate, Update
from shelduck.sql.tokens.cursor import Cursor
from shelduck.sql.tokens.parts import Selection


def read_delete(cursor: Cursor) -> Delete:
    """Read the statement behind ``DELETE``."""
    cursor.expect("FROM")
    found, alias = take_target(cursor, "WHERE")
    if cursor.sees("USING"):
        raise cursor.refusal("DELETE ... USING", "use WHERE EXISTS (...) or MERGE INTO")
    return Delete(selection(cursor, found, alias))


def read_truncate(cursor: Cursor) -> Truncate:
    """Read the statement behind ``TRUNCATE``."""
    # DuckDB may leave TABLE out; a table may have that name.
    if cursor.peek(1).may_name:
        cursor.expect("TABLE")
    name = cursor.table_name()
    if cursor.sees("PARTITION"):
        raise cursor.refusal("TRUNCATE TABLE ... PARTITION", "use DELETE FROM t WHERE")
    cursor.end()
    return Truncate(name)


def read_update(cursor: Cursor) -> Update:
    """Read the statement behind ``UPDATE``."""
    found, alias = take_target(cursor, "SET")
    cursor.expect("SET")
    first = cursor.at
    assignments = take_assignments(cursor, "WHERE")
    condition = _condition(cursor)
    cursor.end()
    texts = Rewriting(cursor, [(first, cursor.at)], target=found)
    return Update(
        Selection(texts.target(alias), expression_of(texts, condition)),
        tuple(a.rewritten(texts) for a in assignments),
    )


def selection(cursor: Cursor, found: Found, alias: str | None) -> Selection:
    """Take WHERE and its condition, or nothing, up to the statement's end."""
    condition = _condition(cursor)
    cursor.end()
    texts = Rewriting(cursor, [] if condition is None else [condition], target=found)
    return Selection(texts.target(alias), expression_of(texts, condition))


def _condition(cursor: Cursor) -> Span | None:
    return skip_expression(cursor, what="a condition") if cursor.accept("WHERE") else None
