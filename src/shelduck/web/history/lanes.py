"""One lane for each column id: what it was called, of which type, and from when to when.

And the changes of columns from one snapshot to another, in words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from shelduck.catalog.read.overview.lake_tables import ColumnState


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


Find = Callable[[int], ColumnState | None]
Followers = Sequence[tuple[int, int]]
"""Columns with those into which jobs converted them, in the order of the jobs."""


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """One change: what was done, to which column, and the rest in words."""

    what: str
    path: str
    detail: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.what, self.path, self.detail)))


def column_changes(
    before: Iterable[ColumnState],
    after: Iterable[ColumnState],
    followed_by: Followers = (),
    unchanged: Find | None = None,
) -> list[ColumnChange]:
    """Return what turns some columns into others; columns that stay as they are may be missing.

    A column that a job converted is in ``followed_by`` with the column that got its place.
    ``unchanged`` finds a column that is missing, for the paths of those below it.
    """
    old, new = {s.id: s for s in before}, {s.id: s for s in after}

    def known(number: int) -> ColumnState | None:
        return new.get(number) or old.get(number) or (unchanged(number) if unchanged else None)

    successors = {o: n for o, n in followed_by if o in old and n in new}
    converted = {n: o for o, n in successors.items() if n not in old and o not in new}
    found: list[ColumnChange] = []
    for number in sorted(old.keys() | new.keys()):
        if number in converted:
            found += _altered(old[converted[number]], new[number], known, is_job=True)
        elif number not in old:
            if new[number].parent not in new or new[number].parent in old:
                found.append(_added(new[number], known))
        elif number not in new:
            is_below = old[number].parent in old and old[number].parent not in new
            if not is_below and number not in converted.values():
                found.append(ColumnChange("dropped", _path(old[number], known), old[number].type))
        else:
            found += _altered(old[number], new[number], known)
    return found


def _added(state: ColumnState, known: Find) -> ColumnChange:
    told = [state.type]
    if state.default is not None:
        told.append(f"DEFAULT {state.default}")
    if not state.nullable:
        told.append("NOT NULL")
    return ColumnChange("added", _path(state, known), " ".join(told))


def _altered(
    old: ColumnState, new: ColumnState, known: Find, *, is_job: bool = False
) -> list[ColumnChange]:
    path, found = _path(new, known), []
    if old.name != new.name:
        found.append(ColumnChange("renamed", _path(old, known), f"to {new.name}"))
    if old.type != new.type:
        found.append(
            ColumnChange(
                "converted" if is_job else "changed type of", path, f"{old.type} → {new.type}"
            )
        )
    if old.default != new.default:
        if new.default is None:
            found.append(ColumnChange("dropped the default of", path))
        else:
            found.append(ColumnChange("set the default of", path, f"to {new.default}"))
    if old.nullable != new.nullable:
        found.append(ColumnChange("allowed NULL in" if new.nullable else "set NOT NULL on", path))
    return found


def order_changes(
    before: Iterable[ColumnState], after: Iterable[ColumnState]
) -> list[ColumnChange]:
    """Return where columns that stay are in another order; the columns must be all there are."""
    old, new = {s.id: s for s in before}, {s.id: s for s in after}
    found = []
    for parent in sorted({s.parent for s in new.values()}, key=lambda p: p or -1):
        orders = [
            [s.id for s in _placed(states) if s.parent == parent and s.id in old and s.id in new]
            for states in (old, new)
        ]
        if orders[0] != orders[1]:
            above = "" if parent is None else f"in {_path(new[parent], new.get)}"
            found.append(ColumnChange("changed the order of columns", above))
    return found


def _placed(states: Mapping[int, ColumnState]) -> list[ColumnState]:
    return sorted(states.values(), key=lambda s: (s.order, s.id))


def _path(state: ColumnState, known: Find) -> str:
    parts = [state.name]
    at = state.parent
    while at is not None and (above := known(at)) is not None:
        parts.append(above.name)
        at = above.parent
    return ".".join(reversed(parts))
