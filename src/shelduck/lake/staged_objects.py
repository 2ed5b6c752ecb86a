"""Schemas, tables, views and macros as a transaction staged them, on top of its base snapshot.

What happens to one object is reduced to what a commit must contain. Ids of new objects are below 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

from shelduck.lake.results import TableName
from shelduck.model.changes.change import (
    AlterTable,
    Change,
    CreateSchema,
    CreateTable,
    CreateView,
    DependentViews,
    DropSchema,
    DropTable,
    DropView,
    RenameTable,
    RenameView,
    alteration,
    altered,
)
from shelduck.model.changes.definition import CommentViewColumns, CreateMacro, DropMacro
from shelduck.model.changes.staged_rows import StagedRows
from shelduck.model.tables.schema import spent
from shelduck.model.tables.table_version import SchemaInfo, TableVersion
from shelduck.model.tables.view import MacroVersion, ViewVersion

V = TypeVar("V", SchemaInfo, MacroVersion, ViewVersion, TableVersion)
W = TypeVar("W", bound="StagedObject[Any]")


@dataclass
class StagedObject(Generic[V]):
    """What happened to one object; ``original`` is None if the transaction made it."""

    original: V | None
    current: V
    dropped: bool = False
    _gone: ClassVar[type[Any]]
    """The change that drops the object."""

    def copied(self) -> Self:
        """Return a copy that later changes do not affect."""
        return replace(self)

    def changes(self) -> Sequence[Change]:
        """Return what a commit must contain; an object that came and went leaves no trace."""
        if self.original is None:
            return [] if self.dropped else self._made(self.current)
        if self.dropped:
            return [self._gone(self.original)]
        return self._changed(self.original, self.current)

    def _made(self, made: V) -> list[Change]:
        raise NotImplementedError

    def _changed(self, _old: V, _now: V) -> list[Change]:
        return []


@dataclass
class StagedSchema(StagedObject[SchemaInfo]):
    """What happened to a schema; ``uuid`` is that of a new one."""

    _gone = DropSchema

    uuid: str = ""

    def _made(self, made: SchemaInfo) -> list[Change]:
        return [CreateSchema(made, self.uuid)]


@dataclass
class StagedMacro(StagedObject[MacroVersion]):
    """What happened to a macro."""

    _gone = DropMacro

    def _made(self, made: MacroVersion) -> list[Change]:
        return [CreateMacro(made)]


@dataclass
class StagedView(StagedObject[ViewVersion]):
    """What happened to a view, and to comments on its columns."""

    _gone = DropView

    comments: Mapping[str, str | None] = field(default_factory=dict)

    def comment(self, column: str, text: str | None) -> None:
        """Stage a comment on a column, None for none."""
        made = self.current.definition
        kept = [pair for pair in made.column_comments if pair[0].lower() != column.lower()]
        kept += [] if text is None else [(column, text)]
        made = replace(made, column_comments=tuple(sorted(kept)))
        self.current = replace(self.current, definition=made)
        self.comments = {**self.comments, column: text}

    def _made(self, made: ViewVersion) -> list[Change]:
        return [CreateView(made.id, made.schema, made.name, made.uuid, made.definition)]

    def _changed(self, old: ViewVersion, now: ViewVersion) -> list[Change]:
        told = [CommentViewColumns(old, tuple(self.comments.items()))] if self.comments else []
        return [*([] if now.name == old.name else [RenameView(old, now.name)]), *told]


@dataclass
class StagedTable(StagedObject[TableVersion]):
    """What happened to a table and its rows."""

    _gone = DropTable

    altered: AlterTable | None = None
    rows: StagedRows = field(default_factory=StagedRows)

    def copied(self) -> Self:
        """Return a copy that later changes do not affect."""
        return replace(self, rows=self.rows.copied())

    def _made(self, made: TableVersion) -> list[Change]:
        create = CreateTable(
            *(made.id, made.schema, made.name, made.uuid),
            # A rename keeps the directory: it may already contain files.
            made.path.removeprefix(made.schema.path),
            *(made.columns, made.comments, made.partition),
            partition_id=made.partition_id,
            sort=made.sort,
            properties=made.properties,
            reserved=spent(made.columns, made.max_column_id),
        )
        return [create, *self.rows.changes(made.id, made.columns)]

    def _changed(self, old: TableVersion, now: TableVersion) -> list[Change]:
        found: list[Change] = [] if now.name == old.name else [RenameTable(old, now.name)]
        made = self.altered
        if made is not None and (made.reserved or not made.is_empty):
            found.append(made)
        return [*found, *self.rows.changes(now.id, now.columns)]

    def alter(self, change: AlterTable) -> None:
        """Add a change of the description; only a second one has the whole compared again."""
        self.current = altered(self.current, change)
        self.rows.distrust(change.unsafe_bounds)
        if self.original is None:
            return
        before = self.altered
        if before is None:
            self.altered = replace(change, table=self.original)
            return
        made = alteration(self.original, self.current, before.unsafe_bounds | change.unsafe_bounds)
        self.altered = replace(
            made,
            excludes_inserts=before.excludes_inserts or change.excludes_inserts,
            returning=before.returning | change.returning,
            views=change.views if change.views is not DependentViews.LEAVE else before.views,
            converted=before.converted + change.converted,
        )


def copied(works: Mapping[Any, W]) -> dict[Any, W]:
    """Return a copy of works that later changes do not affect."""
    return {number: work.copied() for number, work in works.items()}


def over(works: Mapping[Any, StagedObject[V]], present: Iterable[V]) -> list[V]:
    """Return objects as the transaction left them, new ones last; ``present`` are the base's."""
    own = [work.current for work in works.values() if not work.dropped]
    return [each for each in present if each.id not in works] + own


def called(works: Mapping[Any, W], name: TableName) -> W | None:
    """Return the work on the table or view to which the transaction gave this name, in any case."""
    wanted = (name.home.lower(), name.name.lower())
    for work in works.values():
        now = work.current
        if not work.dropped and (now.schema.name.lower(), now.name.lower()) == wanted:
            return work
    return None


def names_in(works: Mapping[Any, W], schema: SchemaInfo, present: Sequence[str]) -> list[str]:
    """Return the sorted names of a schema's tables or views; ``present`` are the base's."""
    here = [w for w in works.values() if w.current.schema.id == schema.id]
    changed = {w.original.name for w in here if w.original is not None}
    own = [w.current.name for w in here if not w.dropped]
    return sorted([n for n in present if n not in changed] + own)
