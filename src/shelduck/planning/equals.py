"""The values that a filter allows for a column, if they can be listed."""

from __future__ import annotations

from shelduck.model.files.predicate import And, Comparison, In, Literal, Operator, Or, Predicate
from shelduck.model.tables.schema import Path
from shelduck.model.types.buckets import bucket_of
from shelduck.model.types.data_types import Leaf
from shelduck.planning.prune import domain


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
