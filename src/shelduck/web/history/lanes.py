"""One lane for each column id: what it was called, of which type, and from when to when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from shelduck.catalog.read.overview.column_history import ColumnState
from shelduck.web.history.column_changes import Followers


class Family(Enum):
    """The kind of a type's values; each has its own colour."""

    NUMBER = "number"
    TEXT = "text"
    TIME = "time"
    NESTED = "nested"
    OTHER = "other"


_FAMILIES = (
    (Family.NUMBER, ("int", "uint", "float", "decimal", "double")),
    (Family.TEXT, ("varchar", "json", "char")),
    (Family.TIME, ("date", "time", "interval")),
    (Family.NESTED, ("struct", "list", "map")),
)


def family(type_: str) -> Family:
    """Return the family of a type by DuckLake's name of it."""
    # An interval begins as an integer does.
    found = (f for f, begins in reversed(_FAMILIES) if type_.startswith(begins))
    return next(found, Family.OTHER)


class MarkKind(Enum):
    """The changes of a column besides its name and its type."""

    DEFAULT = "default"
    NO_DEFAULT = "no default"
    NOT_NULL = "not null"
    NULLABLE = "nullable"
    BELOW = "changes below"


@dataclass(frozen=True, slots=True)
class Segment:
    """A column under one name and of one type; ``end`` is excluded, None for now."""

    begin: int
    end: int | None
    name: str
    type: str

    @property
    def family(self) -> Family:
        """The family of its type."""
        return family(self.type)


@dataclass(frozen=True, slots=True)
class Mark:
    """A change at one snapshot, in words."""

    at: int
    kind: MarkKind
    text: str


@dataclass(frozen=True, slots=True)
class Lane:
    """One column id; ``name`` is its first name, ``path`` those of its parents too.

    ``followed_by`` is the column into which a job converted it.
    """

    id: int
    parent: int | None
    depth: int
    path: tuple[str, ...]
    segments: tuple[Segment, ...]
    marks: tuple[Mark, ...]
    children: tuple[int, ...] = ()
    followed_by: int | None = None

    @property
    def name(self) -> str:
        """The first name that it had."""
        return self.path[-1]

    @property
    def end(self) -> int | None:
        """The snapshot that dropped it, None if it is there."""
        return self.segments[-1].end

    @property
    def fate(self) -> str:
        """What became of it: its last name if that is another one, and whether it is gone."""
        last = self.segments[-1].name
        gone = "dropped" if self.followed_by is None else f"now column {self.followed_by}"
        told = (f"→ {last}" if last != self.name else "", "" if self.end is None else gone)
        return ", ".join(filter(None, told))


def lanes(history: Iterable[ColumnState], followed_by: Followers) -> list[Lane]:
    """Return a lane for each column, nested ones after their parents.

    ``followed_by`` are columns with those into which jobs converted them, in the order of the jobs:
    they come right after.
    """
    last = dict(followed_by)
    states: dict[int, list[ColumnState]] = defaultdict(list)
    for state in history:
        states[state.id].append(state)
    below: dict[int | None, list[int]] = defaultdict(list)
    for number, mine in states.items():
        below[mine[0].parent].append(number)
    found: list[Lane] = []

    def add(parent: int | None, depth: int, path: tuple[str, ...]) -> None:
        for number in _in_order(below.get(parent, ()), followed_by):
            mine = states[number]
            here = (*path, mine[0].name)
            children = tuple(_in_order(below.get(number, ()), followed_by))
            found.append(
                Lane(
                    *(number, parent, depth, here, _segments(mine), _marks(mine), children),
                    last.get(number) if last.get(number) in states else None,
                )
            )
            add(number, depth + 1, here)

    add(None, 0, ())
    return found


def _in_order(ids: Sequence[int], followed_by: Followers) -> list[int]:
    """Return ids in the order in which they were given; each is followed by its successors.

    A column that an undo brought back stays in its first place.
    """
    known, placed = set(ids), list[int]()
    behind: dict[int, list[int]] = defaultdict(list)
    for old, new in followed_by:
        behind[old].append(new)

    def place(number: int) -> None:
        if number in known and number not in placed:
            placed.append(number)
            for successor in behind.get(number, ()):
                place(successor)

    for number in sorted(ids):
        place(number)
    return placed


def _segments(states: Sequence[ColumnState]) -> tuple[Segment, ...]:
    found: list[Segment] = []
    for state in states:
        last = found[-1] if found else None
        same = last is not None and (last.end, last.name, last.type) == (
            *(state.begin, state.name, state.type),
        )
        if last is not None and same:
            found[-1] = Segment(last.begin, state.end, state.name, state.type)
        else:
            found.append(Segment(state.begin, state.end, state.name, state.type))
    return tuple(found)


def _marks(states: Sequence[ColumnState]) -> tuple[Mark, ...]:
    found: list[Mark] = []
    before: ColumnState | None = None
    for state in states:
        follows = before is not None and before.end == state.begin
        default = before.default if before is not None and follows else None
        nullable = before.nullable if before is not None and follows else True
        if state.default != default:
            kind = MarkKind.NO_DEFAULT if state.default is None else MarkKind.DEFAULT
            text = "no default" if state.default is None else f"default {state.default}"
            found.append(Mark(state.begin, kind, text))
        if state.nullable != nullable:
            kind = MarkKind.NULLABLE if state.nullable else MarkKind.NOT_NULL
            found.append(Mark(state.begin, kind, kind.value))
        before = state
    return tuple(found)


def changed_at(history: Iterable[ColumnState]) -> list[int]:
    """Return the snapshots that changed a column, in order."""
    edges = {edge for s in history for edge in (s.begin, s.end) if edge is not None}
    return sorted(edges)
