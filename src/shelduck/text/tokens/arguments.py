"""What several statements have: arguments of calls, properties, comments, and lists of objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from shelduck.errors import Unsupported
from shelduck.model.tables.properties import PropertyChange, SetProperties, UnsetProperties
from shelduck.model.text.intervals import whole_number
from shelduck.model.types.data_types import Member
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import DIGITS, TokenKind, string_of, tokenize
from shelduck.text.tokens.parts import (
    Argument,
    Call,
    IntervalText,
    Scalar,
    SchemaName,
    Statement,
    TimestampText,
)

_INSTANTS = frozenset(("TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "TIMESTAMPTZ", "DATE"))
_WORDS: dict[str, bool | None] = {"TRUE": True, "FALSE": False, "NULL": None}
_UNIT = re.compile(r"(YEAR|MONTH|WEEK|DAY|HOUR|MINUTE|SECOND|MILLISECOND|MICROSECOND)S?")
_LITERAL = (
    "a literal: a number, a string, TRUE, FALSE, NULL, TIMESTAMP '...', INTERVAL '...' or"
    " ARRAY[...]"
)

DUCKLAKE = "ducklake_"
"""The words that DuckDB puts before the names of a lake's functions."""


def read_call(cursor: Cursor, parts: Sequence[str], what: str) -> Call:
    """Take the arguments in brackets behind the name ``parts``; ``what`` it is, for errors.

    ``ducklake_x('lake', …)``, DuckDB's own form, is ``lake.x(…)``.
    """
    start = cursor.at
    *owner, name = parts
    name = name.lower()
    if owner and (owner[-1].lower() == "system" or [len(owner), owner[-1].lower()] == [2, "main"]):
        owner.pop()
    if len(owner) > 1:
        raise cursor.failure(
            f"a {what} as {what}, system.{what} or catalog.system.{what}",
            start - 2 * len(parts) + 1,
        )
    positional, named = _arguments(cursor)
    catalog = owner[0] if owner else None
    if catalog is None and name.startswith(DUCKLAKE):
        lake = positional.pop(0) if positional else None
        if not isinstance(lake, str):
            raise cursor.failure("the name of the lake as a string", start + 1)
        catalog, name = lake, name.removeprefix(DUCKLAKE)
    return Call(name, tuple(positional), tuple(named.items()), catalog)


def _arguments(cursor: Cursor) -> tuple[list[Argument], dict[str, Argument]]:
    cursor.expect("(")
    positional: list[Argument] = []
    named: dict[str, Argument] = {}
    while not cursor.sees(")"):
        if cursor.peek().may_name and cursor.peek(1).key == "=>":
            name = cursor.name().lower()
            if name in named:
                raise cursor.failure("each argument only once", cursor.at - 1)
            cursor.expect("=>")
            named[name] = read_argument(cursor)
        elif named:
            raise cursor.failure("name => value (arguments after a named argument need names, too)")
        else:
            positional.append(read_argument(cursor))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return positional, named


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
    if token.kind is TokenKind.STRING:
        text = cursor.string()
        return TimestampText(text) if _is_instant(cursor, "::") else text
    if cursor.accept("CAST", "("):
        text = cursor.string("a time's text")
        if not _is_instant(cursor, "AS"):
            raise cursor.failure("AS TIMESTAMP")
        cursor.expect(")")
        return TimestampText(text)
    if token.kind is TokenKind.NUMBER or token.key in ("-", "+"):
        return _number(cursor)
    if token.key in _INSTANTS and cursor.peek(1).kind is TokenKind.STRING:
        cursor.take()
        return TimestampText(cursor.string())
    if token.key == "INTERVAL":
        cursor.take()
        return _interval(cursor)
    if token.key in _WORDS:
        return _WORDS[cursor.take().key]
    raise cursor.failure(_LITERAL)


def _is_instant(cursor: Cursor, before: str) -> bool:
    """Take the type of a time behind the word ``before``, or nothing."""
    if not (cursor.sees(before) and cursor.peek(1).key in _INSTANTS):
        return False
    cursor.take()
    cursor.type()
    return True


def literal_text(cursor: Cursor) -> str:
    """Take a literal and return its SQL text."""
    start = cursor.at
    read_literal(cursor)
    return cursor.since(start)


def text_of(literal: str) -> str | None:
    """Return the text that a literal means, None if it is none, such as a number."""
    first, *rest = tokenize(literal)
    return string_of(first) if first.kind is TokenKind.STRING and len(rest) == 1 else None


def _number(cursor: Cursor) -> int | float | Decimal:
    sign = "-" if cursor.accept_any("-", "+") == "-" else ""
    token = cursor.peek()
    if token.kind is not TokenKind.NUMBER:
        raise cursor.failure("a number")
    cursor.take()
    text = sign + re.sub(r"(?i)(?:BD|[LSYDF])$", "", token.text)
    if token.text[-1:] in "dDfF" and token.text[-2:].upper() != "BD":
        return float(text)
    if whole_number(text.lstrip("-"), DIGITS) is not None and token.text[-2:].upper() != "BD":
        return int(text)
    return float(text) if "e" in text.lower() else Decimal(text)


def _interval(cursor: Cursor) -> IntervalText:
    parts: list[str] = []
    while cursor.peek().kind in (TokenKind.NUMBER, TokenKind.STRING) or cursor.sees("-"):
        sign = "-" if cursor.accept("-") else ""
        if cursor.peek().kind is TokenKind.STRING:
            parts.append(sign + cursor.string())
        elif cursor.peek().kind is TokenKind.NUMBER:
            parts.append(sign + cursor.take().text)
        if _UNIT.fullmatch(cursor.peek().key):
            parts.append(cursor.take().text)
        elif sign or not any(c.isalpha() for c in parts[-1]):
            raise cursor.failure("a unit such as DAYS")
    if not parts:
        raise cursor.failure("an interval such as '7 days'")
    return IntervalText(" ".join(parts))


def begins_property_change(cursor: Cursor, ahead: int = 0) -> bool:
    """Tell whether SET or UNSET TBLPROPERTIES stands next."""
    word, what = cursor.peek(ahead).key, cursor.peek(ahead + 1).key
    return word in ("SET", "UNSET") and what == "TBLPROPERTIES"


def read_property_change(cursor: Cursor) -> PropertyChange:
    """Read ``SET TBLPROPERTIES (…)`` or ``UNSET TBLPROPERTIES [IF EXISTS] (…)``."""
    sets = cursor.accept_any("SET", "UNSET") == "SET"
    cursor.expect("TBLPROPERTIES")
    if sets:
        return SetProperties(tuple(read_properties(cursor).items()))
    if_exists = cursor.accept_if("EXISTS")
    return UnsetProperties(cursor.in_brackets(read_property_key), if_exists)


def read_properties(cursor: Cursor) -> dict[str, str]:
    """Read ``('key' = 'value', …)``; a key may be written as a dotted name."""
    found: dict[str, str] = {}

    def take_one(_: Cursor) -> None:
        start = cursor.at
        key = read_property_key(cursor)
        if key in found:
            raise cursor.failure("each property only once", start)
        cursor.accept("=")
        if cursor.peek().kind is TokenKind.STRING:
            found[key] = cursor.string()
        elif cursor.peek().kind is TokenKind.NUMBER or cursor.peek().key in ("TRUE", "FALSE"):
            found[key] = cursor.take().text
        else:
            raise cursor.failure("the property's value")

    cursor.in_brackets(take_one)
    return found


def read_job_properties(cursor: Cursor, before: dict[str, str]) -> dict[str, str]:
    """Take ``PROPERTIES (…)`` of a job if it stands next; ``before`` are those read already."""
    if not cursor.sees("PROPERTIES", "("):
        return before
    if before:
        raise cursor.failure("PROPERTIES only once")
    cursor.expect("PROPERTIES")
    return read_properties(cursor)


def read_property_key(cursor: Cursor) -> str:
    """Read the name of a property, as a string or a dotted name."""
    if cursor.peek().kind is TokenKind.STRING:
        return cursor.string()
    return ".".join(cursor.path("a property"))


def take_comment(cursor: Cursor) -> str | None:
    """Take what stands behind the object of COMMENT ON; NULL takes the comment away."""
    cursor.expect("IS")
    return None if cursor.accept("NULL") else cursor.string("the comment as a string, or NULL")


def end_alone(cursor: Cursor, what: str) -> None:
    """Raise Unsupported if another change stands behind one of ALTER TABLE that is alone."""
    if cursor.sees(","):
        raise not_alone(cursor, what)


def read_writer_words(cursor: Cursor) -> tuple[bool, tuple[Member, ...]]:
    """Take WITH SCHEMA EVOLUTION, and WITH EXPECT with the columns that a writer was built for."""
    evolves, expects = False, tuple[Member, ...]()
    while cursor.sees("WITH", "SCHEMA", "EVOLUTION") or cursor.sees("WITH", "EXPECT"):
        cursor.take()
        if cursor.accept("EXPECT"):
            expects = cursor.in_brackets(_member)
        else:
            evolves = cursor.accept("SCHEMA", "EVOLUTION")
    return evolves, expects


def _member(cursor: Cursor) -> Member:
    name, kind = cursor.name(), cursor.type()
    return Member(name, kind, nullable=not cursor.accept("NOT", "NULL"))


def not_alone(cursor: Cursor, what: str) -> Unsupported:
    """Return the error that a change of ALTER TABLE stands beside others."""
    return cursor.refusal(f"{what} together with other changes", "write two statements")


@dataclass(frozen=True, slots=True)
class ShowObjects(Statement):
    """What lists objects of a schema, None for the current one.

    ``like`` is Spark's pattern: ``*`` for anything, ``|`` for or.
    """

    schema: SchemaName | None = None
    like: str | None = None


def listing(kind: type[ShowObjects]) -> Callable[[Cursor], Statement]:
    """Return what reads such a statement behind its words."""

    def read(cursor: Cursor) -> ShowObjects:
        schema = cursor.schema_name() if cursor.accept_any("IN", "FROM") else None
        pattern = None
        if cursor.accept("LIKE") or cursor.peek().kind is TokenKind.STRING:
            pattern = cursor.string("a pattern as a string")
        return kind(schema, pattern)

    return read


def is_like(name: str, pattern: str | None) -> bool:
    """Tell whether a name matches Spark's pattern: ``*`` is anything, ``|`` separates patterns."""
    if pattern is None:
        return True
    return any(
        re.fullmatch(".*".join(map(re.escape, part.strip().split("*"))), name, re.IGNORECASE)
        for part in pattern.split("|")
    )
