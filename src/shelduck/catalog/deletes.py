"""What deleted rows write: delete files, positions in the catalog, and the end of dead files.

A data file that is deleted from again gets a delete file with all its positions; the older one ends
at this snapshot, so that each snapshot has one that is right for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Table, bindparam, column, delete, insert, select, update
from sqlalchemy import table as sql_table

from shelduck.catalog import tables
from shelduck.catalog.chunks import chunks
from shelduck.catalog.column_types import BIGINT
from shelduck.catalog.conservation import require_dead_rows
from shelduck.catalog.create import LakeInfo
from shelduck.catalog.draft import Draft
from shelduck.catalog.inlined_writes import (
    end_inlined_rows,
    write_inlined_deletes,
)
from shelduck.catalog.paths import resolve
from shelduck.catalog.queries import (
    inlined_delete_counts,
    inlined_delete_table,
    live,
    present_tables,
)
from shelduck.catalog.schedule import GoneFile, schedule
from shelduck.catalog.store import Store
from shelduck.catalog.work import TableWork
from shelduck.errors import Conflict
from shelduck.model.change import (
    DeleteRows,
    Entry,
    FileDeletes,
    MergedDeletes,
    RewriteFiles,
    Verb,
)
from shelduck.model.conflict import describe
from shelduck.model.files import DeletesSeen, NewDeleteFile
from shelduck.model.schema import SnapshotId, TableId
from shelduck.model.table import TableVersion
from shelduck.planning.conservation import Source

_file, _delete = tables.data_file.c, tables.delete_file.c
_LIVE_FILES = select(_file.data_file_id, _file.path, _file.record_count).where(
    _file.data_file_id.in_(bindparam("ids", expanding=True)), live(tables.data_file)
)
_LIVE_DELETES = select(*(_delete.data_file_id, _delete.delete_file_id, _delete.delete_count)).where(
    _delete.data_file_id.in_(bindparam("ids", expanding=True)), live(tables.delete_file)
)
_INSERT = insert(tables.delete_file)


def _ending(source: Table) -> Any:
    chosen = source.c.data_file_id.in_(bindparam("ids", expanding=True))
    return update(source).where(chosen, live(source)).values(end_snapshot=bindparam("ended"))


_END_FILES = _ending(tables.data_file)
_END_DELETES = _ending(tables.delete_file)


def delete_rows(store: Store, draft: Draft, lake: LakeInfo, works: Iterable[TableWork]) -> None:
    """Write the deletes of several tables.

    Raises Conflict when a data file is not as it was when the rows were chosen. Some four
    statements for each table that loses rows.
    """
    for work in works:
        for change in work.deletes:
            _delete_from_files(store, draft, lake, work, change)


def require_as_seen(
    draft: Draft, table: TableId, doing: str, seen: Mapping[int, DeletesSeen]
) -> dict[int, Source]:
    """Return how the catalog counts data files that are live and deleted from as far as then.

    Raises Conflict for any that are not. ``doing`` stands after "cannot" in the message.
    """
    deletes: dict[int, tuple[int, int]] = {}
    alive: dict[int, tuple[str, int | None]] = {}
    for ids in chunks(seen):
        files = draft.connection.execute(_LIVE_FILES, {"ids": ids})
        alive.update((number, (path, rows)) for number, path, rows in files)
        stored = draft.connection.execute(_LIVE_DELETES, {"ids": ids})
        deletes.update((number, (delete_id, count)) for number, delete_id, count in stored)
    inlined: dict[int, int] = {}
    source = inlined_delete_table(table)
    if present_tables(draft.connection, [source]):
        found = draft.connection.execute(inlined_delete_counts(source))
        inlined = {row[0]: row[1] for row in found}
    counted: dict[int, Source] = {}
    for number, then in seen.items():
        delete_id, dead = deletes.get(number, (None, 0))
        more = inlined.get(number, 0)
        if number not in alive:
            what = f"rewrote or ended data file {number}"
        elif then != DeletesSeen(delete_id, more):
            what = f"deleted rows from data file {number}"
        else:
            counted[number] = Source(*alive[number], dead + more)
            continue
        raise Conflict(
            f"cannot {doing}: another commit {what}; read the table again and repeat the change"
        )
    return counted


def end_files(draft: Draft, ids: Sequence[int]) -> None:
    """End data files and what is deleted from them."""
    for chunk in chunks(ids):
        for statement in (_END_FILES, _END_DELETES):
            draft.connection.execute(statement, {"ids": chunk, "ended": draft.id})


def insert_delete_files(
    draft: Draft,
    table: TableId,
    files: Sequence[tuple[int, NewDeleteFile]],
    end: SnapshotId | None = None,
) -> None:
    """Write the rows of new delete files, each beside the id of its data file.

    They hold until the snapshot ``end``.
    """
    if not files:
        return
    rows = [
        {
            "delete_file_id": number,
            "table_id": table,
            "begin_snapshot": draft.id if file.begin_snapshot is None else file.begin_snapshot,
            "end_snapshot": end,
            "data_file_id": data_file_id,
            "path": file.path,
            "path_is_relative": True,
            "format": "parquet",
            "delete_count": file.delete_count,
            "file_size_bytes": file.file_size_bytes,
            "footer_size": file.footer_size,
            "encryption_key": None,
            "partial_max": file.partial_max,
        }
        for number, (data_file_id, file) in zip(draft.file_ids(len(files)), files, strict=True)
    ]
    draft.connection.execute(_INSERT, rows)


def forget_merged(
    store: Store,
    draft: Draft,
    lake: LakeInfo,
    table: TableVersion,
    merged: Sequence[MergedDeletes],
) -> None:
    """Remove what delete files were merged from: positions in the catalog and older delete files.

    Four statements at most.
    """
    source = sql_table(inlined_delete_table(table.id), column("file_id", BIGINT))
    for part in chunks(sorted(d.data_file_id for d in merged)):
        draft.connection.execute(delete(source).where(source.c.file_id.in_(part)))
    gone: list[GoneFile] = []
    for part in chunks(sorted(number for d in merged for number in d.replaced)):
        chosen = _delete.delete_file_id.in_(part)
        for row in draft.connection.execute(select(tables.delete_file).where(chosen)):
            path = resolve(table.path, row.path, row.path_is_relative)
            gone.append(GoneFile(row.delete_file_id, path))
        draft.connection.execute(delete(tables.delete_file).where(chosen))
    schedule(store, draft.connection, lake, gone, draft.time)


def keep_past(
    store: Store,
    draft: Draft,
    lake: LakeInfo,
    change: DeleteRows | RewriteFiles,
    counted: Mapping[int, Source],
) -> None:
    """Write what stands until this snapshot for older delete files and positions in the catalog."""
    parts = change.files if isinstance(change, DeleteRows) else change.sources
    merged = [part.past for part in parts if part.past is not None]
    if merged:
        table = change.table
        require_dead_rows(describe(change), merged, counted)
        forget_merged(store, draft, lake, table, merged)
        until_now = [(d.data_file_id, d.delete_file) for d in merged]
        insert_delete_files(draft, table.id, until_now, draft.id)


def _delete_from_files(
    store: Store, draft: Draft, lake: LakeInfo, work: TableWork, change: DeleteRows
) -> None:
    end_inlined_rows(draft, work.id, change.inlined, work.name)
    if not change.files:
        return
    seen = {f.data_file_id: f.seen for f in change.files}
    counted = require_as_seen(draft, work.id, describe(change), seen)
    keep_past(store, draft, lake, change, counted)
    end_files(draft, [f.data_file_id for f in change.files if f.ends_file])
    _replace_delete_files(draft, work.id, change.files)
    positions = {f.data_file_id: f.positions for f in change.files if f.positions}
    write_inlined_deletes(draft, work.id, positions)
    # Of positions in the catalog too: DuckDB's compaction gives way to this verb alone, and its
    # result would have the rows again.
    draft.entries.append(Entry(Verb.DELETED_FROM_TABLE, work.id))
    draft.has_stats_change = True


def _replace_delete_files(draft: Draft, table: TableId, files: Sequence[FileDeletes]) -> None:
    written = [(f.data_file_id, f.delete_file) for f in files if f.delete_file is not None]
    replaced = [
        f.data_file_id
        for f in files
        if f.delete_file is not None and f.seen.delete_file_id is not None
    ]
    for chunk in chunks(replaced):
        draft.connection.execute(_END_DELETES, {"ids": chunk, "ended": draft.id})
    insert_delete_files(draft, table, written)
