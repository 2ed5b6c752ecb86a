"""The result of a verb over rows: changes for one commit, and the files that must exist for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from operator import add

from shelduck.engine.files.listing import absent_files
from shelduck.engine.files.storage import delete_directory, delete_file, delete_files
from shelduck.engine.session import DataFrame
from shelduck.engine.stores.store_errors import told_of_storage
from shelduck.errors import CorruptLake
from shelduck.model.changes.change import (
    AlterTable,
    AppendFiles,
    Change,
    DeleteRows,
    FlushInlined,
    InlineRows,
    RewriteFiles,
    RowChange,
    is_look,
)
from shelduck.model.files.data_file import NewDataFile, NewDeleteFile
from shelduck.model.files.fitted import InlinedBatch
from shelduck.model.files.place import place_below
from shelduck.model.shadows.conservation import named
from shelduck.model.tables.schema import TableId
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import is_write_directory


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of inserted, updated and deleted rows, and of written data files and bytes."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    files: int = 0
    bytes: int = 0

    @property
    def rows(self) -> int:
        """The number of all rows that changed."""
        return self.inserted + self.updated + self.deleted

    def __add__(self, other: Counts) -> Counts:
        return Counts(*map(add, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True)
class Done:
    """Changes of one table that wait for a commit.

    ``paths`` are all files that were written for them, below the table's directory. ``alter`` is
    the change of columns that they need; ``table`` already includes it. ``note`` says what was left
    out.
    """

    table: TableVersion
    changes: tuple[RowChange, ...] = ()
    paths: tuple[str, ...] = ()
    counts: Counts = Counts()
    alter: AlterTable | None = None
    note: str = ""

    @property
    def keeps_rows(self) -> bool:
        """True if the table has the same rows afterwards."""
        return all(isinstance(c, RewriteFiles | FlushInlined) or is_look(c) for c in self.changes)

    @property
    def is_nothing(self) -> bool:
        """True if no commit is needed."""
        is_empty = not (self.counts.rows or self.paths or self.alter)
        return is_empty and all(map(is_look, self.changes))


@dataclass(frozen=True, slots=True)
class Loaded:
    """A load, and its rows after folding, kept; None if there were no rows."""

    done: Done
    rows: DataFrame | None = None


def inlined(table: TableVersion, batch: InlinedBatch) -> Done:
    """Return the change that appends rows in the catalog itself."""
    if not batch.rows:
        return Done(table)
    return Done(
        table, (InlineRows(table.id, batch, table),), counts=Counts(inserted=len(batch.rows))
    )


def discard(table: TableVersion, paths: Iterable[str]) -> None:
    """Delete written files that no commit will name, with the directories made for them.

    What cannot be deleted now is left to remove_orphans: it does no harm, and an error here would
    hide the one that comes before it.
    """
    tops = {path: path.partition("/")[0] for path in paths}
    writes = {top for top in tops.values() if is_write_directory(top, table.uuid)}
    with suppress(OSError):
        for directory in writes:
            delete_directory(place_below(table.path, directory))
        # Directories of partitions also hold files of other writes.
        others = (path for path, top in tops.items() if top not in writes)
        delete_files(place_below(table.path, path) for path in others)


def discard_unpublished(
    table: TableVersion, paths: Iterable[str], published: frozenset[str] | set[str]
) -> None:
    """Delete written files whose absolute paths are not in ``published``."""
    kept = {path.partition("/")[0] for path in paths if table.path + path in published}
    gone = [path for path in paths if table.path + path not in published]
    discard(table, (path for path in gone if path.partition("/")[0] not in kept))
    for path in gone:
        if path.partition("/")[0] in kept:
            delete_file(place_below(table.path, path))


def require_files(changes: Sequence[Change], directories: Mapping[TableId, str]) -> None:
    """Raise CorruptLake if a file that the changes name is gone or has another size.

    The committing code calls this just before the commit. ``directories`` are those of the tables
    that get new files, including new tables. No request if there are no files.
    """
    files = list(_named_files(changes, directories))
    if not files:
        return
    with told_of_storage(files[0][0], "the last look at new files"):
        wrong = absent_files(files)
    if wrong:
        raise CorruptLake(
            f"files are missing or have changed since they were written: {named(wrong)}; nothing"
            " was committed; write again, and look for what changes files below the lake's data"
            " path, such as remove_orphans with a short older_than"
        )


def _named_files(
    changes: Sequence[Change], directories: Mapping[TableId, str]
) -> Iterator[tuple[str, int]]:
    for change in changes:
        match change:
            case AppendFiles():
                yield from _of(change.files, (), directories[change.table])
            case RewriteFiles():
                past = [s.past.delete_file for s in change.sources if s.past is not None]
                yield from _of(change.results, past, change.table.path)
            case FlushInlined():
                merged = [d.delete_file for d in change.deletes]
                yield from _of(change.results, merged, change.table.path)
            case DeleteRows():
                deletes = [f.delete_file for f in change.files if f.delete_file is not None]
                deletes += [f.past.delete_file for f in change.files if f.past is not None]
                yield from _of((), deletes, change.table.path)
            case _:
                pass


def _of(
    files: Sequence[NewDataFile], deletes: Sequence[NewDeleteFile], place: str
) -> Iterator[tuple[str, int]]:
    for file in files:
        # Adopted files stay where they are.
        yield (file.path if file.names is not None else place + file.path), file.file_size_bytes
        if file.deletes is not None:
            yield place + file.deletes.path, file.deletes.file_size_bytes
    for dead in deletes:
        yield place + dead.path, dead.file_size_bytes
