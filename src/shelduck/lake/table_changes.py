"""The changes of the rows of a table: the change feed."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from shelduck.catalog.read import read as catalog_read
from shelduck.catalog.read.feed_files import (
    Bound,
    FeedRange,
    feed_files,
    feed_range,
    is_empty,
    require_closed,
    snapshot_at,
)
from shelduck.catalog.read.inlined_rows import inlined_changes
from shelduck.catalog.read.read import name_mappings
from shelduck.catalog.running.job_rows import first_conversion
from shelduck.engine.session import DataFrame
from shelduck.errors import InvalidRequest, NotFound, ShelduckError, Unsupported
from shelduck.lake.branch_names import twin_named
from shelduck.lake.lookup import TableHandle, Zone, instant
from shelduck.lake.results import TableName
from shelduck.lake.spark_options import ChangesWanted
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork, view_of
from shelduck.model.changes.feed_plan import FeedSnapshots, Span, classify, plan_changes
from shelduck.model.changes.job import Job
from shelduck.model.tables.table_version import TableVersion
from shelduck.read.pruning import Pruner
from shelduck.read.scan.change_feed import Feed, change_frame
from shelduck.read.scan.images import as_sparks, nothing

Moment = int | str | datetime
_INSTANT = timedelta(microseconds=1)


class ChangeVerbs(TableHandle):
    """Reading what changed."""

    def changes(self, start: Moment, end: Moment | None = None) -> DataFrame:
        """Return what happened to the rows from ``start`` to ``end``, both included.

        Each change is a row: the columns that the table has at ``end``, whatever they were at the
        time of the change, followed by ``_change_type`` (insert, delete, update_preimage,
        update_postimage), ``_commit_version``, ``_commit_timestamp`` and ``_row_id``, which a row
        keeps through updates. The order is undefined. Compaction is not a change, nor are rows that
        were inserted and deleted in one transaction. Changes of an open transaction are not shown.

        Args:
            start: A snapshot id, or a time (without an offset, in the session's time zone): the
                first snapshot at or after it.
            end: A snapshot id, or a time: the last snapshot at or before it. By default the newest.

        Raises:
            NotFound: a snapshot does not exist, or a needed one has expired; the message names the
                oldest one that the feed can begin with.
            InvalidRequest: ``start`` is after ``end``, or a column has a name that the feed uses.
            Unsupported: a job converted columns after ``start``; the message says where the range
                has to end and the next one can begin.
        """
        return changes_between(self._view(), self.name, start, end)


def changes_between(
    unit: UnitOfWork, name: TableName, start: Moment, end: Moment | None
) -> DataFrame:
    """Return the change feed of a table by its name at the end of the range."""
    try:
        return _changes_between(unit, name, start, end)
    except NotFound:
        twin = twin_named(unit.workspace, name, unit.state.current.schema)
        if twin is None:
            raise
        return _changes_between(unit, twin, start, end)


def _changes_between(
    unit: UnitOfWork, name: TableName, start: Moment, end: Moment | None
) -> DataFrame:
    last = unit.workspace.base.id if end is None else end
    zone = unit.state.time_zone
    with unit.state.store.read() as connection:
        found = feed_range(connection, _bound(start, zone), _bound(last, zone))
        table = catalog_read.table(connection, found.last, name.home, name.name, unit.state.info)
        first = found.snapshots[0][0].id
        converting = first_conversion(connection, table.id, first, found.last.id)
    if converting is not None:
        raise converted_since(table, converting, first)
    return read_changes(unit.state, table, found)


def spark_changes(unit: UnitOfWork, name: TableName, wanted: ChangesWanted) -> DataFrame:
    """Return the change feed in the form of Spark's CHANGES, without row ids.

    It has no rows if no snapshot is between the ends. Raises what `ChangeVerbs.changes` raises.
    """
    zone = unit.state.time_zone
    start = _bound(wanted.start, zone)
    end = unit.workspace.base.id if wanted.end is None else _bound(wanted.end, zone)
    first, last = _after(start, int(wanted.excludes_start)), _after(end, -int(wanted.excludes_end))
    if not _is_ordered(start, end):
        # The error is about the ends as they were given.
        first, last = start, end
    with unit.state.store.read() as connection:
        at = snapshot_at(connection, end).id
        has_none = _is_ordered(start, end) and is_empty(connection, first, last)
    if has_none:
        feed = nothing(changes_between(unit, name, at, at))
    else:
        feed = changes_between(unit, name, first, last)
    return as_sparks(feed, net=wanted.net, updates=wanted.updates)


def _is_ordered(start: Bound, end: Bound) -> bool:
    if isinstance(start, int) and isinstance(end, int):
        return start <= end
    return not (isinstance(start, datetime) and isinstance(end, datetime)) or start <= end


def _after(bound: Bound, steps: int) -> Bound:
    return bound + steps if isinstance(bound, int) else bound + steps * _INSTANT


def changes_of(state: LakeState, table: TableVersion, first: int, last: int) -> DataFrame:
    """Return the change feed of a table, whatever it was called in the last snapshot.

    Raises NotFound if it was dropped and another table has its name.
    """
    with state.store.read() as connection:
        at = catalog_read.snapshot(connection, version=last)
        named = catalog_read.name_at(connection, table.id, at)
        name = TableName(*named) if named else TableName.of(table)
        if catalog_read.table(connection, at, name.home, name.name, state.info).id != table.id:
            raise NotFound(
                f"table {name} was dropped, and snapshot {last} has another table of that name",
                about="table",
            )
    return changes_between(view_of(state, None), name, first, last)


def read_changes(state: LakeState, table: TableVersion, found: FeedRange) -> DataFrame:
    """Return the changes of a range of snapshots; ``table`` is the version of its last snapshot.

    Raises NotFound if rows that were deleted in the range have expired, and all errors of reading
    the table.
    """
    snapshots = classify(((s.id, entries) for s, entries in found.snapshots), table.id)
    require_closed(found, table)
    feed = look_up(state, table, found.span, snapshots)
    return change_frame(state.spark, feed, {int(s.id): s.time for s, _ in found.snapshots})


def look_up(state: LakeState, table: TableVersion, span: Span, snapshots: FeedSnapshots) -> Feed:
    """Return where the changes of a span are, with the columns of ``table``."""
    with state.store.read() as connection:
        files = feed_files(connection, table, span)
        mappings = name_mappings(connection, (f.file.mapping_id for f in files))
        came, went = inlined_changes(connection, table, span.first, span.last)
    known = state.layouts.fill([f.file for f in files], table.full_name)
    files = [replace(f, file=file) for f, file in zip(files, known, strict=True)]
    plan = plan_changes(span, snapshots, files)
    return Feed(table, plan, mappings, came, went, Pruner(state.store, table, knows_values=False))


def converted_since(
    table: TableVersion, job: Job, first: int, instead: str | None = None
) -> Unsupported:
    """Return the error for changes before a conversion, which have values of the old column."""
    assert job.published is not None
    instead = instead or f"end at {job.published - 1}, and begin at {job.first_feed}"
    return Unsupported(
        f"job {job.id} converted columns of {table.full_name} in snapshot {job.published}, and"
        f" changes from snapshot {first} on have the old columns; {instead} for later changes"
    )


def _bound(moment: Moment, zone: Zone) -> Bound:
    if isinstance(moment, bool):
        raise InvalidRequest(f"{moment!r} is neither a snapshot id nor a time")
    return moment if isinstance(moment, int) else instant(moment, zone)


def feed_since(unit: UnitOfWork, table: TableVersion, since: int) -> DataFrame | None:
    """Return the change feed of a table after a snapshot, None if it does not reach back."""
    try:
        return changes_between(unit, TableName.of(table), since + 1, None)
    except ShelduckError:
        return None
