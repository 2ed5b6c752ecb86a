"""What a filter allows: a range of integers, for a first look at statistics, or listed values."""

from __future__ import annotations

from shelduck.model.files.predicate import And, Comparison, In, Literal, Operator, Or, Predicate
from shelduck.model.tables.schema import Path
from shelduck.model.types.buckets import bucket_of
from shelduck.model.types.data_types import SIGNED, UNSIGNED, Leaf, Primitive
from shelduck.planning.prune import domain

Range = tuple[int | None, int | None]
Ranges = dict[Path, Range]


def whole_number_ranges(predicate: Predicate) -> Ranges:
    """Return the smallest and largest integer per column of any row that may match.

    Both ends are inclusive, and None if open. A column that the filter does not limit to integers
    is left out; NULL and NaN never match if there is a range.
    """
    if isinstance(predicate, And):
        found: Ranges = {}
        for part in predicate.parts:
            for path, span in whole_number_ranges(part).items():
                found[path] = _both(found[path], span) if path in found else span
        return found
    if isinstance(predicate, Or):
        parts = [whole_number_ranges(part) for part in predicate.parts]
        shared = [path for path in parts[0] if all(path in part for part in parts)]
        return {path: _either([part[path] for part in parts]) for path in shared}
    if isinstance(predicate, Comparison) and _is_whole(predicate.literal):
        one = _compared(predicate.operator, int(predicate.literal.value))
        return {} if one is None else {predicate.path: one}
    if isinstance(predicate, In) and predicate.literals and all(map(_is_whole, predicate.literals)):
        values = [int(literal.value) for literal in predicate.literals]
        return {predicate.path: (min(values), max(values))}
    return {}


def _is_whole(literal: Literal) -> bool:
    kind = literal.type
    return isinstance(kind, Primitive) and (kind.name in SIGNED or kind.name in UNSIGNED)


def _compared(operator: Operator, value: int) -> Range | None:
    spans: dict[Operator, Range] = {
        Operator.EQ: (value, value),
        Operator.LT: (None, value - 1),
        Operator.LE: (None, value),
        Operator.GT: (value + 1, None),
        Operator.GE: (value, None),
    }
    return spans.get(operator)


def _both(one: Range, other: Range) -> Range:
    lows = [n for n in (one[0], other[0]) if n is not None]
    highs = [n for n in (one[1], other[1]) if n is not None]
    return (max(lows, default=None), min(highs, default=None))


def _either(spans: list[Range]) -> Range:
    lows = [low for low, _ in spans]
    highs = [high for _, high in spans]
    return (
        None if None in lows else min(n for n in lows if n is not None),
        None if None in highs else max(n for n in highs if n is not None),
    )


def equal_values(predicate: Predicate) -> dict[Path, tuple[Literal, ...]]:
    """Return literals per column; every row that may match equals one of them."""
    if isinstance(predicate, And):
        found: dict[Path, tuple[Literal, ...]] = {}
        for part in predicate.parts:
            for path, literals in equal_values(part).items():
                if path not in found or len(literals) < len(found[path]):
                    found[path] = literals
        return found
    if isinstance(predicate, Or):
        parts = [equal_values(part) for part in predicate.parts]
        shared = [path for path in parts[0] if all(path in part for part in parts)]
        return {path: sum((part[path] for part in parts), ()) for path in shared}
    if isinstance(predicate, Comparison) and predicate.operator is Operator.EQ:
        return {predicate.path: (predicate.literal,)}
    if isinstance(predicate, In):
        return {predicate.path: predicate.literals}
    return {}


def buckets_of(leaf: Leaf, literals: tuple[Literal, ...], buckets: int) -> frozenset[int] | None:
    """Return the buckets with values of a column that equal a literal; None if unknown."""
    found = set()
    for literal in literals:
        if domain(literal.type) != domain(leaf) or domain(leaf) is None:
            return None
        one = bucket_of(leaf, literal.value, buckets)
        if one is None:
            return None
        found.add(one)
    return frozenset(found)
