"""Which type changes keep every value, what each one costs, and who else makes it in metadata.

Statements, plans, error texts and docs/types.md all use this one table of facts. The light pairs
(SAME, SAFE, EXACT) are a partial order in which values and their order stay: a wider type holds
every value of a narrower one. Sources: DuckLake 1.0's promotion table, Delta's type widening
protocol, Iceberg's table spec (v3), and measurements of DuckDB 1.5.5 and Spark 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from shelduck.model.types.accepted import (
    TEMPORAL,
    TypeRules,
    accepting,
    is_decimal_wider,
    whole_digits,
)
from shelduck.model.types.data_types import (
    FLOATS,
    SIGNED,
    UNSIGNED,
    DataType,
    Decimal,
    Leaf,
    Primitive,
)

_UNITS = ("timestamp_s", "timestamp_ms", "timestamp")
_INTEGERS = frozenset({*SIGNED, *UNSIGNED})
# Digits of a float's significand: integers of at most this many bits are exact.
_SIGNIFICAND = {"float32": 24, "float64": 53}
# Types whose values Spark writes and reads, so that a job could convert them one by one.
_CONVERTIBLE = _INTEGERS | {*FLOATS, *TEMPORAL, "boolean", "varchar", "json", "uuid", "blob"}
# Types that Spark cannot store in a way that every DuckLake reader reads back.
NOT_WRITTEN = frozenset(
    {"timestamp_ns", "timestamptz_ns", "time_ns", "interval", "geometry", "unknown", "null"}
)
_TO_TEXT = frozenset({"varchar", "json"})
_MOST_DIGITS = 38


class Verdict(Enum):
    """The work that a type change needs."""

    SAME = "same"
    SAFE = "safe"
    """Metadata only, and correct in every DuckLake reader."""
    EXACT = "exact"
    """Metadata only and correct here; DuckDB 1.5.5 may filter old files wrongly."""
    CONVERT = "convert"
    """New bytes: every value must be converted and checked."""
    REFUSED = "refused"
    """The values have no equivalent, or nobody could write them."""


@dataclass(frozen=True, slots=True)
class Promotion:
    """The verdict on one pair, with the reason in words for people.

    ``bounds_hold`` is False if min/max texts of old files no longer bound the new values;
    ``same_grain`` is True if the new type has no value between two neighbours of the old one.
    ``accepted_by`` are the engines that make the change without new bytes, except Doris, which
    writes new bytes.
    """

    verdict: Verdict
    reason: str
    bounds_hold: bool = True
    same_grain: bool = False
    accepted_by: frozenset[TypeRules] = frozenset()

    @property
    def is_light(self) -> bool:
        """True if only metadata changes."""
        return self.verdict in (Verdict.SAME, Verdict.SAFE, Verdict.EXACT)

    @property
    def is_finer(self) -> bool:
        """True if the new type has values between those of the old one."""
        return self.is_light and self.verdict is not Verdict.SAME and not self.same_grain

    @property
    def is_default(self) -> bool:
        """True if every table allows it: it is a promotion of the DuckLake specification."""
        return self.verdict is Verdict.SAME or TypeRules.DUCKLAKE in self.accepted_by


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table of facts: the pairs for which ``holds`` is true, and their properties.

    ``name`` is the row's heading in docs/types.md; ``{source}`` and ``{target}`` are replaced by
    the types in a reason.
    """

    name: str
    holds: Callable[[Leaf, Leaf], bool]
    verdict: Verdict
    reason: str
    bounds_hold: bool = True
    same_grain: bool = False


def _is_finer_unit(source: Leaf, target: Leaf) -> bool:
    one, other = str(source), str(target)
    return one in _UNITS and other in _UNITS and _UNITS.index(one) < _UNITS.index(other)


def _fits_decimal(source: Leaf, target: Leaf) -> bool:
    digits = whole_digits(str(source))
    if not isinstance(target, Decimal) or digits is None:
        return False
    return target.precision - target.scale >= digits


def _fits_float(source: Leaf, target: Leaf) -> bool:
    bits = (SIGNED | UNSIGNED).get(str(source), 128)
    return bits < _SIGNIFICAND.get(str(target), 0)


def _is_in_128_bits(source: Leaf, target: Leaf) -> bool:
    one, other = str(source), str(target)
    if other == "int128":
        return one in SIGNED or (one in UNSIGNED and one != "uint128")
    return other == "uint128" and one in UNSIGNED


def _is_convertible(source: Leaf, target: Leaf) -> bool:
    one, other = _family(source), _family(target)
    if one is None or other is None:
        return False
    if one == other or "text" in (one, other):
        return True
    numbers = {"number", "boolean"}
    return {one, other} <= numbers or (str(source), str(target)) == ("int32", "date")


def _wider_integer(name: str, sources: Mapping[str, int], targets: Mapping[str, int]) -> Rule:
    def holds(source: Leaf, target: Leaf) -> bool:
        bits, wanted = sources.get(str(source)), targets.get(str(target))
        return bits is not None and wanted is not None and bits < wanted <= 64

    return Rule(name, holds, Verdict.SAFE, "{target} holds every {source}", same_grain=True)


_LOSSY = "{target} cannot hold every {source}"
RULES = (
    _wider_integer("a wider signed integer", SIGNED, SIGNED),
    _wider_integer("a wider unsigned integer", UNSIGNED, UNSIGNED),
    _wider_integer("an unsigned integer to a wider signed one", UNSIGNED, SIGNED),
    Rule("a finer unit of time", _is_finer_unit, Verdict.SAFE, "a finer unit holds every value"),
    Rule(
        "more digits before the point",
        lambda s, t: is_decimal_wider(s, t) and scale_of(s) == scale_of(t),
        Verdict.SAFE,
        "more digits before the point hold every value",
        same_grain=True,
    ),
    Rule(
        "an integer to a decimal without a scale",
        lambda s, t: _fits_decimal(s, t) and scale_of(t) == 0,
        Verdict.SAFE,
        "{target} can represent every {source}",
    ),
    Rule(
        "float32 to float64",
        lambda s, t: (str(s), str(t)) == FLOATS,
        Verdict.EXACT,
        "float64 holds every float32, but its shortest decimal text is another number, so the"
        " bounds of old files are dropped and DuckDB 1.5.5 may filter old rows wrongly",
        bounds_hold=False,
    ),
    Rule(
        "an integer to one of 128 bits",
        _is_in_128_bits,
        Verdict.EXACT,
        "{target} holds every {source}, but DuckDB 1.5.5 stores what it writes as a double, which"
        " loses digits; DECIMAL(38,0) keeps them",
        same_grain=True,
    ),
    Rule(
        "an integer to a decimal with a scale",
        _fits_decimal,
        Verdict.EXACT,
        "{target} can represent every {source}, but DuckDB 1.5.5 rounds the values that it"
        " compares with old files",
    ),
    Rule(
        "more digits after the point",
        lambda s, t: is_decimal_wider(s, t) and scale_of(s) < scale_of(t),
        Verdict.EXACT,
        "{target} can represent every {source}, but DuckDB 1.5.5 rounds the values that it"
        " compares with old files",
    ),
    Rule(
        "an unsigned integer to a float that holds it",
        lambda s, t: str(s) in UNSIGNED and _fits_float(s, t),
        Verdict.EXACT,
        "{target} holds every {source}",
    ),
    Rule(
        "an integer to a float that holds it",
        _fits_float,
        Verdict.EXACT,
        "{target} holds every {source}, but DuckDB 1.5.5 rounds the values that it compares with"
        " old files",
    ),
    Rule(
        "a date to a timestamp",
        lambda s, t: str(s) == "date" and str(t) in _UNITS,
        Verdict.EXACT,
        "a date becomes the midnight at its start, but DuckDB 1.5.5 compares old files with dates",
    ),
    Rule(
        "a column without values",
        lambda s, t: str(s) == "null" and str(t) not in {*NOT_WRITTEN, "variant"},
        Verdict.SAFE,
        "{source} has no values",
        same_grain=True,
    ),
    Rule(
        "to a type that Shelduck cannot write",
        lambda _, t: str(t) in NOT_WRITTEN,
        Verdict.REFUSED,
        "Spark has no data type that preserves the values of {target}",
    ),
    Rule(
        "to an instant",
        lambda s, t: str(t) == "timestamptz" and str(s) in ("date", *_UNITS),
        Verdict.CONVERT,
        "the instant of a {source} depends on the time zone of the reader",
    ),
    Rule(
        "numbers that may not fit",
        lambda s, t: is_number(s) and is_number(t),
        Verdict.CONVERT,
        _LOSSY,
    ),
    Rule(
        "values in another form",
        _is_convertible,
        Verdict.CONVERT,
        "values of {source} are stored in another form than those of {target}",
    ),
    Rule(
        "a UUID to bytes",
        lambda s, t: (str(s), str(t)) == ("uuid", "blob"),
        Verdict.CONVERT,
        "a UUID becomes its 16 bytes",
    ),
)
NO_RULE = Rule(
    "all other pairs", lambda *_: True, Verdict.REFUSED, "{source} cannot be cast to {target}"
)


def promotion(source: DataType, target: DataType) -> Promotion:
    """Return what changing a leaf from ``source`` to ``target`` needs."""
    if source == target:
        return Promotion(Verdict.SAME, "the type is the same", accepted_by=frozenset(TypeRules))
    if not isinstance(source, Primitive | Decimal) or not isinstance(target, Primitive | Decimal):
        return Promotion(Verdict.REFUSED, f"{source} and {target} are not both primitive types")
    rule = next((r for r in RULES if r.holds(source, target)), NO_RULE)
    reason = rule.reason.format(source=source, target=target)
    return Promotion(
        rule.verdict, reason, rule.bounds_hold, rule.same_grain, accepting(source, target)
    )


def scale_of(leaf: Leaf) -> int:
    """Return the digits after the point that a type has, 0 if it is not a decimal."""
    return leaf.scale if isinstance(leaf, Decimal) else 0


def is_number(leaf: DataType) -> bool:
    """Return whether the values of a type are numbers."""
    return isinstance(leaf, Decimal) or str(leaf) in _INTEGERS or str(leaf) in FLOATS


def _family(leaf: Leaf) -> str | None:
    """Return the kind of values that a type has, None if nothing is converted from or to it."""
    name = str(leaf)
    if is_number(leaf):
        return "number"
    if name not in _CONVERTIBLE:
        return None
    if name in _TO_TEXT:
        return "text"
    return "temporal" if name in TEMPORAL else name


def common_type(one: Leaf, other: Leaf) -> Leaf | None:
    """Return the narrowest type that holds all values of two exact numbers, or the wider type.

    None if there is none: each of the two then loses values of the other.
    """
    if promotion(one, other).is_light:
        return other
    if promotion(other, one).is_light:
        return one
    if {str(one), str(other)} <= {*SIGNED, *UNSIGNED}:
        whole = [Primitive(name) for name in SIGNED if name != "int128"]
        found = [t for t in whole if promotion(one, t).is_light and promotion(other, t).is_light]
        if found:
            return found[0]
    digits, scales = (_digits(one), _digits(other)), (scale_of(one), scale_of(other))
    if digits[0] is None or digits[1] is None:
        return None
    precision = max(digits[0], digits[1]) + max(scales)
    return Decimal(precision, max(scales)) if precision <= _MOST_DIGITS else None


def _digits(leaf: Leaf) -> int | None:
    """Return the digits before the point that every value of an exact number fits in."""
    if isinstance(leaf, Decimal):
        return leaf.precision - leaf.scale
    return whole_digits(str(leaf))
