"""Everything that a commit may contain, and the text by which the catalog records it.

Operations return these values; only `shelduck.catalog.commit.commit` carries them out. ``Entry`` is
one ``verb:argument`` of ``ducklake_snapshot_changes.changes_made``; its text parses back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeVar

from shelduck.errors import CorruptLake
from shelduck.model.changes.definition import CommentViewColumns, MacroChange
from shelduck.model.changes.problem import RepairCatalog
from shelduck.model.files.data_file import DeletesSeen, NewDataFile, NewDeleteFile
from shelduck.model.files.fitted import InlinedBatch
from shelduck.model.tables.schema import Field, FieldChange, FieldId, Schema, TableId, spent
from shelduck.model.tables.table_version import (
    PartitionColumn,
    SchemaInfo,
    TableVersion,
    known_first,
)
from shelduck.model.tables.twin import FollowSource, MarkBranch, ShareFiles, TakeFiles
from shelduck.model.tables.view import ViewDefinition, ViewVersion
from shelduck.model.text.names import INSIDE, double_quoted, schema_names

_ENTRY = re.compile(r'(\w+):((?:"(?:[^"]|"")*")(?:\."(?:[^"]|"")*")*|\d+)(?:,|$)')
_NAME = re.compile(r'"((?:[^"]|"")*)"')
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """Make a schema. ``schema.id`` is provisional, negative and unique in the commit.

    ``schema.path`` ends in `shelduck.model.text.names.directory` of its name and ``uuid``.
    ``schema.parent`` may be the provisional id of another CreateSchema before this one.
    """

    schema: SchemaInfo
    uuid: str


@dataclass(frozen=True, slots=True)
class DropSchema:
    """End a schema; separate changes in the same commit drop what is in it."""

    schema: SchemaInfo


@dataclass(frozen=True, slots=True)
class CreateTable:
    """Make a table. ``id`` is provisional, negative and unique in the commit.

    ``schema.id`` may be the provisional id of a CreateSchema. ``directory`` is the path below the
    schema's directory, and ends in "/"; it may already contain files. ``partition_id`` is
    provisional too. ``reserved`` are columns that nobody sees, whose ids are taken.
    """

    id: TableId
    schema: SchemaInfo
    name: str
    uuid: str
    directory: str
    columns: Schema
    comments: dict[FieldId | None, str] = field(default_factory=dict)
    partition: tuple[PartitionColumn, ...] = ()
    partition_id: int | None = None
    sort: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    reserved: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class DropTable:
    """End a table and everything that belongs to it."""

    table: TableVersion


@dataclass(frozen=True, slots=True)
class RenameTable:
    """Rename a table in its schema; its id, directory and data stay."""

    table: TableVersion
    new_name: str


@dataclass(frozen=True, slots=True)
class PostponedRewrites:
    """The rewrites of some ``snapshots``, which this commit moves to itself.

    They changed no rows, so the snapshots in between read the same rows from ``sources``, a number
    of files. ``results`` are the ids of the files that they wrote: all are live, and nothing is
    deleted from them.
    """

    snapshots: frozenset[int]
    sources: int
    results: frozenset[int]


class DependentViews(Enum):
    """What happens to views that cannot follow an ALTER, as they read a column that goes."""

    LEAVE = "leave"
    RESTRICT = "restrict"
    CASCADE = "cascade"


@dataclass(frozen=True, slots=True)
class AlterTable:
    """Change the description of ``table``: this is only what differs from it.

    ``columns`` are all columns afterwards, and ``changed`` the fields that are added, dropped or
    not the same. ``comments`` and ``properties`` are new texts, None for those that go.
    ``partition`` and ``sort`` are None if they stay; new files are laid out by them.
    ``partition_id`` is provisional, negative and unique in the commit; files that were written for
    the new keys have this id.

    ``reserved`` are columns that nobody sees, whose ids are taken. With ``only_files``, the change
    is valid only if these are all data files of the table and the catalog has no rows of it.
    ``postponed`` are rewrites that happen together with the change.

    ``unsafe_bounds`` are leaves whose min/max texts must be cleared in file and table statistics.
    ``returning`` are leaves that come back after rows were written without them, so that the
    table's statistics of them no longer hold. ``excludes_inserts``: rows were checked (for NOT
    NULL), so inserts that were committed in the meantime conflict.

    ``views``: whether the commit is refused if views of the table would fail, or drops them.
    ``converted`` are pairs of a column, or a field in it, and the one with its converted values.
    """

    table: TableVersion
    columns: Schema
    changed: tuple[FieldChange, ...] = ()
    comments: Mapping[FieldId | None, str | None] = field(default_factory=dict)
    properties: Mapping[str, str | None] = field(default_factory=dict)
    unsafe_bounds: frozenset[FieldId] = frozenset()
    excludes_inserts: bool = False
    partition: tuple[PartitionColumn, ...] | None = None
    partition_id: int | None = None
    sort: tuple[str, ...] | None = None
    reserved: tuple[Field, ...] = ()
    only_files: frozenset[int] | None = None
    postponed: PostponedRewrites | None = None
    returning: frozenset[FieldId] = frozenset()
    views: DependentViews = DependentViews.LEAVE
    converted: tuple[tuple[FieldId, FieldId], ...] = ()

    @property
    def new_names(self) -> list[str]:
        """The names that columns get."""
        rows = [(c.before, c.after) for c in self.changed]
        known = {row.field.name for row, _ in rows if row and row.parent is None}
        found = [row.field.name for _, row in rows if row and row.parent is None]
        return [name for name in found if name not in known]

    @property
    def is_empty(self) -> bool:
        """True if the table is described as before; ids may be taken nevertheless."""
        is_same = self.partition is None and self.sort is None
        return is_same and not (self.changed or self.comments or self.properties)


@dataclass(frozen=True, slots=True)
class CreateView:
    """Make a view. ``id`` is provisional; ``schema.id`` may be that of a CreateSchema.

    If it replaces another view, the commit also has the DropView of that view.
    """

    id: int
    schema: SchemaInfo
    name: str
    uuid: str
    definition: ViewDefinition


@dataclass(frozen=True, slots=True)
class DropView:
    """End a view."""

    view: ViewVersion


@dataclass(frozen=True, slots=True)
class RenameView:
    """Rename a view in its schema."""

    view: ViewVersion
    new_name: str


@dataclass(frozen=True, slots=True)
class AppendFiles:
    """Add data files to a table; ``table`` may be the provisional id of a CreateTable.

    ``planned`` is the table for whose columns the files were written. If the table has other
    columns at the commit, the files are fitted to them. Without ``planned``, an ALTER by others is
    a conflict.
    """

    table: TableId
    files: tuple[NewDataFile, ...]
    planned: TableVersion | None = None


@dataclass(frozen=True, slots=True)
class InlineRows:
    """Put a few rows into the catalog itself; otherwise as AppendFiles."""

    table: TableId
    rows: InlinedBatch
    planned: TableVersion | None = None


@dataclass(frozen=True, slots=True)
class FileDeletes:
    """The fate of one data file: a new delete file, positions in the catalog, or its end.

    ``delete_file`` replaces the current delete file. ``positions`` are deleted too, and go to the
    catalog itself. Without both, every row is deleted and the file ends.
    """

    data_file_id: int
    seen: DeletesSeen
    delete_file: NewDeleteFile | None = None
    positions: tuple[int, ...] = ()
    takes_inlined: bool = False
    """Whether the new delete file also names the positions that the catalog kept."""
    past: MergedDeletes | None = None
    """Replaces the older delete file and the positions in the catalog, up to this commit.

    If these positions outlived the delete file, a flush by DuckDB would give its snapshots a second
    one.
    """

    @property
    def ends_file(self) -> bool:
        """True if no row of the file is left."""
        return self.delete_file is None and not self.positions


@dataclass(frozen=True, slots=True)
class DeleteRows:
    """Delete rows of a table or, if it is empty, say that a statement chose rows by reading it.

    ``inlined`` are row ids of live rows in the catalog itself. A statement that chose its rows by
    reading the table always includes this change, even if it found none, so that rows that others
    added in the meantime are a conflict.
    """

    table: TableVersion
    files: tuple[FileDeletes, ...] = ()
    inlined: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RewrittenFile:
    """A data file whose live rows were copied to others, and its deletes at that time."""

    data_file_id: int
    seen: DeletesSeen
    past: MergedDeletes | None = None
    """As in `FileDeletes`."""


@dataclass(frozen=True, slots=True)
class RewriteFiles:
    """Replace ``sources`` by ``results``: the same rows in other files.

    ``keeps_history``: the results store the snapshot of each row, so the sources are removed from
    all snapshots (DuckLake's ``merge_adjacent``). Otherwise the sources end at this snapshot, and
    older snapshots read them as before (``rewrite_delete``).
    """

    table: TableVersion
    sources: tuple[RewrittenFile, ...]
    results: tuple[NewDataFile, ...]
    keeps_history: bool


@dataclass(frozen=True, slots=True)
class FlushedRows:
    """One of the catalog's tables of inlined rows, and how many it held at that snapshot."""

    table_name: str
    rows: int


@dataclass(frozen=True, slots=True)
class MergedDeletes:
    """A delete file with all deleted positions of a data file, including those from the catalog.

    It contains the snapshot in which each position was deleted, so the older files (``replaced``,
    by id) are removed from all snapshots.
    """

    data_file_id: int
    seen: DeletesSeen
    delete_file: NewDeleteFile
    replaced: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FlushInlined:
    """Move rows and deletes from the catalog itself into files; no snapshot reads anything else.

    ``rows`` leave the catalog. ``results`` contain all of them, with their row ids, first snapshots
    and deletes (`NewDataFile.deletes`).
    """

    table: TableVersion
    rows: tuple[FlushedRows, ...]
    results: tuple[NewDataFile, ...]
    deletes: tuple[MergedDeletes, ...]


RowChange = AppendFiles | InlineRows | DeleteRows | RewriteFiles | FlushInlined
ViewChange = CreateView | DropView | RenameView | CommentViewColumns
Change = (
    CreateSchema
    | DropSchema
    | CreateTable
    | DropTable
    | RenameTable
    | AlterTable
    | ViewChange
    | MacroChange
    | RepairCatalog
    | RowChange
    | ShareFiles
    | TakeFiles
    | FollowSource
    | MarkBranch
)


def is_look(change: Change) -> bool:
    """Return whether a change only says that a statement chose rows; alone it needs no commit."""
    return isinstance(change, DeleteRows) and not (change.files or change.inlined)


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """The words of a commit about itself; all three are free text."""

    author: str | None = None
    message: str | None = None
    extra_info: str | None = None


class Verb(Enum):
    """The verbs of ``changes_made``, in the order in which the extension writes them."""

    DROPPED_SCHEMA = "dropped_schema"
    DROPPED_TABLE = "dropped_table"
    DROPPED_VIEW = "dropped_view"
    CREATED_SCHEMA = "created_schema"
    CREATED_TABLE = "created_table"
    CREATED_VIEW = "created_view"
    CREATED_SCALAR_MACRO = "created_scalar_macro"
    CREATED_TABLE_MACRO = "created_table_macro"
    DROPPED_SCALAR_MACRO = "dropped_scalar_macro"
    DROPPED_TABLE_MACRO = "dropped_table_macro"
    INSERTED_INTO_TABLE = "inserted_into_table"
    DELETED_FROM_TABLE = "deleted_from_table"
    ALTERED_TABLE = "altered_table"
    ALTERED_VIEW = "altered_view"
    INLINED_INSERT = "inlined_insert"
    INLINED_DELETE = "inlined_delete"
    INLINE_FLUSH = "inline_flush"
    MERGE_ADJACENT = "merge_adjacent"
    REWRITE_DELETE = "rewrite_delete"
    COMPACTED_TABLE = "compacted_table"


# Verbs by what happens to rows: some are added, some are deleted, or all only move to other files.
INSERTS = frozenset({Verb.INSERTED_INTO_TABLE, Verb.INLINED_INSERT})
DELETES = frozenset({Verb.DELETED_FROM_TABLE, Verb.INLINED_DELETE})
COMPACTIONS = frozenset({Verb.MERGE_ADJACENT, Verb.REWRITE_DELETE, Verb.COMPACTED_TABLE})
# Rows go to other files, and none changes.
MOVES = COMPACTIONS | {Verb.INLINE_FLUSH}

_VERBS = {verb.value: verb for verb in Verb} | {"flushed_inlined": Verb.INLINE_FLUSH}


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that a snapshot did: to an object by ``id``, or to a name (schema, object).

    The schema is one word, as `schema_word` makes it.
    """

    verb: Verb
    id: int | None = None
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.names:
            quoted = ".".join(double_quoted(n) for n in self.parts)
            return f"{self.verb.value}:{quoted}"
        return f"{self.verb.value}:{self.id}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The names one by one, from the outermost schema on."""
        return tuple(part for name in self.names for part in schema_names(name))


def format_entries(entries: Iterable[Entry]) -> str | None:
    """Return the ``changes_made`` text in the extension's order, each entry once, None for none."""
    ranks = {verb: n for n, verb in enumerate(Verb)}
    unique = sorted(dict.fromkeys(entries), key=lambda e: ranks[e.verb])
    return ",".join(str(e) for e in unique) or None


def parse_entries(text: str | None) -> list[Entry]:
    """Read a ``changes_made`` text; raise CorruptLake for a verb or shape unknown to DuckLake."""
    entries: list[Entry] = []
    at = 0
    while text and at < len(text):
        match = _ENTRY.match(text, at)
        verb = _VERBS.get(match[1]) if match else None
        if match is None or verb is None:
            raise CorruptLake(
                f"changes_made of a snapshot has an unknown entry: {text[at : at + 80]!r}"
            )
        argument = match[2]
        if argument.startswith('"'):
            *schema, name = (n.replace('""', '"') for n in _NAME.findall(argument))
            if verb is Verb.CREATED_SCHEMA:
                schema, name = [], INSIDE.join([*schema, name])
            names = (INSIDE.join(schema), name) if schema else (name,)
            entries.append(Entry(verb, names=names))
        else:
            entries.append(Entry(verb, id=int(argument)))
        at = match.end()
    return entries


def alteration(
    before: TableVersion,
    after: TableVersion,
    unsafe_bounds: frozenset[FieldId] = frozenset(),
    *,
    excludes_inserts: bool = False,
) -> AlterTable:
    """Return the change that makes one version of a table from another."""
    return AlterTable(
        *(before, after.columns, before.columns.changes(after.columns)),
        comments=changed_texts(before.comments, after.comments),
        properties=changed_texts(before.properties, after.properties),
        unsafe_bounds=unsafe_bounds,
        excludes_inserts=excludes_inserts,
        partition=None if after.partition == before.partition else after.partition,
        partition_id=after.partition_id,
        sort=None if after.sort == before.sort else after.sort,
        reserved=spent(after.columns, after.max_column_id, before.max_column_id),
    )


def changed_texts(before: Mapping[K, str], after: Mapping[K, str]) -> dict[K, str | None]:
    """Return the texts that are not the same in both, None for those that go."""
    return {k: after.get(k) for k in {**before, **after} if before.get(k) != after.get(k)}


def altered(table: TableVersion, change: AlterTable) -> TableVersion:
    """Return the version that a change makes of a table, or of a later version of it."""
    came = [c.after.field for c in change.changed if c.after is not None]
    names = {f.id: f.name for top in (*came, *change.reserved) for f in top.walk()}
    after = replace(
        table,
        columns=change.columns,
        comments=_with_texts(table.comments, change.comments),
        properties=_with_texts(table.properties, change.properties),
        sort=table.sort if change.sort is None else change.sort,
        max_column_id=max([table.max_column_id, *names]),
        first_names=known_first(table.first_names, names),
        has_reserved=table.has_reserved or bool(change.reserved),
    )
    if change.partition is None:
        return after
    number = change.partition_id if change.partition else None
    return replace(after, partition=change.partition, partition_id=number)


def _with_texts(known: dict[K, str], changed: Mapping[K, str | None]) -> dict[K, str]:
    if not changed:
        return known
    return {k: text for k, text in {**known, **changed}.items() if text is not None}
