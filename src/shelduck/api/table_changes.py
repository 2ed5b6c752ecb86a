"""What happened to the rows of a table: the change feed."""

from __future__ import annotations

from datetime import datetime

from shelduck.api.handle import TableHandle
from shelduck.api.instants import instant
from shelduck.api.results import TableName
from shelduck.api.state import LakeState
from shelduck.api.unit import UnitOfWork, view_of
from shelduck.catalog import read as catalog_read
from shelduck.catalog.jobs import first_conversion
from shelduck.catalog.read_changes import Bound, feed_range
from shelduck.errors import InvalidRequest, NotFound, Unsupported
from shelduck.model.job import Job
from shelduck.model.table import TableVersion
from shelduck.operations.changes import read_changes
from shelduck.spark.session import DataFrame

Moment = int | str | datetime


class ChangeVerbs(TableHandle):
    """Reading what changed."""

    def changes(self, start: Moment, end: Moment | None = None) -> DataFrame:
        """Return what happened to the rows from ``start`` to ``end``, both included.

        Each change is a row: the columns that the table has at ``end``, whatever they were when it
        happened, and behind them ``_change_type`` (insert, delete, update_preimage,
        update_postimage), ``_commit_version``, ``_commit_timestamp`` and ``_row_id``, which stays
        with a row through updates. The order is not defined. Compaction is no change, nor are rows
        that were inserted and deleted in one transaction. What an open transaction did is not in.

        Args:
            start: A snapshot id, or a time (text without an offset is UTC): the first snapshot at
                or after it.
            end: A snapshot id, or a time: the last snapshot at or before it. The newest when None.

        Raises:
            NotFound: there is no such snapshot, or one that is needed has expired; the message
                names the oldest that the feed can begin with.
            InvalidRequest: ``start`` lies behind ``end``, or a column has a name of the feed's own.
            Unsupported: a job has converted columns behind ``start``; the message names where the
                range may end and the next one begin.
        """
        return changes_between(self._state, self._view(), self.name, start, end)


def changes_between(
    state: LakeState, unit: UnitOfWork, name: TableName, start: Moment, end: Moment | None
) -> DataFrame:
    """Return the change feed of a table by its name at the end of the range."""
    last = unit.workspace.base.id if end is None else end
    with state.store.read() as connection:
        found = feed_range(connection, _bound(start), _bound(last))
        table = catalog_read.table(connection, found.last, name.schema, name.name, state.info)
        first = found.snapshots[0][0].id
        converting = first_conversion(connection, table.id, first, found.last.id)
    if converting is not None:
        raise _between(table, converting, first)
    return read_changes(state.spark, state.store, table, state.layouts, found)


def changes_of(state: LakeState, table: TableVersion, first: int, last: int) -> DataFrame:
    """Return the change feed of a table, whatever it was called in the last snapshot.

    Raises NotFound where another one has its name by then.
    """
    with state.store.read() as connection:
        at = catalog_read.snapshot(connection, version=last)
        named = catalog_read.name_at(connection, table.id, at)
        name = TableName(*named) if named else TableName.of(table)
        if catalog_read.table(connection, at, name.schema, name.name, state.info).id != table.id:
            raise NotFound(f"table {name} of snapshot {last} is another one", about="table")
    return changes_between(state, view_of(state, None), name, first, last)


def _between(table: TableVersion, job: Job, first: int) -> Unsupported:
    """Changes before a conversion have values of the old column, which is not there any more."""
    assert job.published is not None
    return Unsupported(
        f"columns of {table.full_name} were converted by job {job.id} in snapshot {job.published}:"
        f" changes from {first} on have others; end at {job.published - 1}, and begin at"
        f" {job.published} for what came after"
    )


def _bound(moment: Moment) -> Bound:
    if isinstance(moment, bool):
        raise InvalidRequest(f"{moment!r} is no snapshot id and no time")
    return moment if isinstance(moment, int) else instant(moment)
