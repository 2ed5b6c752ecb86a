"""VALUES of nothing but plain literals, which need no query engine to be understood."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from shelduck.sql.tokens.lexer import Kind, Token, tokenize

_INTEGER = re.compile(r"\d{1,38}")
_FRACTION = re.compile(r"\d{0,18}\.\d{1,18}")
_TYPED = re.compile(r"(\d+|\d*\.\d+|\d+\.)(e[+-]?\d{1,3})?(bd|[lsydf])?", re.IGNORECASE)
_BITS = {"L": 64, "S": 16, "Y": 8}
_MOMENTS = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ")
_WORDS = {"NULL": "null", "TRUE": "boolean", "FALSE": "boolean"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One literal: ``kind`` is null, boolean, integer, fraction, double, float, string or a moment.

    A moment is date, timestamp, timestamp_ltz or timestamp_ntz, as it is written.
    """

    kind: str
    text: str


def literal_rows(text: str, most: int) -> list[list[Cell]] | None:
    """Return the rows of ``VALUES (...), ...``, or None when something else than that is there.

    At most ``most`` rows are read. Strings with a backslash are left to Spark, where a setting
    says what it means, and so is all that depends on the session.
    """
    if text.lstrip()[:6].upper() != "VALUES":
        return None
    tokens = tokenize(text)
    rows: list[list[Cell]] = []
    at = 1
    while len(rows) < most:
        end = _end_of_row(tokens, at)
        row = _row(tokens[at + 1 : end]) if end else None
        if end is None or row is None or (rows and len(row) != len(rows[0])):
            return None
        rows.append(row)
        at = end + 1
        if tokens[at].kind is Kind.END:
            return rows
        if tokens[at].key != ",":
            return None
        at += 1
    return None


def _end_of_row(tokens: Sequence[Token], at: int) -> int | None:
    if tokens[at].key != "(":
        return None
    closing = (n for n in range(at, len(tokens)) if tokens[n].key in ("(", ")") and n > at)
    end = next(closing, None)
    return end if end is not None and tokens[end].key == ")" else None


def _row(tokens: Sequence[Token]) -> list[Cell] | None:
    cells: list[Cell] = []
    start = 0
    for n in range(len(tokens) + 1):
        if n < len(tokens) and tokens[n].key != ",":
            continue
        cell = _cell(tokens[start:n])
        if cell is None:
            return None
        cells.append(cell)
        start = n + 1
    return cells


def _cell(tokens: Sequence[Token]) -> Cell | None:
    kinds = [t.kind for t in tokens]
    if kinds == [Kind.WORD] and tokens[0].key in _WORDS:
        return Cell(_WORDS[tokens[0].key], tokens[0].key.lower())
    if kinds == [Kind.STRING]:
        value = _plain_string(tokens[0])
        return None if value is None else Cell("string", value)
    if kinds == [Kind.WORD, Kind.STRING] and tokens[0].key in _MOMENTS:
        value = _plain_string(tokens[1])
        return None if value is None else Cell(tokens[0].key.lower(), value)
    sign = "-" if tokens and tokens[0].key == "-" else ""
    if kinds[len(sign) :] != [Kind.NUMBER]:
        return None
    return _number(sign, tokens[-1].text)


def _number(sign: str, text: str) -> Cell | None:
    found = _TYPED.fullmatch(text)
    if found is None:
        return None
    digits, exponent, suffix = found[1], found[2] or "", (found[3] or "").upper()
    if suffix in ("D", "F") or (exponent and not suffix):
        return Cell("float" if suffix == "F" else "double", sign + digits + exponent)
    if exponent:
        return None
    if suffix in _BITS:
        most = 2 ** (_BITS[suffix] - 1)
        is_whole = digits.isdecimal() and -most <= int(sign + digits) < most
        return Cell("integer", sign + digits) if is_whole else None
    if _INTEGER.fullmatch(digits):
        return Cell("fraction" if suffix else "integer", sign + digits)
    return Cell("fraction", sign + digits) if _FRACTION.fullmatch(digits) else None


def _plain_string(token: Token) -> str | None:
    text = token.text
    is_plain = text[0] == "'" and "\\" not in text
    return text[1:-1].replace("''", "'") if is_plain else None
