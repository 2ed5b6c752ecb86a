"""Going back to an older snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.catalog.read import read
from shelduck.errors import InvalidRequest, NotFound
from shelduck.lake.done import Counts, Done, discard
from shelduck.lake.lookup import TableHandle, instant
from shelduck.lake.operation import Operation, Runner
from shelduck.lake.results import Result, TableName
from shelduck.lake.state import LakeState
from shelduck.lake.table_changes import look_up
from shelduck.lake.unit import UnitOfWork
from shelduck.model.changes.change import (
    AlterTable,
    AppendFiles,
    CommitInfo,
    DeleteRows,
    FileDeletes,
    RowChange,
    alteration,
)
from shelduck.model.changes.feed_plan import FeedSnapshots, Span
from shelduck.model.files.data_file import (
    ROW_ID_COLUMN,
    SNAPSHOT_FIELD,
    DataFile,
    InlinedRows,
    deletes_seen,
)
from shelduck.model.tables.rollup import ROLLUPS
from shelduck.model.tables.schema import retyped
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.read.plan.scan import PLANNED
from shelduck.read.scan.change_feed import CHANGE_TYPE, ROW_ID, VERSION, Feed, departures
from shelduck.read.scan.scan_frames import Origin
from shelduck.read.table_rows import TableRows, table_rows
from shelduck.text.query.travel import read_time
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.parts import OfTable
from shelduck.write.changes.append import Placing, moved_to_catalog, placing
from shelduck.write.changes.edits import file_deletes
from shelduck.write.deletes.delete_files import write_delete_files
from shelduck.write.hooks import carry_out_rows, refuse_followers
from shelduck.write.parquet.kept import parts_of_bytes
from shelduck.write.parquet.write import Writing, write_files
from shelduck.write.progress import write_progress


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The effect that a restore would have.

    Of the ``files`` of the table, ``ended`` hold only rows added since and would end, and from
    ``thinned`` such rows would be deleted. Rows deleted since would be restored from ``sources``,
    files of older snapshots. ``inlined`` rows of the catalog itself would end.
    """

    table: TableName
    version: int
    files: int
    ended: int
    thinned: int
    sources: int
    source_bytes: int
    inlined: int
    columns_change: bool

    def __str__(self) -> str:
        columns = "its columns change back" if self.columns_change else "its columns stay"
        kept = f"; {self.inlined} row(s) of the catalog end" if self.inlined else ""
        return (
            f"{self.table} to snapshot {self.version}: {columns}; of {self.files} file(s),"
            f" {self.ended} end and {self.thinned} lose rows; rows deleted since are restored from"
            f" {self.sources} file(s) of {self.source_bytes} bytes{kept}"
        )


class RestoreVerbs(TableHandle):
    """Making an older snapshot the newest one."""

    def restore(
        self, *, version: int | None = None, timestamp: str | datetime | None = None
    ) -> Result:
        """Give the table the rows and columns that it had at a snapshot, as a new snapshot.

        Rows that are still in the table stay where they are; rows deleted since are written again
        under their old row ids; rows added since are deleted. Columns come back under their old
        ids, with comments, defaults, partition keys, sort order and properties; the table keeps its
        name. If nothing has changed since, no snapshot is made.

        Args:
            version: A snapshot id.
            timestamp: The last snapshot at or before it; without an offset, in the session's time
                zone. The commit's message says which instant that was.

        Raises:
            NotFound: the snapshot does not exist or has expired.
            InvalidRequest: the table did not exist then, or the open transaction changed it.
            Conflict: another commit changed the table; restore again.
        """

        def prepare(unit: UnitOfWork) -> Done:
            found = self._restoration(unit, version, timestamp)
            if unit.info.message is None:
                told = f"restore {self.name} to snapshot {found.then.snapshot.id}"
                if timestamp is not None:
                    told += f", the newest at {instant(timestamp, self._state.time_zone)}"
                unit.annotate(CommitInfo(message=told))
            return self._restored(unit, found)

        return carry_out_rows(self._state, self._unit, prepare)

    def plan_restore(
        self, *, version: int | None = None, timestamp: str | datetime | None = None
    ) -> RestorePlan:
        """Return what `restore` would do, without doing it; no row is read. Print it.

        Args:
            version: The snapshot to go back to.
            timestamp: Instead of ``version``, a time at which that snapshot was the newest.
        """
        found = self._restoration(self._view(), version, timestamp)
        return RestorePlan(
            self.name,
            found.then.snapshot.id,
            len(found.now.files),
            len(found.younger),
            len(found.mixed),
            len(found.sources),
            sum(f.file_size_bytes for f in found.sources),
            len(found.inlined),
            found.alteration is not None,
        )

    def _restored(self, unit: UnitOfWork, found: Restoration) -> Done:
        workspace = unit.workspace
        unit.writer.register(found.now.table)
        if found.alteration is not None:
            # Rollups are tables of their own: it keeps those of today.
            kept = {k: text for k, text in found.alteration.properties.items() if k != ROLLUPS}
            workspace.alter_table(replace(found.alteration, properties=kept))
        target = workspace.table(self.name)
        return restore_rows(self._state.spark, found, target, placing(self._state, target))

    def _restoration(
        self, unit: UnitOfWork, version: int | None, timestamp: str | datetime | None
    ) -> Restoration:
        if (version is None) == (timestamp is None):
            raise InvalidRequest("pass either a version or a timestamp to restore")
        now = unit.workspace.table(self.name)
        refuse_followers(now)
        staged = unit.workspace.staged_rows(now)
        if now.id < 0 or staged is not None:
            raise InvalidRequest(
                f"cannot restore {now.full_name}: the open transaction has changed it; restore it"
                " first, or in another transaction"
            )
        then = self._then(now, version, timestamp)
        return plan_restore(self._state, now, then)

    def _then(
        self, now: TableVersion, version: int | None, timestamp: str | datetime | None
    ) -> TableVersion:
        when = None if timestamp is None else instant(timestamp, self._state.time_zone)
        with self._state.store.read() as connection:
            at = read.snapshot(connection, version=version, timestamp=when)
            if at.id > now.snapshot.id:
                raise NotFound(
                    f"snapshot {at.id} is newer than snapshot {now.snapshot.id}, which the"
                    " transaction reads",
                    about="snapshot",
                )
            found = read.table_by_id(connection, now.id, at, self._state.info)
        if found is None:
            raise InvalidRequest(f"{now.full_name} did not exist at snapshot {at.id}")
        return found


@dataclass(frozen=True)
class Restoration:
    """The changes that lead a table from ``now`` to ``then``; no row has been read yet.

    ``younger`` files end. In ``mixed`` files and among ``inlined`` rows, rows that were added since
    are deleted. ``feed`` says where the rows are that were deleted since.
    """

    now: TableRows
    then: TableVersion
    feed: Feed
    younger: tuple[DataFile, ...] = ()
    mixed: tuple[DataFile, ...] = ()
    inlined: tuple[int, ...] = ()
    alteration: AlterTable | None = None
    sources: tuple[DataFile, ...] = ()

    @property
    def has_losses(self) -> bool:
        """True if rows may have to be written again."""
        return bool(self.sources or any(part.rows for part in self.feed.went))


def plan_restore(state: LakeState, now: TableVersion, then: TableVersion) -> Restoration:
    """Return what differs between two snapshots of a table, from the catalog alone."""
    rows = table_rows(state.store, now, state.layouts)
    before = then.snapshot.id
    span = Span(before + 1, now.snapshot.id, then.snapshot.next_file_id)
    # Files as the newest snapshot sees them, but with the columns of the older one.
    target = replace(then, snapshot=now.snapshot, path=now.path, first_names=now.first_names)
    feed = look_up(state, target, span, FeedSnapshots())
    stored = state.store.ask(read.inlined_rows, then)
    gone, came = _difference(stored, rows.inlined)
    plan = replace(
        feed.plan,
        born=(),
        born_partly=(),
        ended=tuple((f, end) for f, end in feed.plan.ended if f.begin_snapshot <= before),
        thinned=tuple(f for f in feed.plan.thinned if f.begin_snapshot <= before),
    )
    return Restoration(
        rows,
        then,
        replace(feed, plan=plan, came=(), went=gone, source=PLANNED),
        younger=tuple(f for f in rows.files if f.begin_snapshot > before),
        mixed=tuple(f for f in rows.files if _may_mix(f, before)),
        inlined=came,
        alteration=_alteration(now, then),
        sources=(*(f for f, _ in plan.ended), *plan.thinned),
    )


def restore_rows(
    spark: SparkSession, found: Restoration, target: TableVersion, how: Placing
) -> Done:
    """Write the rows of a restoration; nothing is committed.

    ``target`` is the table after the restoration; rows are written in its columns and layout.
    """
    table = found.now.table
    paths: list[str] = []
    try:
        changes: list[RowChange] = []
        counts = Counts()
        deletes, removed = _deletes(spark, found)
        paths += [f.delete_file.path for f in deletes if f.delete_file is not None]
        if found.has_losses:
            with write_progress(spark, table.full_name, show=how.show_progress) as progress:
                rows = _lost_rows(spark, found.feed, found.then.snapshot.id)
                own = Writing(lineage=(ROW_ID_COLUMN,))
                written = write_files(spark, rows, target, own, progress=progress)
            paths += [f.path for f in written.files]
            counts = Counts(inserted=written.rows, files=len(written.files), bytes=written.bytes)
            if written.files:
                changes.append(AppendFiles(table.id, written.files))
    except BaseException:
        discard(table, paths)
        raise
    looked = DeleteRows(table, tuple(deletes), found.inlined)
    counts += Counts(deleted=removed + len(found.inlined))
    done = Done(target, (looked, *changes), tuple(paths), counts)
    return replace(moved_to_catalog(done, how.limits.new), table=table)


def _deletes(spark: SparkSession, found: Restoration) -> tuple[list[FileDeletes], int]:
    """Return the files that end, the deletes, and how many rows they delete."""
    ended = [FileDeletes(f.id, deletes_seen(f)) for f in found.younger]
    count = sum(f.live_rows or 0 for f in found.younger)
    if not found.mixed:
        return ended, count
    rows = replace(found.now, files=found.mixed, inlined=())
    dead = _later_rows(spark, rows, found.then.snapshot.id)
    written = write_delete_files(spark, dead, rows, found.now.table)
    ended += file_deletes(rows, written)
    return ended, count + sum(w.rows for w in written.values())


def _may_mix(file: DataFile, before: int) -> bool:
    """Return whether an older file may hold rows that were added since."""
    assert file.layout is not None
    if file.begin_snapshot > before or (file.partial_max or before + 1) <= before:
        return False
    return file.layout.has_field(SNAPSHOT_FIELD)


def _difference(
    then: Sequence[InlinedRows], now: Sequence[InlinedRows]
) -> tuple[tuple[InlinedRows, ...], tuple[int, ...]]:
    """Return rows of the catalog that were deleted since, and the ids of those added since."""
    old = {version for part in then for version in _versions(part)}
    new = {version for part in now for version in _versions(part)}
    gone = tuple(_only(part, old - new) for part in then)
    return tuple(part for part in gone if part.rows), tuple(sorted(n for n, _ in new - old))


def _versions(part: InlinedRows) -> list[tuple[int, int]]:
    return list(zip(part.row_ids, part.begin_snapshots, strict=True))


def _only(part: InlinedRows, chosen: set[tuple[int, int]]) -> InlinedRows:
    return part.at([n for n, version in enumerate(_versions(part)) if version in chosen])


def _alteration(now: TableVersion, then: TableVersion) -> AlterTable | None:
    """Return the change that gives the older columns back, None if they are the same."""
    # The bounds of these columns include values of the later type.
    unsafe = retyped(now.columns, then.columns)
    made = alteration(now, then, unsafe)
    return None if made.is_empty else made


@dataclass(frozen=True, slots=True)
class Restore(OfTable):
    """RESTORE TABLE to a snapshot id or to a time; exactly one of both is set."""

    version: int | None = None
    timestamp: str | None = None


def read_restore(cursor: Cursor) -> Restore:
    """Read the statement behind ``RESTORE``."""
    if cursor.peek(1).may_name and not (cursor.sees("TABLE", "TO") and cursor.peek(3).key == "AS"):
        cursor.accept("TABLE")
    name = cursor.table_name()
    cursor.accept("TO")
    if not (cursor.sees("VERSION", "AS", "OF") or cursor.sees("TIMESTAMP", "AS", "OF")):
        raise cursor.failure("TO VERSION AS OF n or TO TIMESTAMP AS OF '...'")
    version, timestamp = read_time(cursor)
    return Restore(name, version, timestamp)


def restore(runner: Runner, statement: Restore) -> Result:
    """RESTORE TABLE ... TO VERSION or TIMESTAMP AS OF."""
    table = runner.verbs(RestoreVerbs, statement.name)
    return table.restore(version=statement.version, timestamp=statement.timestamp)


def _lost_rows(spark: SparkSession, feed: Feed, seen_at: int) -> DataFrame:
    """Return the rows that existed at a snapshot and were deleted since, row ids last."""
    found = departures(spark, feed, "", seen_at).drop(CHANGE_TYPE, VERSION)
    names = [F.col(backticked(n)) for n in feed.table.columns.names]
    size = sum(f.file_size_bytes for f, _ in feed.plan.ended)
    size += sum(f.file_size_bytes for f in feed.plan.thinned)
    made = found.select(*names, F.col(ROW_ID).alias(ROW_ID_COLUMN))
    return made.coalesce(parts_of_bytes(size))


def _later_rows(spark: SparkSession, table: TableRows, seen_at: int) -> DataFrame:
    """Return file and position of the rows that were added after a snapshot."""
    rows = table.frame(spark, None, (Origin.FILE_ID, Origin.POSITION, Origin.SNAPSHOT_ID))
    later = rows.where(F.col(Origin.SNAPSHOT_ID) > seen_at)
    return later.select(Origin.FILE_ID, Origin.POSITION)


OPERATIONS = (Operation("RESTORE", Restore, restore, read_restore, counts=True, only_lakes=True),)
