"""The columns of relations before and after a change, and how a name in a query finds one.

A name is looked up as Spark and DuckDB do: first in the tables of its own SELECT, then in those of
the queries around it. Names are compared in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum


class NameSide(Enum):
    """The names to look at: those before the change, or those after it."""

    BEFORE = 0
    AFTER = 1


@dataclass(frozen=True, slots=True, eq=False)
class ColumnNames:
    """A column, or a field inside one, by its names; None on the side where it does not exist.

    ``has_new_type``: the change gives it other values, or those of another type.
    """

    before: str | None
    after: str | None
    inside: tuple[ColumnNames, ...] = ()
    has_new_type: bool = False

    def name(self, side: NameSide) -> str | None:
        """Return its name on one side."""
        return self.before if side is NameSide.BEFORE else self.after

    @property
    def stays(self) -> bool:
        """True if neither it nor a field inside changes its name."""
        return self.before == self.after and all(field.stays for field in self.inside)

    def field(self, name: str, side: NameSide = NameSide.BEFORE) -> ColumnNames | None:
        """Return the field that ``.name`` means; an array of structs gives the fields of these."""
        found = named(self.inside, name, side)
        if found:
            return found[0]
        element = named(self.inside, "element", side)
        return element[0].field(name, side) if element else None

    def item(self) -> ColumnNames | None:
        """Return what ``[…]`` of an array or a map gives; None for anything else."""
        found = [c for c in self.inside if c.before in ("element", "value")]
        return found[0] if found else None


Columns = tuple[ColumnNames, ...]


@dataclass(frozen=True, slots=True)
class ReadTable:
    """A table or view that a query reads; ``columns`` is None if nobody knows them.

    ``place`` is its new name, behind the name of its schema; None if its name stays.
    """

    columns: Columns | None
    place: tuple[str, ...] | None = None


Find = Callable[[tuple[str, ...]], ReadTable | None]


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One entry of FROM; ``schema`` may stand before its name.

    An empty one means that any may, None that none may. If the change gives it a new name, the
    older one becomes its alias, without a schema.
    """

    alias: str
    columns: Columns | None
    schema: str | None = None
    has_new_name: bool = False

    def may_follow(self, schema: str) -> bool:
        """Tell whether a schema may stand before its name."""
        return self.schema is not None and self.schema.lower() in ("", schema.lower())


Scopes = tuple[Sequence[Source], ...]
"""The sources of a SELECT, and behind them those of the queries around it."""


@dataclass(frozen=True, slots=True)
class FoundColumns:
    """What a name means: columns (several after JOIN … USING), and which part of it names them."""

    columns: tuple[ColumnNames, ...]
    source: Source
    at: int

    def path(self, names: Sequence[str]) -> list[ColumnNames]:
        """Return the column and the fields that ``names`` name, up to one that nobody knows."""
        found = [self.columns[0]]
        for name in names[self.at + 1 :]:
            field = found[-1].field(name)
            if field is None:
                break
            found.append(field)
        return found


def named(columns: Iterable[ColumnNames], name: str, side: NameSide) -> list[ColumnNames]:
    """Return the columns of a name on one side."""
    lowered = name.lower()
    return [c for c in columns if (c.name(side) or "").lower() == lowered]


def look_up(parts: Sequence[str], scopes: Scopes, side: NameSide) -> FoundColumns | None:
    """Return what a name with dots means, None if it is no column of a source that is known."""
    for sources in scopes:
        for source in sources:
            for at in _places(parts, source):
                columns = named(source.columns or (), parts[at], side)
                if columns:
                    return FoundColumns(tuple(columns), source, at)
        found = [(c, s) for s in sources for c in named(s.columns or (), parts[0], side)]
        if found:
            return FoundColumns(tuple(c for c, _ in found), found[0][1], 0)
        if any(source.columns is None for source in sources):
            return None
    return None


def _places(parts: Sequence[str], source: Source) -> Iterable[int]:
    """Yield the places in ``parts`` of a column's name: behind the name of the source."""
    lowered = [part.lower() for part in parts]
    alias = source.alias.lower()
    if len(parts) > 1 and lowered[0] == alias:
        yield 1
    if len(parts) > 2 and lowered[1] == alias and source.may_follow(lowered[0]):
        yield 2


def moved_fields(columns: Columns) -> Iterator[str]:
    """Yield the older names, in lower case, of fields inside columns that change their names."""
    for column in columns:
        for field in column.inside:
            if field.before is not None and field.before != field.after:
                yield field.before.lower()
        yield from moved_fields(column.inside)


def numbered(shown: Sequence[ColumnNames]) -> Columns:
    """Return columns with the names that DuckDB gives them: the second ``a`` is ``a_1``."""
    before, after = ([column.name(side) for column in shown] for side in NameSide)
    names = zip(shown, _apart(before), _apart(after), strict=True)
    return tuple(
        replace(c, before=b, after=a) if (b, a) != (c.before, c.after) else c for c, b, a in names
    )


def _apart(names: Sequence[str | None]) -> list[str | None]:
    taken: set[str] = set()
    found: list[str | None] = []
    for name in names:
        other, number = name, 0
        while other is not None and other.lower() in taken:
            number += 1
            other = f"{name}_{number}"
        if other is not None:
            taken.add(other.lower())
        found.append(other)
    return found
