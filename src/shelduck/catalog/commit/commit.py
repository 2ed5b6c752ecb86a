"""The only way to change a lake: changes in, one snapshot out.

It takes the lock, reads the head, compares the changes with those that others committed since,
checks the catalog, assigns ids, writes and commits. After a lost race all of this runs again; files
are never uploaded twice. New rows that were written for older columns of a table are fitted there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import sqlalchemy as sa

from shelduck.catalog.commit.draft import ChangeKind, Draft
from shelduck.catalog.commit.follow_pins import follow_pins
from shelduck.catalog.commit.follow_views import follow_views
from shelduck.catalog.commit.kinds import (
    alter_tables,
    appends,
    definitions,
    deletes,
    flush,
    make_tables,
    repairs,
    rewrites,
    shared_files,
)
from shelduck.catalog.commit.names_in_use import check_names
from shelduck.catalog.commit.opening import (
    Opening,
    OpeningQuestions,
    TableWork,
    Work,
    opening_of,
    versions,
    views_now,
)
from shelduck.catalog.commit.own_rows import landed_in, record_batch, record_layouts
from shelduck.catalog.commit.rebase import moved
from shelduck.catalog.commit.settled import Settled, settle
from shelduck.catalog.databases.database import Contention
from shelduck.catalog.databases.store import Store, write_with_retries
from shelduck.catalog.read import read
from shelduck.catalog.running.job_rows import record_job, reservations, step_job
from shelduck.catalog.running.writers import end_writers
from shelduck.catalog.schema.lake_schema import LakeInfo
from shelduck.catalog.schema.own_tables import if_known
from shelduck.ducklake.format import follow
from shelduck.errors import Conflict, InvalidRequest
from shelduck.metrics import COMMIT_DURATION, timed
from shelduck.model.changes.change import (
    AlterTable,
    AppendFiles,
    Change,
    CommitInfo,
    Entry,
    InlineRows,
    RenameTable,
    Verb,
)
from shelduck.model.changes.conflict import find_conflict, is_compared_inside
from shelduck.model.changes.job import Job, JobStep, NewJob
from shelduck.model.changes.records import (
    RECORDS,
    Batch,
    EndWriters,
    LearnLayouts,
    Record,
    Settling,
)
from shelduck.model.files.data_file import Layout
from shelduck.model.tables.schema import SchemaId, SnapshotId, TableId
from shelduck.model.tables.table_version import Snapshot, TableVersion
from shelduck.model.tables.twin import TakeFiles

# Schemas come before their contents, and tables before their rows. ALTER comes first among the
# changes of tables: only ALTER can still find a conflict, and new files are laid out by its
# partitioning. Rows end before new ones begin. Files that hold older rows come last: they are
# compared with the columns and the deletes that this commit leaves.
KINDS: tuple[ChangeKind, ...] = (
    definitions.SCHEMAS,
    alter_tables.KIND,
    make_tables.KIND,
    definitions.VIEWS,
    definitions.MACROS,
    deletes.KIND,
    appends.KIND,
    rewrites.KIND,
    flush.KIND,
    repairs.KIND,
    shared_files.KIND,
)
_BY_CLASS = {each: kind for kind in KINDS for each in kind.takes}


@dataclass(frozen=True, slots=True)
class Landed:
    """The snapshot that a commit made, and the ids that its new tables and schemas got."""

    snapshot: Snapshot
    table_ids: Mapping[TableId, TableId] = field(default_factory=dict)
    schema_ids: Mapping[SchemaId, SchemaId] = field(default_factory=dict)
    is_new: bool = True
    """False if there was nothing to change, and ``snapshot`` existed before."""
    is_repeat: bool = False
    """True if the batch was already committed, and no snapshot has the files of this attempt."""
    job: Job | None = None
    """The job that the commit recorded."""
    before: Snapshot | None = None
    """The snapshot on which a new one was made."""
    altered: Sequence[AlterTable | RenameTable] = ()
    """What the commit wrote about tables that were there before."""


@timed(COMMIT_DURATION)
def commit(
    store: Store,
    lake: LakeInfo,
    changes: Sequence[Change | Record],
    *,
    base: SnapshotId,
    info: CommitInfo,
) -> Landed:
    """Make one snapshot of all changes, or none: everything is written or nothing.

    ``base`` is the snapshot on which the changes were made. If only records are to be written, no
    snapshot is made and the newest one is returned. If a batch is already committed, nothing
    changes. If the state of a job no longer allows its step, the commit is a Conflict.

    Raises Conflict if another commit since ``base`` excludes this one, AlreadyExists and
    InvalidRequest if the changes do not fit the catalog, CatalogUnavailable if it is busy or gone
    (nothing was written), and OutcomeUnknown if the connection broke during COMMIT.
    """
    made = [change for change in changes if not isinstance(change, RECORDS)]
    base = min([base, *(version.snapshot.id for version in versions(made))])
    beside = _Beside.of([change for change in changes if isinstance(change, RECORDS)])
    making = _Making(store, lake, made, base, info, beside)
    return if_known(store, making.carried_out)


@dataclass(frozen=True, slots=True)
class _Making:
    """One commit: what it changes, and what its transaction does."""

    store: Store
    lake: LakeInfo
    changes: Sequence[Change]
    base: SnapshotId
    info: CommitInfo
    beside: _Beside

    def carried_out(self, has_own_tables: bool) -> Landed:
        """Make the snapshot; the opening also asks about Shelduck's own tables if all exist."""
        kinds = kinds_of(self.changes)
        asks = [kind.asks for kind in kinds]
        # Snapshots since the survey of a compaction may have expired.
        needs_log = bool(self.beside.settlings) or not all(map(is_compared_inside, self.changes))
        asked = opening_of(asks, fold(self.changes), self.changes, self.base, needs_log=needs_log)
        if has_own_tables:
            asked = asked.about_own_tables(self.changes, self.beside.job)
        return write_with_retries(self.store, partial(self._attempt, asked=asked, kinds=kinds))

    def _attempt(
        self, connection: sa.Connection, *, asked: OpeningQuestions, kinds: Sequence[ChangeKind]
    ) -> Landed:
        changes, beside = self.changes, self.beside
        opening = asked.ask(connection)
        head = opening.head
        _check_options(connection, opening.options, self.info)
        batch = beside.batch
        if batch is not None and landed_in(connection, batch, opening.present) is not None:
            return Landed(head, is_new=False, is_repeat=True)
        others = opening.others
        if others:
            _check_others(connection, changes, others)
        work = fold(rebased(connection, self.lake, changes, others, head) if others else changes)
        if isinstance(beside.job, JobStep):
            at = SnapshotId(head.id + (not work.is_empty))
            step_job(connection, beside.job, at, opening.present)
        draft = Draft(self.store, self.lake, connection, opening)
        done = _carry_out(draft, work, kinds, self.info)
        return beside.recorded(self.store, connection, opening, done)


@dataclass(frozen=True, slots=True)
class _Beside:
    """The records of a commit by their kinds: what it writes beside the snapshot."""

    layouts: Mapping[int, Layout]
    batch: Batch | None
    job: NewJob | JobStep | None
    writers: Sequence[EndWriters]
    settlings: Sequence[Settling]

    @classmethod
    def of(cls, records: Sequence[Record]) -> _Beside:
        """Return records by their kinds; a commit has one batch and one step of a job at most."""
        return cls(
            {
                n: each
                for r in records
                if isinstance(r, LearnLayouts)
                for n, each in r.layouts.items()
            },
            next((r for r in records if isinstance(r, Batch)), None),
            next((r for r in records if isinstance(r, NewJob | JobStep)), None),
            [r for r in records if isinstance(r, EndWriters) and r.registered],
            [r for r in records if isinstance(r, Settling)],
        )

    def recorded(
        self, store: Store, connection: sa.Connection, opening: Opening, done: Landed
    ) -> Landed:
        """Write all of it, and return what the commit has done."""
        is_new_job = isinstance(self.job, NewJob)
        if self.layouts or is_new_job or (done.is_new and (self.batch or self.settlings)):
            opening.ensure_own_tables(store, connection)
        if self.batch is not None and done.is_new:
            record_batch(connection, self.batch, done.snapshot.id)
        if self.settlings and done.is_new:
            settled = Settled(done.snapshot.id, done.table_ids)
            settle(connection, self.settlings, opening.others, settled)
        if isinstance(self.job, NewJob):
            made = record_job(connection, self.job, done.snapshot, opening.jobs)
            done = replace(done, job=made)
        if self.layouts:
            record_layouts(connection, self.layouts)
        for each in self.writers:
            end_writers(connection, each.registered, stay=each.stay)
        return done


def _check_others(
    connection: sa.Connection, changes: Sequence[Change], others: Sequence[tuple[SnapshotId, Entry]]
) -> None:
    """Raise Conflict if something that others did since the changes were made excludes them."""
    found = find_conflict(changes, others)
    if found is not None and not any(isinstance(c, AlterTable) for c in changes):
        # A new job takes ids for its columns, and does not change the table's own columns.
        begun = reservations(connection)
        found = find_conflict(changes, [(n, e) for n, e in others if (n, e.id) not in begun])
    if found is not None:
        raise Conflict(f"{found}; read the table again and repeat the change")


def _carry_out(draft: Draft, work: Work, kinds: Sequence[ChangeKind], info: CommitInfo) -> Landed:
    """Write the work of these kinds and the snapshot that it makes, unless a check objects."""
    if work.is_empty:
        return Landed(draft.head, is_new=False)
    _check_tables(draft, work)
    for kind in kinds:
        if kind.check is not None:
            kind.check(draft, work)
    check_names(draft.connection, work)
    for kind in kinds:
        kind.write(draft, work)
    answers = draft.opening.answers
    if draft.has_schema_change and (work.changes or answers.get("views") or answers.get("macros")):
        views = _views(draft, work)
        follow_pins(draft, work, views)
        follow_views(draft, work, views)
    if draft.layouts:
        draft.opening.ensure_own_tables(draft.store, draft.connection)
        record_layouts(draft.connection, draft.layouts, draft.opening.layouts)
    return Landed(
        draft.finish(info),
        draft.table_ids,
        draft.schema_ids,
        before=draft.head,
        altered=[made for table in work.existing() for made in _altered(draft, table)],
    )


def _views(draft: Draft, work: Work) -> list[dict[str, Any]]:
    """Return the views as the commit leaves them; one statement if it changes views."""
    if not work.changes:
        return [row._asdict() for row in draft.opening.answers["views"]]
    return views_now(draft.connection)


def _altered(draft: Draft, table: TableWork) -> Iterable[AlterTable | RenameTable]:
    """Yield what was written about a table, nothing if not all of it is known."""
    made = table.altered
    if table.dropped or table.old is None or table.of(TakeFiles):
        return
    if made is not None and made.partition:
        partition_id = draft.partition_ids.get(made.partition_id or 0)
        if partition_id is None:
            return
        made = replace(made, partition_id=partition_id)
    if made is not None:
        yield made
    if table.new_name is not None:
        yield RenameTable(table.old, table.new_name)


def _check_options(connection: sa.Connection, options: Mapping[str, str], info: CommitInfo) -> None:
    """Refuse a commit without the message that the lake requires.

    If the lake has another version than this connection knows, the work runs again in that one.
    """
    version = options.get("version", "")
    if follow(connection, version):
        raise Contention(f"the lake now has DuckLake version {version!r}; nothing was written")
    if options.get("require_commit_message") == "true" and not info.message:
        raise InvalidRequest(
            "this lake demands a commit message (option require_commit_message); give one"
        )


def _check_tables(draft: Draft, work: Work) -> None:
    """Raise Conflict unless all tables of the work still exist.

    Tables that were read at the newest snapshot and keep their name do exist. If any others are
    looked up, `Draft.found` has the rows of all.
    """
    if all(_was_read_at(draft.head, table) for table in work.existing()):
        return
    rows = draft.opening.answers["tables"]
    draft.found.update((row.table_id, row._asdict()) for row in rows)
    for table in work.existing():
        if table.id not in draft.found:
            raise Conflict(f"table {table.name} was dropped by another commit")


def _was_read_at(head: Snapshot, table: TableWork) -> bool:
    seen = table.old
    return seen is not None and seen.snapshot.id == head.id and table.new_name is None


def kinds_of(changes: Sequence[Change]) -> list[ChangeKind]:
    """Return the kinds of some changes, in the order of writing."""
    found = {type(change) for change in changes}
    return [kind for kind in KINDS if not found.isdisjoint(kind.takes)]


def fold(changes: Iterable[Change]) -> Work:
    """Return what the changes amount to, in order: the last change of each table wins.

    A table that is created and dropped leaves no trace, nor do files of a dropped table.
    """
    work = Work()
    for change in changes:
        _BY_CLASS[type(change)].fold(work, change)
    passing = [table.id for table in work.tables.values() if table.created and table.dropped]
    for number in passing:
        del work.tables[number]
    return work


def rebased(
    connection: sa.Connection,
    lake: LakeInfo,
    changes: Sequence[Change],
    others: Sequence[tuple[SnapshotId, Entry]],
    head: Snapshot,
) -> list[Change]:
    """Return the changes with new rows fitted to the columns of ``head``.

    ``others`` is what was done since the changes were made. No statement if nobody altered their
    tables, four for each altered table. Raises Conflict for rows that do not fit.
    """
    now: dict[TableId, TableVersion] = {}
    found: list[Change] = []
    for change in changes:
        planned = change.planned if isinstance(change, AppendFiles | InlineRows) else None
        if planned is None or not _is_altered(planned, others):
            found.append(change)
            continue
        if planned.id not in now:
            table = read.table_by_id(connection, planned.id, head, lake)
            if table is None:
                raise Conflict(f"table {planned.full_name} was dropped by another commit")
            now[planned.id] = table
        seen = moved(planned, now[planned.id])
        match change:
            case AppendFiles():
                found.append(replace(change, files=seen.files(change.files), planned=seen.now))
            case InlineRows():
                found.append(replace(change, rows=seen.batch(change.rows), planned=seen.now))
    return found


def _is_altered(planned: TableVersion, others: Sequence[tuple[SnapshotId, Entry]]) -> bool:
    return any(
        entry.verb is Verb.ALTERED_TABLE and entry.id == planned.id
        for snapshot, entry in others
        if snapshot > planned.snapshot.id
    )
