"""The changes of one commit, folded into what happens to each schema and table; no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from shelduck.errors import InvalidRequest
from shelduck.model.change import (
    AlterTable,
    AppendFiles,
    Change,
    CreateSchema,
    CreateTable,
    CreateView,
    DeleteRows,
    DropSchema,
    DropTable,
    DropView,
    FlushInlined,
    InlineRows,
    PostponedRewrites,
    RenameTable,
    RenameView,
    RewriteFiles,
    RowChange,
    ViewChange,
)
from shelduck.model.files import NewDataFile
from shelduck.model.inlined import InlinedBatch
from shelduck.model.schema import Field, FieldId, Schema, TableId
from shelduck.model.table import PartitionColumn, TableVersion


@dataclass
class TableWork:
    """All that a commit does to one table.

    ``old`` is the version before the first change, None for a new table and when files are all that
    is added. ``columns``, ``comments``, ``properties``, ``partition`` and ``sort`` are the final
    ones, None when they stay; ``partition_id`` is the provisional id of a new ``partition``.
    """

    id: TableId
    old: TableVersion | None = None
    created: CreateTable | None = None
    dropped: bool = False
    new_name: str | None = None
    columns: Schema | None = None
    comments: dict[FieldId | None, str] | None = None
    unsafe_bounds: frozenset[FieldId] = frozenset()
    partition: tuple[PartitionColumn, ...] | None = None
    partition_id: int | None = None
    sort: tuple[str, ...] | None = None
    properties: dict[str, str] | None = None
    reserved: tuple[Field, ...] = ()
    only_files: frozenset[int] | None = None
    postponed: PostponedRewrites | None = None
    files: list[NewDataFile] = field(default_factory=list)
    inlined: list[InlinedBatch] = field(default_factory=list)
    deletes: list[DeleteRows] = field(default_factory=list)
    rewrites: list[RewriteFiles] = field(default_factory=list)
    flushes: list[FlushInlined] = field(default_factory=list)

    @property
    def is_idle(self) -> bool:
        """True when rows were looked at and nothing is written."""
        is_same = self.columns is None and self.new_name is None
        if self.created or self.dropped or not is_same or self.rewrites:
            return False
        if self.files or self.inlined or self.flushes:
            return False
        return not any(change.files or change.inlined for change in self.deletes)

    @property
    def name(self) -> str:
        """The table's name in messages, the new one of a new table."""
        if self.created is not None:
            return f"{self.created.schema.name}.{self.new_name or self.created.name}"
        seen = [*(c.table for c in self.deletes), *(c.table for c in self.rewrites)]
        known = self.old or next(iter(seen), None)
        return known.full_name if known else f"with id {self.id}"


@dataclass
class Work:
    """All that a commit does."""

    created_schemas: list[CreateSchema] = field(default_factory=list)
    dropped_schemas: list[DropSchema] = field(default_factory=list)
    tables: dict[TableId, TableWork] = field(default_factory=dict)
    created_views: list[CreateView] = field(default_factory=list)
    dropped_views: list[DropView] = field(default_factory=list)
    renamed_views: list[RenameView] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """True when no snapshot is needed."""
        tables = any(not table.is_idle for table in self.tables.values())
        views = self.created_views or self.dropped_views or self.renamed_views
        return not (self.created_schemas or self.dropped_schemas or tables or views)

    def existing(self) -> Iterator[TableWork]:
        """Yield the work on tables that the catalog knows already."""
        return (t for t in self.tables.values() if t.created is None)


def fold(changes: Sequence[Change]) -> Work:
    """Return what the changes amount to: in order, the last word on each table counts.

    A table that is created and dropped leaves no trace; files of a dropped table do not either.
    """
    work = Work()
    for change in changes:
        match change:
            case CreateSchema():
                work.created_schemas.append(change)
            case DropSchema():
                work.dropped_schemas.append(change)
            case AppendFiles() | InlineRows() | DeleteRows() | RewriteFiles() | FlushInlined():
                _fold_rows(work, change)
            case CreateView() | DropView() | RenameView():
                _fold_view(work, change)
            case CreateTable():
                made = TableWork(change.id, created=change)
                made.columns, made.comments = change.columns, change.comments
                made.partition, made.partition_id = change.partition, change.partition_id
                made.sort, made.properties = change.sort, change.properties
                made.reserved = change.reserved
                work.tables[change.id] = made
            case DropTable() | RenameTable() | AlterTable():
                _fold_version(_table(work, change.table.id), change)
    work.tables = {
        number: table
        for number, table in work.tables.items()
        if not (table.created and table.dropped)
    }
    return work


_ON_VERSIONS = DropTable | RenameTable | AlterTable | DeleteRows | RewriteFiles | FlushInlined


def versions(changes: Iterable[Change]) -> Iterator[TableVersion]:
    """Yield the table versions that the changes were made on, new tables left out."""
    for change in changes:
        if isinstance(change, _ON_VERSIONS) and change.table.id >= 0:
            yield change.table


def _table(work: Work, table_id: TableId) -> TableWork:
    if table_id < 0 and table_id not in work.tables:
        raise InvalidRequest(f"table {table_id} is provisional, and no change before creates it")
    return work.tables.setdefault(table_id, TableWork(table_id))


def _fold_rows(work: Work, change: RowChange) -> None:
    match change:
        case AppendFiles():
            if change.files:
                _table(work, change.table).files.extend(change.files)
        case InlineRows():
            if change.rows.rows:
                _table(work, change.table).inlined.append(change.rows)
        case DeleteRows():
            _table(work, change.table.id).deletes.append(change)
        case RewriteFiles():
            _table(work, change.table.id).rewrites.append(change)
        case FlushInlined():
            _table(work, change.table.id).flushes.append(change)


def _fold_view(work: Work, change: ViewChange) -> None:
    match change:
        case CreateView():
            work.created_views.append(change)
        case DropView():
            work.dropped_views.append(change)
        case RenameView():
            work.renamed_views.append(change)


def _fold_version(table: TableWork, change: DropTable | RenameTable | AlterTable) -> None:
    if table.dropped:
        raise InvalidRequest(f"table {table.name} is changed after it was dropped")
    if table.created is None and table.old is None:
        table.old = change.table
    match change:
        case DropTable():
            table.dropped = True
            table.new_name = table.columns = table.comments = None
            table.files, table.inlined, table.deletes = [], [], []
            table.rewrites, table.flushes = [], []
        case RenameTable():
            table.new_name = change.new_name
        case AlterTable():
            table.columns = change.columns
            table.comments = change.comments
            table.unsafe_bounds |= change.unsafe_bounds
            if change.partition is not None:
                table.partition, table.partition_id = change.partition, change.partition_id
            if change.sort is not None:
                table.sort = change.sort
            if change.properties is not None:
                table.properties = change.properties
            table.reserved, table.only_files = change.reserved, change.only_files
            table.postponed = change.postponed
