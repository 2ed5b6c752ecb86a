"""Queries: where they begin, and the reading of one that ends its statement."""

from __future__ import annotations

from shelduck.text.query.relations import QUERY_WORDS
from shelduck.text.query.rewriting import Rewriting, Span
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import statements_of, tokenize
from shelduck.text.tokens.parts import Query

_WRITES = {
    "INSERT INTO": "write WITH and the query after INSERT INTO t",
    "INSERT OVERWRITE": "write WITH and the query after INSERT OVERWRITE t",
    "MERGE INTO": "use MERGE INTO t USING (WITH and the query)",
    "DELETE FROM": "write the query as a subquery in DELETE FROM t WHERE",
    "UPDATE": "write the query as a subquery in UPDATE t SET or MERGE INTO t USING",
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


def looks_at_other_rows(text: str) -> bool:
    """Tell whether an expression has a query or a window anywhere."""
    cursor = Cursor(text, tokenize(text))
    for at in range(len(cursor.tokens)):
        cursor.at = at
        if cursor.sees(")", "OVER") or (cursor.sees("(") and begins_query(cursor)):
            return True
    return False


def read_query(cursor: Cursor) -> Query:
    """Take the rest of the statement as a query.

    Spark reads the text as it is, but for the tables: see `Rewriting`.
    """
    span = skip_query(cursor)
    return Rewriting(cursor, [span]).query(span)


def sole_query(text: str) -> Query | None:
    """Return the query that a text is, None for a text that is anything else."""
    pieces = statements_of(tokenize(text))
    cursor = Cursor(text, pieces[0]) if len(pieces) == 1 else None
    return read_query(cursor) if cursor is not None and begins_query(cursor) else None


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
    for at, token in enumerate(cursor.tokens[cursor.at : -1], cursor.at):
        depth += {"(": 1, ")": -1}.get(token.key, 0)
        if depth == 0 and (word := _write_at(cursor, at)):
            raise cursor.refusal(f"{word} after a query", _WRITES[word])


def _write_at(cursor: Cursor, at: int) -> str:
    """Return the words of _WRITES that begin a statement at a token, else ''."""
    key, behind = (cursor.tokens[n].key for n in (at, at + 1))
    if key != "UPDATE":
        words = f"{key} {behind}"
        return words if words in _WRITES else ""
    # Columns may be named so: it is the statement where a table and SET come next.
    ahead = [token.key for token in cursor.tokens[at + 1 : at + 9]]
    upto = ahead[: ahead.index("SET")] if "SET" in ahead else []
    is_statement = cursor.tokens[at - 1].key == ")" and upto and not {",", "(", ")"} & {*upto}
    return key if is_statement else ""
