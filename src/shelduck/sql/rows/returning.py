"""RETURNING behind a statement that changes rows."""

from __future__ import annotations

from collections.abc import Callable

from shelduck.model.text.quoting import backticked
from shelduck.sql.query.expressions import ends_operand
from shelduck.sql.query.query import read_query
from shelduck.sql.query.rewriting import edited
from shelduck.sql.statements.row_statements import Delete, Insert, Merge, Returning, Update
from shelduck.sql.statements.statements import Statement
from shelduck.sql.tokens.cursor import Cursor
from shelduck.sql.tokens.lexer import Kind, Token, tokenize

RETURNING_VERBS = ("INSERT", "UPDATE", "DELETE", "MERGE")
_CHANGED = "__shelduck_changed__"
ACTION = "merge_action"
"""The column in which MERGE says what it did to a row: INSERT, UPDATE or DELETE."""


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
        starts = behind.key == "*" or behind.kind is not Kind.SYMBOL
        if starts and behind.key not in ("FROM", "WHERE", "AS") and ends_operand(cursor, n):
            return n
    return None


def with_returning(cursor: Cursor, at: int, read: Callable[[Cursor], Statement]) -> Returning:
    """Read a statement whose RETURNING is token ``at``; ``read`` reads what is before it."""
    tokens, word = cursor.tokens, cursor.tokens[at]
    inner = read(
        Cursor(
            cursor.text, [*tokens[:at], Token(Kind.END, "", word.start, word.start)], ntz=cursor.ntz
        )
    )
    if not isinstance(inner, Insert | Update | Delete | Merge):
        raise cursor.refusal("RETURNING", "use it with INSERT, UPDATE, DELETE or MERGE")
    target = inner.name.parts[-1] if isinstance(inner, Insert) else _alias(inner)
    columns = cursor.text[tokens[at + 1].start : tokens[-2].end]
    if type(inner) is Merge:
        columns = without_column(columns, ACTION)
    text = f"SELECT {columns} FROM {_CHANGED} AS {backticked(target)}"
    return Returning(inner, read_query(Cursor(text, tokenize(text))), _CHANGED)


def without_column(columns: str, name: str) -> str:
    """Return a list of columns in which ``*`` leaves one out."""
    tokens = tokenize(columns)
    edits = []
    for n, token in enumerate(tokens):
        before = tokens[n - 1].key if n else ","
        if token.key == "*" and before in (",", ".") and tokens[n + 1].key in (",", ""):
            edits.append((token.end, token.end, f" EXCEPT ({name})"))
    return edited(columns, 0, len(columns), edits)


def _alias(statement: Update | Delete | Merge) -> str:
    return statement.target.alias if isinstance(statement, Merge) else statement.rows.target.alias
