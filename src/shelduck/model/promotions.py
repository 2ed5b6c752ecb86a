"""Which type changes keep every value, and what each costs.

One function answers for statements, plans and error texts. SAFE changes metadata only and is right
in every DuckLake reader. EXACT changes metadata only and is right in Shelduck, but DuckDB 1.5.5 may
filter old files wrongly until they are rewritten, or bounds in the catalog lose their meaning.
REWRITE needs new bytes. The pairs of the DuckLake specification are all SAFE or EXACT.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from shelduck.model.types import SIGNED, UNSIGNED, DataType, Decimal, Primitive

_UNITS = ("timestamp_s", "timestamp_ms", "timestamp")


class Verdict(Enum):
    """What a type change asks for."""

    SAME = "same"
    SAFE = "safe"
    EXACT = "exact"
    REWRITE = "rewrite"


@dataclass(frozen=True, slots=True)
class Promotion:
    """The verdict on one pair, with the reason in words for people.

    ``bounds_hold`` is False when min/max texts of old files no longer bound the new values.
    """

    verdict: Verdict
    reason: str
    bounds_hold: bool = True


def promotion(source: DataType, target: DataType) -> Promotion:
    """Return what changing a leaf from ``source`` to ``target`` needs."""
    if source == target:
        return Promotion(Verdict.SAME, "the type is the same")
    if isinstance(source, Primitive) and isinstance(target, Primitive):
        return _primitives(source.name, target.name)
    if isinstance(source, Decimal) and isinstance(target, Decimal):
        return _decimals(source, target)
    return _rewrite(source, target)


def _primitives(source: str, target: str) -> Promotion:
    for family in (SIGNED, UNSIGNED):
        if source in family and target in family and family[source] < family[target]:
            if target.endswith("128"):
                break
            return Promotion(Verdict.SAFE, f"every {source} is a {target}")
    if (source, target) == ("float32", "float64"):
        return Promotion(
            Verdict.EXACT,
            "every float32 is a float64, but its shortest decimal text is not the same number, so"
            " bounds of old files are dropped and DuckDB 1.5.5 may filter old rows wrongly",
            bounds_hold=False,
        )
    if source in _UNITS and target in _UNITS and _UNITS.index(source) < _UNITS.index(target):
        return Promotion(Verdict.SAFE, "a finer unit holds every value")
    return _rewrite(Primitive(source), Primitive(target))


def _decimals(source: Decimal, target: Decimal) -> Promotion:
    if source.scale == target.scale and source.precision < target.precision:
        return Promotion(Verdict.SAFE, "more digits before the point hold every value")
    return _rewrite(source, target)


def _rewrite(source: DataType, target: DataType) -> Promotion:
    return Promotion(Verdict.REWRITE, f"values of {source} are not stored as {target} is")
