r"""Bounds of columns: the min and max texts of DuckLake's statistics, and values to compare.

Files and inlined rows write some types differently (``1`` and ``true``, ``00FF`` and ``\x00\xFF``);
both are read. If a bound cannot be read with certainty, it is None (unknown), and nothing is pruned
by it.
"""

from __future__ import annotations

from decimal import Decimal as Number
from typing import NamedTuple

from shelduck.errors import InvalidRequest
from shelduck.model.types import temporal
from shelduck.model.types.data_types import FLOATS, SIGNED, UNSIGNED, Decimal, Leaf
from shelduck.model.types.literals import as_float32, blob_bytes, canonical_text, float_text

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
        return _float_bound(leaf, text)
    if name in ("varchar", "json"):
        return text
    if name == "blob":
        return _blob_bound(text)
    if name == "uuid":
        return _canonical(leaf, text)
    return _temporal_bound(leaf, text)


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


def _float_bound(leaf: Leaf, text: str) -> float | None:
    found = _canonical(leaf, text)
    if found is None or found == "nan":
        return None
    return as_float32(float(found)) if str(leaf) == "float32" else float(found)


def _blob_bound(text: str) -> bytes | None:
    try:
        found = bytes.fromhex(text) if text == text.upper() and " " not in text else None
    except ValueError:
        found = None
    return blob_bytes(text) if found is None else found


def _temporal_bound(leaf: Leaf, text: str) -> int | None:
    name = str(leaf)
    if name == "date":
        return temporal.date_number(text)
    if name in temporal.TIMESTAMP_NAMES:
        return temporal.timestamp_number(text, leaf)
    if name in ("time", "time_ns"):
        return temporal.time_number(text, leaf)
    return None


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
