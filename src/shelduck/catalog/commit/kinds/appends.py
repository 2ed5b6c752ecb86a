"""New rows of tables, in files or in the catalog itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from shelduck.catalog.commit.adoptions import mapping_ids, refuse_adopted
from shelduck.catalog.commit.draft import ChangeKind, Draft
from shelduck.catalog.commit.opening import Work
from shelduck.catalog.commit.rows import table_stats
from shelduck.catalog.commit.rows.file_rows import file_row, insert_delete_files, insert_files
from shelduck.catalog.commit.rows.inlined_tables import ASK_INLINED, write_inlined_rows
from shelduck.model.changes.change import AppendFiles, Entry, InlineRows, Verb
from shelduck.model.files.data_file import NewDataFile, NewDeleteFile
from shelduck.model.files.fitted import InlinedBatch
from shelduck.model.tables.schema import TableId


def fold(work: Work, change: AppendFiles | InlineRows) -> None:
    """Keep the change, unless it is empty."""
    rows = change.files if isinstance(change, AppendFiles) else change.rows.rows
    if rows:
        work.table(change.table).changes.append(change)


def write(draft: Draft, work: Work) -> None:
    """Write new files and inlined rows of all tables.

    At most seven statements for files, however many tables, files and columns there are.
    """
    files: dict[TableId, list[NewDataFile]] = {}
    inlined: dict[TableId, list[InlinedBatch]] = {}
    for table in work.tables.values():
        number = draft.table_ids.get(table.id, table.id)
        if found := table.of(AppendFiles):
            files[number] = [file for change in found for file in change.files]
        if rows := table.of(InlineRows):
            inlined[number] = [change.rows for change in rows]
    ids = list(dict.fromkeys([*files, *inlined]))
    if not ids:
        return
    totals = table_stats.read_totals(draft, ids)
    if files:
        _append_files(draft, files, totals)
    for number, batches in inlined.items():
        next_row = totals[number].next_row_id
        next_row += sum(f.record_count for f in files.get(number, ()))
        for batch in batches:
            write_inlined_rows(draft, number, batch, next_row)
            next_row += batch.new_rows
    growth = {t: table_stats.Growth.of(files.get(t, ()), inlined.get(t, ())) for t in ids}
    table_stats.grow_stats(draft, totals, growth)


KIND = ChangeKind(
    (AppendFiles, InlineRows), fold, write, asks=(*table_stats.ASK_STATS, *ASK_INLINED)
)


def _append_files(
    draft: Draft,
    appended: Mapping[TableId, Sequence[NewDataFile]],
    totals: Mapping[TableId, table_stats.Totals],
) -> None:
    dead: dict[TableId, list[tuple[int, NewDeleteFile]]] = defaultdict(list)
    file_rows: list[dict[str, Any]] = []
    numbered: list[tuple[TableId, int, NewDataFile]] = []
    for table, files in appended.items():
        next_row = totals[table].next_row_id
        mappings: dict[int, int] = {}
        if any(file.names is not None for file in files):
            refuse_adopted(draft, table, files)
            mappings = mapping_ids(draft, table, files)
        for number, file in zip(draft.file_ids(len(files)), files, strict=True):
            numbered.append((table, number, file))
            row = file_row(draft, table, number, file, next_row)
            row["mapping_id"] = mappings.get(id(file.names))
            file_rows.append(row)
            if file.deletes is not None:
                dead[table].append((number, file.deletes))
            next_row += file.record_count
        draft.entries.append(Entry(Verb.INSERTED_INTO_TABLE, table))
    draft.has_stats_change = True
    insert_files(draft, numbered, file_rows)
    for table, delete_files in dead.items():
        insert_delete_files(draft, table, delete_files)
