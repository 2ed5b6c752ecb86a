"""Flushed rows: files that replace rows and deletes kept in the catalog."""

from __future__ import annotations

import sqlalchemy as sa

from shelduck.catalog.commit.draft import ChangeKind, Draft
from shelduck.catalog.commit.opening import Work
from shelduck.catalog.commit.rows.file_rows import (
    forget_merged,
    insert_delete_files,
    insert_moved_files,
    require_as_seen,
    require_dead_rows,
    require_flushed_rows,
)
from shelduck.catalog.read.queries import OF_TABLE, total
from shelduck.ducklake import tables
from shelduck.ducklake.checked import BIGINT
from shelduck.ducklake.format import format_of
from shelduck.errors import Conflict
from shelduck.model.changes.change import Entry, FlushedRows, FlushInlined, Verb
from shelduck.model.changes.conflict import describe

_total, _d = tables.table_stats.c, tables.delete_file.c
_GROW = (
    sa.update(tables.table_stats)
    .where(_total.table_id == OF_TABLE)
    .values(file_size_bytes=_total.file_size_bytes + sa.bindparam("added", type_=BIGINT))
)


def write(draft: Draft, work: Work) -> None:
    """Write the files of all flushes, and remove their contents from the catalog.

    Raises Conflict if rows or files have changed since they were read, and CorruptLake if the files
    do not hold all of the rows.
    """
    for table in work.existing():
        for change in table.of(FlushInlined):
            counts = [_remove_rows(draft.connection, change, part) for part in change.rows]
            require_flushed_rows(change, sum(n for n, _ in counts), sum(n for _, n in counts))
            _remove_deletes(draft, change)
            _insert(draft, change)


KIND = ChangeKind((FlushInlined,), Work.keep_of_rows, write)


def _remove_rows(
    connection: sa.Connection, change: FlushInlined, part: FlushedRows
) -> tuple[int, int]:
    """Remove rows; return how many of them any snapshot saw, and how many of those were deleted."""
    rows = format_of(connection).inlined(part.table_name)
    at = change.table.snapshot.id
    flushed = rows.c.begin_snapshot <= at
    end = rows.c.end_snapshot
    kinds = (end > at, end.is_(None) | (end > rows.c.begin_snapshot), end > rows.c.begin_snapshot)
    counts = (total(sa.case((kind, 1), else_=0)) for kind in kinds)
    late, seen, dead = connection.execute(sa.select(*counts).where(flushed)).one()
    is_changed = late > 0
    if is_changed or connection.execute(sa.delete(rows).where(flushed)).rowcount != part.rows:
        raise Conflict(
            f"cannot {describe(change)}: another commit changed rows that the catalog keeps;"
            " flush again"
        )
    return int(seen), int(dead)


def _remove_deletes(draft: Draft, change: FlushInlined) -> None:
    if not change.deletes:
        return
    table = change.table
    seen = {d.data_file_id: d.seen for d in change.deletes}
    doing = describe(change)
    require_dead_rows(doing, change.deletes, require_as_seen(draft, table.id, doing, seen))
    forget_merged(draft, table, change.deletes)


def _insert(draft: Draft, change: FlushInlined) -> None:
    table = change.table.id
    dead = insert_moved_files(draft, table, change.results)
    dead += [(d.data_file_id, d.delete_file) for d in change.deletes]
    insert_delete_files(draft, table, dead)
    if added := sum(f.file_size_bytes for f in change.results):
        draft.connection.execute(_GROW, {"of_table": table, "added": added})
    if dead:
        draft.entries.append(Entry(Verb.DELETED_FROM_TABLE, table))
    draft.entries.append(Entry(Verb.INLINE_FLUSH, table))
    draft.has_stats_change = True
