"""Streams into a table, and out of it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Self

from shelduck import clock
from shelduck.catalog.read import read as catalog_read
from shelduck.catalog.read.feed_files import dropped_in, touches
from shelduck.catalog.read.table_facts import column_versions
from shelduck.catalog.running.job_rows import first_conversion
from shelduck.engine.failures import telling_spark
from shelduck.engine.files.storage import delete_file, list_names, read_text, write_text
from shelduck.engine.session import DataFrame, StructType
from shelduck.errors import InvalidRequest, NotFound
from shelduck.lake.results import Committed
from shelduck.lake.table_changes import changes_of
from shelduck.lake.unit import UnitOfWork, carry_out_anew
from shelduck.model.changes.change import Verb
from shelduck.model.changes.evolution import NO_EVOLUTION, evolution_of
from shelduck.model.changes.records import Batch
from shelduck.model.files.place import place_below
from shelduck.model.shadows.type_changes import first_narrowing
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.intervals import whole_number
from shelduck.model.text.stored import Stored, record
from shelduck.read.scan.change_feed import query_id_of, run_id_of
from shelduck.read.scan.expect import expected_members
from shelduck.write.appending import Manner, append
from shelduck.write.row_verbs import RowVerbs

Handle = Callable[[DataFrame, int], object]
# The newest batch that this process wrote to a table, and the run of its query, by lake, table and
# query. A batch that comes again in the same run is not a repetition after a crash.
_landed: dict[tuple[str, int, str], tuple[str, int]] = {}


class StreamVerbs(RowVerbs, in_parts=True):
    """Exactly once into the table, in order out of it."""

    def sink(
        self,
        query_id: str | None = None,
        write: Callable[[Self, DataFrame], object] | None = None,
        *,
        evolve: str | Collection[str] | None = None,
        rescue: str | None = None,
        expect: StructType | str | None = None,
    ) -> Callable[[DataFrame, int], None]:
        """Return a function for ``foreachBatch`` that writes each batch to the table exactly once.

            df.writeStream.foreachBatch(table.sink()).option("checkpointLocation", …).start()

        A batch is one snapshot. Its number is recorded in the same commit, so that a batch which
        Spark repeats after a crash is skipped.

        Args:
            query_id: The series that batches are numbered in. By default the id that Spark keeps in
                the query's checkpoint. Your own name must change with the checkpoint: batches then
                begin at 0 again, and would be refused; so is a second sink of the same name.
            write: What to do with a batch; by default `append`. It gets the table, in a
                transaction, and the batch: ``lambda table, batch: table.append(batch)``. It may run
                again after a conflict with another commit.
            evolve, rescue: What batches may change, and where the rest goes, as in `append`.
            expect: The columns that the stream was built for, as in `append`.

        The function raises InvalidRequest for a batch older than the newest one that landed, and
        for one that the same run of the query has already landed, and what writing raises. It does
        not work over Spark Connect, where Spark runs it in another process.
        """
        if self._unit is not None:
            raise InvalidRequest(
                "a sink makes its own transactions; use lake.table(...) outside of the transaction"
            )
        how = Manner(evolution=evolution_of(evolve, rescue, expects=expected_members(expect)))
        if write is not None and how.evolution != NO_EVOLUTION:
            raise InvalidRequest(
                f"the sink of {self.name} has a function that writes its batches; pass evolve,"
                " rescue and expect to table.append in it"
            )

        def land(batch: DataFrame, batch_id: int) -> None:
            query = query_id or query_id_of(batch)
            if query is None:
                raise InvalidRequest(
                    "outside of a streaming query, a sink needs a query id; use table.sink('name')"
                )
            self._land(batch, query, batch_id, write, how)

        return land

    def follow(
        self, handle: Handle, checkpoint: str, *, start: int = 0, interval: float | None = None
    ) -> int | None:
        """Pass the change feed of the table to a function, batch by batch, as snapshots appear.

        ``handle(changes, number)`` gets the rows of `changes` for the snapshots since the last
        batch, and the batch's number. A batch is done when it returns; after a crash an unfinished
        batch is repeated with the same number and the same rows. A batch ends where a job converts
        columns, or one becomes narrower, so that each has the columns of its own snapshots. Another
        table's ``sink("name")`` is such a function, and copies each change exactly once. Renames
        are followed; a new table with the old name is not.

        Args:
            handle: The function. Snapshots that did not touch the table are skipped.
            checkpoint: A directory for this follower alone, where it keeps its position.
            start: The first snapshot, if the checkpoint is new.
            interval: Seconds to wait for new snapshots; by default, return after the newest one.

        Returns the last snapshot that was handed out, None if there was none.

        Raises:
            NotFound: needed snapshots have expired, or the table was dropped and all changes before
                that were handed out.
            InvalidRequest: the checkpoint belongs to another table.
        """
        table = self._version()
        cursor = FeedCursor(checkpoint, table.uuid)
        if cursor.begun is not None:
            begun = cursor.begun
            handle(changes_of(self._state, table, begun.first, begun.last), begun.number)
            cursor.finish(begun)
        handed = start - 1 if cursor.last is None else cursor.last
        following = max(handed, cursor.passed) + 1
        while True:
            news = self._hand_news(handle, table, cursor, following)
            following = max(following, news.last + 1)
            if news.is_end:
                told = f"table {table.full_name} was dropped in snapshot {following}"
                raise NotFound(f"{told}; all changes before that were handed out", about="table")
            if not news.is_newest:
                continue
            if interval is None:
                return cursor.last
            clock.sleep(interval)

    def _land(
        self,
        batch: DataFrame,
        query: str,
        batch_id: int,
        write: Callable[[Self, DataFrame], object] | None,
        how: Manner,
    ) -> None:
        run, where = run_id_of(batch), self._state.store.where

        def work(unit: UnitOfWork) -> None:
            number = unit.workspace.table(self.name).id
            unit.batch = Batch(query, batch_id, number)
            if unit.has_landed():
                if run is not None and _landed.get((where, int(number), query)) == (run, batch_id):
                    raise InvalidRequest(
                        f"batch {batch_id} of this query has already been written to {self.name} by"
                        " another sink, or by another call of this one; give each sink its own"
                        " name, as in table.sink('first'), or write all rows with one sink"
                    )
                return
            with telling_spark(lambda: f"batch {batch_id} of sink() of {self.name}"):
                if write is None:
                    append(self._state, unit, self.name, batch, how)
                else:
                    write(type(self)(self._state, self.name, unit), batch)

        done = carry_out_anew(self._state, work)
        if run is not None and isinstance(done, Committed):
            _landed[where, int(self._version().id), query] = (run, batch_id)

    def _hand_news(
        self, handle: Handle, table: TableVersion, cursor: FeedCursor, first: int
    ) -> _News:
        """Hand out the changes from a snapshot on, or record that there are none."""
        news = self._news(table, first)
        if news.concern:
            # Read before the batch begins: if this fails, another start may be given.
            changes = changes_of(self._state, table, first, news.last)
            batch = cursor.begin(first, news.last)
            handle(changes, batch.number)
            cursor.finish(batch)
        elif news.last >= first:
            cursor.pass_over(news.last)
        return news

    def _news(self, table: TableVersion, first: int) -> _News:
        """Return what is new from a snapshot on.

        A batch ends before a job publishes converted columns, since earlier changes have the old
        ones, before a column becomes narrower, and before the table is dropped.
        """
        with self._state.store.read() as connection:
            newest = last = int(catalog_read.snapshot(connection).id)
            logged = catalog_read.logged(connection, first, newest) if first <= newest else []
            gone = dropped_in(logged, table)
            if gone is not None:
                last = gone - 1
            job = first_conversion(connection, table.id, first, last)
            altered = (Verb.ALTERED_TABLE, table.id)
            narrowed = None
            if any((e.verb, e.id) == altered for _, entries in logged for e in entries):
                versions = column_versions(connection, table.id)
                narrowed = first_narrowing(versions, first, last)
        ends = [narrowed, None if job is None else job.published]
        if any(ends):
            gone, last = None, min(end for end in ends if end is not None) - 1
        concern = first <= last and touches(logged, table, first, last)
        return _News(last, concern, last == newest, gone is not None)


@dataclass(frozen=True, slots=True)
class _News:
    """The snapshots up to ``last``: whether they touched a table, and what follows them."""

    last: int
    concern: bool
    is_newest: bool
    is_end: bool


@dataclass(frozen=True, slots=True)
class FollowedBatch:
    """Batch ``number``: the snapshots ``first`` to ``last``."""

    number: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _Begun:
    """The content of a batch's file."""

    table: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _Passed:
    """The content of ``passed.json``."""

    table: str
    to: int


_BEGUN: Stored[_Begun] = Stored("content", record(_Begun))
_PASSED: Stored[_Passed] = Stored("content", record(_Passed))


class FeedCursor:
    """The durable position of one follower of one table."""

    def __init__(self, directory: str, table_uuid: str) -> None:
        self._place = directory.rstrip("/") + "/"
        self._uuid = table_uuid
        names = list_names(self._place)
        self._said = self._text("passed") if "passed.json" in names else None
        self.passed = -1 if self._said is None else self._passed_in(self._said)
        """The last snapshot without changes of the table, -1 if there is none."""
        found = (whole_number(n[:-5]) for n in names if n.endswith(".json"))
        numbers = sorted(n for n in found if n is not None)
        self._newest = self._read(numbers[-1]) if numbers else None
        is_done = self._newest is not None and f"{self._newest.number}.done" in names
        self.begun = None if is_done else self._newest
        """The batch that was begun and is not done."""

    @property
    def last(self) -> int | None:
        """The last snapshot that was passed to the follower, None if there is none."""
        return None if self._newest is None else self._newest.last

    def pass_over(self, last: int) -> None:
        """Record that there are no changes up to a snapshot except those already passed on."""
        self._said = _PASSED.write(_Passed(self._uuid, last), self._said)
        write_text(self._path("passed"), self._said)
        self.passed = last

    def begin(self, first: int, last: int) -> FollowedBatch:
        """Record the next batch, of these snapshots, so that it survives a crash."""
        number = 0 if self._newest is None else self._newest.number + 1
        batch = FollowedBatch(number, first, last)
        content = _BEGUN.write(_Begun(self._uuid, first, last))
        write_text(self._path(str(number)), content)
        self._newest = self.begun = batch
        return batch

    def finish(self, batch: FollowedBatch) -> None:
        """Record that a batch is done, and remove those before it."""
        write_text(f"{self._place}{batch.number}.done", "")
        self.begun = None
        for suffix in ("json", "done"):
            delete_file(place_below(self._place, f"{batch.number - 1}.{suffix}"))

    def _read(self, number: int) -> FollowedBatch:
        found = _BEGUN.read(self._text(str(number)), self._path(str(number)))
        self._require_own(found.table)
        return FollowedBatch(number, found.first, found.last)

    def _passed_in(self, text: str) -> int:
        found = _PASSED.read(text, self._path("passed"))
        self._require_own(found.table)
        return found.to

    def _require_own(self, table: str) -> None:
        if table != self._uuid:
            raise InvalidRequest(
                f"{self._place} is the checkpoint of another table; give this one its own directory"
            )

    def _text(self, name: str) -> str:
        return read_text(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._place}{name}.json"
