"""Streams from table to table, and which table follows which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from shelduck import clock
from shelduck.carry.carrying import Carrying, Flow, Step
from shelduck.carry.flow import FlowText, paths_in, source_of
from shelduck.errors import AlreadyExists, Conflict, InvalidRequest, NotFound
from shelduck.lake.lookup import LakeHandle, TellsOfSpark, streams_into, version_at
from shelduck.lake.results import TableName, table_name
from shelduck.lake.spark_options import ChangesWanted, StreamOptions
from shelduck.lake.unit import UnitOfWork, refuse_in_transaction
from shelduck.model.changes.stream import Following
from shelduck.model.tables.properties import FOLLOWS
from shelduck.model.tables.schema import path_text
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import split_name
from shelduck.objects.catalog_verbs import Table


@dataclass(frozen=True, slots=True)
class ColumnLineage:
    """A column of a table that follows a column of another one, by the names of both now.

    ``query`` is the name of the stream between them. ``source_column`` is None for a column that
    the stream computes, and ``source`` is what the table was called when its last rows came if it
    is in another lake, whose files are at ``lake``.
    """

    table: str
    column: str
    source: str
    source_column: str | None
    query: str
    lake: str


@dataclass(frozen=True)
class Stream(TellsOfSpark, in_parts=True):
    """A stream of the rows that a table has, and gets later, into another table.

    Get one from `Lake.stream`.
    """

    _flow: Flow

    def _subject(self) -> str:
        return str(self._flow.source)

    def where(self, condition: str) -> Stream:
        """Return the stream of the rows that fulfil a condition, as SQL over the source's columns.

        The names in it mean the columns that have them when the stream begins, whatever they are
        called later.
        """
        text = self._flow.text
        return self._with(replace(text, conditions=(*text.conditions, condition)))

    def select(self, *expressions: str) -> Stream:
        """Return the stream of these columns, as SQL: ``"id"``, ``"a + b AS total"`` or ``"*"``.

        A column alone is followed in all that happens to it; with ``AS``, its name stays. What is
        computed gets another type if its columns do. Names mean what they mean in `where`.
        """
        text = self._flow.text
        if not expressions or text.expressions:
            raise InvalidRequest("select needs its expressions in one call")
        return self._with(replace(text, expressions=expressions))

    def _with(self, text: FlowText) -> Stream:
        return Stream(replace(self._flow, text=text))

    def to(
        self,
        sink: str | Table,
        *,
        on_schema_change: Literal["carry", "fail"] = "carry",
        on_drop: Literal["drop", "keep"] = "drop",
        query_id: str | None = None,
        interval: float | None = None,
    ) -> int | None:
        """Carry rows and changes of columns into a table; return the last snapshot that came.

        The first batch has the rows of the source, unless the stream begins later, and makes the
        sink if there is none. Each batch is one snapshot of the sink: changed columns, rows, and
        how far the stream is. It needs no checkpoint, and goes on after a crash or another call,
        by whichever process; of two at once, one goes on. A change that converts values runs as a
        job of the sink before the rows that need it.

        Columns are followed by their ids: renamed, added, dropped, moved, with other types,
        defaults, comments and NOT NULL. What somebody changed in the sink stays as it is there.

        Args:
            sink: A table of the lake, or one of another lake: ``other.table("b")``.
            on_schema_change: With "fail", changed columns are an error, and rows before are there.
            on_drop: With "keep", a column that the source drops stays, and is NULL in later rows.
            query_id: The stream's name, if several come from one table into the sink.
            interval: Seconds to wait for new snapshots; by default, return after the newest one.

        Raises:
            NotFound: needed snapshots of the source have expired, or it was dropped.
            InvalidRequest: the sink, or the stream's text, does not fit the source's columns. All
                before was carried; mend it, and run the stream again.
            Unsupported: a snapshot changed or deleted rows, and `Lake.stream` got no key.
        """
        _require_one_of(on_schema_change, "carry", "fail")
        _require_one_of(on_drop, "drop", "keep")
        carrying = self._carrying(sink, query_id)
        carrying = replace(carrying, keeps=on_drop == "keep", follows=on_schema_change == "carry")
        _require_sink(carrying)
        carried: int | None = None
        while True:
            step = carrying.next()
            if step is not None:
                carried = _carried(carrying, step)
            elif interval is None:
                return carried
            else:
                clock.sleep(interval)

    def plan(self, sink: str | Table, *, query_id: str | None = None) -> tuple[str, ...]:
        """Return the clauses of ALTER TABLE that the next batch runs on a sink; none is run."""
        step = self._carrying(sink, query_id).next()
        return () if step is None else tuple(map(str, step.planned()))

    def _carrying(self, sink: str | Table, query_id: str | None) -> Carrying:
        if isinstance(sink, Table):
            refuse_in_transaction(sink._unit, "a stream into a table")  # noqa: SLF001 - a handle
            state, name = sink._state, sink.name  # noqa: SLF001
        else:
            state = self._flow.state
            name = table_name(split_name(sink), state.current.schema)
        return Carrying(self._flow, state, name, query_id)


def _require_one_of(given: str, *known: str) -> None:
    if given not in known:
        raise InvalidRequest(f"{given!r} is none of {', '.join(map(repr, known))}")


def _carried(carrying: Carrying, step: Step) -> int:
    try:
        step.carry()
    except Conflict:
        # Another process has carried it meanwhile, or a batch of its own.
        later = carrying.next()
        if later is not None and later.last == step.last:
            raise
    return step.passed


def _require_sink(carrying: Carrying) -> None:
    """Make the sink if it is not there; InvalidRequest if the source follows it."""
    state = carrying.flow.state
    source = version_at(state, carrying.flow.source, None, None)
    try:
        sink = version_at(carrying.state, carrying.sink, None, None)
    except NotFound:
        try:
            carrying.make_sink(source)
        except AlreadyExists:
            # Of two that begin at once, one makes it; but it could be a view.
            if not UnitOfWork(carrying.state).workspace.has_table(carrying.sink):
                raise
        return
    above, waiting = {source.uuid}, [source.uuid]
    # Only a source that follows another table needs the others.
    known = list(streams_into(UnitOfWork(state))) if FOLLOWS in source.properties else []
    while waiting:
        at = waiting.pop()
        new = {one.source for table, one in known if table.uuid == at} - above
        above |= new
        waiting += new
    if sink.uuid in above:
        raise InvalidRequest(
            f"{sink.full_name} cannot follow {source.full_name}, which follows it; choose another"
            " table"
        )


def _tables(unit: UnitOfWork) -> Iterator[TableVersion]:
    workspace = unit.workspace
    for schema in workspace.schemas():
        for name in workspace.table_names(schema):
            yield workspace.table(TableName(schema.name, name))


class CarryVerbs(LakeHandle, in_parts=True):
    """Streams of a lake into tables."""

    def stream(
        self,
        source: str,
        *,
        starting_version: int | Literal["latest", "all"] | None = None,
        starting_timestamp: str | datetime | None = None,
        skip_change_commits: bool = False,
        ignore_deletes: bool = False,
        key: str | Sequence[str] = (),
    ) -> Stream:
        """Return the stream of a table's rows, and of those that are added to it later.

            lake.stream("orders").where("amount > 0").to("paid_orders")

        Args:
            source: The table.
            starting_version, starting_timestamp: Begin with what that snapshot, or the first one
                at or after that time, adds; "latest" with the next one, "all" with all rows that
                the source has. This is the default, but for a sink that has rows.
            skip_change_commits: Leave out snapshots that changed or deleted rows; by default, they
                end the stream.
            ignore_deletes: Leave out what only deletes rows.
            key: A column of the sink, or several. Rows that are updated or deleted in the
                source then are so in the sink, which is a table with this UNIQUE KEY. The source
                has at most one row of a key.
        """
        refuse_in_transaction(self._unit, "a stream")
        if starting_version is not None and not isinstance(starting_version, int):
            _require_one_of(starting_version, "latest", "all")
        latest = starting_version == "latest"
        version = None if isinstance(starting_version, str) else starting_version
        moment = None if starting_timestamp is None else str(starting_timestamp)
        if key and (skip_change_commits or ignore_deletes):
            raise InvalidRequest(
                "a stream with a key has all changes; leave out skip_change_commits and"
                " ignore_deletes"
            )
        options = StreamOptions(
            version,
            moment,
            latest,
            changes=bool(key),
            skips_changes=skip_change_commits,
            ignores_deletes=ignore_deletes,
            form=ChangesWanted(0, net=True) if key else None,
        )
        is_whole, name = starting_version == "all", self._name(source)
        keys = (key,) if isinstance(key, str) else tuple(key)
        return Stream(Flow(self._state, name, options, FlowText(), is_whole, keys))

    def lineage(self, table: str | None = None) -> tuple[ColumnLineage, ...]:
        """Return which columns follow which, through the streams of `stream`, by their ids.

        Args:
            table: Only what this table follows; by default, what each table of the lake does.
        """
        unit = UnitOfWork(self._state)
        by_uuid = {one.uuid: one for one in _tables(unit)}
        wanted = None if table is None else version_at(self._state, self._name(table), None, None)
        return tuple(
            line
            for sink, one in streams_into(unit)
            if wanted is None or sink.uuid == wanted.uuid
            for line in _lines(sink, one, by_uuid.get(one.source))
        )


def _lines(
    sink: TableVersion, one: Following, source: TableVersion | None
) -> Iterator[ColumnLineage]:
    there = paths_in(sink.columns)
    above = {} if source is None else paths_in(source.columns)
    for key, number in one.pairs:
        if number not in there:
            continue
        origin = source_of(key)
        found = None if origin is None else above.get(origin, one.paths.get(origin))
        column = None if found is None else path_text(found)
        name, own = one.table if source is None else source.full_name, path_text(there[number])
        yield ColumnLineage(sink.full_name, own, name, column, one.query, one.lake)
