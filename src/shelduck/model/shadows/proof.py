"""What the bounds of a file prove about a change of numbers: that all fit, or that one does not.

A proof is arithmetic on whole and decimal numbers. Bounds of texts may be cut, and those of floats
leave NaN out, so they prove nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from shelduck.model.changes.retype import conversion_verdict
from shelduck.model.files.resolve import needs_own_bounds
from shelduck.model.types.data_types import (
    FLOATS,
    SIGNED,
    UNSIGNED,
    DataType,
    Decimal,
    Leaf,
    Primitive,
)
from shelduck.model.types.literals import integer_range
from shelduck.model.types.promotions import Verdict, is_number, scale_of

_INTEGERS = frozenset({*SIGNED, *UNSIGNED}) - {"int128", "uint128"}
# Spark reads an uint64 as a decimal.
_NARROWED = _INTEGERS - {"uint64"}
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
# Whole numbers up to this are exact in a float.
_EXACT_UP_TO = {"float32": 2**24, "float64": 2**53}
_MOST_DIGITS = 38


class Proof(Enum):
    """What is known about the values of one column in one file."""

    PROVEN = "every value converts to itself"
    FAILS = "a value of a row does not"
    UNKNOWN = "the file must be read"


class FileBounds(NamedTuple):
    """Statistics of one column in one file, as the catalog has them; None for what it lacks.

    ``rows`` are those of the file, ``values`` those that are not NULL. ``is_whole``: every row of
    the file is a row of the table. ``is_trusted``: its writer is known to write right bounds.
    """

    rows: int | None
    values: int | None
    nulls: int | None
    low: str | None
    high: str | None
    nan: bool | None = None
    is_whole: bool = True
    is_trusted: bool = True

    @property
    def is_empty(self) -> bool:
        """Whether the column has no value but NULL in the file."""
        has_bounds = self.low is not None or self.high is not None
        is_known = self.is_trusted and not self.nan and self.nulls is not None
        return is_known and not has_bounds and self.values == 0 and self.nulls == self.rows


@dataclass(frozen=True)
class Fitting:
    """Says which numbers of one type are numbers of another, and what bounds tell about it.

    A number is counted in units of the source: 1.25 of a DECIMAL(9,2) is 125.
    """

    source: Leaf
    target: Leaf

    @property
    def needs_own_bounds(self) -> bool:
        """Whether bounds prove something only if Shelduck wrote them."""
        return needs_own_bounds(self.source)

    @cached_property
    def span(self) -> tuple[int, int] | None:
        """The least and the greatest whole part of bounds that prove all; None if none do."""
        gained = scale_of(self.target) - scale_of(self.source)
        if gained < 0 or (scale_of(self.source) and str(self.target) in FLOATS):
            return None
        least, most = self._limits
        return -(-least // 10 ** scale_of(self.target)), most // 10 ** scale_of(self.target)

    @property
    def scale(self) -> int:
        """The digits after the point that bounds have."""
        return scale_of(self.source)

    def proof(self, file: FileBounds) -> Proof:
        """Return what the statistics of a file prove."""
        if not file.is_trusted or file.nan:
            return Proof.UNKNOWN
        if file.is_empty:
            return Proof.PROVEN
        low, high = self._units(file.low), self._units(file.high)
        if low is None or high is None or low > high or not file.values:
            return Proof.UNKNOWN
        if not (self._holds(low) and self._holds(high)):
            is_certain = file.is_whole and str(self.target) not in FLOATS
            return Proof.FAILS if is_certain else Proof.UNKNOWN
        keeps_digits = scale_of(self.source) <= scale_of(self.target)
        return Proof.PROVEN if keeps_digits or low == high else Proof.UNKNOWN

    def failing(self, file: FileBounds) -> str | None:
        """Return the bound that does not fit, None if both do, or prove nothing."""
        ends = (file.low, file.high)
        return next((text for text in ends if text and self.holds(text) is False), None)

    def holds(self, text: str) -> bool | None:
        """Return whether a value fits; None if the text is not one of the source."""
        units = self._units(text)
        return None if units is None else self._holds(units)

    def _holds(self, units: int) -> bool:
        lost = scale_of(self.source) - scale_of(self.target)
        if lost > 0:
            units, rest = divmod(units, 10**lost)
            if rest:
                return False
        else:
            units *= 10**-lost
        return self._limits[0] <= units <= self._limits[1]

    @cached_property
    def _limits(self) -> tuple[int, int]:
        """The least and the greatest value that surely fits, in units of the target."""
        exact = _EXACT_UP_TO.get(str(self.target))
        found = integer_range(self.target) if exact is None else (-exact, exact)
        digits = self.target.precision if isinstance(self.target, Decimal) else _MOST_DIGITS
        most = 10**digits - 1
        least, greatest = (-most, most) if found is None else found
        return max(least, -most), min(greatest, most)

    def _units(self, text: str | None) -> int | None:
        """Return the number that a text means; None unless it is a value of the source."""
        match = None if text is None else _NUMBER.fullmatch(text)
        if match is None or text is None:
            return None
        digits = (match[1] or ".")[1:]
        scale = scale_of(self.source)
        if len(digits) > scale or (digits and str(self.source) in _INTEGERS):
            return None
        units = int(text.replace(".", "")) * 10 ** (scale - len(digits))
        least, most = self._source_limits
        return units if least <= units <= most else None

    @cached_property
    def _source_limits(self) -> tuple[int, int]:
        limits = integer_range(self.source)
        if limits is None:
            assert isinstance(self.source, Decimal)
            limits = 1 - 10**self.source.precision, 10**self.source.precision - 1
        return limits


def fitting(source: DataType, target: DataType) -> Fitting | None:
    """Return what judges the bounds of a conversion by a job; None if bounds never prove it."""
    if not isinstance(source, Primitive | Decimal) or not isinstance(target, Primitive | Decimal):
        return None
    if not (is_number(source) and is_number(target)) or str(source) in FLOATS:
        return None
    is_lossy = conversion_verdict(source, target).verdict is Verdict.CONVERT
    return Fitting(source, target) if is_lossy else None


def is_narrower(source: DataType, target: DataType) -> bool:
    """Return whether values of ``source`` that fit ``target`` need no new bytes.

    All readers read them right from files of the wider type.
    """
    is_lossy = conversion_verdict(source, target).verdict is Verdict.CONVERT
    return is_lossy and reads_alike(source, target)


def reads_alike(stored: DataType, target: DataType) -> bool:
    """Return whether all readers read files of a type right as another, as far as values fit."""
    if isinstance(stored, Decimal) and isinstance(target, Decimal):
        return stored.scale == target.scale
    return {str(stored), str(target)} <= _NARROWED
