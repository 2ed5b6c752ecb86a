"""The columns of a table by id and name, carried on when few of them change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

from shelduck.model.types.data_types import Text


class IndexNode(Protocol):
    """A field as an index needs it."""

    @property
    def id(self) -> int:
        """The field's id."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def shape(self) -> object:
        """The type of a leaf, or the nested kind."""

    @property
    def children(self) -> tuple[Self, ...]:
        """The fields in it."""

    @property
    def order(self) -> int:
        """Its position, as in the catalog."""

    def walk(self) -> Iterator[Self]:
        """Yield the field and all below it."""


N = TypeVar("N", bound=IndexNode)


@dataclass(frozen=True, slots=True)
class ColumnIndex(Generic[N]):
    """Where columns are; nested ones are fields too, but have no place of their own."""

    by_id: dict[int, N]
    places: dict[str, int]
    """The positions of columns, by their names in lower case."""
    moved: frozenset[int]
    """Fields whose order is not their id."""
    limited: frozenset[int]
    """Fields whose texts may have only so many characters."""

    @classmethod
    def of(cls, fields: Sequence[N], first: int = 0) -> ColumnIndex[N]:
        """Return the index of columns, the first of which is at this position."""
        every = list(walk(fields))
        return cls(
            {f.id: f for f in every},
            # The first of several with a name counts.
            {f.name.lower(): first + n for n, f in reversed(list(enumerate(fields)))},
            frozenset(f.id for f in every if f.order != f.id),
            frozenset(f.id for f in every if isinstance(f.shape, Text)),
        )

    def changed(self, old: tuple[N, ...], new: tuple[N, ...]) -> ColumnIndex[N]:
        """Return the index of ``new``, given that this is the one of ``old``."""
        was, now = changed_part(old, new)
        if len(old) != len(new) and was.stop != len(old):
            # The columns behind it have other places.
            return ColumnIndex.of(new)
        added = ColumnIndex.of(new[now], now.start)
        by_id, places = self.by_id.copy(), self.places.copy()
        gone = [f.id for f in walk(old[was])]
        for number in gone:
            del by_id[number]
        for f in old[was]:
            del places[f.name.lower()]
        by_id.update(added.by_id)
        places.update(added.places)
        return ColumnIndex(
            by_id,
            places,
            self.moved.difference(gone) | added.moved,
            self.limited.difference(gone) | added.limited,
        )


def walk(fields: Iterable[N]) -> Iterator[N]:
    """Yield every field, nested ones included, in pre-order."""
    for top in fields:
        # Tables have thousands of columns without children.
        if top.children:
            yield from top.walk()
        else:
            yield top


def changed_part(old: tuple[N, ...], new: tuple[N, ...]) -> tuple[slice, slice]:
    """Return the smallest parts of two tuples of fields outside of which they are the same.

    A text of another length is another one here, though its type is equal. Fields that are the same
    objects are not looked into.
    """
    was, now, shorter = len(old), len(new), min(len(old), len(new))
    first = _equal(shorter, lambda a, b: _are_same(old[a:b], new[a:b]))
    last = _equal(
        shorter - first, lambda a, b: _are_same(old[was - b : was - a], new[now - b : now - a])
    )
    return slice(first, was - last), slice(first, now - last)


def _are_same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    if some != others:
        return False
    pairs = [(a, b) for a, b in zip(some, others, strict=True) if a is not b]
    return all(_lengths(a) == _lengths(b) for a, b in pairs)


def _lengths(field: Any) -> list[int | None]:
    shapes = [f.shape for f in walk((field,))]
    return [s.length if isinstance(s, Text) else None for s in shapes]


def _equal(most: int, is_equal: Callable[[int, int], bool]) -> int:
    """Return how many items are equal, up to the first that is not."""
    if is_equal(0, most):
        return most
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        if is_equal(low, middle):
            low = middle
        else:
            high = middle
    return low
