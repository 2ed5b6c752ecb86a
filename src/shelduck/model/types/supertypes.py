"""The type that holds the values of two types, if a column can get it in metadata only."""

from __future__ import annotations

from shelduck.model.types.accepted import whole_digits
from shelduck.model.types.data_types import MOST_DIGITS, SIGNED, UNSIGNED, Decimal, Leaf, Primitive
from shelduck.model.types.promotions import promotion


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
    digits, scales = (_digits(one), _digits(other)), (_scale(one), _scale(other))
    if digits[0] is None or digits[1] is None:
        return None
    precision = max(digits[0], digits[1]) + max(scales)
    return Decimal(precision, max(scales)) if precision <= MOST_DIGITS else None


def _digits(leaf: Leaf) -> int | None:
    """Return the digits before the point that every value of an exact number fits in."""
    if isinstance(leaf, Decimal):
        return leaf.precision - leaf.scale
    return whole_digits(str(leaf))


def _scale(leaf: Leaf) -> int:
    return leaf.scale if isinstance(leaf, Decimal) else 0
