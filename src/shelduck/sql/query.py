"""Queries: where they begin, and the reading of one that ends its statement."""

from __future__ import annotations

from itertools import pairwise

from shelduck.sql.cursor import Cursor
from shelduck.sql.parts import Query
from shelduck.sql.relations import QUERY_WORDS
from shelduck.sql.rewriting import Rewriting, Span

_WRITES = {
    ("INSERT", "INTO"): "write WITH and the query behind INSERT INTO t",
    ("INSERT", "OVERWRITE"): "write WITH and the query behind INSERT OVERWRITE t",
    ("MERGE", "INTO"): "write MERGE INTO t USING (WITH and the query)",
    ("DELETE", "FROM"): "write the query as a subquery of DELETE FROM t WHERE",
}


def begins_query(cursor: Cursor) -> bool:
    """Tell whether the cursor stands before a query."""
    ahead = 0
    while cursor.peek(ahead).key == "(":
        ahead += 1
    key = cursor.peek(ahead).key
    if ahead == 0:
        return key in QUERY_WORDS
    if key in ("SELECT", "WITH"):
        return cursor.peek(ahead + 1).key not in (",", ")")
    return key == "VALUES" and cursor.peek(ahead + 1).key == "("


def read_query(cursor: Cursor) -> Query:
    """Take the rest of the statement as a query.

    Spark reads the text as it is, but for the tables: see `Rewriting`.
    """
    span = skip_query(cursor)
    return Rewriting(cursor, [span]).query(span)


def skip_query(cursor: Cursor) -> Span:
    """Go behind the query that is the rest of the statement."""
    if not begins_query(cursor):
        raise cursor.failure("a query: SELECT, WITH, FROM, VALUES or TABLE")
    _refuse_writes(cursor)
    first = cursor.at
    cursor.at = len(cursor.tokens) - 1
    return first, cursor.at


def _refuse_writes(cursor: Cursor) -> None:
    depth = 0
    for token, behind in pairwise(cursor.tokens[cursor.at :]):
        depth += {"(": 1, ")": -1}.get(token.key, 0)
        if depth == 0 and (token.key, behind.key) in _WRITES:
            raise cursor.refusal(
                f"{token.key} {behind.key} behind a query", _WRITES[token.key, behind.key]
            )
