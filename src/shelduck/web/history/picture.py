"""Lanes as shapes: everything that the SVG needs, in percent across and in pixels down.

An `Axis` gives snapshots their places: to scale, or one step for each change.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from shelduck.web.history.lanes import Lane, Mark, MarkKind, Segment

HEAD = 46
"""The height of the line with the snapshots."""
LOW, TALL = 34, 52
"""The height of a lane without marks, and with marks."""
_FIRST_BAR = 5
_LABEL_APART = 4.2
"""How far labels of snapshots are apart, in percent."""
_MARK_TEXT = 9.0
"""The room that the words of a mark need, in percent."""
_NARROW = 1.5
"""Changes closer than this part of the width, in percent, cannot be distinguished."""


class Scale(Enum):
    """How wide a snapshot is."""

    SNAPSHOTS = "snapshots"
    """Each snapshot has the same width."""
    CHANGES = "changes"
    """All snapshots from one change of the columns to the next together have the same width."""


class Axis:
    """The snapshots from ``first`` to ``last``, both included, on a line of 100 percent."""

    def __init__(self, first: int, last: int, changes: Iterable[int], scale: Scale) -> None:
        self.first, self.last, self.scale = first, last, scale
        self.changes = sorted({c for c in changes if first <= c <= last})
        self._cuts = sorted({first, *self.changes, last + 1})

    def place(self, snapshot: int) -> float:
        """Return where a snapshot begins; before the first is 0, after the last is 100."""
        inside = min(max(snapshot, self.first), self.last + 1)
        if self.scale is Scale.SNAPSHOTS:
            found = (inside - self.first) / (self.last + 1 - self.first)
        else:
            found = (bisect_right(self._cuts, inside) - 1) / (len(self._cuts) - 1)
        return round(100 * found, 4)

    def shows(self, begin: int, end: int | None) -> bool:
        """Return whether a part of ``begin`` to ``end``, which is excluded, is on the line."""
        return begin <= self.last and (end is None or end > self.first)


def readable_scale(first: int, last: int, changes: Iterable[int]) -> Scale:
    """Return the scale by snapshots if all changes can be distinguished on it."""
    edges = sorted({c for c in changes if first <= c <= last})
    width = last + 1 - first
    gaps = [100 * (b - a) / width for a, b in pairwise([*edges, last + 1])]
    return Scale.CHANGES if min(gaps, default=100.0) < _NARROW else Scale.SNAPSHOTS


@dataclass(frozen=True, slots=True)
class BarShape:
    """A segment; ``begins`` and ``ends`` say whether its ends are in the picture."""

    segment: Segment
    x: float
    width: float
    begins: bool
    ends: bool
    renamed: bool


@dataclass(frozen=True, slots=True)
class MarkShape:
    """Marks of one snapshot and lane; ``text`` is empty if there is no room for it."""

    marks: tuple[Mark, ...]
    x: float
    text: str

    @property
    def told(self) -> str:
        """Return all of them in words."""
        return ", ".join(m.text for m in self.marks)


@dataclass(frozen=True, slots=True)
class Row:
    """A lane in the picture; ``is_open`` is None if it has nothing below."""

    lane: Lane
    y: int
    height: int
    bars: tuple[BarShape, ...]
    marks: tuple[MarkShape, ...]
    end: float | None
    is_open: bool | None

    @property
    def end_text(self) -> str:
        """The change at its end."""
        if self.lane.followed_by is not None:
            return f"converted, now column {self.lane.followed_by}"
        return f"dropped in {self.lane.end}"


@dataclass(frozen=True, slots=True)
class PictureStep:
    """A snapshot that changed the columns, with the room up to the next change."""

    snapshot: int
    x: float
    width: float
    has_label: bool
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """All shapes."""

    axis: Axis
    rows: tuple[Row, ...]
    steps: tuple[PictureStep, ...]
    height: int


def picture(
    lanes: Sequence[Lane], axis: Axis, opened: Collection[int] | None, chosen: int | None
) -> Picture:
    """Return the shapes of the lanes that are in the range of the axis.

    ``opened`` are lanes whose nested fields are shown, None for all of them.
    """
    by_id = {lane.id: lane for lane in lanes}
    below = _changes_below(lanes)
    rows: list[Row] = []
    y = HEAD
    for lane in lanes:
        if not _is_shown(lane, by_id, opened) or not _is_in(lane, axis):
            continue
        is_open = None if not lane.children else opened is None or lane.id in opened
        marks = lane.marks if is_open is not False else (*lane.marks, *below[lane.id])
        row = _row(lane, axis, marks, y, is_open)
        rows.append(row)
        y += row.height
    return Picture(axis, tuple(rows), tuple(_steps(axis, chosen)), y + _FIRST_BAR)


def _is_shown(lane: Lane, by_id: Mapping[int, Lane], opened: Collection[int] | None) -> bool:
    if opened is None:
        return True
    at = lane
    while at.parent is not None:
        if at.parent not in opened:
            return False
        at = by_id[at.parent]
    return True


def _is_in(lane: Lane, axis: Axis) -> bool:
    return any(axis.shows(s.begin, s.end) for s in lane.segments)


def _changes_below(lanes: Sequence[Lane]) -> dict[int, list[Mark]]:
    """Return marks for changes of nested fields, by each column that they are below."""
    by_id = {lane.id: lane for lane in lanes}
    found: dict[int, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for lane in lanes:
        edges = {e for s in lane.segments for e in (s.begin, s.end) if e is not None}
        at = lane.parent
        while at is not None:
            own = {e for s in by_id[at].segments for e in (s.begin, s.end)}
            for edge in edges - own:
                found[at][edge].add(lane.name)
            at = by_id[at].parent
    return defaultdict(
        list,
        {
            number: [
                Mark(at, MarkKind.BELOW, f"changes of {', '.join(sorted(names))}")
                for at, names in sorted(marks.items())
            ]
            for number, marks in found.items()
        },
    )


def _row(lane: Lane, axis: Axis, marks: Iterable[Mark], y: int, is_open: bool | None) -> Row:
    shapes = tuple(_marks(marks, axis))
    end = lane.end
    has_end = end is not None and axis.first < end <= axis.last
    return Row(
        lane,
        y,
        TALL if shapes else LOW,
        tuple(_bars(lane, axis)),
        shapes,
        axis.place(end) if has_end and end is not None else None,
        is_open,
    )


def _bars(lane: Lane, axis: Axis) -> Iterable[BarShape]:
    before: Segment | None = None
    for segment in lane.segments:
        joins = before is not None and before.end == segment.begin
        renamed = joins and before is not None and before.name != segment.name
        before = segment
        if not axis.shows(segment.begin, segment.end):
            continue
        x = axis.place(segment.begin)
        right = 100.0 if segment.end is None else axis.place(segment.end)
        yield BarShape(
            segment,
            x,
            round(right - x, 4),
            begins=segment.begin >= axis.first,
            ends=segment.end is not None and segment.end <= axis.last,
            renamed=renamed,
        )


def _marks(marks: Iterable[Mark], axis: Axis) -> Iterable[MarkShape]:
    at: dict[int, list[Mark]] = defaultdict(list)
    for mark in marks:
        if axis.first <= mark.at <= axis.last:
            at[mark.at].append(mark)
    places = [(axis.place(n), tuple(at[n])) for n in sorted(at)]
    nexts = [*(x for x, _ in places), 100.0][1:]
    for (x, mine), following in zip(places, nexts, strict=True):
        words = ", ".join(m.text for m in mine)
        yield MarkShape(mine, x, words if following - x >= _MARK_TEXT else "")


def _steps(axis: Axis, chosen: int | None) -> Iterable[PictureStep]:
    places = [axis.place(n) for n in axis.changes]
    nexts = [*places, 100.0][1:]
    labelled = -_LABEL_APART
    # The chosen snapshot always has its label; others make room for it.
    kept = next((x for n, x in zip(axis.changes, places, strict=True) if n == chosen), None)
    for snapshot, x, following in zip(axis.changes, places, nexts, strict=True):
        is_chosen = snapshot == chosen
        crowds = kept is not None and abs(x - kept) < _LABEL_APART
        has_label = is_chosen or (x - labelled >= _LABEL_APART and not crowds)
        labelled = x if has_label else labelled
        yield PictureStep(snapshot, x, round(following - x, 4), has_label, is_chosen)
