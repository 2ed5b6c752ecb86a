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
_BEGIN = re.compile(r"\bBEGIN\b", re.IGNORECASE)
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
    if is_script(text):
        return [text]
    found = pieces(text)
    return found if len(found) > 1 else [text]


def is_script(text: str) -> bool:
    """Return whether a text is a script of Spark: BEGIN … END, perhaps with a label before it."""
    if _BEGIN.search(text) is None:
        return False
    keys = [token.key for token in tokenize(text)[:4]]
    if keys[1:2] == [":"]:
        keys = keys[2:]
    return keys[0] == "BEGIN" and keys[1] not in ("", ";", "TRANSACTION", "WORK")


def script_refusal(text: str) -> Unsupported:
    """Return the error of a script that changes a lake."""
    return Unsupported(
        f"a script cannot change a lake: {' '.join(text.split())[:100]!r}; run its statements one"
        " by one with spark.sql"
    )


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
