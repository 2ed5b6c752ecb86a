"""Spark's pushed filters, from the text of Catalyst's ``Expression.sql()``.

Whatever is not positively recognised is Unknown. Seen on Spark 4.3: ``(t.id >= 2500L)``,
``(t.s.`f` IS NOT NULL)``, ``startswith(t.st, 'a')``, ``(NOT (t.i IN (1, 2)))``, ``t.bo``.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from shelduck.errors import InvalidRequest
from shelduck.model.files.predicate import (
    And,
    ComparedValue,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Operator,
    Or,
    Predicate,
    StartsWith,
    Unknown,
)
from shelduck.model.tables.schema import Path
from shelduck.model.types.data_types import Primitive
from shelduck.text.tokens.filter_literals import literal_of
from shelduck.text.tokens.lexer import Token, TokenKind, in_brackets, name_of, tokenize

_OPERATORS = {op.value: op for op in Operator} | {"<=>": Operator.EQ}
_MIRRORED = {
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}
_OPPOSITE = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.LT: Operator.GE,
    Operator.LE: Operator.GT,
    Operator.GT: Operator.LE,
    Operator.GE: Operator.LT,
}
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TRUE = ComparedValue(value=True, type=Primitive("boolean"))
_DEPTH = 200


def parse_filter(
    text: str,
    columns: Collection[str],
    time_zone: str | None = None,
    *,
    negated: bool = False,
    checked: Collection[str] = (),
) -> Predicate:
    """Return what one pushed filter demands of the columns, `Unknown` where it is not understood.

    ``text`` is one expression: texts must not be joined by line ends and split again, for a string
    in a filter may hold a line end. ``columns`` are the top-level names of the relation that Spark
    filters, spelled as there: Catalyst writes ``t.c`` for a column ``c`` of the alias ``t``, and
    only the names tell it from a field of a struct ``t``. ``time_zone`` is the session time zone,
    in which instants are written. ``negated`` asks what rows have that do not pass the filter.
    ``checked`` are columns that a scan reads as ``CASE WHEN (c IS NULL) THEN … TRY_CAST(c AS …) …
    raise_error(…) … END``, which is their value or an error. Never raises.
    """
    try:
        tokens = tokenize(text)[:-1]
        reader = _Reader(frozenset(columns), time_zone, frozenset(checked), negated)
        return reader.read(tokens, negated=negated, depth=0)
    except InvalidRequest:
        return Unknown()


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns the tokens of one expression into a predicate, outermost operator first."""

    columns: frozenset[str]
    time_zone: str | None
    checked: frozenset[str]
    fails: bool
    """Whether rows count for which the filter is NULL, too: those that fail it."""

    def read(self, tokens: list[Token], *, negated: bool, depth: int) -> Predicate:
        """Return the predicate of ``tokens``, or of their negation; Unknown where unsure."""
        if depth > _DEPTH:
            return Unknown()
        while in_brackets(tokens):
            tokens = tokens[1:-1]
        parts = _Parts(tokens)
        for word in ("OR", "AND"):
            sides = parts.split(word)
            if len(sides) > 1:
                read = [self.read(s, negated=negated, depth=depth + 1) for s in sides]
                return _joined(read, every=(word == "AND") != negated)
        if parts.keys[:1] == ["NOT"]:
            return self.read(parts.tokens[1:], negated=not negated, depth=depth + 1)
        for read_one in (self._null_test, self._in, self._prefix, self._boolean):
            found = read_one(parts, negated)
            if found is not None:
                return found
        return self._comparison(parts, negated, depth)

    def _null_test(self, parts: _Parts, negated: bool) -> Predicate | None:
        if parts.keys[-2:] == ["IS", "NULL"]:
            path, is_null = self._path(parts.tokens[:-2]), not negated
        elif parts.keys[-3:] == ["IS", "NOT", "NULL"]:
            path, is_null = self._path(parts.tokens[:-3]), negated
        else:
            return None
        if path is None:
            return Unknown()
        return IsNull(path) if is_null else IsNotNull(path)

    def _in(self, parts: _Parts, negated: bool) -> Predicate | None:
        where = parts.find("IN")
        if where is None:
            return None
        path = self._path(parts.tokens[:where])
        listed = parts.tokens[where + 1 :]
        if path is None or not in_brackets(listed):
            return Unknown()
        texts = _Parts(listed[1:-1]).split(",")
        if not (negated or self.fails):
            # It makes no row true, but of others what they are: NULL.
            texts = [text for text in texts if not _is_null(text)]
        literals = [literal_of(text, self.time_zone) for text in texts]
        known = tuple(v for v in literals if v is not None)
        if len(known) < len(literals):
            return Unknown()
        if negated:
            return _joined([Comparison(Operator.NE, path, v) for v in known], every=True)
        return In(path, known)

    def _prefix(self, parts: _Parts, negated: bool) -> Predicate | None:
        if parts.keys[:2] == ["STARTSWITH", "("] and in_brackets(parts.tokens[1:]):
            sides = _Parts(parts.tokens[2:-1]).split(",")
            like = False
        elif parts.find("LIKE") is not None:
            sides = parts.split("LIKE")
            like = True
        else:
            return None
        path = self._path(sides[0])
        literal = literal_of(sides[1], self.time_zone) if len(sides) == 2 else None
        if path is None or literal is None or not isinstance(literal.value, str) or negated:
            return Unknown()
        prefix = re.split(r"[%_\\]", literal.value)[0] if like else literal.value
        return StartsWith(path, prefix) if prefix else Unknown()

    def _boolean(self, parts: _Parts, negated: bool) -> Predicate | None:
        """Read a bare boolean column, ``x`` or ``NOT x``."""
        path = self._path(parts.tokens)
        if path is None:
            return None
        return Comparison(Operator.EQ, path, ComparedValue(not negated, _TRUE.type))

    def _comparison(self, parts: _Parts, negated: bool, depth: int) -> Predicate:
        found = [(n, key) for n, key in enumerate(parts.keys) if key in _OPERATORS]
        if len(found) != 1:
            return Unknown()
        (where, key), operator = found[0], _OPERATORS[found[0][1]]
        left, right = parts.tokens[:where], parts.tokens[where + 1 :]
        path, literal = self._path(left), literal_of(right, self.time_zone)
        if path is None and literal is None:
            path, literal = self._path(right), literal_of(left, self.time_zone)
            operator = _MIRRORED.get(operator, operator)
        if path is not None and literal is not None:
            if not negated:
                return Comparison(operator, path, literal)
            opposite = Comparison(_OPPOSITE[operator], path, literal)
            return Or((opposite, IsNull(path))) if key == "<=>" else opposite
        if key == "<=>" and literal == _TRUE and not negated:
            return self.read(left, negated=False, depth=depth + 1)
        return Unknown()

    def _path(self, tokens: list[Token]) -> Path | None:
        """Return the column's path without the alias before it, None if there are two readings.

        Catalyst writes a struct's fields in backticks always, an attribute only when it must.
        """
        if self.checked and tokens and tokens[0].key == "CASE":
            return self._checked_path(tokens)
        names, dots = tokens[::2], tokens[1::2]
        if len(names) != len(dots) + 1 or any(d.key != "." for d in dots):
            return None
        if any(t.kind not in (TokenKind.WORD, TokenKind.QUOTED) for t in names):
            return None
        if len(names) == 1 and names[0].key in ("TRUE", "FALSE", "NULL"):
            return None
        parts = tuple(name_of(t) for t in names)
        readings = [
            parts[n:]
            for n, token in enumerate(names)
            if parts[n] in self.columns
            and all(t.kind is TokenKind.QUOTED for t in names[n + 1 :])
            and (token.kind is TokenKind.WORD or not _PLAIN_NAME.fullmatch(parts[n]))
        ]
        return readings[0] if len(readings) == 1 else None

    def _checked_path(self, tokens: list[Token]) -> Path | None:
        """Return the column that an expression checks, None if it is another expression."""
        keys = [t.key for t in tokens]
        is_one = keys.count("CASE") == keys.count("END") == 1 and keys[-1] == "END"
        if not is_one or keys[1:3] != ["WHEN", "("] or not {"TRY_CAST", "RAISE_ERROR"} <= {*keys}:
            return None
        path = self._path(tokens[3 : keys.index("IS")])
        return path if path is not None and len(path) == 1 and path[0] in self.checked else None


class _Parts:
    """Tokens of an expression; ``keys`` hides what stands inside brackets."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.keys: list[str] = []
        depth = 0
        for n, token in enumerate(tokens):
            closes = token.key in (")", "]")
            depth -= closes
            behind_dot = n > 0 and tokens[n - 1].key == "."
            self.keys.append(
                "" if depth or (behind_dot and token.kind is TokenKind.WORD) else token.key
            )
            depth += token.key in ("(", "[")
            if depth < 0:
                raise InvalidRequest("a closing bracket has no opening bracket")
        if depth:
            raise InvalidRequest("a bracket is not closed")

    def find(self, key: str) -> int | None:
        """Return where the only ``key`` outside brackets stands."""
        return self.keys.index(key) if self.keys.count(key) == 1 else None

    def split(self, key: str) -> list[list[Token]]:
        """Return the tokens between the ``key`` outside brackets."""
        sides: list[list[Token]] = [[]]
        for token, found in zip(self.tokens, self.keys, strict=True):
            if found == key:
                sides.append([])
            else:
                sides[-1].append(token)
        return sides


def _is_null(tokens: list[Token]) -> bool:
    keys = [t.key for t in tokens]
    return keys == ["NULL"] or keys[:4] == ["CAST", "(", "NULL", "AS"]


def _joined(parts: list[Predicate], *, every: bool) -> Predicate:
    """Return the parts joined by AND or OR, without what says nothing."""
    kind = And if every else Or
    known = [p for p in parts if not isinstance(p, Unknown)]
    if not known or (len(known) < len(parts) and not every):
        return Unknown()
    flat = [q for p in known for q in (p.parts if isinstance(p, kind) else (p,))]
    return kind(tuple(flat)) if len(flat) > 1 else flat[0]
