"""COUNT, MIN and MAX of whole files, by what the catalog says about them.

An answer is the one that the rows give, or there is none: deleted rows may be the lowest, bounds
may be missing or cut.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal

from shelduck.model.files.data_file import ColumnStats, DataFile
from shelduck.model.files.predicate import (
    And,
    ComparedValue,
    Comparison,
    In,
    Operator,
    Or,
    Predicate,
)
from shelduck.model.files.resolve import Node
from shelduck.model.tables.schema import FieldId, Path
from shelduck.model.types.buckets import bucket_of
from shelduck.model.types.data_types import SIGNED, UNSIGNED, Leaf, Primitive
from shelduck.read.plan.prune import domain, facts_of_files
from shelduck.read.plan.scan import ScanGroup

COUNT, MIN, MAX, WHERE = "COUNT", "MIN", "MAX", "WHERE"
# Nobody cuts their bounds. A zero of floats has two signs, of which the catalog keeps none.
_EXACT = ("number", "date", "timestamp", "timestamptz", "boolean")

Measure = tuple[str, str | None]
"""A word with the name of a column of the read schema; COUNT without one counts rows."""
Value = int | float | Decimal
"""The answer of a measure; a boolean for a column of these."""
Range = tuple[int | None, int | None]
Ranges = dict[Path, Range]


def measured_columns(group: ScanGroup, measures: Sequence[Measure]) -> set[FieldId] | None:
    """Return the columns whose statistics `measured` needs; None if there can be no answer."""
    if group.snapshot_column is not None:
        return None
    nodes = _nodes(group)
    names = {name for _, name in measures if name is not None}
    if not names <= nodes.keys() or names & set(group.untrusted):
        return None
    return {nodes[name].field.id for name in names}


def measured(
    group: ScanGroup, measures: Sequence[Measure], stats: Mapping[int, Mapping[int, ColumnStats]]
) -> list[Value | None] | None:
    """Return the answers for all files of a group, NULL for the MIN of no value.

    None if one is not certain. ``stats`` are by field id and by data file id.
    """
    nodes = _nodes(group)
    answers: list[Value | None] = []
    for word, name in measures:
        field = None if name is None else nodes[name].field.id
        known = {} if field is None else stats.get(field, {})
        parts: list[Value | None] = []
        for file in group.files:
            if file.live_rows is None:
                return None
            if name is None:
                parts.append(file.live_rows)
                continue
            part = _of_column(group, word, name, file, known.get(file.id))
            if part is None:
                return None
            parts += part
        answers.append(_total(word, [part for part in parts if part is not None]))
    return answers


def combined(
    measures: Sequence[Measure], parts: Sequence[Sequence[Value | None]]
) -> list[Value | None]:
    """Return the answers for all files of a group, given those for each part of it."""
    columns = zip(*parts, strict=True) if parts else [()] * len(measures)
    return [
        _total(word, [value for value in column if value is not None])
        for (word, _), column in zip(measures, columns, strict=True)
    ]


def _of_column(
    group: ScanGroup, word: str, name: str, file: DataFile, stats: ColumnStats | None
) -> list[Value | None] | None:
    """Return the answer of one file, an empty list if it has no value; None if it is unknown."""
    assert file.record_count is not None
    if file.live_rows == 0:
        return []
    facts = facts_of_files(group, file, stats)((name,))
    if file.dead_rows or facts is None:
        return None
    if word == COUNT:
        if not facts.may_be_null:
            return [file.record_count]
        return None if stats is None else [file.record_count - stats.null_count]
    if not facts.may_have_value:
        return []
    end = facts.low if word == MIN else facts.high
    if facts.domain not in _EXACT or facts.may_be_nan or end is None:
        return None
    return None if isinstance(end, str | bytes) or not math.isfinite(end) else [end]


def _total(word: str, parts: Sequence[Value]) -> Value | None:
    if word == COUNT:
        return sum(parts)
    if not parts:
        return None
    return min(parts) if word == MIN else max(parts)


def _nodes(group: ScanGroup) -> dict[str, Node]:
    return {node.name: node for node in group.nodes if node.is_read and node.name is not None}


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


def _is_whole(literal: ComparedValue) -> bool:
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


def equal_values(predicate: Predicate) -> dict[Path, tuple[ComparedValue, ...]]:
    """Return literals per column; every row that may match equals one of them."""
    if isinstance(predicate, And):
        found: dict[Path, tuple[ComparedValue, ...]] = {}
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


def buckets_of(
    leaf: Leaf, literals: tuple[ComparedValue, ...], buckets: int
) -> frozenset[int] | None:
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
