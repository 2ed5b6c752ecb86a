"""Rewrites of older snapshots that the snapshot of an ALTER moves to itself."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BindParameter, Table, Update, bindparam, update

from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.commit.rows.delete_files import require_as_seen
from shelduck.catalog.commit.rows.file_rows import log_compaction
from shelduck.catalog.commit.work import TableWork
from shelduck.catalog.read.queries import chunks
from shelduck.ducklake import tables
from shelduck.errors import Conflict
from shelduck.model.changes.change import PostponedRewrites, Verb
from shelduck.model.files.data_files import DeletesSeen

_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_BEGIN_LATER = (
    update(tables.data_file)
    .where(tables.data_file.c.data_file_id.in_(_IDS))
    .values(begin_snapshot=bindparam("moved_to"))
)


def _ending_later(source: Table) -> Update:
    return (
        update(source)
        .where(source.c.table_id == bindparam("of_table"), source.c.end_snapshot.in_(_IDS))
        .values(end_snapshot=bindparam("moved_to"))
    )


_END_LATER, _END_DELETES_LATER = map(_ending_later, (tables.data_file, tables.delete_file))


def postpone(draft: Draft, work: TableWork, postponed: PostponedRewrites) -> None:
    """Move rewrites of older snapshots to this one; about six statements.

    Raises Conflict if a result has changed or a source is gone.
    """
    seen = dict.fromkeys(postponed.results, DeletesSeen())
    require_as_seen(draft, work.id, f"alter table {work.name} (id {work.id})", seen)
    at = {"moved_to": draft.id, "of_table": work.id}
    moved = 0
    for snapshots in chunks(sorted(postponed.snapshots)):
        moved += draft.connection.execute(_END_LATER, at | {"ids": snapshots}).rowcount
        draft.connection.execute(_END_DELETES_LATER, at | {"ids": snapshots})
    if moved != postponed.sources:
        raise Conflict(
            f"the files that a rewrite of {work.name} replaced are gone: their snapshots expired"
        )
    for results in chunks(sorted(postponed.results)):
        draft.connection.execute(_BEGIN_LATER, {"moved_to": draft.id, "ids": results})
    log_compaction(draft, Verb.REWRITE_DELETE, work.id)
    draft.has_stats_change = True
