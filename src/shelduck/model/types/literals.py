r"""Text of single values, as DuckLake stores it in defaults, bounds and partition values.

Bounds are the min and max texts of statistics. Files and inlined rows write some types differently
(``1`` and ``true``, ``00FF`` and ``\x00\xFF``); both are read. If a bound cannot be read with
certainty, it is None (unknown), and nothing is pruned by it.
"""

from __future__ import annotations

import json
import re
import struct
from decimal import ROUND_HALF_UP, localcontext
from decimal import Decimal as Number
from typing import NamedTuple, NoReturn

from shelduck.errors import InvalidRequest
from shelduck.model.types import temporal
from shelduck.model.types.data_types import FLOATS, SIGNED, UNSIGNED, Decimal, Leaf, Text

_TRUE = frozenset({"true", "t", "yes", "y", "1"})
_FALSE = frozenset({"false", "f", "no", "n", "0"})
_INTEGER = re.compile(r"[+-]?[0-9]+")
_UUID = re.compile(
    r"\{?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})\}?"
)
_FINITE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,9})?", re.IGNORECASE)
_DIGITS = 1000
_SPECIAL_FLOATS = {
    "nan": "nan",
    "inf": "inf",
    "infinity": "inf",
    "+inf": "inf",
    "+infinity": "inf",
    "-inf": "-inf",
    "-infinity": "-inf",
}
_BLOB_BYTE = re.compile(r"\\x([0-9A-Fa-f]{2})")
_BLOB_PLAIN = frozenset(range(32, 127)) - frozenset(b"\\'\"")


def canonical_text(leaf: Leaf, text: str) -> str:
    """Return ``text`` as DuckLake writes a value of that type; InvalidRequest if it is none.

    Nothing is rounded or cut: a value that the type cannot hold exactly is refused, but a float is
    rounded to the nearest one, as every float is. A ``timestamptz`` without an offset is UTC.

    >>> from shelduck.model.types.data_types import Decimal, Primitive
    >>> canonical_text(Decimal(5, 2), "1.5")
    '1.50'
    >>> canonical_text(Primitive("timestamptz"), "2024-01-01 00:00:00+02")
    '2023-12-31 22:00:00+00'
    """
    if isinstance(leaf, Decimal):
        return _decimal(leaf, text)
    name = leaf.name
    if name in SIGNED or name in UNSIGNED:
        return _integer(leaf, text)
    if name in FLOATS:
        return float_text(leaf, float_value(leaf, text))
    if name == "varchar":
        return text
    canonical = _BY_NAME.get(name)
    if canonical is None:
        raise InvalidRequest(f"literals of type {leaf} are not supported: {text!r}")
    return canonical(leaf, text)


def integer_range(leaf: Leaf) -> tuple[int, int] | None:
    """Return the least and the greatest value of an integer type, None for other types."""
    name = str(leaf)
    if name in SIGNED:
        return -(2 ** (SIGNED[name] - 1)), 2 ** (SIGNED[name] - 1) - 1
    if name in UNSIGNED:
        return 0, 2 ** UNSIGNED[name] - 1
    return None


def float_text(leaf: Leaf, value: float) -> str:
    """Return the shortest text that reads back as the same float of the leaf's width."""
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
        return str(value)
    if str(leaf) != "float32":
        return repr(value)
    for digits in range(1, 10):
        candidate = float(f"{value:.{digits}g}")
        if as_float32(candidate) == value:
            return repr(candidate)
    return repr(value)


def float_value(leaf: Leaf, text: str) -> float:
    """Return the float of the leaf's width for a text; InvalidRequest if it is none."""
    word = text.strip().lower()
    if word in _SPECIAL_FLOATS:
        return float(_SPECIAL_FLOATS[word])
    if not _FINITE.fullmatch(word):
        _refuse(leaf, text)
    value: float | None = float(word)
    if str(leaf) == "float32":
        value = as_float32(float(word))
    if value is None or abs(value) == float("inf"):
        _refuse(leaf, text, "it is out of range; write 'inf' for infinity")
    return value


def as_float32(value: float) -> float | None:
    """Return the nearest 32-bit float, None if the value is beyond all of them."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return None


def blob_bytes(text: str) -> bytes | None:
    r"""Return the bytes of DuckDB's escaped text (``a\x00\xFF``), None if it is not such a text."""
    if not text.isascii() or "\\" in _BLOB_BYTE.sub("", text):
        return None
    return _BLOB_BYTE.sub(lambda found: chr(int(found[1], 16)), text).encode("latin-1")


def blob_text(value: bytes) -> str:
    r"""Return bytes in DuckDB's escaped form: ``a\x00\xFF``."""
    return "".join(chr(b) if b in _BLOB_PLAIN else f"\\x{b:02X}" for b in value)


def _refuse(leaf: Leaf, text: str, why: str = "") -> NoReturn:
    raise InvalidRequest(f"{text!r} is not a value of type {leaf}{': ' + why if why else ''}")


def _boolean(leaf: Leaf, text: str) -> str:
    word = text.strip().lower()
    if word in _TRUE:
        return "true"
    if word in _FALSE:
        return "false"
    _refuse(leaf, text)


def _integer(leaf: Leaf, text: str) -> str:
    limits = integer_range(leaf)
    assert limits is not None
    if not _INTEGER.fullmatch(text.strip()):
        _refuse(leaf, text, "expected a whole number")
    if len(text) > _DIGITS or not limits[0] <= int(text) <= limits[1]:
        _refuse(leaf, text, f"the range is {limits[0]} to {limits[1]}")
    return str(int(text))


def fitted(leaf: Leaf, text: str) -> str:
    """Return a number with as many digits after the point as a decimal has, other text as it is.

    Half of the last digit is rounded away from zero, as in DuckDB. Raises InvalidRequest for a text
    that is longer than its type takes.

    >>> fitted(Decimal(5, 2), "1.235")
    '1.24'
    """
    if isinstance(leaf, Text) and len(text) > leaf.length:
        _refuse(leaf, text, f"it has {len(text)} characters, and the type takes {leaf.length}")
    if not isinstance(leaf, Decimal) or len(text) > _DIGITS or not _FINITE.fullmatch(text.strip()):
        return text
    value = Number(text.strip())
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or -exponent <= leaf.scale or abs(exponent) > 1000:
        return text
    with localcontext(prec=2000):
        return f"{value.quantize(Number(1).scaleb(-leaf.scale), ROUND_HALF_UP):f}"


def _decimal(leaf: Decimal, text: str) -> str:
    # Python accepts digits of all scripts, and underscores between them.
    if not _FINITE.fullmatch(text.strip()):
        _refuse(leaf, text)
    value = Number(text.strip())
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if abs(exponent) > 1000 or len(digits) > _DIGITS:
        _refuse(leaf, text, "it is out of range")
    with localcontext(prec=3000):
        # A zero has no sign.
        made = value.quantize(Number(1).scaleb(-leaf.scale)) + 0
        if made != value:
            _refuse(leaf, text, f"it has more than {leaf.scale} digits after the point")
        if abs(made) >= 10 ** (leaf.precision - leaf.scale):
            _refuse(leaf, text, "it has too many digits before the point")
    return f"{made:f}"


def _date(leaf: Leaf, text: str) -> str:
    number = temporal.date_number(text)
    if number is None:
        _refuse(leaf, text, "write it as 2024-01-31")
    return temporal.date_text(number)


def _timestamp(leaf: Leaf, text: str) -> str:
    if temporal.is_infinite(text):
        return text.strip().lower()
    number = temporal.timestamp_number(text, leaf)
    if number is None:
        digits = temporal.fraction_digits(leaf)
        _refuse(
            leaf,
            text,
            f"write it as 2024-01-31 23:59:59, at most {digits} digits after the second"
            + ("" if str(leaf) in temporal.ZONED else ", without a time zone"),
        )
    return temporal.timestamp_text(number, leaf)


def _time(leaf: Leaf, text: str) -> str:
    number = temporal.time_number(text, leaf)
    if number is None:
        _refuse(leaf, text, "write it as 23:59:59.999999")
    return temporal.time_text(number, leaf)


def _timetz(leaf: Leaf, text: str) -> str:
    found = temporal.zoned_time_text(text, leaf)
    if found is None:
        _refuse(leaf, text, "write it as 23:59:59.999999+00")
    return found


def _uuid(leaf: Leaf, text: str) -> str:
    match = _UUID.fullmatch(text.strip().lower())
    if match is None:
        _refuse(leaf, text)
    return "-".join(match.groups())


def _json(leaf: Leaf, text: str) -> str:
    try:
        json.loads(
            text, parse_constant=lambda word: _refuse(leaf, text, f"{word} is not valid JSON")
        )
    except ValueError as broken:
        if isinstance(broken, InvalidRequest):
            raise
        _refuse(leaf, text, str(broken))
    return text


def _blob(leaf: Leaf, text: str) -> str:
    value = blob_bytes(text)
    if value is None:
        _refuse(leaf, text, "write backslashes and bytes beyond ASCII as \\xFF")
    return blob_text(value)


_BY_NAME = {
    "boolean": _boolean,
    "date": _date,
    "time": _time,
    "time_ns": _time,
    "timetz": _timetz,
    "uuid": _uuid,
    "json": _json,
    "blob": _blob,
    **dict.fromkeys(temporal.TIMESTAMP_NAMES, _timestamp),
}


Comparable = bool | int | float | Number | str | bytes
Texts = tuple[str | None, str | None]

BOUND_BYTES = 256
_BY_BYTES = frozenset({"varchar", "json", "blob", "uuid"})
_LAST_BEFORE_SURROGATES, _AFTER_SURROGATES, _LAST = 0xD7FF, 0xE000, 0x10FFFF
_BOOLEANS = {"0": False, "1": True, "false": False, "true": True}


def bound(leaf: Leaf, text: str | None) -> Comparable | None:
    """Return a bound as a value that compares as the column's values do; None if unknown.

    bool, int, Decimal and float for numbers; days since 1970 for dates; microseconds for times and
    timestamps, nanoseconds for the ``_ns`` types; str (by code point, which is UTF-8 byte order)
    for varchar, json and uuid; bytes for blobs. A NaN is not a bound. ``leaf`` is the type in which
    the bound was written; in an older file it may be narrower than the column's current type. The
    text of a blob counts as a file's text (hexadecimal) if it can be one.
    """
    if text is None:
        return None
    if isinstance(leaf, Decimal):
        found = _canonical(leaf, text)
        return None if found is None else Number(found)
    name = leaf.name
    if name == "boolean":
        return _BOOLEANS.get(text.lower())
    if name in SIGNED or name in UNSIGNED:
        found = _canonical(leaf, text)
        return None if found is None else int(found)
    if name in FLOATS:
        found = _canonical(leaf, text)
        return None if found in (None, "nan") else float_value(leaf, text)
    if name in ("varchar", "json"):
        return text
    if name == "blob":
        return _blob_bound(text)
    if name == "uuid":
        return _canonical(leaf, text)
    if name == "date":
        return temporal.date_number(text)
    if name in temporal.TIMESTAMP_NAMES:
        return temporal.timestamp_number(text, leaf)
    return temporal.time_number(text, leaf) if name in ("time", "time_ns") else None


def bound_text(leaf: Leaf, value: Comparable) -> str | None:
    """Return a bound as DuckDB writes it for files; None if it has no text.

    ``value`` is as `bound` returns it. Negative zero becomes ``0.0``; NaN has no text.
    """
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, bytes):
        return value.hex().upper()
    name = str(leaf)
    if name in FLOATS:
        number = float(value)
        return None if number != number else float_text(leaf, number + 0.0)  # noqa: PLR0124 - NaN
    if isinstance(value, int):
        if name == "date":
            return temporal.date_text(value)
        if name in temporal.TIMESTAMP_NAMES:
            return temporal.timestamp_text(value, leaf)
        if name in ("time", "time_ns"):
            return temporal.time_text(value, leaf)
    if name in ("varchar", "json"):
        return str(value)
    return _canonical(leaf, str(value))


class Ends(NamedTuple):
    """The bounds of a column as the catalog stores them, and whether each is one of its values."""

    min_value: str | None = None
    max_value: str | None = None
    min_is_exact: bool | None = None
    max_is_exact: bool | None = None


def ends(leaf: Leaf, low: Comparable, high: Comparable) -> Ends:
    """Return the bounds of a column with this least and this greatest value; text may be cut."""
    texts = whole = (bound_text(leaf, low), bound_text(leaf, high))
    if str(leaf) in ("varchar", "json"):
        texts = cut_bounds(*whole)
    flags = (None if t is None else t == w for t, w in zip(texts, whole, strict=True))
    return Ends(*texts, *flags)


def exactness(leaf: Leaf, text: str | None, flag: bool | None) -> bool | None:
    """Return whether a stored bound is one of the values; None without a bound.

    Nobody cuts values that compare as numbers. Of others, only a ``flag`` says that it is whole.
    """
    return None if text is None else str(leaf) not in _BY_BYTES or flag is True


def widen(leaf: Leaf, known: Texts, added: Texts) -> Texts:
    """Return the texts that bound both pairs, as table statistics store them.

    Each side is one of the given texts, or None if either is missing or cannot be read with
    certainty. Blobs get None: table statistics contain both encodings and do not say which one.
    """
    low = _choose(leaf, known[0], added[0], least=True)
    high = _choose(leaf, known[1], added[1], least=False)
    return low, high


def cut_bounds(low: str | None, high: str | None) -> tuple[str | None, str | None]:
    """Return bounds of at most 256 bytes: the lower one cut, the upper one cut and raised.

    Text with a NUL byte is not a bound, because not every catalog can store it.
    """
    if low is not None:
        low = None if "\0" in low else _prefix(low)
    if high is not None:
        high = None if "\0" in high else _raised(high)
    return low, high


def _choose(leaf: Leaf, first: str | None, second: str | None, *, least: bool) -> str | None:
    if str(leaf) == "blob":
        return None
    one, other = bound(leaf, first), bound(leaf, second)
    if one is None or other is None:
        return None
    first_is_less = one < other  # type: ignore[operator]
    return first if first_is_less == least else second


def _canonical(leaf: Leaf, text: str) -> str | None:
    try:
        return canonical_text(leaf, text)
    except InvalidRequest:
        return None


def _blob_bound(text: str) -> bytes | None:
    try:
        found = bytes.fromhex(text) if text == text.upper() and " " not in text else None
    except ValueError:
        found = None
    return blob_bytes(text) if found is None else found


def _prefix(text: str) -> str:
    return text.encode()[:BOUND_BYTES].decode(errors="ignore")


def _raised(text: str) -> str | None:
    prefix = _prefix(text)
    if prefix == text:
        return text
    while prefix:
        last = ord(prefix[-1])
        prefix = prefix[:-1]
        if last < _LAST:
            above = _AFTER_SURROGATES if last == _LAST_BEFORE_SURROGATES else last + 1
            return prefix + chr(above)
    return None
