"""What a commit that moves rows to other files must prove, inside its lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shelduck.errors import CorruptLake
from shelduck.model.changes.change import FlushInlined, MergedDeletes, RewriteFiles
from shelduck.model.changes.conflict import describe
from shelduck.model.shadows.conservation import CountedFile, named, unequal_rows


def require_same_rows(change: RewriteFiles, counted: Mapping[int, CountedFile]) -> None:
    """Raise CorruptLake unless the results of a rewrite hold the live rows of its sources."""
    sources = [counted[s.data_file_id] for s in change.sources]
    found = unequal_rows(sources, change.results)
    if found is not None:
        raise CorruptLake(
            f"cannot {describe(change)}: {found}; nothing is changed. Compare record_count in"
            " ducklake_data_file and delete_count in ducklake_delete_file with the files, and"
            " restore what is damaged"
        )


def require_flushed_rows(change: FlushInlined, seen: int, dead: int) -> None:
    """Raise CorruptLake unless flushed files hold the rows that the catalog kept.

    ``seen`` is the number of rows that some snapshot saw, and ``dead`` how many of them were
    deleted.
    """
    written = sum(f.record_count for f in change.results)
    died = sum(f.deletes.delete_count for f in change.results if f.deletes is not None)
    if (written, died) != (seen, dead):
        raise CorruptLake(
            f"cannot {describe(change)}: the catalog keeps {seen} rows, {dead} of them deleted, and"
            f" {written} rows, {died} of them deleted, were written to"
            f" {named([f.path for f in change.results]) or 'no file'}; nothing is changed"
        )


def require_dead_rows(
    doing: str, deletes: Iterable[MergedDeletes], counted: Mapping[int, CountedFile]
) -> None:
    """Raise CorruptLake unless merged delete files name what the catalog counts as deleted.

    ``doing`` follows "cannot" in the message.
    """
    for merged in deletes:
        source = counted[merged.data_file_id]
        dead = merged.delete_file.delete_count
        if dead != source.deleted:
            raise CorruptLake(
                f"cannot {doing}: the catalog counts {source.deleted} deleted rows in"
                f" {source.path}, but the delete file written for it lists {dead}; nothing was"
                " changed. Compare delete_count in ducklake_delete_file with the delete files"
            )
