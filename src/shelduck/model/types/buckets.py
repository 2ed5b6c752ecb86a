"""The bucket of a value, as DuckDB computes it: Murmur3 (x86, 32 bits, seed 0) of its bytes."""

from __future__ import annotations

import re
import struct
from decimal import Decimal as Number

from shelduck.model.types.data_types import FLOATS, SIGNED, UNSIGNED, Decimal, Leaf
from shelduck.model.types.literals import Comparable, as_float32, bound, canonical_text, float_value
from shelduck.model.types.temporal import TIMESTAMP_NAMES

_MASK = 0xFFFFFFFF
# Decimals of more digits are hashed as text.
LONG_DIGITS = 18
# Microseconds in one unit, for types that are hashed in their own units.
UNITS = {"timestamp_s": 10**6, "timestamp_ms": 10**3}
_AS_LONG = frozenset(
    {"boolean", "date", "time", *TIMESTAMP_NAMES, "int8", "int16", "int32", "int64"}
)
_AS_TEXT = frozenset({*SIGNED, *UNSIGNED, "uuid", "json", "varchar"}) - _AS_LONG


def bucket_of(leaf: Leaf, value: Comparable, buckets: int) -> int | None:
    """Return the bucket of a value (as `bound` returns it) of a column of that type.

    None for a value or type whose hash is not certain.
    """
    found = bucket_hash(_hashed(leaf, value))
    return None if found is None else found % buckets


def bucket_of_text(leaf: Leaf, value: str | bytes, buckets: int) -> int | None:
    """Return the bucket of a value that the catalog keeps, as `bound` reads its text.

    None for a text that is not a value of the type, or a type whose hash is unknown.
    """
    if isinstance(value, bytes):
        return bucket_of(leaf, value, buckets)
    hashed = bucket_hash(_hashed_text(leaf, value))
    if hashed is None:
        found = bound(leaf, value)
        return None if found is None else bucket_of(leaf, found, buckets)
    return hashed % buckets


def _hashed_text(leaf: Leaf, text: str) -> bytes | None:
    """Return the bytes that are hashed of the types that only rows have, not bounds."""
    if isinstance(leaf, Decimal) and leaf.precision > LONG_DIGITS:
        plain = canonical_text(leaf, text)
        is_fraction = leaf.precision == leaf.scale
        return (re.sub(r"^(-?)0\.", r"\1.", plain) if is_fraction else plain).encode()
    if str(leaf) in FLOATS:
        number = float_value(leaf, text)
        exact = as_float32(number) if str(leaf) == "float32" else number
        # Negative zero becomes zero.
        return struct.pack("<d", (number if exact is None else exact) + 0.0)
    return None


def bucket_hash(value: float | bytes | bytearray | None) -> int | None:
    """Return the hash, an int from 0, of bytes, or of the eight bytes of a number; None for None.

    Uses nothing of other modules here, so that it runs where Shelduck is not.
    """
    if value is None:
        return None
    match value:
        case bytes() | bytearray():
            data = bytes(value)
        case int():
            data = value.to_bytes(8, "little", signed=True)
        case float():
            # Java has only one NaN.
            data = struct.pack("<d", value if value == value else float("nan"))  # noqa: PLR0124
    return murmur3_32(data) & 0x7FFFFFFF


def has_same_buckets(old: Leaf, new: Leaf) -> bool:
    """Return whether every value has the same hash in both types."""
    return old == new or (_hashing(old) == _hashing(new) and _hashing(old) is not None)


def _hashing(leaf: Leaf) -> str | None:
    """Return a word that types with equal hashes share, None for a type with a hash of its own."""
    if isinstance(leaf, Decimal):
        width = "long" if leaf.precision <= LONG_DIGITS else "text"
        return f"decimal {leaf.scale} as {width}"
    name = str(leaf)
    if name in ("int8", "int16", "int32", "int64"):
        return "long"
    if name in UNSIGNED or name in SIGNED or name in ("varchar", "json", "uuid"):
        return "text"
    if name in ("timestamp", "timestamptz"):
        return "microseconds"
    return "double" if name in FLOATS else None


def murmur3_32(data: bytes) -> int:
    """Return the hash as an unsigned number; DuckDB's ``murmur3_32`` has the same bits, signed."""
    found = 0
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        found = _rotated(found ^ _scrambled(data[at : at + 4]), 13)
        found = (found * 5 + 0xE6546B64) & _MASK
    if whole < len(data):
        found ^= _scrambled(data[whole:])
    found ^= len(data)
    found = (found ^ found >> 16) * 0x85EBCA6B & _MASK
    found = (found ^ found >> 13) * 0xC2B2AE35 & _MASK
    return found ^ found >> 16


def _scrambled(block: bytes) -> int:
    mixed = int.from_bytes(block, "little") * 0xCC9E2D51 & _MASK
    return _rotated(mixed, 15) * 0x1B873593 & _MASK


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 32 - by) & _MASK


def _hashed(leaf: Leaf, value: Comparable) -> bytes | None:
    if isinstance(leaf, Decimal):
        if leaf.precision > LONG_DIGITS or not isinstance(value, Number | int):
            return None
        return _long(Number(value).scaleb(leaf.scale))
    name = str(leaf)
    if name in _AS_LONG and isinstance(value, int):
        return _long(Number(value) / UNITS.get(name, 1))
    if name == "blob" and isinstance(value, bytes):
        return value
    if name in _AS_TEXT and isinstance(value, str | int):
        return str(value).encode()
    return None


def _long(value: Number) -> bytes | None:
    """Return the eight bytes of an integer; None if it cannot be a value of the type."""
    if value != value.to_integral_value() or not -(2**63) <= value < 2**63:
        return None
    return int(value).to_bytes(8, "little", signed=True)
