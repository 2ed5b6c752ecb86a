"""A table: its schema through time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from shelduck.catalog.read.overview.lake_tables import (
    ColumnState,
    column_history,
    names_of,
    snapshots_of_columns,
)
from shelduck.catalog.running.job_rows import followed_by
from shelduck.errors import InvalidRequest
from shelduck.model.tables.table_version import Snapshot
from shelduck.model.text.intervals import whole_number
from shelduck.web.history.lanes import (
    ColumnChange,
    Family,
    Followers,
    changed_at,
    column_changes,
    lanes,
    order_changes,
)
from shelduck.web.history.picture import Axis, Scale, picture, readable_scale
from shelduck.web.site import Site, asked_number

LISTED = 200
ALL = "all"


@dataclass(frozen=True, slots=True)
class Event:
    """A snapshot that changed the columns; ``snapshot`` is None if it has expired."""

    id: int
    snapshot: Snapshot | None
    changes: tuple[ColumnChange, ...]
    renamed_to: str = ""


def show(site: Site, request: Request) -> Response:
    """Return the page of a table."""
    number = int(request.path_params["table"])
    with site.reading() as (connection, head):
        table = site.table(connection, head, number)
        history = column_history(connection, number)
        snapshots = snapshots_of_columns(connection, number)
        names = names_of(connection, number)
        replaced = followed_by(connection, number)
    changes = sorted({*changed_at(history), *(begin for begin, _, _ in names)})
    first, last = _range(request, changes, head.id)
    scale = _scale(request, first, last, changes)
    axis = Axis(first, last, changes, scale)
    chosen = asked_number(request, "at")
    if chosen is None:
        chosen = axis.changes[-1] if axis.changes else last
    opened = _opened(request)
    lanes_ = lanes(history, replaced)
    events = Events(history, snapshots, replaced, names)
    shown = _change_before(changes, chosen)
    listed = [events.of(n) for n in axis.changes[::-1][:LISTED]]
    return site.render(
        request,
        "story.html",
        table=table,
        tab="schema",
        picture=picture(lanes_, axis, opened, shown),
        has_nested=any(lane.children for lane in lanes_),
        opened=opened,
        families=list(Family),
        snapshots=snapshots,
        event=None if shown is None else events.of(shown),
        chosen=chosen,
        schema=_schema(history, chosen),
        around=_around(changes, chosen),
        events=listed,
        told_at={e.id: e.changes for e in listed},
        hidden_events=max(0, len(axis.changes) - LISTED),
        head=head,
        whole=(changes[0], head.id),
        zooms=_zooms(first, last, changes[0], head.id),
    )


def _range(request: Request, changes: Sequence[int], head: int) -> tuple[int, int]:
    first, last = asked_number(request, "from"), asked_number(request, "to")
    low = changes[0] if first is None else min(max(first, changes[0]), head)
    high = head if last is None else min(max(last, changes[0]), head)
    if low > high:
        raise InvalidRequest(
            f"the range from snapshot {low} to {high} is empty; swap the two numbers"
        )
    return low, high


def _scale(request: Request, first: int, last: int, changes: Sequence[int]) -> Scale:
    asked = request.query_params.get("scale", "")
    known = next((s for s in Scale if s.value == asked), None)
    return known or readable_scale(first, last, changes)


def _opened(request: Request) -> frozenset[int] | None:
    text = request.query_params.get("open", "")
    if text == ALL:
        return None
    return frozenset(n for n in map(whole_number, text.split(",")) if n is not None)


def _change_before(changes: Sequence[int], snapshot: int) -> int | None:
    return max((c for c in changes if c <= snapshot), default=None)


class Events:
    """The changes of each snapshot to the columns."""

    def __init__(
        self,
        history: Sequence[ColumnState],
        snapshots: Mapping[int, Snapshot],
        followed_by: Followers,
        names: Sequence[tuple[int, str, str]],
    ) -> None:
        self._snapshots, self._followed_by = snapshots, followed_by
        self._renames = {begin: f"{schema}.{name}" for begin, schema, name in names[1:]}
        self._begins: dict[int, list[ColumnState]] = defaultdict(list)
        self._ends: dict[int | None, list[ColumnState]] = defaultdict(list)
        self._of: dict[int, list[ColumnState]] = defaultdict(list)
        for state in history:
            self._begins[state.begin].append(state)
            self._ends[state.end].append(state)
            self._of[state.id].append(state)

    def of(self, snapshot: int) -> Event:
        """Return what a snapshot did."""

        def unchanged(number: int) -> ColumnState | None:
            return next((s for s in self._of[number] if s.is_at(snapshot)), None)

        before, after = self._ends[snapshot], self._begins[snapshot]
        found = column_changes(before, after, self._followed_by, unchanged)
        orders = {s.id: s.order for s in before}
        if any(orders.get(s.id, s.order) != s.order for s in after):
            found += order_changes(*self._around(snapshot))
        renamed = self._renames.get(snapshot, "")
        return Event(snapshot, self._snapshots.get(snapshot), tuple(found), renamed)

    def _around(self, snapshot: int) -> tuple[list[ColumnState], list[ColumnState]]:
        """Return all columns just before a snapshot, and at it."""
        every = [s for states in self._of.values() for s in states]
        old, new = ([s for s in every if s.is_at(at)] for at in (snapshot - 1, snapshot))
        return old, new


def _schema(history: Sequence[ColumnState], at: int) -> list[tuple[ColumnState, int]]:
    """Return the columns at a snapshot, each with its depth."""
    there = sorted((s for s in history if s.is_at(at)), key=lambda s: (s.order, s.id))
    found: list[tuple[ColumnState, int]] = []

    def add(parent: int | None, depth: int) -> None:
        for state in there:
            if state.parent == parent:
                found.append((state, depth))
                add(state.id, depth + 1)

    add(None, 0)
    return found


def _around(changes: Sequence[int], at: int) -> tuple[int | None, int | None]:
    """Return the changes before and after the one that is shown."""
    shown = _change_before(changes, at)
    older = max((c for c in changes if shown is not None and c < shown), default=None)
    newer = min((c for c in changes if c > at), default=None)
    return older, newer


def _zooms(first: int, last: int, begin: int, end: int) -> dict[str, tuple[int, int] | None]:
    """Return the ranges behind the buttons; None for one that shows nothing else."""
    width = last - first + 1
    quarter, half = max(1, width // 4), max(1, width // 2)
    near = (first + quarter, last - quarter)
    wide = (max(begin, first - half), min(end, last + half))
    earlier = (max(begin, first - half), max(begin, first - half) + width - 1)
    later = (min(end, last + half) - width + 1, min(end, last + half))
    return {
        "closer": near if near[0] < near[1] else None,
        "wider": wide if wide != (first, last) else None,
        "earlier": earlier if first > begin else None,
        "later": later if last < end else None,
    }
