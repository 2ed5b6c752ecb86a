"""From SQL text to statements."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain

import shelduck.alter.statement as alter
import shelduck.branches.statement as branches
import shelduck.jobs.rollup_statement as rollups
import shelduck.jobs.statement as jobs
import shelduck.materialized.statement as materialized
import shelduck.upkeep.statement as upkeep
from shelduck.doors.sql import explain, help_topics, transactions
from shelduck.doors.sql.calls import procedures
from shelduck.doors.sql.explain import read_explain
from shelduck.errors import InvalidRequest, ShelduckError, Unsupported
from shelduck.lake.operation import Operation, Reader, phrases
from shelduck.model.text.names import backticked
from shelduck.objects import restore
from shelduck.objects.statement import macros, schemas_and_tables, show, views
from shelduck.text.foreign_words import SPARKS, foreign_statement
from shelduck.text.query.rewriting import begins_query, read_query
from shelduck.text.tokens.arguments import read_writer_words
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import TokenKind, statements_of, tokenize
from shelduck.text.tokens.parts import Statement
from shelduck.write.statement import delete_and_update, insert_into, merge_into, returning
from shelduck.write.statement.returning import RETURNING_VERBS, returning_at, with_returning

_KINDS = "SCHEMA, TABLE, VIEW or MACRO", "SCHEMA, TABLE, VIEW, MACRO or MATERIALIZED VIEW"
_SHOWN = "SCHEMAS, TABLES, VIEWS, MACROS, COLUMNS, PARTITIONS, TBLPROPERTIES or CREATE TABLE"
# What may follow a word: for the error about nothing there, and about something else.
_BEHIND = {"CREATE": _KINDS, "DROP": _KINDS, "SHOW": (_SHOWN, _SHOWN)}
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
    return [_statement(Cursor(text, tokens, ntz=ntz)) for tokens in statements_of(tokenize(text))]


def pieces(text: str) -> list[str]:
    """Return the text of each statement of ``text``."""
    return [text[piece[0].start : piece[-1].start] for piece in statements_of(tokenize(text))]


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
    may_return = cursor.peek().key in RETURNING_VERBS
    if may_return and (at := returning_at(cursor)) is not None:
        return with_returning(cursor, at, _statement)
    if cursor.accept("EXPLAIN"):
        return read_explain(cursor, _read)
    for words, read in READERS.get(cursor.peek().key, ()):
        if cursor.accept(*words):
            statement = read(cursor)
            cursor.end()
            return statement
    if cursor.sees("WITH"):
        moved = _with_queries_inside(cursor) or _with_queries_behind(cursor)
        if moved is not None:
            return _read(moved)
    if begins_query(cursor):
        return read_query(cursor)
    word = cursor.peek().key
    if word in _INSTEAD:
        cursor.at += word == "ALTER"
        raise cursor.refusal(word, _INSTEAD[word] + cursor.spelling())
    if word in _BEHIND:
        raise _unknown(cursor)
    if word in _SPARKS:
        raise Unsupported(
            f"{word} is not a statement for a lake: {cursor.excerpt()}; if it is a statement of"
            " Spark, run it with spark.sql()",
            about=SPARKS,
        )
    raise cursor.failure("a statement such as SELECT, INSERT, MERGE, CREATE TABLE or ALTER TABLE")


def _unknown(cursor: Cursor) -> ShelduckError:
    """Return the error that no statement has the words that the cursor stands before."""
    word = cursor.take().key
    if word == "CREATE":
        cursor.accept("OR", "REPLACE")
    known, instead = _BEHIND[word]
    if cursor.peek().kind is TokenKind.END:
        return cursor.failure(known)
    spelling = "" if word == "SHOW" else cursor.spelling()
    return cursor.refusal(f"{word} {cursor.peek().text.upper()}", f"use {word} {instead}{spelling}")


def _with_queries_inside(cursor: Cursor) -> Cursor | None:
    """Return ``WITH q AS (…) MERGE …`` with the queries of WITH inside of its source.

    None for any other text.
    """
    tokens = cursor.tokens
    merge = cursor.at_top("MERGE", 1)
    using = None if merge is None else cursor.at_top("USING", merge)
    if merge is None or using is None or tokens[0].key != "WITH":
        return None
    inner = Cursor(cursor.text, tokens, using + 1)
    name = None if inner.sees("(") else inner.path("a source")[-1]
    if name is None:
        inner.skip_group()
    first, behind = tokens[using + 1].start, tokens[inner.at - 1].end
    # Otherwise it has an alias.
    called = f" AS {backticked(name)}" if name is not None and inner.sees("ON") else ""
    start = tokens[merge].start
    return cursor.moved(
        *(slice(start, first), "(", slice(tokens[0].start, start), "SELECT * FROM "),
        *(slice(first, behind), " AS __shelduck_inside)" if name is None else ")", called),
        slice(behind, tokens[-1].start),
    )


def _with_queries_behind(cursor: Cursor) -> Cursor | None:
    """Return ``WITH q AS (…) INSERT INTO t SELECT …`` with WITH where its query begins.

    None for any other text, and where the query has a WITH of its own.
    """
    tokens = cursor.tokens
    insert = cursor.at_top("INSERT", 1)
    if insert is None or tokens[insert - 1].key != ")":
        return None
    inner = Cursor(cursor.text, tokens, insert + 1)
    read_writer_words(inner)
    if not inner.accept_any("INTO", "OVERWRITE"):
        return None
    inner.accept("TABLE")
    inner.table_name()
    while inner.peek().kind is not TokenKind.END and not begins_query(inner):
        inner.skip()
    if inner.sees("WITH"):
        return None
    start, behind = tokens[insert].start, inner.peek().start
    queries = slice(tokens[0].start, start)
    return cursor.moved(slice(start, behind), " ", queries, slice(behind, tokens[-1].start))


_MODULES = (
    *(insert_into, delete_and_update, merge_into, returning, alter, rollups, materialized, jobs),
    *(schemas_and_tables, views, macros, show, restore, branches, upkeep),
    *(explain, help_topics, procedures),
    transactions,
)
OPERATIONS: dict[type, Operation] = {
    one.value: one for one in chain.from_iterable(module.OPERATIONS for module in _MODULES)
}
"""Each operation by the value of its statements."""


alter.add_forms(branches.OPERATIONS)


def _readers() -> dict[str, list[tuple[tuple[str, ...], Reader]]]:
    found = defaultdict(list)
    for operation in OPERATIONS.values():
        for text, read in operation.readers.items():
            for words in phrases(text):
                found[words[0]].append((words, read))
    # Of two that begin a statement, the longer one means it.
    return {word: sorted(each, key=lambda one: -len(one[0])) for word, each in found.items()}


READERS = _readers()
"""By the first word of a statement: all words that begin it, and what reads the rest."""
