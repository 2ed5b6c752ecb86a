"""The rows of VALUES: literals as they are, DEFAULT, and texts that a column reads as times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from shelduck.model.tables.schema import Field
from shelduck.model.text.intervals import whole_number
from shelduck.text.tokens.lexer import (
    Token,
    TokenKind,
    closing,
    edited,
    in_brackets,
    listed_parts,
    tokenize,
)
from shelduck.text.tokens.parts import Query

_TIMES = {"date": "DATE", "timestamp": "TIMESTAMP_NTZ", "timestamptz": "TIMESTAMP"}
_INTEGER = re.compile(r"\d{1,38}")
_FRACTION = re.compile(r"\d{0,18}\.\d{1,18}")
_TYPED = re.compile(r"(\d+|\d*\.\d+|\d+\.)(e[+-]?\d{1,3})?(bd|[lsydf])?", re.IGNORECASE)
_BITS = {"L": 64, "S": 16, "Y": 8}
_MOMENTS = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ")
_WORDS = {"NULL": "null", "TRUE": "boolean", "FALSE": "boolean"}


@dataclass(frozen=True, slots=True)
class DefaultCell:
    """A ``DEFAULT`` in a row of VALUES: the row's cell (from 0) and the word that stands for it."""

    position: int
    placeholder: str


def time_word(field: Field | None) -> str | None:
    """Return Spark's word for the type of a column, None if it is not a date or time."""
    return None if field is None else _TIMES.get(str(field.type))


def as_time(text: str, field: Field | None) -> str:
    """Return a value for a column: a text alone is a date or a time where the column is one."""
    kind = time_word(field)
    if kind is None:
        return text
    tokens = tokenize(text)
    is_text = len(tokens) == 2 and tokens[0].kind is TokenKind.STRING
    return f"CAST({text} AS {kind})" if is_text else text


def is_values(source: Query) -> bool:
    """Tell whether a source is a list of VALUES."""
    return source.text.lstrip()[:6].upper() == "VALUES"


def with_times(text: str, types: Sequence[str | None]) -> str:
    """Return VALUES with each text in the place of a time cast to its type, as DuckDB reads it.

    ``types`` are Spark's words, by place; None where a text stays one. Other text is returned as it
    is.
    """
    edits = [
        (token.start, token.end, f"CAST({token.text} AS {types[position]})")
        for position, token in _cells(text)
        if token.kind is TokenKind.STRING and position < len(types) and types[position]
    ]
    return edited(text, edits)


def without_defaults(source: Query) -> tuple[Query, tuple[DefaultCell, ...]]:
    """Return the source with a word of its own for each DEFAULT that is a whole cell of VALUES."""
    cells = [(place, token) for place, token in _cells(source.text) if token.key == "DEFAULT"]
    if not cells:
        return source, ()
    stem = "__default_"
    while stem in source.text.lower():
        stem += "x"
    edits = [(token.start, token.end, f"{stem}{position}__") for position, token in cells]
    positions = sorted({position for position, _ in cells})
    found = tuple(DefaultCell(position, f"{stem}{position}__") for position in positions)
    return replace(source, text=edited(source.text, edits)), found


def _cells(text: str) -> list[tuple[int, Token]]:
    """Return the cells of one token in VALUES, each with its place; none of another source."""
    found: list[tuple[int, Token]] = []
    for row in _rows(text):
        end = closing(row, 0) if row and row[0].key == "(" else None
        cells = [] if end is None else listed_parts(row[1:end])
        found += [(n, cell[0]) for n, cell in enumerate(cells) if len(cell) == 1]
    return found


def _rows(text: str) -> list[list[Token]]:
    """Return the tokens of each row of VALUES; none of another source."""
    tokens = tokenize(text)
    return listed_parts(tokens[1:-1]) if tokens[0].key == "VALUES" else []


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
    rows: list[list[Cell]] = []
    for tokens in _rows(text):
        row = _row(tokens[1:-1]) if in_brackets(tokens) else None
        if row is None or len(rows) == most or (rows and len(row) != len(rows[0])):
            return None
        rows.append(row)
    return rows or None


def _row(tokens: Sequence[Token]) -> list[Cell] | None:
    found = list(map(_cell, listed_parts(tokens)))
    cells = [cell for cell in found if cell is not None]
    return cells if len(cells) == len(found) else None


def _cell(tokens: Sequence[Token]) -> Cell | None:
    kinds = [t.kind for t in tokens]
    if kinds == [TokenKind.WORD] and tokens[0].key in _WORDS:
        return Cell(_WORDS[tokens[0].key], tokens[0].key.lower())
    if kinds == [TokenKind.STRING]:
        value = _plain_string(tokens[0])
        return None if value is None else Cell("string", value)
    if kinds == [TokenKind.WORD, TokenKind.STRING] and tokens[0].key in _MOMENTS:
        value = _plain_string(tokens[1])
        return None if value is None else Cell(tokens[0].key.lower(), value)
    sign = "-" if tokens and tokens[0].key == "-" else ""
    if kinds[len(sign) :] != [TokenKind.NUMBER]:
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
        number = whole_number(digits, 19)
        is_whole = number is not None and number < most + (sign == "-")
        return Cell("integer", sign + digits) if is_whole else None
    if _INTEGER.fullmatch(digits):
        return Cell("fraction" if suffix else "integer", sign + digits)
    return Cell("fraction", sign + digits) if _FRACTION.fullmatch(digits) else None


def _plain_string(token: Token) -> str | None:
    text = token.text
    is_plain = text[0] == "'" and "\\" not in text
    return text[1:-1].replace("''", "'") if is_plain else None
