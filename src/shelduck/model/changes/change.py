"""Everything a commit may carry, and the text by which the catalog remembers it.

Operations return these values; only `shelduck.catalog.commit.commit` carries them out. ``Entry``
is one ``verb:argument`` of ``ducklake_snapshot_changes.changes_made``; its text parses back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from shelduck.errors import CorruptLake
from shelduck.model.files.data_files import DeletesSeen, NewDataFile, NewDeleteFile
from shelduck.model.files.inlined import InlinedBatch
from shelduck.model.tables.schema import Field, FieldId, Schema, TableId
from shelduck.model.tables.table import PartitionColumn, SchemaInfo, TableVersion
from shelduck.model.tables.view import ViewDefinition, ViewVersion
from shelduck.model.text.quoting import double_quoted


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """Make a schema. ``schema.id`` is provisional, negative and unique in the commit.

    ``schema.path`` ends in `shelduck.model.text.names.directory` of its name and ``uuid``.
    """

    schema: SchemaInfo
    uuid: str


@dataclass(frozen=True, slots=True)
class DropSchema:
    """End a schema; its tables are dropped by changes of their own in the same commit."""

    schema: SchemaInfo


@dataclass(frozen=True, slots=True)
class CreateTable:
    """Make a table. ``id`` is provisional, negative and unique in the commit.

    ``schema.id`` may be the provisional id of a CreateSchema. ``directory`` is the place below
    the schema's and ends in "/"; files may lie there already. ``partition_id`` is provisional too.
    ``reserved`` are columns whose ids are taken and that nobody sees.
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
    """End a table and all that belongs to it."""

    table: TableVersion


@dataclass(frozen=True, slots=True)
class RenameTable:
    """Give a table another name in its schema; its id, directory and data stay."""

    table: TableVersion
    new_name: str


@dataclass(frozen=True, slots=True)
class PostponedRewrites:
    """The rewrites of some ``snapshots``, which happen in this one instead.

    They changed no rows, so the snapshots between read the same from their ``sources``, a number of
    files. ``results`` are the files that they wrote, by id: all are live, and nothing is deleted.
    """

    snapshots: frozenset[int]
    sources: int
    results: frozenset[int]


@dataclass(frozen=True, slots=True)
class AlterTable:
    """Replace the columns and comments of ``table`` by new ones (same ids, new versions).

    ``properties`` are new ones too, None where they stay, as are ``partition`` and ``sort``, by
    which new files are laid out.
    ``partition_id`` is provisional, negative and unique in the commit: files that were written for
    the new keys carry it.

    ``reserved`` are columns whose ids are taken and that nobody sees. ``only_files``: the change is
    right only where these are all data files that the table has, and the catalog keeps no rows.
    ``postponed`` are rewrites that happen together with it.

    ``unsafe_bounds`` are leaves whose min/max texts are to be cleared in file and table statistics.
    ``excludes_inserts``: rows were checked (for NOT NULL), so inserts that landed meanwhile
    conflict.
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


@dataclass(frozen=True, slots=True)
class CreateView:
    """Make a view. ``id`` is provisional; ``schema.id`` may be that of a CreateSchema.

    One that replaces another comes with the DropView of that.
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
    """Give a view another name in its schema."""

    view: ViewVersion
    new_name: str


@dataclass(frozen=True, slots=True)
class AppendFiles:
    """Add data files to a table; ``table`` may be the provisional id of a CreateTable.

    ``planned`` is the table whose columns the files were written for: when it has others by the
    time of the commit, the files are fitted to them. Without it an ALTER of others is a conflict.
    """

    table: TableId
    files: tuple[NewDataFile, ...]
    planned: TableVersion | None = None


@dataclass(frozen=True, slots=True)
class InlineRows:
    """Put a few rows into the catalog itself; the rest is as in AppendFiles."""

    table: TableId
    rows: InlinedBatch
    planned: TableVersion | None = None


@dataclass(frozen=True, slots=True)
class FileDeletes:
    """What becomes of one data file: a new delete file, positions in the catalog, or its end.

    ``delete_file`` replaces the one that the file has. ``positions`` are added to what is deleted,
    and go to the catalog itself. With neither, every row is dead and the file ends.
    """

    data_file_id: int
    seen: DeletesSeen
    delete_file: NewDeleteFile | None = None
    positions: tuple[int, ...] = ()
    takes_inlined: bool = False
    """The new delete file names the positions that the catalog kept, too."""
    past: MergedDeletes | None = None
    """What stands until this commit for the older delete files and the positions in the catalog.

    Did those outlive the delete file beside them, a flush by DuckDB would give its snapshots a
    second one.
    """

    @property
    def ends_file(self) -> bool:
        """True when no row of the file is left."""
        return self.delete_file is None and not self.positions


@dataclass(frozen=True, slots=True)
class DeleteRows:
    """Delete rows of a table, or, with nothing in it, say that its rows were looked at.

    ``inlined`` are row ids of live rows that the catalog itself holds. A statement that chose its
    rows by reading the table always carries this, so that rows which others added meanwhile are a
    conflict.
    """

    table: TableVersion
    files: tuple[FileDeletes, ...] = ()
    inlined: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RewrittenFile:
    """A data file whose live rows were copied to others, and what was deleted from it then."""

    data_file_id: int
    seen: DeletesSeen
    past: MergedDeletes | None = None
    """As of `FileDeletes`."""


@dataclass(frozen=True, slots=True)
class RewriteFiles:
    """Put ``results`` in the place of ``sources``: the same rows in other files.

    ``keeps_history``: every row knows its own snapshot in the results, so that the sources vanish
    from all snapshots (DuckLake's ``merge_adjacent``). Otherwise they end at this one, and older
    snapshots read them as before (``rewrite_delete``).
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
    """A delete file with all dead positions of a data file, those that the catalog kept among them.

    It tells in which snapshot each position died, so the older files (``replaced``, by id) vanish
    from all snapshots.
    """

    data_file_id: int
    seen: DeletesSeen
    delete_file: NewDeleteFile
    replaced: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FlushInlined:
    """Move rows and deletes that the catalog itself keeps into files; no snapshot reads otherwise.

    ``rows`` leave the catalog; ``results`` hold them all, with their row ids, first snapshots and,
    as `NewDataFile.deletes`, their deaths.
    """

    table: TableVersion
    rows: tuple[FlushedRows, ...]
    results: tuple[NewDataFile, ...]
    deletes: tuple[MergedDeletes, ...]


RowChange = AppendFiles | InlineRows | DeleteRows | RewriteFiles | FlushInlined
ViewChange = CreateView | DropView | RenameView
Change = (
    CreateSchema
    | DropSchema
    | CreateTable
    | DropTable
    | RenameTable
    | AlterTable
    | ViewChange
    | RowChange
)


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """What a commit says of itself; all three are free text."""

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


# Verbs by what becomes of rows: some come, some go, or all only move to other files.
INSERTS = frozenset({Verb.INSERTED_INTO_TABLE, Verb.INLINED_INSERT})
DELETES = frozenset({Verb.DELETED_FROM_TABLE, Verb.INLINED_DELETE})
COMPACTIONS = frozenset({Verb.MERGE_ADJACENT, Verb.REWRITE_DELETE, Verb.COMPACTED_TABLE})

_ALIASES = {"flushed_inlined": Verb.INLINE_FLUSH}


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that a snapshot did: to an object by ``id``, or to a name (schema, object)."""

    verb: Verb
    id: int | None = None
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.names:
            quoted = ".".join(double_quoted(n) for n in self.names)
            return f"{self.verb.value}:{quoted}"
        return f"{self.verb.value}:{self.id}"


def format_entries(entries: Iterable[Entry]) -> str | None:
    """Return the ``changes_made`` text in the extension's order, each entry once, None for none."""
    ranks = {verb: n for n, verb in enumerate(Verb)}
    unique = sorted(dict.fromkeys(entries), key=lambda e: ranks[e.verb])
    return ",".join(str(e) for e in unique) or None


_ENTRY = re.compile(r'(\w+):((?:"(?:[^"]|"")*")(?:\."(?:[^"]|"")*")*|\d+)(?:,|$)')
_NAME = re.compile(r'"((?:[^"]|"")*)"')


def parse_entries(text: str | None) -> list[Entry]:
    """Read a ``changes_made`` text; raise CorruptLake for a verb or shape that DuckLake has not."""
    entries: list[Entry] = []
    at = 0
    while text and at < len(text):
        match = _ENTRY.match(text, at)
        verb = _verb(match[1]) if match else None
        if match is None or verb is None:
            raise CorruptLake(
                f"changes_made of a snapshot has an unknown entry: {text[at : at + 80]!r}"
            )
        argument = match[2]
        if argument.startswith('"'):
            names = tuple(n.replace('""', '"') for n in _NAME.findall(argument))
            entries.append(Entry(verb, names=names))
        else:
            entries.append(Entry(verb, id=int(argument)))
        at = match.end()
    return entries


def _verb(word: str) -> Verb | None:
    if word in _ALIASES:
        return _ALIASES[word]
    return next((v for v in Verb if v.value == word), None)
