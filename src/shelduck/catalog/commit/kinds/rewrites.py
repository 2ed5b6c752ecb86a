"""Rewritten files: the results replace the sources, which are removed or end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from shelduck.catalog.commit.draft import ChangeKind, Draft
from shelduck.catalog.commit.opening import TableWork, Work
from shelduck.catalog.commit.rows.file_rows import (
    ASK_FILES,
    end_files,
    insert_delete_files,
    insert_moved_files,
    keep_past,
    log_compaction,
    remove_file_rows,
    require_as_seen,
    require_same_rows,
)
from shelduck.catalog.commit.schedule import GoneFile, schedule
from shelduck.catalog.read.queries import IDS, chunks, live
from shelduck.catalog.read.together import OF_TABLES, Questions
from shelduck.catalog.read.views_and_macros import resolve
from shelduck.ducklake import tables
from shelduck.errors import Conflict
from shelduck.model.changes.change import RewriteFiles, Verb
from shelduck.model.changes.conflict import describe
from shelduck.model.files.data_file import without_bounds
from shelduck.model.tables.table_version import TableVersion

_f, _d, _c = tables.data_file.c, tables.delete_file.c, tables.column.c
_SOURCES = sa.select(
    *(_f.data_file_id, _f.path, _f.path_is_relative, _f.mapping_id, _f.begin_snapshot)
).where(_f.data_file_id.in_(IDS))
_DELETED_FROM = sa.select(sa.func.count()).where(_d.data_file_id.in_(IDS))
_LIVE_COLUMNS = sa.select(
    *(_c.table_id, _c.column_id, _c.column_name, _c.column_type, _c.begin_snapshot)
).where(_c.table_id.in_(OF_TABLES), live(tables.column))
_ASK_COLUMNS: Questions = (("columns", _LIVE_COLUMNS),)


def write(draft: Draft, work: Work) -> None:
    """Replace the sources of all rewrites by their results.

    Raises Conflict if a source has changed since its rows were read, and CorruptLake if the results
    hold other rows. About fifteen statements for each table, however many files there are.
    """
    for table in work.existing():
        changes = table.of(RewriteFiles)
        if changes:
            _rewrite(draft, table, changes)


KIND = ChangeKind((RewriteFiles,), Work.keep_of_rows, write, asks=(*ASK_FILES, *_ASK_COLUMNS))


def _rewrite(draft: Draft, work: TableWork, changes: Sequence[RewriteFiles]) -> None:
    table = work.id
    seen = {s.data_file_id: s.seen for change in changes for s in change.sources}
    counted = require_as_seen(draft, table, describe(changes[0]), seen)
    for change in changes:
        require_same_rows(change, counted)
    types = _types_now(draft, work, changes[0].table)
    leaves = changes[0].table.columns.leaves()
    retyped = {f.id for f in leaves if types.get(f.id, str(f.shape)) != str(f.shape)}
    merged = [change for change in changes if change.keeps_history]
    if merged:
        _remove(draft, merged)
        log_compaction(draft, Verb.MERGE_ADJACENT, table)
    ended = [change for change in changes if not change.keeps_history]
    if ended:
        for change in ended:
            keep_past(draft, change, counted)
        end_files(draft, {n: seen[n] for n in _source_ids(ended)})
        log_compaction(draft, Verb.REWRITE_DELETE, table)
    files = [without_bounds(file, retyped) for change in changes for file in change.results]
    insert_delete_files(draft, table, insert_moved_files(draft, table, files))
    draft.has_stats_change = True


def _types_now(draft: Draft, work: TableWork, seen: TableVersion) -> dict[int, str]:
    """Return the types of the columns at this commit, by id; raises what `_require_columns` does.

    An ALTER of the same commit says them: nobody else has changed the columns since.
    """
    if work.columns is not None:
        return {f.id: str(f.shape) for f in work.columns.leaves()}
    rows = draft.rows_about("columns", _LIVE_COLUMNS, [work.id])
    _require_columns(draft, seen, rows)
    return {row.column_id: row.column_type.lower() for row in rows}


def _source_ids(changes: Iterable[RewriteFiles]) -> list[int]:
    return [s.data_file_id for change in changes for s in change.sources]


def _remove(draft: Draft, changes: Sequence[RewriteFiles]) -> None:
    """Remove the sources from all snapshots."""
    table = changes[0].table
    ids = _source_ids(changes)
    sources: dict[int, Any] = {}
    for chunk in chunks(ids):
        if draft.connection.execute(_DELETED_FROM, {"ids": chunk}).scalar():
            raise Conflict(f"rows in files of {table.full_name} were deleted and restored")
        found = draft.connection.execute(_SOURCES, {"ids": chunk})
        sources.update((row.data_file_id, row) for row in found)
    for change in changes:
        first = min(sources[s.data_file_id].begin_snapshot for s in change.sources)
        if any(result.begin_snapshot != first for result in change.results):
            raise Conflict(f"files of {table.full_name} begin at a later snapshot now")
    gone = [_gone(table, row) for row in sources.values()]
    schedule(draft.store, draft.connection, draft.lake, gone, draft.time)
    remove_file_rows(draft.connection, table.id, ids)


def _gone(table: TableVersion, row: Any) -> GoneFile:
    path = resolve(table.path, row.path, row.path_is_relative)
    return GoneFile(row.data_file_id, path, row.mapping_id is not None)


def _require_columns(draft: Draft, table: TableVersion, columns: Sequence[Any]) -> None:
    """Raise Conflict for a visible column that had an id but was hidden when the rows were read.

    The results do not contain it. Columns added since are in no source either.
    """
    known = {f.id for f in table.columns.walk()}
    for row in columns:
        is_older = row.column_id <= table.max_column_id and row.begin_snapshot < draft.id
        if is_older and row.column_id not in known:
            raise Conflict(
                f"column {row.column_name!r} of {table.full_name} was restored or converted after"
                " the rows were read, and the new files do not contain it"
            )
