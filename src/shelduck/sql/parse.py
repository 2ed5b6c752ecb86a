"""From SQL text to statements."""

from __future__ import annotations

from collections.abc import Callable

from shelduck.errors import Unsupported
from shelduck.sql.alter import read_alter, read_comment
from shelduck.sql.create import read_create, read_drop
from shelduck.sql.cursor import Cursor
from shelduck.sql.insert import read_insert
from shelduck.sql.jobs import read_cancel, read_show_jobs
from shelduck.sql.lexer import Kind, Token, tokenize
from shelduck.sql.merge_into import read_merge
from shelduck.sql.query import begins_query, read_query
from shelduck.sql.rows import read_delete, read_truncate, read_update
from shelduck.sql.show import read_describe, read_explain, read_show, read_use
from shelduck.sql.statements import Statement
from shelduck.sql.upkeep import (
    read_begin,
    read_call,
    read_checkpoint,
    read_commit,
    read_optimize,
    read_restore,
    read_rollback,
    read_vacuum,
)
from shelduck.sql.views import read_alter_view

_READERS: dict[tuple[str, ...], Callable[[Cursor], Statement]] = {
    ("ALTER", "TABLE"): read_alter,
    ("ALTER", "VIEW"): read_alter_view,
    ("COMMENT", "ON"): read_comment,
    ("CREATE",): read_create,
    ("DROP",): read_drop,
    ("INSERT",): read_insert,
    ("DELETE",): read_delete,
    ("TRUNCATE",): read_truncate,
    ("UPDATE",): read_update,
    ("MERGE",): read_merge,
    ("BEGIN",): read_begin,
    ("START", "TRANSACTION"): read_begin,
    ("COMMIT",): read_commit,
    ("ROLLBACK",): read_rollback,
    ("CALL",): read_call,
    ("OPTIMIZE",): read_optimize,
    ("VACUUM",): read_vacuum,
    ("RESTORE",): read_restore,
    ("CHECKPOINT",): read_checkpoint,
    ("SHOW", "ALTER", "TABLE"): read_show_jobs,
    ("SHOW",): read_show,
    ("CANCEL",): read_cancel,
    ("DESCRIBE",): read_describe,
    ("DESC",): read_describe,
    ("EXPLAIN",): read_explain,
    ("USE",): read_use,
}
_INSTEAD = {
    "ALTER": "there are ALTER TABLE and ALTER VIEW",
    "ABORT": "write ROLLBACK",
    "SAVEPOINT": "there are BEGIN, COMMIT and ROLLBACK",
    "SET": "call spark.conf.set",
    "RESET": "call spark.conf.unset",
}
_SPARKS = frozenset(
    """ADD ANALYZE ATTACH CACHE CLEAR COPY DECLARE DETACH EXECUTE EXPORT GRANT IMPORT LIST
    LOAD LOCK MAP MSCK REDUCE REFRESH REPAIR REPLACE REVOKE SYNC UNCACHE UNLOCK""".split()
)

SPARKS = "statement of Spark"
"""What an error is about that says so."""


def parse(text: str) -> list[Statement]:
    """Return the statements of ``text``, which ``;`` separates; an empty text gives none.

    Raises InvalidRequest, naming statement and place, for what cannot be read, and Unsupported for
    statements that are known and cannot be run yet.
    """
    return [_statement(Cursor(text, tokens)) for tokens in _split(tokenize(text))]


def _split(tokens: list[Token]) -> list[list[Token]]:
    """Cut at each ``;``; each piece is closed by an END token at its end."""
    pieces: list[list[Token]] = [[]]
    for token in tokens:
        if token.key != ";" and token.kind is not Kind.END:
            pieces[-1].append(token)
            continue
        pieces[-1].append(Token(Kind.END, "", token.start, token.start))
        pieces.append([])
    return [piece for piece in pieces if len(piece) > 1]


def _statement(cursor: Cursor) -> Statement:
    for words, read in _READERS.items():
        if cursor.accept(*words):
            return read(cursor)
    if begins_query(cursor):
        return read_query(cursor)
    word = cursor.peek().key
    if word in _INSTEAD:
        raise cursor.refusal(word, _INSTEAD[word])
    if word in _SPARKS:
        raise Unsupported(
            f"{word} is not a statement of a lake: {cursor.excerpt()}; run it with spark.sql() if"
            " Spark has it",
            about=SPARKS,
        )
    raise cursor.failure("a statement such as SELECT, INSERT, MERGE, CREATE TABLE or ALTER TABLE")
