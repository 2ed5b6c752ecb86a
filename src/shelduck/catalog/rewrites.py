"""What rewritten files write: the sources leave or end, the results stand in their place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import BindParameter, Table, Update, bindparam, column, delete, func, select, update
from sqlalchemy import table as sql_table

from shelduck.catalog import own_tables, tables
from shelduck.catalog.chunks import chunks
from shelduck.catalog.column_types import BIGINT
from shelduck.catalog.conservation import require_same_rows
from shelduck.catalog.create import LakeInfo
from shelduck.catalog.deletes import (
    end_files,
    insert_delete_files,
    keep_past,
    require_as_seen,
)
from shelduck.catalog.draft import Draft
from shelduck.catalog.file_rows import insert_moved_files
from shelduck.catalog.paths import resolve
from shelduck.catalog.queries import inlined_delete_table, live, present_tables
from shelduck.catalog.schedule import GoneFile, schedule
from shelduck.catalog.store import Store
from shelduck.catalog.work import TableWork
from shelduck.errors import Conflict
from shelduck.model.change import Entry, RewriteFiles, Verb
from shelduck.model.conflict import describe
from shelduck.model.files import DeletesSeen, without_bounds
from shelduck.model.layout import Layout
from shelduck.model.schema import FieldId, TableId
from shelduck.model.table import TableVersion

_f, _d, _c = tables.data_file.c, tables.delete_file.c, tables.column.c
_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_SOURCES = select(
    *(_f.data_file_id, _f.path, _f.path_is_relative, _f.mapping_id, _f.begin_snapshot)
).where(_f.data_file_id.in_(_IDS))
_DELETED_FROM = select(func.count()).where(_d.data_file_id.in_(_IDS))
_LIVE_COLUMNS = select(*(_c.column_id, _c.column_name, _c.column_type, _c.begin_snapshot)).where(
    _c.table_id == bindparam("of_table"), live(tables.column)
)
_BELONGING = (
    tables.file_column_stats,
    tables.file_variant_stats,
    tables.file_partition_value,
    tables.data_file,
)
_BEGIN_LATER = (
    update(tables.data_file)
    .where(_f.data_file_id.in_(_IDS))
    .values(begin_snapshot=bindparam("moved_to"))
)


def _ending_later(source: Table) -> Update:
    return (
        update(source)
        .where(source.c.table_id == bindparam("of_table"), source.c.end_snapshot.in_(_IDS))
        .values(end_snapshot=bindparam("moved_to"))
    )


_END_LATER, _END_DELETES_LATER = map(_ending_later, (tables.data_file, tables.delete_file))


def rewrite_files(
    store: Store, draft: Draft, lake: LakeInfo, works: Iterable[TableWork]
) -> dict[int, Layout]:
    """Carry out the rewrites of several tables; return the layouts of the results by file id.

    Raises Conflict when a source is not as it was when its rows were read, and CorruptLake when the
    results hold other rows. Some fifteen statements for each table, however many files.
    """
    layouts: dict[int, Layout] = {}
    for work in works:
        _postpone(draft, work)
        if not work.rewrites:
            continue
        seen = {s.data_file_id: s.seen for change in work.rewrites for s in change.sources}
        counted = require_as_seen(draft, work.id, describe(work.rewrites[0]), seen)
        for change in work.rewrites:
            require_same_rows(change, counted)
        rows = draft.connection.execute(_LIVE_COLUMNS, {"of_table": work.id})
        columns = {row.column_id: row for row in rows}
        _require_columns(draft, work.rewrites[0].table, columns)
        merged = [change for change in work.rewrites if change.keeps_history]
        if merged:
            _remove(store, draft, lake, merged)
            _log(draft, Verb.MERGE_ADJACENT, work.id)
        ended = [change for change in work.rewrites if not change.keeps_history]
        if ended:
            for change in ended:
                keep_past(store, draft, lake, change, counted)
            end_files(draft, _source_ids(ended))
            _log(draft, Verb.REWRITE_DELETE, work.id)
        layouts |= _insert(draft, work.rewrites, columns)
        draft.has_stats_change = True
    return layouts


def _postpone(draft: Draft, work: TableWork) -> None:
    """Let rewrites of older snapshots happen in this one; some six statements."""
    postponed = work.postponed
    if postponed is None or not postponed.snapshots:
        return
    seen = dict.fromkeys(postponed.results, DeletesSeen())
    require_as_seen(draft, work.id, f"alter table {work.name} (id {work.id})", seen)
    at = {"moved_to": draft.id, "of_table": work.id}
    moved = 0
    for snapshots in chunks(sorted(postponed.snapshots)):
        moved += draft.connection.execute(_END_LATER, at | {"ids": snapshots}).rowcount
        draft.connection.execute(_END_DELETES_LATER, at | {"ids": snapshots})
    if moved != postponed.sources:
        raise Conflict(f"files from which {work.name} was rewritten have expired meanwhile")
    for results in chunks(sorted(postponed.results)):
        draft.connection.execute(_BEGIN_LATER, {"moved_to": draft.id, "ids": results})
    _log(draft, Verb.REWRITE_DELETE, work.id)
    draft.has_stats_change = True


def _log(draft: Draft, verb: Verb, table: TableId) -> None:
    """Log a compaction, so that everybody gives way whose changes are about the old files.

    A delete of DuckDB 1.5.5 whose positions the catalog keeps gives way to a flush and to no
    compaction: after one it would delete from files that are gone, and the rows would stay.
    """
    draft.entries += [Entry(verb, table), Entry(Verb.INLINE_FLUSH, table)]


def _source_ids(changes: Iterable[RewriteFiles]) -> list[int]:
    return [s.data_file_id for change in changes for s in change.sources]


def _remove(store: Store, draft: Draft, lake: LakeInfo, changes: Sequence[RewriteFiles]) -> None:
    """Take the sources out of all snapshots."""
    table = changes[0].table
    ids = _source_ids(changes)
    sources: dict[int, Any] = {}
    for chunk in chunks(ids):
        if draft.connection.execute(_DELETED_FROM, {"ids": chunk}).scalar():
            raise Conflict(f"rows of files of {table.full_name} were deleted and came back since")
        found = draft.connection.execute(_SOURCES, {"ids": chunk})
        sources.update((row.data_file_id, row) for row in found)
    for change in changes:
        first = min(sources[s.data_file_id].begin_snapshot for s in change.sources)
        if any(result.begin_snapshot != first for result in change.results):
            raise Conflict(f"files of {table.full_name} begin later than when they were read")
    gone = [_gone(table, row) for row in sources.values()]
    schedule(store, draft.connection, lake, gone, draft.time)
    remove_file_rows(draft.connection, table.id, ids)


def remove_file_rows(connection: Any, table: TableId, ids: Sequence[int]) -> None:
    """Delete the rows of data files and of all that belongs to them; seven statements at most."""
    inlined = inlined_delete_table(table)
    extra = present_tables(connection, [own_tables.file_layout.name, inlined])
    statements = [delete(source).where(source.c.data_file_id.in_(_IDS)) for source in _BELONGING]
    if own_tables.file_layout.name in extra:
        known = own_tables.file_layout
        statements.append(delete(known).where(known.c.data_file_id.in_(_IDS)))
    if inlined in extra:
        number = column("file_id", BIGINT)
        statements.append(delete(sql_table(inlined, number)).where(number.in_(_IDS)))
    for chunk in chunks(ids):
        for statement in statements:
            connection.execute(statement, {"ids": chunk})


def _gone(table: TableVersion, row: Any) -> GoneFile:
    path = resolve(table.path, row.path, row.path_is_relative)
    return GoneFile(row.data_file_id, path, row.mapping_id is not None)


def _insert(
    draft: Draft, changes: Sequence[RewriteFiles], columns: Mapping[int, Any]
) -> dict[int, Layout]:
    table = changes[0].table.id
    retyped = _retyped(changes[0].table, columns)
    files = [without_bounds(file, retyped) for change in changes for file in change.results]
    numbered = insert_moved_files(draft, table, files)
    dead = [(number, file.deletes) for number, file in numbered if file.deletes is not None]
    insert_delete_files(draft, table, dead)
    return {number: file.layout for number, file in numbered}


def _require_columns(draft: Draft, table: TableVersion, columns: Mapping[int, Any]) -> None:
    """Raise Conflict where a column is seen that had an id, and was not, when rows were read.

    The results have not got it. Those that were added since are in no source either.
    """
    known = {f.id for f in table.columns.walk()}
    for number, row in columns.items():
        is_older = number <= table.max_column_id and row.begin_snapshot < draft.id
        if is_older and number not in known:
            raise Conflict(
                f"column {row.column_name!r} of {table.full_name} was restored or converted since"
                " its rows were read, and the files that were written are without it"
            )


def _retyped(table: TableVersion, columns: Mapping[int, Any]) -> set[FieldId]:
    """Return the leaves whose type another commit changed since the rows were read."""
    now = {number: row.column_type.lower() for number, row in columns.items()}
    return {f.id for f in table.columns.leaves() if now.get(f.id, str(f.shape)) != str(f.shape)}
