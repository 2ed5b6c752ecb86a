"""Deleted rows: delete files, positions in the catalog, and the end of dead files.

When more rows of a data file are deleted, it gets a delete file with all positions, and the older
one ends at this snapshot, so that every snapshot has exactly one that fits it.
"""

from __future__ import annotations

from collections.abc import Sequence

from shelduck.catalog.commit.draft import ChangeKind, Draft
from shelduck.catalog.commit.opening import TableWork, Work
from shelduck.catalog.commit.rows.file_rows import (
    ASK_FILES,
    end_delete_files,
    end_files,
    insert_delete_files,
    keep_past,
    require_as_seen,
)
from shelduck.catalog.commit.rows.inlined_tables import end_inlined_rows, write_inlined_deletes
from shelduck.model.changes.change import DeleteRows, Entry, FileDeletes, Verb, is_look
from shelduck.model.changes.conflict import describe
from shelduck.model.tables.schema import TableId


def fold(work: Work, change: DeleteRows) -> None:
    """Keep the change; if it only says that rows were read, just require its table to exist."""
    table = work.table_of(change.table)
    if not is_look(change):
        table.changes.append(change)


def write(draft: Draft, work: Work) -> None:
    """Write the deletes of all tables; about four statements for each table that loses rows.

    Raises Conflict if a data file has changed since the rows were chosen.
    """
    for table in work.existing():
        for change in table.of(DeleteRows):
            end_inlined_rows(draft, table.id, change.inlined, table.name)
            if change.files:
                _delete_from_files(draft, table, change)


KIND = ChangeKind((DeleteRows,), fold, write, asks=ASK_FILES)


def _delete_from_files(draft: Draft, work: TableWork, change: DeleteRows) -> None:
    seen = {f.data_file_id: f.seen for f in change.files}
    counted = require_as_seen(draft, work.id, describe(change), seen)
    keep_past(draft, change, counted)
    end_files(draft, {f.data_file_id: f.seen for f in change.files if f.ends_file})
    _replace_delete_files(draft, work.id, change.files)
    positions = {f.data_file_id: f.positions for f in change.files if f.positions}
    write_inlined_deletes(draft, work.id, positions)
    # Logged for positions in the catalog too: DuckDB's compaction yields only to this verb, and
    # would otherwise bring the rows back.
    draft.entries.append(Entry(Verb.DELETED_FROM_TABLE, work.id))
    draft.has_stats_change = True


def _replace_delete_files(draft: Draft, table: TableId, files: Sequence[FileDeletes]) -> None:
    written = [(f.data_file_id, f.delete_file) for f in files if f.delete_file is not None]
    replaced = [
        f.data_file_id
        for f in files
        if f.delete_file is not None and f.seen.delete_file_id is not None
    ]
    end_delete_files(draft, replaced)
    insert_delete_files(draft, table, written)
