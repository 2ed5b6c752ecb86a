"""What it means that a conversion keeps a value, by Python's own types and nothing of ours.

Values are plain here: moments are microseconds since 1970, dates are days, UUIDs and times text.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import struct
import uuid
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

DAY = 86_400_000_000
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a local time
_MICRO = dt.timedelta(microseconds=1)

INTEGERS = (
    *("int8", "int16", "int32", "int64", "int128"),
    *("uint8", "uint16", "uint32", "uint64", "uint128"),
)
FLOATS = ("float32", "float64")
TEXTS = ("varchar", "json")
LOCAL = ("timestamp_s", "timestamp_ms", "timestamp")
MOMENTS = (*LOCAL, "timestamptz")

_BLANKS = " \t\n\r\f\v"
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_SPECIAL = {"nan": "nan"} | {
    sign + word: "-inf" if sign == "-" else "inf"
    for sign in ("", "+", "-")
    for word in ("inf", "infinity")
}
_TRUE = {"true", "t", "yes", "y", "1"}
_FALSE = {"false", "f", "no", "n", "0"}
_DATE = re.compile(r"([0-9]{4})([-/])([0-9]{1,2})\2([0-9]{1,2})|([0-9]{4})([0-9]{2})([0-9]{2})")
_SHORT_DATE = re.compile(r"([0-9]{2})([-/]?)([0-9]{1,2})\2([0-9]{1,2})")
_MOMENT = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"([ T]([0-9]{1,2}):([0-9]{1,2})(:([0-9]{1,2})(\.([0-9]+))?)?)?"
    r"( ?(Z|([+-])([0-9]{1,2}):?([0-9]{2})?))?"
)
_TIME = re.compile(r"(([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?|24:00:00)")
_TIMETZ = re.compile(_TIME.pattern + r"[+-][01][0-9](:[0-5][0-9]){0,2}")


def family(kind: str) -> str:
    """Which values a type has: numbers, texts, moments, or some of its own."""
    if kind in INTEGERS or kind in FLOATS or kind.startswith("decimal"):
        return "number"
    if kind in TEXTS:
        return "text"
    return "moment" if kind in MOMENTS else kind


def is_kept(source: str, target: str, given: Any, made: Any, zone: ZoneInfo | None = None) -> bool:
    """True when ``made`` says what ``given`` says; ``zone`` is that of the session, UTC if None."""
    if source in TEXTS:
        return _is_read(given, target, made, zone)
    if target == "json":
        return _is_json_of(source, given, made, zone)
    if target == "varchar":
        if source == "blob":
            return bool(made.encode() == given)
        if family(source) == "number":
            return _says(source, given, _number(made))
        return _is_read(made, source, given, zone)
    if (source, target) == ("uuid", "blob"):
        return bool(uuid.UUID(bytes=made) == uuid.UUID(given))
    if {family(source), family(target)} <= {"number", "boolean"}:
        return _is_same_number(source, target, given, made)
    if target == "date":
        if source == "int32":
            return bool(_read_date(f"{given:08d}") == made)
        local = _local(given, zone) if source == "timestamptz" else given
        # The day of a moment is all that a date has of it, as the documentation says.
        return bool(made == local // DAY)
    moment = given * DAY if source == "date" else given
    if (source == "timestamptz") is (target == "timestamptz"):
        return bool(moment == made)
    if source == "timestamptz":
        return bool(_local(given, zone) == made and _instant(made, zone) == given)
    back = _local(made, zone)
    return bool(back // DAY == given if source == "date" else back == given)


def _is_read(text: str, kind: str, made: Any, zone: ZoneInfo | None) -> bool:
    """True when a text says a value of a type."""
    bare = text.strip(_BLANKS)
    found = family(kind)
    if found == "number":
        said = _number(bare)
        is_float = kind in FLOATS and math.isfinite(made)
        return said in (_denoted(kind, made), _shortest(kind, made) if is_float else said is None)
    if kind == "varchar":
        return bool(made == text)
    if kind == "json":
        return bool(made == text) and _is_json(text)
    if kind == "blob":
        return bool(made == text.encode())
    if kind == "boolean":
        return bare.lower() in (_TRUE if made else _FALSE)
    if kind == "date":
        return bool(_read_date(text.strip(" ")) == made)
    if kind == "uuid":
        return len(bare) == 36 and str(uuid.UUID(bare)) == made
    if kind in ("time", "timetz"):
        form = _TIME if kind == "time" else _TIMETZ
        return bool(made == bare) and form.fullmatch(made) is not None
    return _read_moment(bare, zoned=kind == "timestamptz", zone=zone) == made


def _is_json_of(source: str, given: Any, made: str, zone: ZoneInfo | None) -> bool:
    if not _is_json(made):
        return False
    if source == "blob":
        return bool(made.encode() == given)
    said = json.loads(made, parse_float=Decimal)
    if source == "boolean":
        return said is given
    if family(source) == "number":
        return not isinstance(said, str) and _says(source, given, Fraction(said))
    return isinstance(said, str) and _is_read(said, source, given, zone)


def _is_json(text: str) -> bool:
    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        return False
    return True


def _says(kind: str, value: Any, said: object) -> bool:
    """True when a number says a value: a float is said by each number that it is the nearest of."""
    if kind not in FLOATS:
        return said == Fraction(int(value) if isinstance(value, bool) else value)
    if math.isnan(value) or math.isinf(value):
        return said == str(value)
    return isinstance(said, Fraction) and _nearest(kind, said) == value


def _nearest(kind: str, said: Fraction) -> float | None:
    try:
        if kind == "float64":
            return float(said)
        # By way of a double a number may be rounded twice: it is compared with the neighbours.
        [near] = struct.unpack("f", struct.pack("f", float(said)))
        [bits] = struct.unpack("i", struct.pack("f", near))
        around = (
            struct.unpack("f", struct.pack("i", max(0, bits & 0x7FFFFFFF) + d))[0]
            for d in (-1, 0, 1)
            if (bits & 0x7FFFFFFF) + d >= 0
        )
        sign = -1 if near < 0 else 1
        return sign * min(around, key=lambda x: abs(Fraction(x) - abs(said)))
    except (OverflowError, ValueError):
        return None


def _denoted(kind: str, value: Any) -> object:
    """The number that a value is."""
    if kind in FLOATS and (math.isnan(value) or math.isinf(value)):
        return str(value)
    return Fraction(int(value) if isinstance(value, bool) else value)


def _shortest(kind: str, value: float) -> Fraction:
    """The number that the shortest text of a finite float says."""
    if kind == "float64":
        return Fraction(Decimal(repr(value)))
    texts = (f"{value:.{digits}g}" for digits in range(1, 10))
    found = (t for t in texts if struct.unpack("f", struct.pack("f", float(t)))[0] == value)
    return Fraction(Decimal(next(found)))


def _is_same_number(source: str, target: str, given: Any, made: Any) -> bool:
    """True for the same number; between floats and decimals a float is its shortest text."""
    one, other = _denoted(source, given), _denoted(target, made)
    if one == other or isinstance(one, str) or isinstance(other, str):
        return one == other
    if source in FLOATS and target.startswith("decimal"):
        return _says(source, given, other)
    return (
        target in FLOATS
        and not source.startswith(("int", "uint"))
        and _says_shortly(target, made, one)
    )


def _says_shortly(kind: str, value: float, said: object) -> bool:
    return said == _shortest(kind, value)


def _number(bare: str) -> object:
    if bare.lower() in _SPECIAL:
        return _SPECIAL[bare.lower()]
    return Fraction(Decimal(bare)) if _NUMBER.fullmatch(bare) else None


def _read_date(text: str) -> int | None:
    found, short = _DATE.fullmatch(text), _SHORT_DATE.fullmatch(text)
    if found:
        year, month, day = (int(g) for g in (*found.group(1, 3, 4), *found.group(5, 6, 7)) if g)
    elif short and (short[2] or len(text) == 6):
        year, month, day = 2000 + int(short[1]), int(short[3]), int(short[4])
    else:
        return None
    try:
        return (dt.date(year, month, day) - dt.date(1970, 1, 1)).days
    except ValueError:
        return None


def _read_moment(bare: str, *, zoned: bool, zone: ZoneInfo | None) -> int | None:
    found = _MOMENT.fullmatch(bare)
    if found is None or (found[11] and not zoned) or len((found[10] or "").rstrip("0")) > 6:
        return None
    parts = [int(found[n] or 0) for n in (1, 2, 3, 5, 6, 8)]
    try:
        local = dt.datetime(*parts, int((found[10] or "").ljust(6, "0")[:6]))  # type: ignore[misc,arg-type] # noqa: DTZ001
    except ValueError:
        return None
    micros = (local - _EPOCH) // _MICRO
    if not zoned:
        return micros
    if not found[11]:
        instant = _instant(micros, zone)
        return instant if _local(instant, zone) == micros else None
    if found[12] == "Z":
        return micros
    offset = int(found[14]) * 3600 + int(found[15] or 0) * 60
    return micros - (offset if found[13] == "+" else -offset) * 1_000_000


def _local(instant: int, zone: ZoneInfo | None) -> int:
    if zone is None:
        return instant
    at = (_EPOCH + instant * _MICRO).replace(tzinfo=dt.UTC).astimezone(zone)
    return (at.replace(tzinfo=None) - _EPOCH) // _MICRO


def _instant(local: int, zone: ZoneInfo | None) -> int:
    if zone is None:
        return local
    at = (_EPOCH + local * _MICRO).replace(tzinfo=zone).astimezone(dt.UTC)
    return (at.replace(tzinfo=None) - _EPOCH) // _MICRO
