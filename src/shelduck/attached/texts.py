"""Texts that `SparkSession.sql` gets and Spark's parser does not take, and several statements."""

from __future__ import annotations

import re
from typing import NamedTuple

from shelduck.errors import Unsupported
from shelduck.sql.parse import pieces
from shelduck.sql.tokens.lexer import Kind, string_of, tokenize

_TRANSACTION = re.compile(
    r"\s*(BEGIN|START|COMMIT|ROLLBACK)(\s+(TRANSACTION|WORK))?\s*;?\s*", re.IGNORECASE
)
_IMMEDIATE = re.compile(r"\s*EXECUTE\s+IMMEDIATE\b", re.IGNORECASE)


class Immediate(NamedTuple):
    """The statement in EXECUTE IMMEDIATE; ``is_whole`` if nothing stands behind it."""

    text: str
    is_whole: bool


def statements_in(text: str) -> list[str]:
    """Return the statements of a text that has several, else the text itself.

    A script of Spark (BEGIN … END) is one statement.
    """
    if ";" not in text:
        return [text]
    keys = [token.key for token in tokenize(text)[:4]]
    if keys[1:2] == [":"]:
        keys = keys[2:]
    if keys[0] == "BEGIN" and keys[1] not in (";", "TRANSACTION", "WORK"):
        return [text]
    found = pieces(text)
    return found if len(found) > 1 else [text]


def refuse_transaction(text: str) -> None:
    """Raise Unsupported for a statement that begins or ends a transaction."""
    found = _TRANSACTION.fullmatch(text)
    if found is not None:
        word = found[1].upper()
        raise Unsupported(
            f"{word} is not supported in spark.sql, where each statement is a commit of its own;"
            " use lake.sql('BEGIN; ...; COMMIT') or lake.transaction() of the lake that attach or"
            " connect returns"
        )


def immediate_in(text: str) -> Immediate | None:
    """Return the statement that EXECUTE IMMEDIATE has as a string, None for other texts."""
    if _IMMEDIATE.match(text) is None:
        return None
    inner, behind = tokenize(text)[2:4]
    if inner.kind is not Kind.STRING:
        return None
    return Immediate(string_of(inner), behind.kind is Kind.END)
