"""How far the files of a sorted table overlap in their sort key."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shelduck.model.files.data_files import ColumnStats
from shelduck.model.tables.schema import Field, Kind
from shelduck.model.tables.table import TableVersion
from shelduck.model.types.bounds import bound
from shelduck.sql.ddl.sorting import sort_key

_DRAWN = 80
"""Files that the picture shows at most."""


@dataclass(frozen=True, slots=True)
class Span:
    """One file in the picture: from where to where its values go, in percent."""

    x: float
    width: float
    label: str


@dataclass(frozen=True, slots=True)
class Overlap:
    """Files with certain bounds of the key: how many, and how they overlap.

    ``deepest`` is the most files that one value can be in, ``mean`` the same over all ends of
    files. ``unknown`` files have no bounds.
    """

    column: str
    files: int
    unknown: int
    deepest: int
    mean: float
    spans: tuple[Span, ...]


def sort_column(table: TableVersion) -> Field | None:
    """Return the column that comes first in the sort order; None if it is an expression."""
    if not table.sort:
        return None
    name = sort_key(table.sort[0]).expression
    if len(name) > 1 and name[0] == name[-1] and name[0] in '"`':
        name = name[1:-1].replace(name[0] * 2, name[0])
    found = table.columns.find((name,))
    return found if found is not None and found.is_leaf else None


def overlap(field: Field, stats: Mapping[int, ColumnStats], live: Iterable[int]) -> Overlap:
    """Return how live files overlap in a column."""
    ids = list(live)
    known = []
    for number in ids:
        found = stats.get(number)
        pair = None if found is None else _bounds(field, found)
        if pair is not None:
            known.append((*pair, number))
    known.sort()
    edges = sorted([(low, 0) for low, _, _ in known] + [(high, 1) for _, high, _ in known])
    depth, deepest, total = 0, 0, 0
    for _, is_end in edges:
        # Both ends of a file are in it: a file that begins where another ends overlaps it.
        if not is_end:
            depth += 1
            deepest = max(deepest, depth)
        total += depth
        if is_end:
            depth -= 1
    mean = total / len(edges) if edges else 0.0
    unknown = len(ids) - len(known)
    return Overlap(field.name, len(known), unknown, deepest, mean, _spans(known))


def _bounds(field: Field, stats: ColumnStats) -> tuple[Any, Any] | None:
    assert not isinstance(field.shape, Kind)
    low, high = bound(field.shape, stats.min_value), bound(field.shape, stats.max_value)
    return None if low is None or high is None else (low, high)


def _spans(known: list[tuple[Any, Any, int]]) -> tuple[Span, ...]:
    """Return files by rank of their bounds, which exists for every type."""
    ranks = sorted({v for low, high, _ in known for v in (low, high)})
    width = max(1, len(ranks))
    step = max(1, -(-len(known) // _DRAWN))
    spans = []
    for low, high, number in known[::step]:
        start, end = bisect_left(ranks, low), bisect_left(ranks, high)
        x = round(100 * start / width, 4)
        spans.append(
            Span(x, round(100 * (end + 1) / width - x, 4), f"file {number}: {low} to {high}")
        )
    return tuple(spans)
