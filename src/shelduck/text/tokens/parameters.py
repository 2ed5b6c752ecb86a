"""Parameters of a statement, ``:name`` and ``?``: their values as literals in its text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isfinite
from numbers import Integral
from typing import Any

from shelduck.errors import InvalidRequest
from shelduck.model.text.names import quote_text
from shelduck.text.tokens.lexer import Token, TokenKind, edited, tokenize

Values = Mapping[str, Any] | Sequence[Any]


def with_parameters(text: str, values: Values) -> str:
    """Return a text with a literal for each parameter: ``:name`` of a mapping, ``?`` of a list.

    Raises InvalidRequest for a parameter without a value, for more values than ``?``, and for a
    value that has no literal.
    """
    is_named = isinstance(values, Mapping)
    given: dict[Any, Any] = dict(values if isinstance(values, Mapping) else enumerate(values))
    places = list(_named(text) if is_named else _positional(text))
    if not is_named and len(places) != len(given):
        raise InvalidRequest(
            f"the statement has {len(places)} ?, but args has {len(given)} value(s)"
        )
    edits = []
    for number, (start, end) in enumerate(places):
        label = text[start + 1 : end] if is_named else number
        if label not in given:
            known = ", ".join(map(str, given))
            raise InvalidRequest(f"the statement has the parameter :{label}, but args has {known}")
        edits.append((start, end, literal_text(given[label], label)))
    return edited(text, edits)


def has_parameters(text: str) -> bool:
    """Return whether a text has a parameter, ``:name`` or ``?``."""
    return any(True for places in (_named(text), _positional(text)) for _ in places)


def literal_text(value: Any, label: str | int = "value") -> str:
    """Return a Python value as Spark SQL; a time without a zone is one of this machine's zone."""
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    for kind, write in _WRITERS.items():
        if isinstance(value, kind):
            return write(value)
    if isinstance(value, list | tuple):
        return f"array({', '.join(literal_text(v, label) for v in value)})"
    if isinstance(value, Mapping):
        parts = (literal_text(part, label) for pair in value.items() for part in pair)
        return f"map({', '.join(parts)})"
    raise InvalidRequest(
        f"parameter {label} of type {type(value).__name__} has no SQL literal; pass a number,"
        " a text, a time, bytes, None, or a list or dict of these"
    )


def _named(text: str) -> Iterator[tuple[int, int]]:
    tokens = tokenize(text)
    for n, token in enumerate(tokens[:-1]):
        name = tokens[n + 1]
        begins = token.key == ":" and name.kind is TokenKind.WORD and name.start == token.end
        # A path into a variant, v:name, is none.
        if begins and not (n and _is_value(tokens[n - 1]) and tokens[n - 1].end == token.start):
            yield token.start, name.end


def _positional(text: str) -> Iterator[tuple[int, int]]:
    return ((t.start, t.end) for t in tokenize(text) if t.key == "?")


def _is_value(token: Token) -> bool:
    return token.kind is not TokenKind.SYMBOL or token.key in (")", "]")


def _signed(text: str) -> str:
    # Behind a minus of the statement it would begin a comment.
    return f" {text}" if text.startswith("-") else text


def _float(value: float) -> str:
    return _signed(f"{value!r}D") if isfinite(value) else f"CAST('{value}' AS DOUBLE)"


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise InvalidRequest(f"a decimal cannot be {value}")
    return _signed(f"{value:f}BD")


def _instant(value: datetime) -> str:
    return f"TIMESTAMP '{value.astimezone(UTC).isoformat(sep=' ')}'"


def _interval(value: timedelta) -> str:
    sign = "-" if value < timedelta(0) else ""
    size = abs(value)
    hours, rest = divmod(size.seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    clock = f"{hours:02}:{minutes:02}:{seconds:02}.{size.microseconds:06}"
    return f"INTERVAL '{sign}{size.days} {clock}' DAY TO SECOND"


_WRITERS: dict[type, Callable[[Any], str]] = {
    Integral: lambda v: _signed(str(int(v))),
    float: lambda v: _float(float(v)),
    Decimal: _decimal,
    str: quote_text,
    bytes: lambda v: f"X'{v.hex()}'",
    bytearray: lambda v: f"X'{v.hex()}'",
    datetime: _instant,
    date: lambda v: f"DATE '{v.isoformat()}'",
    timedelta: _interval,
}
