"""Literals in the text of Spark's pushed filters."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal as Number
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from shelduck.model.files.predicate import ComparedValue
from shelduck.model.types.data_types import Decimal, Primitive
from shelduck.model.types.literals import as_float32
from shelduck.text.tokens.lexer import Token, TokenKind, string_of

_INTEGERS = {"Y": ("int8", 8), "S": ("int16", 16), "": ("int32", 32), "L": ("int64", 64)}
_NUMBER = re.compile(r"(?P<digits>\d+(?:\.\d+)?(?:E-?\d+)?)(?P<suffix>BD|[YSLD]?)")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?")
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - local times are compared with local times


def literal_of(tokens: Sequence[Token], time_zone: str | None) -> ComparedValue | None:
    """Return the literal that ``tokens`` are as Catalyst writes it, or None for anything else.

    ``time_zone`` is Spark's session time zone, in which Catalyst writes instants; without one, and
    for a local time that the zone had twice or never, an instant is None.
    """
    sign = 1 if tokens and tokens[0].key == "-" else 0
    kinds = [t.kind for t in tokens]
    if kinds[sign:] == [TokenKind.NUMBER]:
        return _number("-" * sign + tokens[-1].text)
    if kinds == [TokenKind.STRING]:
        return (
            ComparedValue(string_of(tokens[0]), Primitive("varchar")) if _plain(tokens[0]) else None
        )
    if kinds == [TokenKind.WORD]:
        found = {"TRUE": True, "FALSE": False}.get(tokens[0].key)
        return None if found is None else ComparedValue(found, Primitive("boolean"))
    if kinds == [TokenKind.WORD, TokenKind.STRING] and _plain(tokens[1]):
        return _typed(tokens[0].key, string_of(tokens[1]), time_zone)
    return _floating(tokens)


def _plain(token: Token) -> bool:
    """Tell whether Catalyst wrote the string: it escapes backslash and single quote only."""
    return re.fullmatch(r"'(?:[^'\\]|\\\\|\\')*'", token.text) is not None


def _number(text: str) -> ComparedValue | None:
    match = _NUMBER.fullmatch(text.lstrip("-"))
    if match is None:
        return None
    digits, suffix = ("-" if text[0] == "-" else "") + match["digits"], match["suffix"]
    if suffix == "D":
        return ComparedValue(float(digits), Primitive("float64"))
    if suffix == "BD":
        value = Number(digits)
        exponent = value.as_tuple().exponent
        if not isinstance(exponent, int) or "E" in digits:
            return None
        precision = max(len(value.as_tuple().digits), -exponent)
        return ComparedValue(value, Decimal(precision, -exponent)) if precision <= 38 else None
    name, bits = _INTEGERS[suffix]
    whole = int(digits) if re.fullmatch(r"-?\d{1,20}", digits) else None
    if whole is None or not -(2 ** (bits - 1)) <= whole < 2 ** (bits - 1):
        return None
    return ComparedValue(whole, Primitive(name))


def _typed(word: str, text: str, time_zone: str | None) -> ComparedValue | None:
    if word == "X":
        if not re.fullmatch(r"(?:[0-9A-Fa-f]{2})*", text):
            return None
        return ComparedValue(bytes.fromhex(text), Primitive("blob"))
    read: Callable[[str], int | None] | None = {
        "DATE": _days,
        "TIMESTAMP_NTZ": _local_micros,
        "TIMESTAMP": lambda t: _instant_micros(t, time_zone),
    }.get(word)
    value = read(text) if read else None
    kind = {"DATE": "date", "TIMESTAMP_NTZ": "timestamp"}.get(word, "timestamptz")
    return None if value is None else ComparedValue(value, Primitive(kind))


def _days(text: str) -> int | None:
    local = _local(f"{text} 00:00:00")
    return None if local is None else (local - _EPOCH).days


def _local(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if _INSTANT.fullmatch(text) else None
    except ValueError:
        return None


def _local_micros(text: str) -> int | None:
    local = _local(text)
    return None if local is None else (local - _EPOCH) // timedelta(microseconds=1)


def _instant_micros(text: str, time_zone: str | None) -> int | None:
    local = _local(text)
    zone = zone_named(time_zone) if time_zone else None
    if local is None or zone is None:
        return None
    try:
        early, late = (local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        if early != late or early.astimezone(zone).replace(tzinfo=None) != local:
            return None
    except OverflowError:
        return None
    return (early - _EPOCH.replace(tzinfo=UTC)) // timedelta(microseconds=1)


def zone_named(name: str) -> tzinfo | None:
    """Return a time zone by Spark's name of it, None if it is not known here."""
    offset = re.fullmatch(r"(?:GMT|UTC)?([+-])(\d\d?):(\d\d)", name)
    if offset:
        ahead = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(ahead if offset[1] == "+" else -ahead)
    if name in ("Z", "UTC", "GMT"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _floating(tokens: Sequence[Token]) -> ComparedValue | None:
    """Read CAST('NaN' AS DOUBLE) and CAST('1.5' AS FLOAT), Catalyst's words for such numbers."""
    keys = [t.key for t in tokens]
    if [*keys[:2], *keys[3:]] not in (
        ["CAST", "(", "AS", "FLOAT", ")"],
        ["CAST", "(", "AS", "DOUBLE", ")"],
    ):
        return None
    if tokens[2].kind is not TokenKind.STRING or not _plain(tokens[2]):
        return None
    text = string_of(tokens[2])
    if not re.fullmatch(r"NaN|-?Infinity|-?\d+(?:\.\d+)?(?:E-?\d+)?", text):
        return None
    if keys[4] == "DOUBLE":
        return ComparedValue(float(text), Primitive("float64"))
    value = as_float32(float(text))
    return None if value is None else ComparedValue(value, Primitive("float32"))
