"""Literals as statements hold them: arguments of CALL and values of partitions."""

from __future__ import annotations

import re
from decimal import Decimal

from shelduck.sql.statements.upkeep_statements import Argument, IntervalText, Scalar, TimestampText
from shelduck.sql.tokens.cursor import Cursor
from shelduck.sql.tokens.lexer import Kind

_INSTANTS = frozenset(("TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "TIMESTAMPTZ", "DATE"))
_WORDS: dict[str, bool | None] = {"TRUE": True, "FALSE": False, "NULL": None}
_UNIT = re.compile(r"(YEAR|MONTH|WEEK|DAY|HOUR|MINUTE|SECOND|MILLISECOND|MICROSECOND)S?")
_LITERAL = (
    "a literal: a number, a string, TRUE, FALSE, NULL, TIMESTAMP '...', INTERVAL '...' or"
    " ARRAY[...]"
)


def read_argument(cursor: Cursor) -> Argument:
    """Take a literal or an array of literals, and return its value.

    ``now() - INTERVAL '7 days'`` is that interval: arguments that are intervals count from now.
    """
    if cursor.sees("NOW", "(", ")", "-", "INTERVAL"):
        cursor.expect("NOW", "(", ")", "-")
    if cursor.sees("ARRAY", "(") or cursor.sees("ARRAY", "["):
        cursor.take()
    elif not cursor.sees("["):
        return read_literal(cursor)
    closing = ")" if cursor.take().key == "(" else "]"
    values: list[Scalar] = []
    while not cursor.sees(closing):
        values.append(read_literal(cursor))
        if not cursor.accept(","):
            break
    cursor.expect(closing)
    return tuple(values)


def read_literal(cursor: Cursor) -> Scalar:
    """Take a literal and return its value; a number with a point is a Decimal."""
    token = cursor.peek()
    if token.kind is Kind.STRING:
        return cursor.string()
    if token.kind is Kind.NUMBER or token.key in ("-", "+"):
        return _number(cursor)
    if token.key in _INSTANTS and cursor.peek(1).kind is Kind.STRING:
        cursor.take()
        return TimestampText(cursor.string())
    if token.key == "INTERVAL":
        cursor.take()
        return _interval(cursor)
    if token.key in _WORDS:
        return _WORDS[cursor.take().key]
    raise cursor.failure(_LITERAL)


def literal_text(cursor: Cursor) -> str:
    """Take a literal and return its SQL text."""
    start = cursor.peek().start
    read_literal(cursor)
    return cursor.text[start : cursor.tokens[cursor.at - 1].end]


def _number(cursor: Cursor) -> int | float | Decimal:
    sign = "-" if cursor.accept_any("-", "+") == "-" else ""
    token = cursor.peek()
    if token.kind is not Kind.NUMBER:
        raise cursor.failure("a number")
    cursor.take()
    text = sign + re.sub(r"(?i)(?:BD|[LSYDF])$", "", token.text)
    if token.text[-1:] in "dDfF" and token.text[-2:].upper() != "BD":
        return float(text)
    if text.lstrip("-").isdigit() and token.text[-2:].upper() != "BD":
        return int(text)
    return float(text) if "e" in text.lower() else Decimal(text)


def _interval(cursor: Cursor) -> IntervalText:
    parts: list[str] = []
    while cursor.peek().kind in (Kind.NUMBER, Kind.STRING) or cursor.sees("-"):
        sign = "-" if cursor.accept("-") else ""
        if cursor.peek().kind is Kind.STRING:
            parts.append(sign + cursor.string())
        elif cursor.peek().kind is Kind.NUMBER:
            parts.append(sign + cursor.take().text)
        if _UNIT.fullmatch(cursor.peek().key):
            parts.append(cursor.take().text)
        elif sign or not any(c.isalpha() for c in parts[-1]):
            raise cursor.failure("a unit such as DAYS")
    if not parts:
        raise cursor.failure("an interval such as '7 days'")
    return IntervalText(" ".join(parts))
