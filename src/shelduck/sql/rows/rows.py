"""DELETE, TRUNCATE and UPDATE."""

from __future__ import annotations

from collections.abc import Collection

from shelduck.sql.query.expressions import (
    expression_of,
    skip_expression,
    take_assignments,
    take_target,
)
from shelduck.sql.query.relations import Found
from shelduck.sql.query.rewriting import Rewriting, Span
from shelduck.sql.rows.sources import take_source
from shelduck.sql.statements.row_statements import (
    Delete,
    DeleteRow,
    DeleteUsing,
    MatchedClause,
    Truncate,
    Update,
    UpdateFrom,
    UpdateSet,
)
from shelduck.sql.tokens.cursor import Cursor
from shelduck.sql.tokens.parts import Expression, Query, Selection, Target


def read_delete(cursor: Cursor) -> Delete | DeleteUsing:
    """Read the statement behind ``DELETE``."""
    cursor.expect("FROM")
    found, alias = take_target(cursor, "WHERE")
    if cursor.accept("USING"):
        _, target, query, source, on = _joined(cursor, found, alias, [])
        return DeleteUsing(target, query, source, on, (MatchedClause(DeleteRow()),))
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


def read_update(cursor: Cursor) -> Update | UpdateFrom:
    """Read the statement behind ``UPDATE``."""
    found, alias = take_target(cursor, "SET")
    cursor.expect("SET")
    first = cursor.at
    assignments = take_assignments(cursor, "WHERE", "FROM")
    if cursor.sees("FROM"):
        behind = cursor.at
        cursor.expect("FROM")
        texts, target, query, source, on = _joined(cursor, found, alias, [(first, behind)])
        values = UpdateSet(tuple(a.rewritten(texts) for a in assignments))
        return UpdateFrom(target, query, source, on, (MatchedClause(values),))
    condition = _condition(cursor)
    cursor.end()
    texts = Rewriting(cursor, [(first, cursor.at)], target=found)
    return Update(
        Selection(texts.target(alias), expression_of(texts, condition)),
        tuple(a.rewritten(texts) for a in assignments),
    )


def _joined(
    cursor: Cursor, found: Found, alias: str | None, spans: list[Span]
) -> tuple[Rewriting, Target, Query, str | None, Expression]:
    """Take the source and the condition of UPDATE … FROM and DELETE … USING, to the end.

    Returns the texts, of which ``spans`` are others, and what begins a MERGE that means the same.
    """
    source = take_source(cursor, "WHERE")
    condition = _condition(cursor)
    cursor.end()
    own = [] if condition is None else [condition]
    texts = Rewriting(cursor, [*source.spans, *spans, *own], target=found, source=source.table)
    on = expression_of(texts, condition) or Expression("true")
    return texts, texts.target(alias), *source.rewritten(texts), on


def selection(
    cursor: Cursor, found: Found, alias: str | None, ends: Collection[str] = ()
) -> Selection:
    """Take WHERE and its condition, or nothing, up to the statement's end.

    The words of ``ends`` close the condition, and nothing may follow it.
    """
    condition = _condition(cursor, ends)
    cursor.end()
    texts = Rewriting(cursor, [] if condition is None else [condition], target=found)
    return Selection(texts.target(alias), expression_of(texts, condition))


def _condition(cursor: Cursor, ends: Collection[str] = ()) -> Span | None:
    return skip_expression(cursor, ends, what="a condition") if cursor.accept("WHERE") else None
