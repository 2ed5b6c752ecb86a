"""The changes of columns from one snapshot to another, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from shelduck.catalog.read.overview.column_history import ColumnState

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
