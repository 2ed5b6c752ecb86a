"""The last check before a commit: its files exist and have the size that it says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shelduck.errors import CorruptLake
from shelduck.model.changes.change import (
    AppendFiles,
    Change,
    DeleteRows,
    FlushInlined,
    RewriteFiles,
)
from shelduck.model.files.data_files import NewDataFile, NewDeleteFile
from shelduck.model.tables.schema import TableId
from shelduck.planning.conservation import named
from shelduck.spark.files.existence import absent_files
from shelduck.spark.stores.store_errors import told_of_storage


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
