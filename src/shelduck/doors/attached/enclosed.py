"""Statements inside of other texts: in scripts, in EXECUTE IMMEDIATE, several at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from shelduck.doors.sql.parse import pieces
from shelduck.errors import Unsupported
from shelduck.model.text.names import quote_text
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import Token, TokenKind, closing, edited, listed_parts, tokenize
from shelduck.text.tokens.parameters import with_parameters

Evaluate = Callable[[str], Sequence[Any]]
"""Returns the values of a select list without tables."""

_TRANSACTION = re.compile(
    r"\s*(BEGIN|START|COMMIT|ROLLBACK)(\s+(TRANSACTION|WORK))?\s*;?\s*", re.IGNORECASE
)
_BEGIN = re.compile(r"\bBEGIN\b", re.IGNORECASE)
_IMMEDIATE = re.compile(r"\s*EXECUTE\s+IMMEDIATE\b", re.IGNORECASE)
_IDENTIFIER = re.compile(r"\bIDENTIFIER\s*\(", re.IGNORECASE)


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
    """Return the error of a script that has statements of a lake and cannot run."""
    return Unsupported(
        f"a script cannot do this with a lake: {' '.join(text.split())[:100]!r}; run its statements"
        " one by one with spark.sql"
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


def is_immediate(text: str) -> bool:
    """Return whether a text is EXECUTE IMMEDIATE."""
    return _IMMEDIATE.match(text) is not None


@dataclass(frozen=True, slots=True)
class Immediate:
    """EXECUTE IMMEDIATE: the SQL of the statement's text, and of the values of its parameters."""

    statement: str
    using: str
    has_into: bool

    def text(self, evaluate: Evaluate) -> str:
        """Return the statement; its parameters stay."""
        return str(evaluate(self.statement)[0])

    def bound(self, text: str, evaluate: Evaluate) -> str:
        """Return the statement with the values of its parameters, which an alias may name."""
        if not self.using:
            return text
        values = evaluate(self.using)
        aliases = [_alias(item) for item in listed_parts(tokenize(self.using)[:-1])]
        if all(aliases):
            return with_parameters(text, dict(zip(aliases, values, strict=True)))
        return with_parameters(text, list(values))


def immediate_in(text: str) -> Immediate:
    """Return what EXECUTE IMMEDIATE runs."""
    tokens = tokenize(text)
    into, using = (Cursor(text, tokens).at_top(word, 0) for word in ("INTO", "USING"))
    end = tokens[-1].start
    first = min((tokens[n].start for n in (into, using) if n is not None), default=end)
    given = "" if using is None else text[tokens[using].end : end].strip()
    if given.startswith("(") and given.endswith(")"):
        given = given[1:-1]
    return Immediate(text[tokens[1].end : first].strip(), given, into is not None)


def with_names(text: str, evaluate: Evaluate) -> str:
    """Return a text in which each IDENTIFIER(…) has its name as a literal.

    Those with a literal or a parameter stay as they are.
    """
    if _IDENTIFIER.search(text) is None:
        return text
    tokens = tokenize(text)
    edits = []
    for n, token in enumerate(tokens):
        if token.key != "IDENTIFIER" or tokens[n + 1].key != "(":
            continue
        inside = tokens[n + 2]
        last = closing(tokens, n + 1)
        is_plain = inside.kind is TokenKind.STRING or inside.key in (":", "?")
        if last is None or (is_plain and last <= n + 3 + (inside.key == ":")):
            continue
        start, end = inside.start, tokens[last].start
        edits.append((start, end, quote_text(str(evaluate(text[start:end])[0]))))
    return edited(text, edits)


def _alias(item: Sequence[Token]) -> str:
    """Return the name behind AS, else nothing."""
    return item[-1].text if len(item) > 2 and item[-2].key == "AS" else ""
