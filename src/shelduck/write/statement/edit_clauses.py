"""DELETE, TRUNCATE and UPDATE, and what DML statements share: RETURNING, and sources of rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from shelduck.model.text.quoting import backticked
from shelduck.text.ddl.partition_clauses import read_partition_spec
from shelduck.text.query.expressions import (
    ends_operand,
    expression_of,
    skip_expression,
    take_alias,
    take_assignments,
    take_target,
)
from shelduck.text.query.read_query import begins_query, read_query
from shelduck.text.query.relations import JOINS, Found
from shelduck.text.query.rewriting import Rewriting, Span
from shelduck.text.query.travel import read_time
from shelduck.text.statements import row_statements as rs
from shelduck.text.statements.statement_values import DropPartitions, Statement
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import Token, TokenKind
from shelduck.text.tokens.parts import Expression, Query, Selection, Target, query_over

RETURNING_VERBS = ("INSERT", "UPDATE", "DELETE", "MERGE")
_CHANGED = "__shelduck_changed__"
ACTION = "merge_action"
"""The column in which MERGE says what it did to a row: INSERT, UPDATE or DELETE."""


def read_delete(cursor: Cursor) -> rs.Delete | rs.DeleteUsing:
    """Read the statement behind ``DELETE``."""
    cursor.expect("FROM")
    found, alias = take_target(cursor, "WHERE")
    if cursor.accept("USING"):
        _, target, query, source, on = _joined(cursor, found, alias, [])
        return rs.DeleteUsing(target, query, source, on, (rs.MatchedClause(rs.DeleteRow()),))
    return rs.Delete(selection(cursor, found, alias))


def read_truncate(cursor: Cursor) -> rs.Truncate | DropPartitions:
    """Read the statement behind ``TRUNCATE``."""
    # DuckDB may leave TABLE out; a table may have that name.
    if cursor.peek(1).may_name:
        cursor.expect("TABLE")
    name = cursor.table_name()
    if cursor.sees("PARTITION"):
        spec = read_partition_spec(cursor)
        cursor.end()
        return DropPartitions(name, (spec,))
    cursor.end()
    return rs.Truncate(name)


def read_update(cursor: Cursor) -> rs.Update | rs.UpdateFrom:
    """Read the statement behind ``UPDATE``."""
    found, alias = take_target(cursor, "SET")
    cursor.expect("SET")
    first = cursor.at
    assignments = take_assignments(cursor, "WHERE", "FROM")
    if cursor.sees("FROM"):
        behind = cursor.at
        cursor.expect("FROM")
        texts, target, query, source, on = _joined(cursor, found, alias, [(first, behind)])
        values = rs.UpdateSet(tuple(a.rewritten(texts) for a in assignments))
        return rs.UpdateFrom(target, query, source, on, (rs.MatchedClause(values),))
    condition = _condition(cursor)
    cursor.end()
    texts = Rewriting(cursor, [(first, cursor.at)], target=found)
    return rs.Update(
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


def returning_at(cursor: Cursor) -> int | None:
    """Return which token is the word RETURNING of the statement, None without one.

    A column may be called so: it is the word only where an expression could end before it and
    another begins behind it.
    """
    depth = 0
    for n, token in enumerate(cursor.tokens[:-2]):
        depth += {"(": 1, ")": -1}.get(token.key, 0)
        if depth or n == 0 or token.key != "RETURNING":
            continue
        behind = cursor.tokens[n + 1]
        starts = behind.key == "*" or behind.kind is not TokenKind.SYMBOL
        if starts and behind.key not in ("FROM", "WHERE", "AS") and ends_operand(cursor, n):
            return n
    return None


def with_returning(cursor: Cursor, at: int, read: Callable[[Cursor], Statement]) -> rs.Returning:
    """Read a statement whose RETURNING is token ``at``; ``read`` reads what is before it."""
    tokens, word = cursor.tokens, cursor.tokens[at]
    inner = read(
        Cursor(
            cursor.text,
            [*tokens[:at], Token(TokenKind.END, "", word.start, word.start)],
            ntz=cursor.ntz,
        )
    )
    if not isinstance(inner, rs.Insert | rs.Update | rs.Delete | rs.MergeStatement):
        raise cursor.refusal("RETURNING", "use it with INSERT, UPDATE, DELETE or MERGE")
    target = inner.name.parts[-1] if isinstance(inner, rs.Insert) else _alias(inner)
    listed = _returned(tokens[at + 1 :], leaves_action=type(inner) is rs.MergeStatement)
    query = cursor.moved("SELECT ", *listed, f" FROM {_CHANGED} AS {backticked(target)}")
    return rs.Returning(inner, read_query(query), _CHANGED)


def _returned(tokens: Sequence[Token], *, leaves_action: bool) -> Iterator[slice | str]:
    """Yield the parts of a list of columns, closed by END, in which ``*`` may leave one out."""
    start = tokens[0].start
    for n, token in enumerate(tokens[:-1] if leaves_action else ()):
        before = tokens[n - 1].key if n else ","
        if token.key == "*" and before in (",", ".") and tokens[n + 1].key in (",", ""):
            yield from (slice(start, token.end), f" EXCEPT ({ACTION})")
            start = token.end
    yield slice(start, tokens[-2].end)


def _alias(statement: rs.Update | rs.Delete | rs.MergeStatement) -> str:
    if isinstance(statement, rs.MergeStatement):
        return statement.target.alias
    return statement.rows.target.alias


@dataclass(frozen=True, slots=True)
class RowSource:
    """A table, or the tokens of a query, with the alias as written and names for its columns."""

    alias: str | None
    columns: tuple[str, ...] = ()
    table: Found | None = None
    query: Span | None = None

    @property
    def spans(self) -> list[Span]:
        """The tokens of the query."""
        return [] if self.query is None else [self.query]

    def rewritten(self, texts: Rewriting) -> tuple[Query, str | None]:
        """Return the rows as a query, and the alias, None for a query without one."""
        if self.query is None:
            query, own_name = texts.source()
            alias = self.alias or own_name
        else:
            query, alias = texts.query(self.query), self.alias
        if self.columns:
            assert alias is not None
            names = ", ".join(backticked(c) for c in self.columns)
            text = f"SELECT * FROM ({query.text}) AS {backticked(alias)}({names})"
            query = query_over(text, query)
        return query, alias


def take_source(cursor: Cursor, end: str) -> RowSource:
    """Take a table or a query in brackets, and its alias; ``end`` is the word that may follow.

    Raises Unsupported for several, joined or listed.
    """
    if cursor.sees("("):
        if not begins_query(cursor):
            cursor.take()
            raise cursor.failure("a query: SELECT, WITH, FROM, VALUES or TABLE")
        first = cursor.at
        cursor.skip_group()
        query, table = (first + 1, cursor.at - 1), None
        alias = take_alias(cursor, end)
    else:
        query = None
        start = cursor.peek().start
        name = cursor.table_name()
        if cursor.sees("("):
            raise cursor.failure("a table, or a query in brackets: (SELECT ...)")
        version, timestamp = read_time(cursor)
        behind = cursor.tokens[cursor.at - 1].end
        alias = take_alias(cursor, end)
        table = Found(name, start, behind, None if alias else behind, version, timestamp)
    columns = cursor.columns() if alias is not None and cursor.sees("(") else ()
    if cursor.sees(",") or cursor.peek().key in JOINS - {"ON", "USING"}:
        raise cursor.refusal("more than one source", "write them as a query: (SELECT ... ) AS s")
    return RowSource(alias, columns, table, query)
