"""The one door by which anything gets into a lake: changes in, one snapshot out.

Take the lock, read the head, compare with what others did since, check what is there, hand out ids,
write, commit. A lost race runs all of it again; files are never uploaded twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from sqlalchemy import Connection

from shelduck.catalog import read, writes
from shelduck.catalog.appends import append_rows
from shelduck.catalog.batches import landed_in, record_batch
from shelduck.catalog.checks import Found, check_options, check_work
from shelduck.catalog.create import LakeInfo
from shelduck.catalog.deletes import delete_rows
from shelduck.catalog.draft import Draft
from shelduck.catalog.flush import flush_rows
from shelduck.catalog.inlined_tables import renew_inlined_tables
from shelduck.catalog.jobs import record_job, reservations, step_job
from shelduck.catalog.layouts import record_layouts
from shelduck.catalog.rebase import rebased
from shelduck.catalog.retry import write_with_retries
from shelduck.catalog.rewrites import rewrite_files
from shelduck.catalog.settled import Settled, settle
from shelduck.catalog.store import Store
from shelduck.catalog.table_stats import add_column_stats
from shelduck.catalog.view_writes import live_views, write_views
from shelduck.catalog.work import Work, fold, versions
from shelduck.catalog.writers import end_writers
from shelduck.errors import Conflict, InvalidRequest
from shelduck.model.batch import Batch
from shelduck.model.change import AlterTable, Change, CommitInfo, Entry
from shelduck.model.conflict import find_conflict
from shelduck.model.job import JobStep, NewJob
from shelduck.model.layout import Layout
from shelduck.model.schema import SchemaId, SnapshotId, TableId
from shelduck.model.settled import Settling
from shelduck.model.table import Snapshot

_NOTHING_LEARNED: Mapping[int, Layout] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Landed:
    """The snapshot that a commit made, and the ids that its new tables and schemas got."""

    snapshot: Snapshot
    table_ids: Mapping[TableId, TableId] = field(default_factory=dict)
    schema_ids: Mapping[SchemaId, SchemaId] = field(default_factory=dict)
    is_new: bool = True
    """False when the changes amounted to nothing, and ``snapshot`` was there before."""
    is_repeat: bool = False
    """True when the batch had landed already, and the files of this attempt are part of nothing."""
    job: int | None = None
    """The id of the job that the commit recorded."""


def commit(
    store: Store,
    lake: LakeInfo,
    changes: Sequence[Change],
    *,
    base: SnapshotId,
    info: CommitInfo,
    layouts_learned: Mapping[int, Layout] = _NOTHING_LEARNED,
    batch: Batch | None = None,
    job: NewJob | JobStep | None = None,
    writers: Sequence[str] = (),
    settlings: Sequence[Settling] = (),
) -> Landed:
    """Make one snapshot of all changes, or none: everything is written or nothing.

    ``base`` is the snapshot on which the changes were made. ``layouts_learned`` are layouts of
    others' files, by id, recorded on the way. Changes that amount to nothing make no snapshot and
    give the newest one back. ``batch`` is recorded with them; one that has landed already changes
    nothing. ``job`` is what becomes of a job in the same transaction; a step that it does not allow
    any more is a Conflict. ``writers`` are registered no more, ``settlings`` hold afterwards.

    Raises Conflict when another commit since ``base`` excludes this one, AlreadyExists and
    InvalidRequest when the changes do not fit the catalog, CatalogUnavailable when it is busy or
    gone (nothing was written), and OutcomeUnknown when the connection broke during COMMIT.
    """
    base = min([base, *(version.snapshot.id for version in versions(changes))])

    def attempt(connection: Connection) -> Landed:
        check_options(connection, lake, info)
        before = landed_in(connection, batch) if batch is not None else None
        if before is not None:
            return Landed(read.snapshot(connection), is_new=False, is_repeat=True)
        head, others = _check_head(connection, changes, base)
        work = fold(rebased(connection, lake, changes, others, head))
        if isinstance(job, JobStep):
            step_job(connection, job, SnapshotId(head.id + (not work.is_empty)))
        if work.is_empty:
            done = Landed(head, is_new=False)
        else:
            done = _carry_out(store, lake, Draft(connection, head), work, info)
            if batch is not None:
                record_batch(store, connection, batch, done.snapshot.id)
            settle(store, connection, settlings, others, Settled(done.snapshot.id, done.table_ids))
        if isinstance(job, NewJob):
            done = replace(done, job=record_job(store, connection, job, done.snapshot))
        record_layouts(store, connection, layouts_learned)
        end_writers(connection, writers)
        return done

    return write_with_retries(store, attempt)


def _check_head(
    connection: Connection, changes: Sequence[Change], base: SnapshotId
) -> tuple[Snapshot, list[tuple[SnapshotId, Entry]]]:
    """Return the newest snapshot after making sure that nothing since ``base`` is in the way.

    And what others did since.
    """
    head = read.snapshot(connection)
    others: list[tuple[SnapshotId, Entry]] = []
    if head.id < base:
        raise InvalidRequest(f"the changes were made on snapshot {base}, the newest is {head.id}")
    if head.id > base:
        others = read.entries_since(connection, base, head.id)
        found = find_conflict(changes, others)
        if found is not None and not any(isinstance(c, AlterTable) for c in changes):
            # A job that begins takes ids for its columns, and leaves the table's own alone.
            begun = reservations(connection)
            found = find_conflict(changes, [(n, e) for n, e in others if (n, e.id) not in begun])
        if found is not None:
            raise Conflict(f"{found}; read the table again and repeat the change")
    return head, others


def _carry_out(
    store: Store,
    lake: LakeInfo,
    draft: Draft,
    work: Work,
    info: CommitInfo,
) -> Landed:
    found = check_work(draft.connection, work, draft.head)
    views = live_views(draft.connection, work)
    schema_ids = writes.create_schemas(draft, work.created_schemas)
    table_ids = _write_tables(draft, work, found, schema_ids)
    write_views(draft, work, views, schema_ids)
    writes.drop_schemas(draft, work.dropped_schemas)
    delete_rows(store, draft, lake, work.existing())
    growing = [(table_ids.get(t.id, t.id), t) for t in work.tables.values()]
    layouts = append_rows(
        draft,
        {number: table.files for number, table in growing if table.files},
        {number: table.inlined for number, table in growing if table.inlined},
    )
    layouts |= rewrite_files(store, draft, lake, work.existing())
    layouts |= flush_rows(store, draft, lake, work.existing())
    record_layouts(store, draft.connection, layouts)
    return Landed(draft.finish(info), table_ids, schema_ids)


def _write_tables(
    draft: Draft, work: Work, found: Found, schema_ids: Mapping[SchemaId, SchemaId]
) -> dict[TableId, TableId]:
    existing = list(work.existing())
    writes.drop_tables(draft, [table for table in existing if table.dropped])
    altered = [t for t in existing if t.columns is not None]
    for table in existing:
        if table.new_name is not None:
            writes.rename_table(draft, table, found.tables[table.id])
    for table in altered:
        writes.alter_table(draft, table)
    add_column_stats(draft, altered)
    renew_inlined_tables(draft, altered)
    return {
        table.id: writes.create_table(draft, table, schema_ids)
        for table in work.tables.values()
        if table.created is not None
    }
