"""A table as the source of a streaming query: where batches end, and their rows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce

from shelduck.catalog.read import read as catalog_read
from shelduck.catalog.read.feed_files import FeedRange, dropped_in, feed_range, touches
from shelduck.catalog.running.job_rows import first_conversion
from shelduck.engine.session import DataFrame, SparkSession, StructType
from shelduck.errors import InvalidRequest, NotFound, Unsupported
from shelduck.lake.lookup import instant
from shelduck.lake.spark_options import StreamOptions
from shelduck.lake.state import LakeState
from shelduck.lake.table_changes import converted_since, look_up, read_changes
from shelduck.model.changes.change import Entry
from shelduck.model.changes.feed_plan import classify
from shelduck.model.changes.stream import (
    StreamPart,
    StreamPosition,
    cut,
    may_hold,
    misfit,
    parts_between,
    shape_of,
    with_both,
    with_deletes,
)
from shelduck.model.files.data_file import DataFile
from shelduck.model.tables.table_version import TableVersion
from shelduck.read.scan.change_feed import Feed, added_frame, as_inserts, with_ids_of
from shelduck.read.scan.images import as_sparks
from shelduck.read.scan.scan_frames import Origin
from shelduck.read.table_rows import table_rows

# A batch without rows moves a query on when so many snapshots did not touch its table: they may
# expire, and a query must not need them.
_IDLE = 100


class TableStream:
    """One streaming query's view of one table, with the columns that its frame knows.

    ``table`` is the version with these columns, the newest one unless the stream ends before its
    columns change. ``made`` is what the stream of the frame tells with `made`; by default the frame
    is made now. Raises Unsupported if the columns have changed and the query does not keep its own.
    """

    def __init__(
        self, state: LakeState, table: TableVersion, options: StreamOptions, made: str | None = None
    ) -> None:
        self._state = state
        self._options = options
        self._table = table
        self._known = int(self._table.snapshot.id)
        self._target: int | None = None
        if made is not None:
            self._keep_columns(*made.split())

    @property
    def made(self) -> str:
        """Return what tells the columns of now from later ones: a snapshot, and their shape."""
        return f"{self._known} {shape_of(self._table)}"

    @property
    def schema(self) -> StructType:
        """Return the columns of the batches."""
        return self._shown(self.nothing()).schema

    def stop_at_newest(self) -> None:
        """Let the query end with the newest snapshot of now."""
        self._target = self._newest()

    def stop_before_other_columns(self, first: int) -> int:
        """Let the query, which is at a snapshot, end with the last one that has its columns."""
        newest = self._newest()
        found = self._changed_columns(first, newest)
        self._target = newest if found is None else found[0]
        return self._target

    def latest(self, start: StreamPosition | None, limit: int | None) -> StreamPosition | None:
        """Return where the next batch ends, None if there is nothing new.

        A batch has at most ``limit`` files, unless one snapshot of a change feed has more. Raises
        Unsupported if the next snapshot changed the columns, or rows that were already delivered;
        NotFound if it dropped the table, or has expired.
        """
        if start is None:
            start = self._first()
            # A batch without rows records where a stream of what is new begins.
            if start is None or self._options.from_newest:
                return start
        elif start.table != self._table.uuid:
            raise InvalidRequest(
                f"the checkpoint belongs to another table than {self._table.full_name}; give this"
                " query its own directory"
            )
        if start.whole:
            return self._after_whole(start, limit)
        newest = self._newest() if self._target is None else self._target
        if start.snapshot > newest:
            return None
        return self._after(start, newest, limit)

    def batch(self, start: StreamPosition | None, end: StreamPosition) -> DataFrame:
        """Return the rows between two positions; None is the beginning of the stream."""
        parts = parts_between(end.beginning if start is None else start, end)
        found = [self._whole(part) if part.whole else self._added(part) for part in parts]
        return self._shown(reduce(DataFrame.unionAll, found or [self.nothing()]))

    def _shown(self, rows: DataFrame) -> DataFrame:
        form = self._options.form
        return rows if form is None else as_sparks(rows, net=form.net, updates=form.updates)

    def nothing(self) -> DataFrame:
        """Return no rows, with the columns of the table."""
        now = self._table.snapshot.id
        return self._whole(StreamPart(now, now, high=0, whole=True))

    def _newest(self) -> int:
        return int(self._state.store.ask(catalog_read.snapshot).id)

    def _first(self) -> StreamPosition | None:
        """Return where the stream begins, None if that snapshot does not exist yet."""
        options, uuid = self._options, self._table.uuid
        newest = self._table.snapshot.id
        if options.from_newest:
            return StreamPosition(uuid, newest + 1, start=newest + 1)
        if options.timestamp is not None:
            since = instant(options.timestamp, self._state.time_zone)
            with self._state.store.read() as connection:
                end = catalog_read.snapshot(connection)
                if since > end.time:
                    return None
                found = feed_range(connection, since, int(end.id))
            first = found.span.first
            return StreamPosition(uuid, first, start=first)
        if options.version is not None:
            return StreamPosition(uuid, options.version, start=options.version)
        return StreamPosition(uuid, newest, whole=True, start=newest, start_whole=True)

    def _keep_columns(self, snapshot: str, shape: str) -> None:
        """Keep the columns of a snapshot, which have a shape."""
        now = self._table
        if shape == shape_of(now):
            return
        then = None
        with suppress(NotFound):
            then = self._version(int(snapshot))
        is_known = then is not None and then.id == now.id and shape == shape_of(then)
        if not (is_known and self._options.follows):
            raise self._outdated(f"the columns of {now.full_name} changed after its frame was made")
        assert then is not None
        self._table = replace(now, columns=then.columns, first_names=then.first_names)
        self._known = int(snapshot)

    def _after_whole(self, start: StreamPosition, limit: int | None) -> StreamPosition:
        rows = table_rows(
            self._state.store, self._as_of(start.snapshot, start.snapshot), self._state.layouts
        )
        return cut(rows.files, start, limit) or start.at(start.snapshot + 1)

    def _after(
        self, start: StreamPosition, newest: int, limit: int | None
    ) -> StreamPosition | None:
        found = self._range(start.snapshot, newest)
        logged = [(s, list(entries)) for s, entries in found.snapshots]
        end, reason = self._end(start.snapshot, found)
        if end < start.snapshot:
            raise reason
        table = self._table
        if not touches(logged, table, start.snapshot, end):
            if end < found.span.last:
                # Otherwise the query would wait in front of it without a word.
                raise reason
            idle = end - start.snapshot >= _IDLE and not start.row_id
            return start.at(end + 1) if idle else None
        if limit is None:
            return start.at(end + 1)
        plan = self._arrivals(found, end).plan
        after = cut([*plan.born, *plan.born_partly], start, limit)
        if after is None:
            return start.at(end + 1)
        # All changes of one snapshot belong together: an update is two of them.
        if self._options.changes:
            return after.at(max(after.snapshot, start.snapshot + 1))
        return after

    def _end(self, first: int, found: FeedRange) -> tuple[int, Exception]:
        """Return the last snapshot that can be delivered, and why the next one cannot."""
        last = found.span.last
        reason: Exception = AssertionError("nothing ends the batch")
        gone = dropped_in([(s, list(e)) for s, e in found.snapshots], self._table)
        if gone is not None:
            told = f"table {self._table.full_name} was dropped in snapshot {gone}"
            last, reason = gone - 1, NotFound(f"{told}; all rows before that were delivered")
        entries = {int(s.id): e for s, e in found.snapshots if s.id <= last}
        stopping = min(self._stopping(entries), default=None)
        if stopping is not None:
            last, reason = stopping - 1, self._refused(stopping)
        changed = self._changed_columns(first, last)
        return changed or (last, reason)

    def _stopping(self, entries: Mapping[int, Sequence[Entry]]) -> set[int]:
        options = self._options
        if options.changes or options.skips_changes:
            return set()
        if options.ignores_deletes:
            return with_both(entries, self._table.id)
        return with_deletes(entries.items(), self._table.id)

    def _refused(self, snapshot: int) -> Unsupported:
        return Unsupported(
            f"snapshot {snapshot} changed or deleted rows of {self._table.full_name}, which a"
            ' stream of added rows cannot tell; set .option("skipChangeCommits", "true") to leave'
            ' out such snapshots, or .option("readChangeFeed", "true") to get every change'
        )

    def _changed_columns(self, first: int, last: int) -> tuple[int, Exception] | None:
        """Return the last snapshot before the columns changed after the query began."""
        if last < first or self._still_fits(last):
            return None
        low = min(max(first, int(self._table.snapshot.id) + 1), last)
        high = low + bisect_left(range(low, last), True, key=lambda s: not self._still_fits(s))
        name = self._table.full_name
        told = f"snapshot {high} changed the columns of {name}; all rows before it were delivered"
        if self._options.follows:
            told = self._misfit(self._version(high)) or told
        return high - 1, self._outdated(told)

    def _still_fits(self, snapshot: int) -> bool:
        now = self._version(snapshot)
        if self._options.follows:
            return self._misfit(now) is None
        return shape_of(now) == shape_of(self._table)

    def _outdated(self, told: str) -> Unsupported:
        hint = (
            ' to go on with the new columns, or set .option("onSchemaChange", "follow") to keep the'
            " columns of the start"
        )
        hint = "" if self._options.follows else hint
        return Unsupported(
            f"{told}; make the frame again, and start its query with the same checkpoint{hint}"
        )

    def _misfit(self, now: TableVersion) -> str | None:
        """Return why rows of a later version cannot have the query's columns, None if they can."""
        table, name = self._table, now.full_name
        snapshot = int(now.snapshot.id)
        job = self._state.store.ask(first_conversion, table.id, self._known, snapshot)
        if job is not None:
            return f"job {job.id} converted columns of {name} in snapshot {job.published}"
        other = misfit(table, now) if snapshot > self._known else None
        if other is None:
            return None
        return f"snapshot {snapshot} changed the type of column {other.name!r} of {name}"

    def _version(self, snapshot: int) -> TableVersion:
        return version_then(self._state, self._table, snapshot)

    def _as_of(self, last: int, first: int) -> TableVersion:
        """Return the table at a snapshot with the query's columns, by their ids.

        Raises Unsupported if rows since snapshot ``first`` have others in their place.
        """
        mine, found = self._table, self._version(last)
        told = self._misfit(found)
        if told is not None:
            raise self._outdated(told)
        job = self._state.store.ask(first_conversion, mine.id, first, self._known)
        if job is not None:
            instead = f"begin with a new checkpoint at startingVersion {job.first_feed}"
            raise converted_since(mine, job, first, instead)
        return replace(found, columns=mine.columns, first_names=mine.first_names)

    def _range(self, first: int, last: int) -> FeedRange:
        return self._state.store.ask(feed_range, first, last)

    def _whole(self, part: StreamPart) -> DataFrame:
        """Return rows that the table held, as inserts if the stream is a change feed."""
        state, table = self._state, self._as_of(part.first, part.first)
        as_feed = self._options.changes
        return whole_rows(state, table, part, as_feed=as_feed)

    def _arrivals(self, found: FeedRange, last: int) -> Feed:
        return arrivals_of(self._state, self._as_of(last, found.span.first), found, last)

    def _added(self, part: StreamPart) -> DataFrame:
        found = self._range(part.first, part.last)
        state = self._state
        if self._options.changes:
            table = self._as_of(part.last, part.first)
            return read_changes(state, table, found)
        skipped: set[int] = set()
        if self._options.skips_changes:
            skipped = with_deletes(((int(s.id), e) for s, e in found.snapshots), self._table.id)
        return added_rows(state.spark, self._arrivals(found, part.last), part, skipped)


def version_then(state: LakeState, table: TableVersion, snapshot: int) -> TableVersion:
    """Return a table at a snapshot, whatever it is called there, with its columns there."""
    with state.store.read() as connection:
        at = catalog_read.snapshot(connection, version=snapshot)
        named = catalog_read.name_at(connection, table.id, at)
        name = named or (table.schema.name, table.name)
        return catalog_read.table(connection, at, *name, state.info)


def arrivals_of(state: LakeState, table: TableVersion, found: FeedRange, last: int) -> Feed:
    """Return where the rows are that the snapshots of a range added, up to ``last``.

    Rows have the columns of ``table``, which is a version of that snapshot.
    """
    logged = ((s.id, entries) for s, entries in found.snapshots if s.id <= last)
    span = replace(found.span, last=last)
    return look_up(state, table, span, classify(logged, table.id))


def added_rows(
    spark: SparkSession, feed: Feed, part: StreamPart, skipped: Collection[int]
) -> DataFrame:
    """Return the added rows of a part, without those of the snapshots ``skipped``."""
    plan = feed.plan
    needed = replace(
        plan,
        born=tuple(f for f in plan.born if _is_needed(f, part, skipped)),
        born_partly=tuple(f for f in plan.born_partly if _is_needed(f, part, skipped)),
    )
    return added_frame(spark, replace(feed, plan=needed), part, skipped)


def whole_rows(
    state: LakeState, table: TableVersion, part: StreamPart, *, as_feed: bool
) -> DataFrame:
    """Return the rows of a part that the table held; ``as_feed`` makes them inserts."""
    rows = table_rows(state.store, table, state.layouts)
    kept = replace(rows, files=tuple(f for f in rows.files if may_hold(f, part)))
    if not (as_feed or part.low or part.high is not None):
        return kept.frame(state.spark)
    found = with_ids_of(kept.frame(state.spark, origins=(Origin.ROW_ID,)), part)
    if as_feed:
        return as_inserts(found, table)
    return found.drop(Origin.ROW_ID)


def _is_needed(file: DataFile, part: StreamPart, skipped: Collection[int]) -> bool:
    # A file that began in one snapshot and has rows of others says so.
    is_skipped = file.partial_max is None and file.begin_snapshot in skipped
    return may_hold(file, part) and not is_skipped
