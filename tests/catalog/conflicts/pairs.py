"""Pairs of another commit and mine: a cover of their classes is fast, the rest is slow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.catalog.conflicts.expected import BY_WRITER, MINE
from tests.support.lengths import turns

Pair = tuple[str, str, str]
"""Whose commit came between, what it did, and what mine does."""

_SORTS = {
    "alter": ("add column", "set not null", "partition"),
    "add rows": ("append", "inline"),
    "delete": ("delete from A", "delete position of A", "delete inlined", "delete position of D"),
    "rewrite": ("merge files", "rewrite C", "rewrite D"),
}
_SORT = {mine: sort for sort, several in _SORTS.items() for mine in several}


def duels(writer: str, names: Iterable[str]) -> list[Any]:
    """Return parameters for ``other`` and ``mine``: every pair of a writer's commits with mine."""
    return [
        pytest.param(
            (writer, name),
            mine,
            id=f"{name}-{mine}",
            marks=() if (writer, name, mine) in FAST else pytest.mark.slow,
        )
        for name in names
        for mine in MINE
    ]


def _classes(pair: Pair) -> Iterator[tuple[Any, ...]]:
    # Each commit of another and each of mine is once let through and once refused, and so is each
    # sort of mine after each combination of verbs.
    writer, name, mine = pair
    verbs, refused = BY_WRITER[writer][name]
    is_refused = mine in refused.split("|")
    yield "other", writer, name, is_refused
    yield "mine", mine, is_refused
    if is_refused:
        yield "sort", verbs, _SORT.get(mine, mine)


def _cover(pairs: list[Pair]) -> set[Pair]:
    classes = {pair: set(_classes(pair)) for pair in pairs}
    missing = set().union(*classes.values())
    chosen = set()
    while missing:
        best = max(pairs, key=lambda pair: len(missing & classes[pair]))
        chosen.add(best)
        missing -= classes[best]
    return chosen


def _all(*writers: str) -> list[Pair]:
    return [(writer, n, mine) for writer in writers for n in BY_WRITER[writer] for mine in MINE]


FAST = _cover(_all("us", "hand"))
"""The pairs that `make test` fights."""
ON_POSTGRES = FAST | _cover(_all("duckdb"))
"""The pairs that a share fights on PostgreSQL; `make soak` fights all of them there."""
_OTHERS = [(writer, name) for writer in BY_WRITER for name in BY_WRITER[writer]]
ON_SQLITE = FAST | {
    (writer, name, mine)
    for those in turns(_OTHERS, -(-len(_OTHERS) // 4))
    for writer, name in those
    for mine in MINE
}
"""The pairs that a share fights on SQLite: in four rounds all of them."""
