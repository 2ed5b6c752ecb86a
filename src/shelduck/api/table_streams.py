"""Streams into a table, and out of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self

from shelduck.api.table_changes import changes_between
from shelduck.api.table_rows import RowVerbs
from shelduck.api.unit import UnitOfWork
from shelduck.catalog import read as catalog_read
from shelduck.catalog.jobs import first_conversion
from shelduck.catalog.read_changes import touches
from shelduck.errors import Conflict, InvalidRequest
from shelduck.model.batch import Batch
from shelduck.model.table import TableVersion
from shelduck.operations.cursor import Cursor, FollowedBatch
from shelduck.spark.session import DataFrame
from shelduck.spark.streaming import query_id_of

Handle = Callable[[DataFrame, int], object]
_ATTEMPTS = 5


class StreamVerbs(RowVerbs):
    """Exactly once into the table, in order out of it."""

    def sink(
        self,
        query_id: str | None = None,
        write: Callable[[Self, DataFrame], object] | None = None,
    ) -> Callable[[DataFrame, int], None]:
        """Return a function for ``foreachBatch`` that brings each batch into the table once.

            df.writeStream.foreachBatch(table.sink()).option("checkpointLocation", …).start()

        A batch is one snapshot. Its number is recorded in the same commit, so a batch that Spark
        hands out again after a crash is skipped.

        Args:
            query_id: What the batches are counted under. By default the id that Spark keeps in the
                query's checkpoint. A name of your own must change with the checkpoint: batches
                begin at 0 again then, and are refused.
            write: What to do with a batch, `append` by default. It gets the table, in a
                transaction, and the batch: ``lambda table, batch: table.append(batch)``. It may run
                again when another commit is in the way.

        The function raises InvalidRequest for a batch older than the newest that landed, and what
        writing raises. Not over Spark Connect, where Spark runs it in another process.
        """
        if self._unit is not None:
            raise InvalidRequest("a sink makes transactions of its own: take it from the lake")

        def land(batch: DataFrame, batch_id: int) -> None:
            query = query_id or query_id_of(batch)
            if query is None:
                raise InvalidRequest(
                    "outside of a streaming query a sink needs a query id: table.sink('name')"
                )
            for attempt in range(_ATTEMPTS):
                try:
                    self._land(batch, query, batch_id, write)
                except Conflict:
                    if attempt == _ATTEMPTS - 1:
                        raise
                else:
                    return

        return land

    def follow(
        self,
        handle: Handle,
        checkpoint: str,
        *,
        start: int = 0,
        interval: float | None = None,
    ) -> int | None:
        """Hand the change feed of the table to a function, batch by batch, as snapshots come.

        ``handle(changes, number)`` gets the rows of `changes` over the snapshots since the batch
        before, and the batch's number. A batch is done when it returns; after a crash the one that
        was begun comes again, with the same number and the same rows. A batch ends where a job
        converts columns, so each has the columns of its own time. Another table's
        ``sink("name")`` is such a function, and makes the copy exactly once.

        Args:
            handle: The function. Snapshots that did not touch the table are passed over.
            checkpoint: A directory of this follower alone, where it keeps its place.
            start: The first snapshot, when the checkpoint is new.
            interval: Seconds to wait for new snapshots; without, return when all are handed out.

        Returns the last snapshot that was handed out, None when none ever was.

        Raises:
            NotFound: snapshots that are needed have expired.
            InvalidRequest: the checkpoint is another table's.
        """
        table = self._version()
        cursor = Cursor(checkpoint, table.uuid)
        if cursor.begun is not None:
            self._hand(handle, cursor, cursor.begun)
        following = start if cursor.last is None else cursor.last + 1
        while True:
            last, touched, is_newest = self._news(table, following)
            if touched:
                self._hand(handle, cursor, cursor.begin(following, last))
            following = max(following, last + 1)
            if not is_newest:
                continue
            if interval is None:
                return cursor.last
            time.sleep(interval)

    def _land(
        self,
        batch: DataFrame,
        query: str,
        batch_id: int,
        write: Callable[[Self, DataFrame], object] | None,
    ) -> None:
        unit = UnitOfWork(self._state, self._state.commit_info())
        unit.batch = Batch(query, batch_id, unit.workspace.table(self.name).id)
        if unit.has_landed():
            return
        table = type(self)(self._state, self.name, unit)
        try:
            if write is None:
                table.append(batch)
            else:
                write(table, batch)
            unit.commit()
        except BaseException:
            unit.rollback()
            raise

    def _hand(self, handle: Handle, cursor: Cursor, batch: FollowedBatch) -> None:
        view = self._view()
        changes = changes_between(self._state, view, self.name, batch.first, batch.last)
        handle(changes, batch.number)
        cursor.finish(batch)

    def _news(self, table: TableVersion, first: int) -> tuple[int, bool, bool]:
        """Return the last snapshot of a batch that begins with ``first``.

        And whether one of these touched the table, and whether it is the newest: a batch ends
        before a job shows converted columns, since the changes before have the old ones.
        """
        with self._state.store.read() as connection:
            newest = last = int(catalog_read.snapshot(connection).id)
            job = first_conversion(connection, table.id, first, newest)
            if job is not None and job.published is not None:
                last = job.published - 1
            is_news = first <= last and touches(connection, table, first, last)
        return last, is_news, last == newest
