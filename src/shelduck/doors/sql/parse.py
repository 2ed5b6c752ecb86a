"""From SQL text to statements."""

from __future__ import annotations

from collections.abc import Callable

from shelduck.alter.statement import read_alter, read_comment
from shelduck.doors.sql import show_clauses
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.text.ddl.create_clauses import read_create, read_drop, read_replace, read_undrop_table
from shelduck.text.ddl.partition_clauses import read_analyze
from shelduck.text.ddl.view_clauses import read_alter_view
from shelduck.text.foreign_words import SPARKS, foreign_statement
from shelduck.text.query.read_query import begins_query, read_query
from shelduck.text.statements.statement_values import Statement
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import Token, TokenKind, tokenize
from shelduck.upkeep import statement as upkeep_clauses
from shelduck.write.statement import edit_clauses
from shelduck.write.statement.insert import read_insert, with_queries_behind
from shelduck.write.statement.merge_into import read_merge, with_queries_inside

_READERS: dict[tuple[str, ...], Callable[[Cursor], Statement]] = {
    ("ALTER", "TABLE"): read_alter,
    ("ALTER", "VIEW"): read_alter_view,
    ("ALTER", "JOB"): upkeep_clauses.read_alter_job,
    ("COMMENT", "ON"): read_comment,
    ("CREATE",): read_create,
    ("REPLACE", "TABLE"): read_replace,
    ("DROP",): read_drop,
    ("UNDROP", "TABLE"): read_undrop_table,
    ("ANALYZE", "TABLE"): read_analyze,
    ("INSERT",): read_insert,
    ("DELETE",): edit_clauses.read_delete,
    ("TRUNCATE",): edit_clauses.read_truncate,
    ("UPDATE",): edit_clauses.read_update,
    ("MERGE",): read_merge,
    ("BEGIN",): upkeep_clauses.read_begin,
    ("START", "TRANSACTION"): upkeep_clauses.read_begin,
    ("COMMIT",): upkeep_clauses.read_commit,
    ("ROLLBACK",): upkeep_clauses.read_rollback,
    ("CALL",): upkeep_clauses.read_call_statement,
    ("OPTIMIZE",): upkeep_clauses.read_optimize,
    ("REORG", "TABLE"): upkeep_clauses.read_reorg,
    ("VACUUM",): upkeep_clauses.read_vacuum,
    ("RESTORE",): upkeep_clauses.read_restore,
    ("CHECKPOINT",): upkeep_clauses.read_checkpoint,
    ("SHOW", "ALTER", "TABLE"): upkeep_clauses.read_show_jobs,
    ("SHOW",): show_clauses.read_show,
    ("CANCEL",): upkeep_clauses.read_cancel,
    ("DESCRIBE",): show_clauses.read_describe,
    ("DESC",): show_clauses.read_describe,
    ("EXPLAIN",): lambda cursor: show_clauses.read_explain(cursor, _read),
    ("HELP",): show_clauses.read_help,
    ("USE",): show_clauses.read_use,
    ("SET", "VARIABLE"): upkeep_clauses.read_set_variable,
    ("RESET", "VARIABLE"): upkeep_clauses.read_reset_variable,
}
_INSTEAD = {
    "ALTER": "use ALTER TABLE, ALTER VIEW or ALTER JOB",
    "ABORT": "use ROLLBACK",
    "SAVEPOINT": "use BEGIN, COMMIT and ROLLBACK",
    "SET": "call spark.conf.set",
    "RESET": "call spark.conf.unset",
}
_SPARKS = frozenset(
    """ADD ANALYZE ATTACH CACHE CLEAR COPY DECLARE DETACH EXECUTE EXPORT GRANT IMPORT LIST
    LOAD LOCK MAP MSCK REDUCE REFRESH REPAIR REPLACE REVOKE SYNC UNCACHE UNLOCK""".split()
)


def parse(text: str, *, ntz: bool = False) -> list[Statement]:
    """Return the statements of ``text``, which ``;`` separates; an empty text gives none.

    With ``ntz`` a bare TIMESTAMP is a type without a time zone, as to DuckDB, not an instant.

    Raises InvalidRequest, naming statement and place, for what cannot be read, and Unsupported for
    statements that are known and cannot be run yet.
    """
    return [_statement(Cursor(text, tokens, ntz=ntz)) for tokens in _split(tokenize(text))]


def pieces(text: str) -> list[str]:
    """Return the text of each statement of ``text``."""
    return [text[piece[0].start : piece[-1].start] for piece in _split(tokenize(text))]


def _split(tokens: list[Token]) -> list[list[Token]]:
    r"""Cut at each ``;``, or MySQL's ``\G``; each piece is closed by an END token at its end."""
    pieces: list[list[Token]] = [[]]
    for token in tokens:
        if token.key not in (";", "\\G") and token.kind is not TokenKind.END:
            pieces[-1].append(token)
            continue
        pieces[-1].append(Token(TokenKind.END, "", token.start, token.start))
        pieces.append([])
    return [piece for piece in pieces if len(piece) > 1]


def _statement(cursor: Cursor) -> Statement:
    try:
        return _read(cursor)
    except (InvalidRequest, Unsupported):
        found = foreign_statement(cursor.tokens)
        if found is None:
            raise
        refusal = cursor.refusal(found.what, found.instead)
    raise refusal


def _read(cursor: Cursor) -> Statement:
    may_return = cursor.peek().key in edit_clauses.RETURNING_VERBS
    if may_return and (at := edit_clauses.returning_at(cursor)) is not None:
        return edit_clauses.with_returning(cursor, at, _statement)
    for words, read in _READERS.items():
        if cursor.accept(*words):
            return read(cursor)
    if cursor.sees("WITH"):
        moved = with_queries_inside(cursor) or with_queries_behind(cursor)
        if moved is not None:
            return _read(moved)
    if begins_query(cursor):
        return read_query(cursor)
    word = cursor.peek().key
    if word in _INSTEAD:
        cursor.at += word == "ALTER"
        raise cursor.refusal(word, _INSTEAD[word] + cursor.spelling())
    if word in _SPARKS:
        raise Unsupported(
            f"{word} is not a statement for a lake: {cursor.excerpt()}; if it is a statement of"
            " Spark, run it with spark.sql()",
            about=SPARKS,
        )
    raise cursor.failure("a statement such as SELECT, INSERT, MERGE, CREATE TABLE or ALTER TABLE")
