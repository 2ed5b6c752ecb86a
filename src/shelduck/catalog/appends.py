"""The rows of the catalog that new rows of tables write, be they in files or inlined."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from shelduck.catalog.adoptions import mapping_ids, refuse_adopted
from shelduck.catalog.deletes import insert_delete_files
from shelduck.catalog.draft import Draft
from shelduck.catalog.file_rows import file_row, insert_files, stats_rows
from shelduck.catalog.inlined_writes import write_inlined_rows
from shelduck.catalog.table_layouts import insert_partition_values
from shelduck.catalog.table_stats import Growth, Totals, grow_stats, read_totals
from shelduck.model.change import Entry, Verb
from shelduck.model.files import NewDataFile, NewDeleteFile
from shelduck.model.inlined import InlinedBatch
from shelduck.model.layout import Layout
from shelduck.model.schema import TableId


def append_rows(
    draft: Draft,
    files: Mapping[TableId, Sequence[NewDataFile]],
    inlined: Mapping[TableId, Sequence[InlinedBatch]],
) -> dict[int, Layout]:
    """Write new files and inlined rows of several tables; return the files' layouts by file id.

    Nine statements at most for files, however many tables, files and columns.
    """
    ids = list(dict.fromkeys([*files, *inlined]))
    if not ids:
        return {}
    totals = read_totals(draft, ids)
    layouts = _append_files(draft, files, totals) if files else {}
    for table, batches in inlined.items():
        next_row = totals[table].next_row_id + sum(f.record_count for f in files.get(table, ()))
        for batch in batches:
            write_inlined_rows(draft, table, batch, next_row)
            next_row += batch.new_rows
    growth = {t: Growth.of(files.get(t, ()), inlined.get(t, ())) for t in ids}
    grow_stats(draft, totals, growth)
    return layouts


def _append_files(
    draft: Draft,
    appended: Mapping[TableId, Sequence[NewDataFile]],
    totals: Mapping[TableId, Totals],
) -> dict[int, Layout]:
    layouts: dict[int, Layout] = {}
    dead: dict[TableId, list[tuple[int, NewDeleteFile]]] = defaultdict(list)
    file_rows: list[dict[str, Any]] = []
    stats: list[dict[str, Any]] = []
    numbered: list[tuple[TableId, int, NewDataFile]] = []
    for table, files in appended.items():
        next_row = totals[table].next_row_id
        refuse_adopted(draft, table, files)
        mappings = mapping_ids(draft, table, files)
        for number, file in zip(draft.file_ids(len(files)), files, strict=True):
            layouts[number] = file.layout
            numbered.append((table, number, file))
            row = file_row(draft, table, number, file, next_row)
            row["mapping_id"] = mappings.get(id(file.names))
            file_rows.append(row)
            stats.extend(stats_rows(table, number, file))
            if file.deletes is not None:
                dead[table].append((number, file.deletes))
            next_row += file.record_count
        draft.entries.append(Entry(Verb.INSERTED_INTO_TABLE, table))
    draft.has_stats_change = True
    insert_files(draft, file_rows, stats)
    insert_partition_values(draft, numbered)
    for table, delete_files in dead.items():
        insert_delete_files(draft, table, delete_files)
    return layouts
