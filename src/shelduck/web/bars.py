"""Bars in percent of their place, so that a picture fits every width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_LEAST = 2.0
"""The height of a bar that is not zero, in percent, so that it can be seen."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One upright bar: its place and size in percent; ``y`` is its upper edge."""

    label: str
    value: int
    x: float
    width: float
    y: float
    height: float


def bars(values: Sequence[tuple[str, int]], gap: float = 0.25) -> list[Bar]:
    """Return a bar for each label and value; ``gap`` is the part of a place that stays empty."""
    most = max((value for _, value in values), default=0)
    step = 100 / max(1, len(values))
    found = []
    for at, (label, value) in enumerate(values):
        height = max(_LEAST, 100 * value / most) if value else 0.0
        x = round(at * step + step * gap / 2, 4)
        found.append(
            Bar(
                label,
                value,
                x,
                round(step * (1 - gap), 4),
                round(100 - height, 4),
                round(height, 4),
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class BarPart:
    """One part of a bar that lies: its place and width in percent."""

    label: str
    value: int
    x: float
    width: float


def parts(values: Sequence[tuple[str, int]]) -> list[BarPart]:
    """Return what each value is of their sum, side by side; nothing if the sum is 0."""
    total = sum(value for _, value in values)
    if not total:
        return []
    found, at = [], 0
    for label, value in values:
        start, end = round(100 * at / total, 4), round(100 * (at + value) / total, 4)
        found.append(BarPart(label, value, start, round(end - start, 4)))
        at += value
    return found
