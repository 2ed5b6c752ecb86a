"""Views that a transaction made, dropped and renamed, over those of its base snapshot; no I/O."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from shelduck.api.results import TableName
from shelduck.model.change import CreateView, DropView, RenameView, ViewChange
from shelduck.model.table import SchemaInfo
from shelduck.model.view import ViewVersion


@dataclass
class _ViewWork:
    """What happened to one view; ``original`` is None if it was made in the transaction."""

    original: ViewVersion | None
    current: ViewVersion
    dropped: bool = False


class StagedViews:
    """The views that a transaction changed, by id."""

    def __init__(self) -> None:
        self._works: dict[int, _ViewWork] = {}

    def copied(self) -> StagedViews:
        """Return the same, which later changes of this one do not touch."""
        other = StagedViews()
        other._works = {number: replace(work) for number, work in self._works.items()}
        return other

    def find(self, name: TableName) -> ViewVersion | None:
        """Return the view that has this name by the transaction's doing."""
        wanted = (name.schema.lower(), name.name.lower())
        for work in self._works.values():
            view = work.current
            if not work.dropped and (view.schema.name.lower(), view.name.lower()) == wanted:
                return view
        return None

    def seen(self, view: ViewVersion | None) -> ViewVersion | None:
        """Return a view of the base snapshot, None when the transaction took its name away."""
        return None if view is None or view.id in self._works else view

    def names(self, schema: SchemaInfo, present: list[str]) -> list[str]:
        """Return the names of a schema's views, of which ``present`` are the base's, sorted."""
        works = [w for w in self._works.values() if w.current.schema.id == schema.id]
        changed = {w.original.name for w in works if w.original is not None}
        own = [w.current.name for w in works if not w.dropped]
        return sorted([n for n in present if n not in changed] + own)

    def create(self, view: ViewVersion) -> None:
        """Stage a new view."""
        self._works[view.id] = _ViewWork(None, view)

    def drop(self, view: ViewVersion) -> None:
        """Stage the end of a view."""
        self._works.setdefault(view.id, _ViewWork(view, view)).dropped = True

    def rename(self, view: ViewVersion, new_name: str) -> None:
        """Stage another name."""
        work = self._works.setdefault(view.id, _ViewWork(view, view))
        work.current = replace(work.current, name=new_name)

    def changes(self) -> Iterator[ViewChange]:
        """Yield what a commit has to carry."""
        for work in self._works.values():
            now, before = work.current, work.original
            if work.dropped:
                if before is not None:
                    yield DropView(before)
            elif before is None:
                yield CreateView(now.id, now.schema, now.name, now.uuid, now.definition)
            elif now.name != before.name:
                yield RenameView(before, now.name)
