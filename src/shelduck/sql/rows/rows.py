"""DELETE, TRUNCATE and UPDATE."""

from __future__ import annotations

from shelduck.sql.query.expressions import (
    AssignmentSpan,
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
from shelduck.sql.tokens.parts import Expression, Selection


def read_delete(cursor: Cursor) -> Delete | DeleteUsing:
    """Read the statement behind ``DELETE``."""
    cursor.expect("FROM")
    found, alias = take_target(cursor, "WHERE")
    if cursor.accept("USING"):
        source = take_source(cursor, "WHERE")
        condition = _condition(cursor)
        cursor.end()
        texts = Rewriting(
            cursor, [*source.spans, *_spans(condition)], target=found, source=source.table
        )
        query, source_alias = source.rewritten(texts)
        clause = MatchedClause(DeleteRow())
        on = expression_of(texts, condition) or Expression("true")
        return DeleteUsing(texts.target(alias), query, source_alias, on, (clause,))
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
        return _update_from(cursor, found, alias, assignments)
    condition = _condition(cursor)
    cursor.end()
    texts = Rewriting(cursor, [(first, cursor.at)], target=found)
    return Update(
        Selection(texts.target(alias), expression_of(texts, condition)),
        tuple(a.rewritten(texts) for a in assignments),
    )


def _update_from(
    cursor: Cursor, found: Found, alias: str | None, assignments: list[AssignmentSpan]
) -> UpdateFrom:
    cursor.expect("FROM")
    source = take_source(cursor, "WHERE")
    condition = _condition(cursor)
    cursor.end()
    values = [a.value for a in assignments]
    texts = Rewriting(
        cursor,
        [*source.spans, *(s for v in values for s in _spans(v)), *_spans(condition)],
        target=found,
        source=source.table,
    )
    query, source_alias = source.rewritten(texts)
    clause = MatchedClause(UpdateSet(tuple(a.rewritten(texts) for a in assignments)))
    on = expression_of(texts, condition) or Expression("true")
    return UpdateFrom(texts.target(alias), query, source_alias, on, (clause,))


def _spans(span: Span | None) -> list[Span]:
    return [] if span is None else [span]


def selection(cursor: Cursor, found: Found, alias: str | None) -> Selection:
    """Take WHERE and its condition, or nothing, up to the statement's end."""
    condition = _condition(cursor)
    cursor.end()
    texts = Rewriting(cursor, [] if condition is None else [condition], target=found)
    return Selection(texts.target(alias), expression_of(texts, condition))


def _condition(cursor: Cursor) -> Span | None:
    return skip_expression(cursor, what="a condition") if cursor.accept("WHERE") else None
