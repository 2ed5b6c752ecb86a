"""From SQL text to statements."""

from __future__ import annotations

from collections.abc import Callable

from shelduck.sql.alter import read_alter, read_comment
from shelduck.sql.create import read_create, read_drop
from shelduck.sql.cursor import Cursor
from shelduck.sql.insert import read_insert
from shelduck.sql.lexer import Kind, Token, tokenize
from shelduck.sql.query import begins_query, read_query
from shelduck.sql.show import read_describe, read_explain, read_show, read_use
from shelduck.sql.statements import Statement

_READERS: dict[tuple[str, ...], Callable[[Cursor], Statement]] = {
    ("ALTER", "TABLE"): read_alter,
    ("COMMENT", "ON"): read_comment,
    ("CREATE",): read_create,
    ("DROP",): read_drop,
    ("INSERT",): read_insert,
    ("SHOW",): read_show,
    ("DESCRIBE",): read_describe,
    ("DESC",): read_describe,
    ("EXPLAIN",): read_explain,
    ("USE",): read_use,
}
_INSTEAD = {
    "UPDATE": "append rows instead",
    "DELETE": "append rows instead, or drop the table",
    "MERGE": "append rows instead",
    "TRUNCATE": "drop the table and create it again",
    "ALTER": "there is ALTER TABLE",
    "CANCEL": "changes of a schema take effect at once",
    "BEGIN": "use lake.transaction()",
    "START": "use lake.transaction()",
    "COMMIT": "use lake.transaction()",
    "ROLLBACK": "use lake.transaction()",
    "RESTORE": "read an old version with SELECT * FROM t VERSION AS OF n",
    "SET": "call spark.conf.set",
    "RESET": "call spark.conf.unset",
}
_SPARKS = frozenset(
    """ADD ANALYZE ATTACH CACHE CALL CLEAR COPY DECLARE DETACH EXECUTE EXPORT GRANT IMPORT LIST
    LOAD LOCK MAP MSCK OPTIMIZE REDUCE REFRESH REPAIR REPLACE REVOKE SYNC UNCACHE UNLOCK
    VACUUM""".split()
)


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
        raise cursor.refusal(word, "run it with spark.sql() if Spark has it")
    raise cursor.failure("a statement such as SELECT, INSERT INTO, CREATE TABLE or ALTER TABLE")
