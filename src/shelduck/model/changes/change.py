"""Everything that a commit may contain, and the text by which the catalog records it.

Operations return these values; only `shelduck.catalog.commit.commit` carries them out. ``Entry`` is
one ``verb:argument`` of ``ducklake_snapshot_changes.changes_made``; its text parses back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum

from shelduck.errors import CorruptLake
from shelduck.model.changes.definition import CommentViewColumns, MacroChange
from shelduck.model.changes.problem import RepairCatalog
from shelduck.model.files.data_file import DeletesSeen, NewDataFile, NewDeleteFile
from shelduck.model.files.inlined_batch import InlinedBatch
from shelduck.model.tables.column_index import walk
from shelduck.model.tables.schema import Field, FieldId, Schema, TableId, spent
from shelduck.model.tables.table_version import (
    PartitionColumn,
    SchemaInfo,
    TableVersion,
    known_first,
)
from shelduck.model.tables.view import ViewDefinition, ViewVersion
from shelduck.model.text.quoting import INSIDE, double_quoted, schema_names

_ENTRY = re.compile(r'(\w+):((?:"(?:[^"]|"")*")(?:\."(?:[^"]|"")*")*|\d+)(?:,|$)')
_NAME = re.compile(r'"((?:[^"]|"")*)"')
_DESCRIPTION = ("columns", "comments", "properties", "partition", "sort")


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


@dataclass(frozen=True, slots=True)
class AlterTable:
    """Replace the columns and comments of ``table`` by new ones (same ids, new versions).

    ``properties``, ``partition`` and ``sort`` are new values too, or None if they stay. New files
    are laid out by ``partition`` and ``sort``. ``partition_id`` is provisional, negative and unique
    in the commit; files that were written for the new keys have this id.

    ``reserved`` are columns that nobody sees, whose ids are taken. With ``only_files``, the change
    is valid only if these are all data files of the table and the catalog has no rows of it.
    ``postponed`` are rewrites that happen together with the change.

    ``unsafe_bounds`` are leaves whose min/max texts must be cleared in file and table statistics.
    ``returning`` are leaves that come back after rows were written without them, so that the
    table's statistics of them no longer hold. ``excludes_inserts``: rows were checked (for NOT
    NULL), so inserts that were committed in the meantime conflict.
    """

    table: TableVersion
    columns: Schema
    comments: dict[FieldId | None, str]
    unsafe_bounds: frozenset[FieldId] = frozenset()
    excludes_inserts: bool = False
    partition: tuple[PartitionColumn, ...] | None = None
    partition_id: int | None = None
    sort: tuple[str, ...] | None = None
    properties: dict[str, str] | None = None
    reserved: tuple[Field, ...] = ()
    only_files: frozenset[int] | None = None
    postponed: PostponedRewrites | None = None
    returning: frozenset[FieldId] = frozenset()


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


def differs(before: TableVersion, after: TableVersion) -> bool:
    """Return whether something that an AlterTable changes is not the same in two versions."""
    return any(getattr(before, name) != getattr(after, name) for name in _DESCRIPTION)


def alteration(
    before: TableVersion,
    after: TableVersion,
    unsafe_bounds: frozenset[FieldId],
    *,
    excludes_inserts: bool = False,
) -> AlterTable:
    """Return the change that makes one version of a table from another."""
    return AlterTable(
        *(before, after.columns, after.comments, unsafe_bounds, excludes_inserts),
        partition=None if after.partition == before.partition else after.partition,
        partition_id=after.partition_id,
        sort=None if after.sort == before.sort else after.sort,
        properties=None if after.properties == before.properties else after.properties,
        reserved=spent(after.columns, after.max_column_id, before.max_column_id),
    )


def altered(table: TableVersion, change: AlterTable) -> TableVersion:
    """Return the version that a change makes of a table, or of a later version of it."""
    # What is the same had a name before.
    now = table.columns.changes(change.columns)[1]
    names = {f.id: f.name for f in [*walk(now), *walk(change.reserved)]}
    after = replace(
        table,
        columns=change.columns,
        comments=dict(change.comments),
        properties=table.properties if change.properties is None else dict(change.properties),
        sort=table.sort if change.sort is None else change.sort,
        max_column_id=max([table.max_column_id, *names]),
        first_names=known_first(table.first_names, names),
    )
    if change.partition is None:
        return after
    number = change.partition_id if change.partition else None
    return replace(after, partition=change.partition, partition_id=number)
