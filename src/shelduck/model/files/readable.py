"""Which stored types Spark reads correctly as which types, and how other values are converted.

The facts come from 27,000 measured reads of Spark 4.3: a pair is in `reads_right` only if both the
vectorized and the row reader returned every value, at top level and nested. Spark itself accepts
more pairs, and for some of them it returns other values without an error. Nothing here is a guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from shelduck.model.files.data_file import PhysicalField
from shelduck.model.tables.schema import Kind
from shelduck.model.types.data_types import FLOATS, SIGNED, UNSIGNED, Decimal, Leaf, Primitive
from shelduck.model.types.temporal import MICROSECONDS, NANOSECONDS, ZONELESS

INT64 = Primitive("int64")
BLOB = Primitive("blob")
_DATE = Primitive("date")
_INSTANT = Primitive("timestamptz")
# Digits that every value of an integer type fits in.
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
# Spark reads any INT32 as a decimal of 10 digits, and any INT64 as one of 20 digits.
_READER_DIGITS = {8: 10, 16: 10, 32: 10, 64: 20}
# Spark holds unsigned numbers in the next wider signed type.
_HELD_IN = {"uint8": 16, "uint16": 32, "uint32": 64}


class How(Enum):
    """The step from a value that was read to the value of the column."""

    CAST = "cast"
    CHECKED_CAST = "checked cast"
    UUID_BYTES = "uuid of bytes"
    UUID_TEXT = "uuid of text"
    TIME = "time of microseconds"
    TIMETZ = "timetz of microseconds"
    TIMESTAMP_OF_NANOS = "timestamp of nanoseconds"
    INSTANT_OF_NANOS = "timestamptz of nanoseconds"
    NANOS_OF_INSTANT = "nanoseconds of timestamptz"
    NANOS_OF_DATE = "nanoseconds of date"
    INSTANT_OF_DATE = "timestamptz of date"
    NULL_OF_VARIANT = "NULL of a variant that is null"


@dataclass(frozen=True, slots=True)
class StoredReading:
    """How a stored leaf becomes a column's value: read as ``read``, then changed by ``how``."""

    read: Leaf
    how: How | None = None


def reading(stored: PhysicalField, target: Leaf) -> StoredReading | None:
    """Return how a stored leaf is read as ``target``; None if no way is known to be correct."""
    if reads_right(stored, target):
        return StoredReading(target)
    if isinstance(stored.shape, Kind) or str(stored.shape).startswith("parquet:"):
        return None
    return _decoded(stored, str(target)) or _temporal(stored, str(target)) or _cast(stored, target)


def reads_right(stored: PhysicalField, target: Leaf) -> bool:
    """Return whether both of Spark's Parquet readers return the correct values for ``target``."""
    leaf = stored.shape
    if isinstance(leaf, Kind):
        return False
    if isinstance(leaf, Decimal):
        return stored.encoding != "bytes" and _decimal_holds(leaf, target)
    name, wanted = leaf.name, str(target)
    if name in SIGNED:
        return name != "int128" and _signed_reads(SIGNED[name], target)
    if name in UNSIGNED:
        return _unsigned_reads(name, wanted)
    if name in FLOATS:
        return wanted == name or (name, wanted) == ("float32", "float64")
    if name == "date":
        return wanted == "date" or wanted in ZONELESS
    if name in MICROSECONDS:
        return stored.encoding != "ns" and wanted in MICROSECONDS
    if name == "uuid":
        return stored.encoding == "utf8" and wanted in ("uuid", "varchar")
    if name in ("varchar", "json"):
        # Times are stored as text of a checked form; nobody else stores them like this.
        return wanted in ("varchar", "json", "time", "timetz")
    if name == "blob":
        return wanted in ("blob", "geometry")
    return name == wanted and name in ("boolean", "timestamp_ns", "geometry")


def _decimal_holds(stored: Decimal, target: Leaf) -> bool:
    held = _as_decimal(target)
    if held is None:
        return False
    whole = stored.precision - stored.scale
    return held.scale >= stored.scale and held.precision - held.scale >= whole


def _as_decimal(target: Leaf) -> Decimal | None:
    """Return the decimal in which Spark holds values of ``target``."""
    if isinstance(target, Decimal):
        return target
    return {"int128": Decimal(38, 0)}.get(target.name)


def _signed_reads(bits: int, target: Leaf) -> bool:
    held = _as_decimal(target)
    if held is not None:
        return held.precision - held.scale >= _READER_DIGITS[bits]
    name = str(target)
    if name == "float64":
        return bits <= 32
    return name in SIGNED and SIGNED[name] >= bits


def _unsigned_reads(name: str, wanted: str) -> bool:
    if name not in _HELD_IN:
        return name == wanted == "uint64"
    bits = UNSIGNED[name]
    if wanted == "float64":
        return bits <= 16
    if wanted in _HELD_IN:
        return UNSIGNED[wanted] >= bits
    return wanted in SIGNED and wanted != "int128" and SIGNED[wanted] > bits


def _decoded(stored: PhysicalField, target: str) -> StoredReading | None:
    name = str(stored.shape)
    if name in ("time", "timetz") and target in ("time", "timetz") and not stored.encoding:
        return StoredReading(INT64, How.TIME if target == "time" else How.TIMETZ)
    if (target, stored.encoding) == ("uuid", "fixed") and name in ("uuid", "blob"):  # not all mark
        return StoredReading(BLOB, How.UUID_BYTES)
    if target == "uuid" and name == "varchar":
        return StoredReading(Primitive("varchar"), How.UUID_TEXT)
    if target == name == "variant":
        # DuckDB stores NULL as a variant that is null; to Spark this is a value.
        return StoredReading(Primitive("variant"), How.NULL_OF_VARIANT)
    return None


def _temporal(stored: PhysicalField, target: str) -> StoredReading | None:
    name = str(stored.shape)
    nanos = name == "timestamp_ns" or (name == "timestamptz" and stored.encoding == "ns")
    of_instant = target == "timestamptz_ns" and name in MICROSECONDS
    if nanos:
        found = {
            "timestamp": StoredReading(INT64, How.TIMESTAMP_OF_NANOS),
            "timestamptz": StoredReading(INT64, How.INSTANT_OF_NANOS),
            **dict.fromkeys(NANOSECONDS, StoredReading(INT64)),
        }
        return found.get(target)
    if of_instant or (target == "timestamp_ns" and name in ZONELESS):
        return StoredReading(_INSTANT, How.NANOS_OF_INSTANT)
    if name == "date" and target in NANOSECONDS:
        return StoredReading(_DATE, How.NANOS_OF_DATE)
    if name == "date" and target == "timestamptz":
        return StoredReading(_DATE, How.INSTANT_OF_DATE)
    return None


def _cast(stored: PhysicalField, target: Leaf) -> StoredReading | None:
    """Return the read in the stored type and the cast that correspond to DuckDB's promotions."""
    leaf = stored.shape
    assert not isinstance(leaf, Kind)
    if not reads_right(stored, leaf):
        return None
    wide = isinstance(target, Decimal) or str(target) in ("int128", "uint128", "uint64")
    name, wanted = str(leaf), str(target)
    if isinstance(leaf, Decimal):
        if wanted in FLOATS:
            return StoredReading(leaf, How.CAST)
        if isinstance(target, Decimal) or (leaf.scale == 0 and wide):
            return StoredReading(leaf, How.CHECKED_CAST)
        return None
    if name in SIGNED or name in UNSIGNED or name == "boolean":
        return _of_integer(leaf, target)
    if name == "float64" and (wanted.endswith("int128") or isinstance(target, Decimal)):
        # DuckDB stores 128-bit integers as doubles.
        return StoredReading(leaf, How.CHECKED_CAST)
    if name == "varchar" and wanted in ("int128", "uint128"):
        return StoredReading(leaf, How.CHECKED_CAST)
    return None


def _of_integer(leaf: Leaf, target: Leaf) -> StoredReading | None:
    name, wanted = str(leaf), str(target)
    if wanted in SIGNED or wanted in UNSIGNED:
        fits = _fits(name, wanted)
        return StoredReading(leaf, How.CAST if fits else How.CHECKED_CAST)
    if name == "boolean":
        return None
    if wanted in FLOATS:
        return StoredReading(leaf, How.CAST)
    if isinstance(target, Decimal):
        digits = 20 if name == "uint64" else _DIGITS[(SIGNED | UNSIGNED)[name]]
        fits = target.precision - target.scale >= digits
        # Shelduck stores unsigned integers in wider types: the values fit, though the type does
        # not.
        return StoredReading(leaf, How.CAST if fits else How.CHECKED_CAST)
    return None


def _fits(name: str, wanted: str) -> bool:
    """Return whether every value of one integer type is a value of another."""
    if name == "boolean":
        return True
    if wanted in UNSIGNED:
        return name in UNSIGNED and UNSIGNED[name] <= UNSIGNED[wanted]
    bits = SIGNED[name] if name in SIGNED else UNSIGNED[name] + 1
    return bits <= SIGNED[wanted]
