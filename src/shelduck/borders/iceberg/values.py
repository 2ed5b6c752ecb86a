"""Single values in Iceberg's form: defaults as JSON, and bounds that are certain."""

from __future__ import annotations

from shelduck.errors import InvalidRequest
from shelduck.model.files.data_files import ColumnStats
from shelduck.model.files.layout import PhysicalField
from shelduck.model.tables.schema import Field, Kind
from shelduck.model.types.bounds import Comparable, bound
from shelduck.model.types.data_types import FLOATS, SIGNED, UNSIGNED, Decimal, Leaf, Primitive
from shelduck.model.types.literals import blob_bytes, canonical_text
from shelduck.model.types.temporal import INFINITE_DATE

Json = bool | int | float | str

_WHOLE = frozenset({*SIGNED, *UNSIGNED}) - {"int128", "uint128", "uint64"}
_YEAR = 4  # digits; dates of other years have no ISO text
_INFINITE_MICROS = 2**63 - 1


def default_json(leaf: Leaf, text: str, shown: str) -> Json | None:
    """Return a default as Iceberg writes one of the type ``shown``; None if it cannot.

    ``text`` is DuckDB's. NaN, infinity and dates beyond the years 1 to 9999 have no JSON.
    """
    try:
        canonical = canonical_text(leaf, text)
    except InvalidRequest:
        return None
    if isinstance(leaf, Decimal) or shown.startswith("decimal") or shown in ("string", "uuid"):
        return canonical
    if shown == "boolean":
        return canonical == "true"
    if shown in ("int", "long"):
        return int(canonical)
    if shown in ("float", "double"):
        return None if canonical.lstrip("-") in ("nan", "inf") else float(canonical)
    if shown == "binary":
        value = blob_bytes(canonical)
        return None if value is None else value.hex()
    if shown == "time":
        # DuckDB has a midnight at the end of the day.
        return None if canonical.startswith("24") else canonical
    return _moment(canonical, shown)


def certain_bounds(
    field: Field, stored: PhysicalField, stats: ColumnStats
) -> tuple[Comparable, Comparable] | None:
    """Return the bounds of a leaf in a file, in the current type; None if they are not certain.

    This excludes floats that were narrower or may hold NaN (readers order it differently), and
    types whose texts or order differ between writers.
    """
    leaf, kept = field.shape, stored.shape
    if isinstance(leaf, Kind) or isinstance(kept, Kind):
        return None
    if not _compares_alike(leaf, kept, stats):
        return None
    low, high = (bound(kept, text) for text in (stats.min_value, stats.max_value))
    if low is None or high is None:
        return None
    if isinstance(low, float) and isinstance(high, float):
        # Iceberg orders the zeros: a bound must include both.
        return (-0.0 if low == 0 else low), high + 0.0
    if not isinstance(low, bool) and isinstance(low, int) and _is_infinite(leaf, low, high):
        return None
    return low, high


def _compares_alike(leaf: Leaf, kept: Leaf, stats: ColumnStats) -> bool:
    if isinstance(leaf, Decimal):
        return isinstance(kept, Decimal) and kept.scale == leaf.scale
    name, written = leaf.name, str(kept)
    if name in FLOATS:
        return name == written and stats.contains_nan is False
    if name in _WHOLE:
        return written in _WHOLE
    if name in ("timestamp", "timestamp_s", "timestamp_ms"):
        return kept == Primitive("timestamp")
    if name in ("varchar", "json"):
        return written in ("varchar", "json")
    return name == written and name in ("boolean", "date", "timestamptz", "timestamp_ns")


def _is_infinite(leaf: Leaf, low: Comparable, high: Comparable) -> bool:
    ends = (INFINITE_DATE, _INFINITE_MICROS)
    return str(leaf) not in _WHOLE and any(abs(int(v)) in ends for v in (low, high))


def _moment(canonical: str, shown: str) -> Json | None:
    """Return a date or timestamp of the years 1 to 9999 in ISO's form."""
    date, _, clock = canonical.partition(" ")
    if len(date.partition("-")[0]) != _YEAR or "(BC)" in canonical:
        return None
    if shown == "date":
        return date
    if shown == "timestamp":
        return f"{date}T{clock}"
    if shown == "timestamptz":
        return f"{date}T{clock.removesuffix('+00')}+00:00"
    # PyIceberg cannot read metadata with a default of nanoseconds.
    return None
