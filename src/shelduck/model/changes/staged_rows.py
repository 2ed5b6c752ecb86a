"""Rows that a transaction wrote and deleted, and that nobody else sees yet; no I/O.

They are added to the base snapshot: `StagedRows.over` returns the data files as the transaction
sees them. Its own files have negative ids (-1, -2, ...) and no first row id; the commit assigns
both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace

from shelduck.errors import Conflict
from shelduck.model.changes.change import (
    AppendFiles,
    DeleteRows,
    FileDeletes,
    FlushInlined,
    InlineRows,
    RewriteFiles,
    RowChange,
)
from shelduck.model.files.data_file import (
    DataFile,
    DeleteFile,
    InlinedRows,
    NameMapping,
    NewDataFile,
    NewDeleteFile,
    without_bounds,
)
from shelduck.model.files.fitted import InlinedBatch, fitted_batch, joined_batch
from shelduck.model.tables.schema import FieldId, Schema, TableId
from shelduck.model.tables.table_version import TableVersion


@dataclass
class StagedRows:
    """The changes of a transaction to the rows of one table."""

    files: list[NewDataFile | None] = field(default_factory=list)
    """Files that it wrote; None once all rows of a file are deleted."""
    deletes: dict[int, FileDeletes] = field(default_factory=dict)
    """Its deletes from files that others see, by data file id."""
    inlined: set[int] = field(default_factory=set)
    """Row ids of inlined rows that it deleted."""
    batches: list[InlinedBatch] = field(default_factory=list)
    """Rows that it puts into the catalog; those without a row id yet have negative numbers."""
    numbered: int = 0
    """How many such numbers it has given out."""
    rewrites: list[RewriteFiles | FlushInlined] = field(default_factory=list)
    looked: DeleteRows | None = None
    """The first statement that chose rows by reading the table."""
    unsafe_bounds: frozenset[FieldId] = frozenset()
    """Columns whose bounds in the catalog can no longer be trusted."""
    plans: list[TableVersion | None] = field(default_factory=list)
    """For each change that added rows, the columns for which they were written."""

    @property
    def has_changes(self) -> bool:
        """True if rows were written, deleted or moved."""
        written = any(self.files) or self.batches or self.rewrites
        return bool(written or self.deletes or self.inlined)

    def copied(self) -> StagedRows:
        """Return a copy that later changes of this one do not affect."""
        return StagedRows(**{f.name: copy(getattr(self, f.name)) for f in fields(self)})

    def stage(self, change: RowChange) -> None:
        """Add one more change."""
        match change:
            case AppendFiles():
                self.files.extend(change.files)
                self.plans.append(change.planned)
            case InlineRows():
                self.batches.append(self._numbered(change.rows))
                self.plans.append(change.planned)
            case RewriteFiles() | FlushInlined():
                self.rewrites.append(change)
            case DeleteRows():
                self.looked = self.looked or change
                self._delete_inlined(change.inlined)
                for deleted in change.files:
                    self._delete(deleted)

    def changes(self, table: TableId, columns: Schema) -> Iterator[RowChange]:
        """Yield what a commit must contain; ``table`` may be provisional.

        Rows for the catalog are fitted to the final ``columns`` of the table.
        """
        yield from self._of_files(table)
        if any(batch.rows for batch in self.batches):
            batch = joined_batch([fitted_batch(b, columns) for b in self.batches])
            yield InlineRows(table, batch, self._planned())

    def _of_files(self, table: TableId) -> Iterator[RowChange]:
        if self.looked is not None:
            yield replace(
                self.looked, files=tuple(self.deletes.values()), inlined=tuple(sorted(self.inlined))
            )
        yield from self.rewrites
        files = tuple(f for f in self.files if f is not None)
        if files:
            yield AppendFiles(table, files, self._planned())

    def _numbered(self, batch: InlinedBatch) -> InlinedBatch:
        """Return rows of which each has a number by which later statements can delete it."""
        ids: list[int] = []
        for known in batch.row_ids or (None,) * len(batch.rows):
            if known is not None and known >= 0:
                ids.append(known)
            else:
                self.numbered += 1
                ids.append(-self.numbered)
        return replace(batch, row_ids=tuple(ids))

    def _delete_inlined(self, numbers: Iterable[int]) -> None:
        gone = set(numbers)
        own = gone.intersection(n for b in self.batches for n in b.row_ids if n is not None)
        # A row of the transaction hides the one that it replaced, which is deleted already.
        self.inlined |= gone - own
        if own:
            self.batches = [b.without(own) for b in self.batches]

    def _planned(self) -> TableVersion | None:
        """Return the table for which all new rows were written, or None if there are several.

        Of the columns of a job, it has those that all of them have.
        """
        known = [plan for plan in self.plans if plan is not None]
        if len(known) < len(self.plans) or any(p.columns != known[0].columns for p in known):
            return None
        return min(known, key=lambda plan: len(plan.conversions))

    def over(self, table: TableVersion, files: Iterable[DataFile]) -> list[DataFile]:
        """Return the data files of the base snapshot as changed here, and the transaction's own.

        Raises Conflict if the base snapshot lost a file with staged deletes: a job that publishes
        moves its rewrites to its own snapshot, and the base snapshot shows their sources again.
        """
        files = list(files)
        if self.deletes.keys() - {f.id for f in files}:
            raise Conflict(
                f"another commit moved rows of {table.full_name} to other files while they were"
                " changed; run the statement again"
            )
        seen = [found for f in files if (found := self._seen(table, f)) is not None]
        mappings = self._mapping_ids()
        own = [
            _data_file(table, -number, file, mappings.get(id(file.names)))
            for number, file in enumerate(self.files, 1)
            if file is not None
        ]
        return seen + own

    def mappings(self) -> dict[int, NameMapping]:
        """Return the name mappings of adopted files, under negative ids."""
        numbers = self._mapping_ids()
        return {
            (number := numbers[id(f.names)]): NameMapping(number, f.names)
            for f in self.files
            if f is not None and f.names is not None
        }

    def _mapping_ids(self) -> dict[int, int]:
        """Return a negative id for each name mapping, by the ``id()`` of a file's names."""
        numbers: dict[int, int] = {}
        for file in self.files:
            if file is not None and file.names is not None:
                numbers.setdefault(id(file.names), -len(numbers) - 1)
        return numbers

    def over_inlined(self, table: TableVersion, rows: Sequence[InlinedRows]) -> list[InlinedRows]:
        """Return the inlined rows that the transaction has not deleted, and its own."""
        seen = [_without(part, self.inlined) for part in rows] if self.inlined else list(rows)
        return seen + [
            InlinedRows(b.columns, b.rows, ids, (table.snapshot.id,) * len(ids))
            for b in self.batches
            if (ids := tuple(number for number in b.row_ids if number is not None))
        ]

    def paths(self) -> Iterator[str]:
        """Yield the paths, below the table's directory, of all files that the commit will know."""
        for change in self._of_files(TableId(0)):
            yield from written_paths(change)

    def distrust(self, columns: frozenset[FieldId]) -> None:
        """Forget the bounds of columns whose type change makes them unsafe."""
        if columns:
            self.unsafe_bounds |= columns
            self.files = [f and without_bounds(f, columns) for f in self.files]

    def _delete(self, change: FileDeletes) -> None:
        number = change.data_file_id
        if number < 0:
            own = self.files[-number - 1]
            assert own is not None
            self.files[-number - 1] = (
                None if change.ends_file else replace(own, deletes=change.delete_file)
            )
            return
        before = self.deletes.get(number)
        if before is None:
            self.deletes[number] = change
            return
        # A delete file names the positions of older ones; those in the catalog are added to them,
        # unless it takes them.
        kept = before.delete_file if change.positions else change.delete_file
        stay = not (change.ends_file or change.takes_inlined)
        positions = before.positions + change.positions if stay else ()
        takes_inlined = before.takes_inlined or change.takes_inlined
        self.deletes[number] = FileDeletes(number, before.seen, kept, positions, takes_inlined)

    def _seen(self, table: TableVersion, file: DataFile) -> DataFile | None:
        change = self.deletes.get(file.id)
        if change is None:
            return file
        if change.ends_file:
            return None
        deleted = file.delete_file
        if change.delete_file is not None:
            deleted = _delete_file(table, change.delete_file)
        inlined = () if change.takes_inlined else file.inlined_deletes
        gone = tuple(sorted({*inlined, *change.positions}))
        return file._replace(delete_file=deleted, inlined_deletes=gone)


def written_paths(change: RowChange) -> Iterator[str]:
    """Yield the paths, below the table's directory, of the files that a change publishes."""
    match change:
        case DeleteRows():
            yield from (f.delete_file.path for f in change.files if f.delete_file is not None)
            yield from (f.past.delete_file.path for f in change.files if f.past is not None)
            return
        case InlineRows():
            return
        case AppendFiles():
            files = change.files
        case RewriteFiles():
            files = change.results
        case FlushInlined():
            files = change.results
            yield from (merged.delete_file.path for merged in change.deletes)
    for file in files:
        yield file.path
        if file.deletes is not None:
            yield file.deletes.path


def _data_file(
    table: TableVersion, number: int, file: NewDataFile, mapping_id: int | None
) -> DataFile:
    return DataFile(
        id=number,
        path=table.path + file.path if mapping_id is None else file.path,
        file_size_bytes=file.file_size_bytes,
        record_count=file.record_count,
        row_id_start=None,
        begin_snapshot=table.snapshot.id,
        mapping_id=mapping_id,
        partition_values=file.path_values,
        delete_file=_delete_file(table, file.deletes) if file.deletes is not None else None,
        layout=file.layout,
    )


def _delete_file(table: TableVersion, file: NewDeleteFile) -> DeleteFile:
    return DeleteFile(table.path + file.path, "parquet", file.delete_count)


def _without(part: InlinedRows, gone: set[int]) -> InlinedRows:
    return part.at([n for n, number in enumerate(part.row_ids) if number not in gone])
