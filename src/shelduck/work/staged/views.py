"""Views that a transaction created, dropped or renamed, on top of its base snapshot; no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from shelduck.model.changes.change import CreateView, DropView, RenameView, ViewChange
from shelduck.model.changes.macro_change import CommentViewColumns
from shelduck.model.tables.table import SchemaInfo
from shelduck.model.tables.view import ViewVersion
from shelduck.work.results import TableName


@dataclass
class _ViewWork:
    """What happened to one view; ``original`` is None if it was made in the transaction."""

    original: ViewVersion | None
    current: ViewVersion
    dropped: bool = False
    comments: Mapping[str, str | None] = field(default_factory=dict)


class StagedViews:
    """The views that a transaction changed, by id."""

    def __init__(self) -> None:
        self._works: dict[int, _ViewWork] = {}

    def copied(self) -> StagedViews:
        """Return a copy that later changes do not affect."""
        other = StagedViews()
        other._works = {number: replace(work) for number, work in self._works.items()}
        return other

    def find(self, name: TableName) -> ViewVersion | None:
        """Return the view to which the transaction gave this name."""
        wanted = (name.home.lower(), name.name.lower())
        for work in self._works.values():
            view = work.current
            if not work.dropped and (view.schema.name.lower(), view.name.lower()) == wanted:
                return view
        return None

    def seen(self, view: ViewVersion | None) -> ViewVersion | None:
        """Return a view of the base snapshot, None if the transaction changed it."""
        return None if view is None or view.id in self._works else view

    def names(self, schema: SchemaInfo, present: list[str]) -> list[str]:
        """Return the sorted names of a schema's views; ``present`` are the base snapshot's."""
        works = [w for w in self._works.values() if w.current.schema.id == schema.id]
        changed = {w.original.name for w in works if w.original is not None}
        own = [w.current.name for w in works if not w.dropped]
        return sorted([n for n in present if n not in changed] + own)

    def create(self, view: ViewVersion) -> None:
        """Stage a new view."""
        self._works[view.id] = _ViewWork(None, view)

    def drop(self, view: ViewVersion) -> None:
        """Stage the drop of a view."""
        self._works.setdefault(view.id, _ViewWork(view, view)).dropped = True

    def rename(self, view: ViewVersion, new_name: str) -> None:
        """Stage a new name."""
        work = self._works.setdefault(view.id, _ViewWork(view, view))
        work.current = replace(work.current, name=new_name)

    def comment(self, view: ViewVersion, column: str, text: str | None) -> None:
        """Stage a comment on a column, None for none."""
        work = self._works.setdefault(view.id, _ViewWork(view, view))
        made = work.current.definition
        kept = [pair for pair in made.column_comments if pair[0].lower() != column.lower()]
        kept += [] if text is None else [(column, text)]
        made = replace(made, column_comments=tuple(sorted(kept)))
        work.current = replace(work.current, definition=made)
        work.comments = {**work.comments, column: text}

    def changes(self) -> Iterator[ViewChange]:
        """Yield what a commit must contain."""
        for work in self._works.values():
            now, before = work.current, work.original
            if work.dropped:
                if before is not None:
                    yield DropView(before)
            elif before is None:
                yield CreateView(now.id, now.schema, now.name, now.uuid, now.definition)
            else:
                if now.name != before.name:
                    yield RenameView(before, now.name)
                if work.comments:
                    yield CommentViewColumns(before, tuple(work.comments.items()))
