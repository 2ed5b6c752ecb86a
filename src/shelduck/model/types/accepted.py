"""Which engine accepts which type change: DuckLake, DuckDB, Delta, Iceberg and Doris."""

from __future__ import annotations

from enum import Enum

from shelduck.model.types.data_types import FLOATS, SIGNED, UNSIGNED, Decimal, Leaf


class TypeRules(Enum):
    """Whose rules a type change may follow."""

    DUCKLAKE = "the DuckLake specification"
    DUCKDB = "DuckDB's extension"
    DELTA = "Delta 4"
    ICEBERG = "Iceberg v3"
    DORIS = "Doris"


TEMPORAL = frozenset({"date", "timestamp_s", "timestamp_ms", "timestamp", "timestamptz"})
# Delta's words for the types that it has.
DELTA_WORDS = {
    "int8": "byte",
    "int16": "short",
    "int32": "integer",
    "int64": "long",
    "float32": "float",
    "float64": "double",
    "boolean": "boolean",
    "varchar": "string",
    "blob": "binary",
    "date": "date",
    "timestamptz": "timestamp",
    "timestamp": "timestamp_ntz",
    "variant": "variant",
}
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
_UNSIGNED_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
_UNITS = ("timestamp_s", "timestamp_ms", "timestamp", "timestamp_ns")
_FREE = frozenset({"json", "variant"})
# Doris writes new bytes for each of these.
_DORIS_TEXTS = frozenset({*SIGNED, *FLOATS})
_DORIS_OTHERS = frozenset({("date", "timestamp"), ("timestamp", "date"), ("int32", "date")})


def accepting(source: Leaf, target: Leaf) -> frozenset[TypeRules]:
    """Return the engines that change a column of ``source`` to ``target``, two different types."""
    rules = {
        TypeRules.DUCKLAKE: _ducklake,
        TypeRules.DUCKDB: _duckdb,
        TypeRules.DELTA: delta_widens,
        TypeRules.ICEBERG: iceberg_promotes,
        TypeRules.DORIS: _doris,
    }
    return frozenset(engine for engine, takes in rules.items() if takes(source, target))


def delta_word(leaf: Leaf) -> str | None:
    """Return Delta's word for a type, None if Delta does not have it."""
    return str(leaf) if isinstance(leaf, Decimal) else DELTA_WORDS.get(leaf.name)


def whole_digits(name: str) -> int | None:
    """Return the number of digits that every value of an integer type up to 64 bits fits in."""
    if name in SIGNED:
        return _DIGITS.get(SIGNED[name])
    return _UNSIGNED_DIGITS.get(UNSIGNED[name]) if name in UNSIGNED else None


def is_decimal_wider(source: Leaf, target: Leaf) -> bool:
    """Return whether a decimal has at least the digits of another on both sides of the point."""
    if not isinstance(source, Decimal) or not isinstance(target, Decimal) or source == target:
        return False
    whole, wanted = source.precision - source.scale, target.precision - target.scale
    return target.scale >= source.scale and wanted >= whole


def _ducklake(source: Leaf, target: Leaf) -> bool:
    one, other = str(source), str(target)
    if one == "null":
        return other != "variant"
    for family in (SIGNED, UNSIGNED):
        if one in family and other in family:
            return family[one] < family[other] <= 64
    return (one, other) == FLOATS


def delta_widens(source: Leaf, target: Leaf) -> bool:
    """Return whether Delta's type widening has the pair (PROTOCOL.md, Supported Type Changes)."""
    one, other = str(source), str(target)
    if one in SIGNED and SIGNED[one] <= 64:
        bits = SIGNED[one]
        if other in SIGNED:
            return bits < SIGNED[other] <= 64
        if other == "float64":
            return bits <= 32
        digits = 20 if bits == 64 else 10
        return isinstance(target, Decimal) and target.precision - target.scale >= digits
    return (one, other) in (FLOATS, ("date", "timestamp")) or is_decimal_wider(source, target)


def iceberg_promotes(source: Leaf, target: Leaf) -> bool:
    """Return whether Iceberg v3 has the promotion; its int is any signed integer up to 32 bits."""
    one, other = str(source), str(target)
    if one in SIGNED and SIGNED[one] <= 32:
        return other == "int64"
    if one == "date":
        return other in ("timestamp", "timestamp_ns")
    if isinstance(source, Decimal) and isinstance(target, Decimal):
        return source.scale == target.scale and source.precision < target.precision
    return (one, other) == FLOATS


def _duckdb(source: Leaf, target: Leaf) -> bool:
    """Return whether the greater of the two is the target, as DuckDB 1.5.5 orders types."""
    one, other = str(source), str(target)
    if other in _FREE:
        return (one, other) != ("variant", "variant")
    if one == "boolean":
        return other in SIGNED or other in UNSIGNED
    if one in SIGNED or one in UNSIGNED:
        return _duckdb_integer(one, target)
    if isinstance(source, Decimal):
        return other in FLOATS or (isinstance(target, Decimal) and _greater(source, target))
    if one == "date":
        return other in (*_UNITS, "timestamptz")
    if one in _UNITS and other in _UNITS:
        return _UNITS.index(one) < _UNITS.index(other)
    return (one, other) in (FLOATS, ("timestamp", "timestamptz"))


def _duckdb_integer(one: str, target: Leaf) -> bool:
    other = str(target)
    if isinstance(target, Decimal):
        digits = whole_digits(one)
        if digits is None:
            return target.precision == 38
        return target.precision - target.scale >= digits
    if other in FLOATS:
        return True
    if one in SIGNED:
        return other in SIGNED and SIGNED[one] < SIGNED[other]
    wider = UNSIGNED.get(other, 0) > UNSIGNED[one]
    return wider or SIGNED.get(other, 0) > UNSIGNED[one]


def _greater(source: Decimal, target: Decimal) -> bool:
    whole = max(source.precision - source.scale, target.precision - target.scale)
    scale = max(source.scale, target.scale)
    if whole + scale > 38:
        return target == Decimal(38, 38 - whole)
    return target == Decimal(whole + scale, scale)


def _doris(source: Leaf, target: Leaf) -> bool:
    one, other = str(source), str(target)
    if one in SIGNED and other in SIGNED:
        return SIGNED[one] < SIGNED[other]
    if one in SIGNED and other in FLOATS:
        return True
    if other == "varchar":
        return one in _DORIS_TEXTS or isinstance(source, Decimal)
    if one == "varchar":
        return other in _DORIS_TEXTS or other == "date"
    return (one, other) == FLOATS or (one, other) in _DORIS_OTHERS
