"""One stream from a table into another one: batch by batch, with what its columns become.

The sink keeps the position: the number of its newest batch is the last snapshot of the source whose
rows it holds, and a tag pairs its columns with those of the source. Rows, changed columns, number
and tag are one commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from shelduck.alter.verb import ShapeVerbs
from shelduck.carry.flow import FlowText, Names, Output, filling, key_after, paths_in, source_of
from shelduck.carry.sink_changes import SinkChanges, StreamColumns, sink_changes
from shelduck.catalog.commit.own_rows import newest_landed
from shelduck.catalog.running.job_rows import jobs, published_conversions
from shelduck.engine.session import DataFrame, with_values
from shelduck.engine.types import struct_type
from shelduck.errors import AlreadyExists, InvalidRequest, ShelduckError
from shelduck.jobs.jobs import SchemaChangeJob
from shelduck.lake.evolution.plan import plan_alter
from shelduck.lake.lookup import rows_of, version_at
from shelduck.lake.results import TableName
from shelduck.lake.spark_options import StreamOptions
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork, carry_out, carry_out_anew
from shelduck.model.changes.change import alteration, is_look
from shelduck.model.changes.job import successors
from shelduck.model.changes.modify import TableChange
from shelduck.model.changes.records import BEFORE_FIRST, Batch
from shelduck.model.changes.schema_change import ChangeType, SetNullable
from shelduck.model.changes.stream import Following, StreamPosition, followings, with_following
from shelduck.model.tables.keys import DELETE_SIGN, KeyModel, KeySpec, table_keys
from shelduck.model.tables.schema import Field, FieldId, Path, path_text
from shelduck.model.tables.table_version import Conversion, TableVersion
from shelduck.objects.catalog_verbs import CatalogVerbs
from shelduck.read.scan.images import CAME, WENT
from shelduck.read.scan.images import rows_of as rows_of_feed
from shelduck.streams.streamed import TableStream, version_then
from shelduck.write.appending import Manner, append


@dataclass(frozen=True, slots=True)
class Flow:
    """What a stream takes: the rows of a source, by its options and its text.

    ``is_whole``: all rows are wanted, even if the table that gets them has some already. With a
    ``key``, the stream has all changes of the rows, and they reach those of the same key.
    """

    state: LakeState
    source: TableName
    options: StreamOptions
    text: FlowText
    is_whole: bool
    key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Carrying:
    """A flow into a sink, which may be in another lake.

    ``keeps``: columns that the source drops stay in the sink. Without ``follows``, a change of the
    columns is an error.
    """

    flow: Flow
    state: LakeState
    sink: TableName
    query: str | None
    keeps: bool = False
    follows: bool = True

    def make_sink(self, source: TableVersion) -> None:
        """Create the sink, with the columns that the stream has now and all that is true of them.

        InvalidRequest for a text that does not fit the columns of the source.
        """
        flow = self.flow
        nothing = TableStream(flow.state, source, flow.options).nothing()
        _, outputs = flow.text.read(nothing, source, paths_in(source.columns))
        plain = [replace(one, field=_bare(one.field)) for one in outputs]

        def stage(unit: UnitOfWork) -> None:
            # A table has its keys first.
            fronts = {name.lower() for name in flow.key}
            fields = sorted((o.field for o in outputs), key=lambda f: f.name.lower() not in fronts)
            columns = struct_type(fields)
            keys = KeySpec(KeyModel.UNIQUE, flow.key) if flow.key else None
            CatalogVerbs(self.state, unit).create_table(str(self.sink), columns, keys=keys)
            sink = unit.workspace.table(self.sink)
            found = sink_changes(
                sink, StreamColumns(plain, {}), StreamColumns(outputs, source.comments), {}
            )
            if found.changes:
                ShapeVerbs(self.state, self.sink, unit).alter(*found.changes)
            sink = unit.workspace.table(self.sink)
            self.record(unit, self.following(sink, found, source, paths_in(source.columns)))

        carry_out(self.state, None, stage)

    def name_of_stream(self, source: TableVersion) -> str:
        """Return what the sink calls the stream."""
        return self.query or f"carry {source.uuid}"

    def following(
        self, sink: TableVersion, found: SinkChanges, source: TableVersion, names: Names
    ) -> Following:
        """Return what the changed sink knows of the stream, which is at a version of the source."""
        flow = self.flow
        paths = sorted(found.paths.items())
        return Following(
            self.name_of_stream(source),
            sink.uuid,
            source.uuid,
            flow.state.info.data_path,
            source.full_name,
            int(source.snapshot.id),
            str(flow.text),
            _stored(paths_in(source.columns) if flow.text.is_plain else names),
            tuple((key, int(sink.columns.get(path, sink.full_name).id)) for key, path in paths),
        )

    def record(self, unit: UnitOfWork, known: Following) -> None:
        """Let the sink know of the stream."""
        sink = unit.workspace.table(self.sink)
        properties = with_following(sink.properties, known, sink.full_name)
        unit.workspace.alter_table(alteration(sink, replace(sink, properties=properties)))

    def next(self) -> Step | None:
        """Return the next batch, None if there is nothing new."""
        source = version_at(self.flow.state, self.flow.source, None, None)
        sink = version_at(self.state, self.sink, None, None)
        query = self.name_of_stream(source)
        known = next(
            (f for f in followings(sink.properties, sink.uuid, sink.full_name) if f.query == query),
            None,
        )
        if known is not None and known.source != source.uuid:
            raise InvalidRequest(
                f"stream {query!r} carries {known.table} into {sink.full_name}, and"
                f" {source.full_name} is another table; give this one another query_id"
            )
        with self.state.store.read() as connection:
            last = newest_landed(connection, query, sink.id)
        if known is None or last is None:
            self._require_start(sink, source)
            return self._first(query, source, known)
        return self._following(known, source, last)

    def _require_start(self, sink: TableVersion, source: TableVersion) -> None:
        """Refuse to add all rows of a source to a sink that has rows of unknown origin."""
        options = self.flow.options
        starts = (options.version, options.timestamp)
        if self.flow.is_whole or options.from_newest or any(s is not None for s in starts):
            return
        if not rows_of(UnitOfWork(self.state), TableName.of(sink), needs_all=False).is_empty:
            raise InvalidRequest(
                f"{sink.full_name} has rows, and this stream has carried none of"
                f" {source.full_name} into it; say starting_version='all' to add all rows that the"
                " source has, 'latest' for those that are added from now on, or the snapshot to"
                " begin with"
            )

    def _first(self, query: str, source: TableVersion, made: Following | None) -> Step | None:
        """Return the first batch; a stream that has ``made`` its sink did so with older columns."""
        stream = TableStream(self.flow.state, source, self.flow.options)
        end = stream.latest(None, None)
        if end is None:
            return None
        rows, state = stream.batch(None, end), self.flow.state
        before = None if made is None else version_then(state, source, made.passed)
        return Step(self, query, made, before, source, rows, BEFORE_FIRST, end.snapshot - 1)

    def _following(self, known: Following, source: TableVersion, last: int) -> Step | None:
        state, newest = self.flow.state, int(source.snapshot.id)
        first = max(last, known.passed) + 1
        if newest < first:
            return None
        before = version_then(state, source, first - 1)
        while first <= newest:
            now = version_then(state, source, first)
            stream = TableStream(state, now, self.flow.options)
            until = stream.stop_before_other_columns(first)
            start = StreamPosition(source.uuid, first)
            end = stream.latest(start, None)
            if end is not None:
                passed = end.snapshot - 1
                now = now if passed == first else version_then(state, source, passed)
                rows = stream.batch(start, end)
                return Step(self, known.query, known, before, now, rows, last, passed)
            first = until + 1
        return None


class NeedsJob(ShelduckError):
    """The changes of the sink convert values: a job does so first."""

    def __init__(self, changes: tuple[TableChange, ...]) -> None:
        super().__init__("; ".join(map(str, changes)))
        self.changes = changes


@dataclass(frozen=True, slots=True)
class Step:
    """One batch: what came to the source up to a snapshot, and how its columns changed before.

    ``known`` is what the sink says of the stream, and ``before`` the source as it was when the
    batch ``last`` ended; None for the first batch.
    """

    carrying: Carrying
    query: str
    known: Following | None
    before: TableVersion | None
    now: TableVersion
    news: DataFrame
    last: int
    passed: int

    @property
    def rows(self) -> DataFrame:
        """The rows that came."""
        return rows_of_feed(self.news, CAME) if self.carrying.flow.key else self.news

    def carry(self) -> None:
        """Commit the batch; a change that converts values is a job, which runs before it."""
        while True:
            try:
                carry_out_anew(self.carrying.state, self._land)
            except NeedsJob as needs:
                self._convert(needs.changes)
            else:
                return

    def planned(self) -> tuple[TableChange, ...]:
        """Return what the batch changes in the columns of the sink."""
        return self._changes(UnitOfWork(self.carrying.state))[0].changes

    def _land(self, unit: UnitOfWork) -> None:
        carrying = self.carrying
        sink = unit.workspace.table(carrying.sink)
        unit.batch = Batch(self.query, self.passed, sink.id, self.last)
        if unit.has_landed():
            return
        found, outputs, seen, names = self._changes(unit)
        is_whole = not found.changes or self._alter(unit, sink, found)
        known = carrying.following(unit.workspace.table(carrying.sink), found, self.now, names)
        filled = [one for one in outputs if one.key in found.paths]
        rows = filling(seen, filled, found.paths)
        if carrying.flow.key:
            # Of two rows of a key, the later one stays: one that came behind one that went.
            self._require_keys(unit.workspace.table(carrying.sink), rows)
            went, _ = carrying.flow.text.read(rows_of_feed(self.news, WENT), self.now, names)
            gone = filling(went, filled, found.paths)
            rows = with_values(gone, {DELETE_SIGN: "true"}).unionAll(
                with_values(rows, {DELETE_SIGN: "false"})
            )
        append(carrying.state, unit, carrying.sink, rows, Manner())
        if not is_whole:
            left = self._changes(unit)[0].changes
            ShapeVerbs(carrying.state, carrying.sink, unit).alter(*left)
        passed = self.passed
        # A commit without changes records no batch.
        if self.known and self.last >= 0 and not all(map(is_look, unit.workspace.changes())):
            passed = self.known.passed
        known = replace(known, passed=passed)
        if known != self.known:
            carrying.record(unit, known)

    def _require_keys(self, sink: TableVersion, rows: DataFrame) -> None:
        """Refuse a sink that does not keep one row of each key, or a key without values.

        After the first batch, columns of the key may have got other names.
        """
        keys, wanted = table_keys(sink), self.carrying.flow.key
        fields = keys.key_fields(sink.columns) if keys and keys.model is KeyModel.UNIQUE else []
        names = {field.name for field in fields}
        is_other = {n.lower() for n in names} != {n.lower() for n in wanted} and self.last < 0
        if not fields or is_other or not names.issubset(rows.columns):
            raise InvalidRequest(
                f"{sink.full_name} is no table with UNIQUE KEY ({', '.join(wanted)}) whose columns"
                " the stream fills: it changes and deletes rows by them. Name another key, or"
                " another sink; one that is not there is made"
            )

    def _alter(self, unit: UnitOfWork, sink: TableVersion, found: SinkChanges) -> bool:
        """Change the columns of the sink; return whether that is all.

        What checks rows is left until those of the batch are there.
        """
        if not self.carrying.follows:
            told = "; ".join(map(str, found.changes))
            raise InvalidRequest(
                f"the columns of {self.now.full_name} changed, which {sink.full_name} follows; say"
                f" on_schema_change='carry', or run ALTER TABLE {sink.full_name} {told}"
            )
        changes = tuple(c for c in found.changes if not isinstance(c, SetNullable) or c.nullable)
        if changes and plan_alter(sink, changes).is_heavy:
            raise NeedsJob(changes)
        if changes:
            ShapeVerbs(self.carrying.state, self.carrying.sink, unit).alter(*changes)
        return changes == found.changes

    def _convert(self, changes: tuple[TableChange, ...]) -> None:
        """Run the job that converts columns of the sink, or wait for the one that does so."""
        state, name = self.carrying.state, self.carrying.sink
        try:
            job = ShapeVerbs(state, name).alter(*changes)
        except AlreadyExists:
            sink = version_at(state, name, None, None)
            is_open = (j for j in state.store.ask(jobs) if j.table_id == sink.id and j.is_open)
            found = next(is_open, None)
            if found is None:
                raise
            job = SchemaChangeJob(state, found.id)
        if isinstance(job, SchemaChangeJob):
            job.wait()

    def _changes(
        self, unit: UnitOfWork
    ) -> tuple[SinkChanges, tuple[Output, ...], DataFrame, Names]:
        text, known = self.carrying.flow.text, self.known
        sink = unit.workspace.table(self.carrying.sink)
        goes_on = known is not None and known.text == str(text)
        names = known.paths if known is not None and goes_on else paths_in(self.now.columns)
        since = 0 if self.before is None else int(self.before.snapshot.id)
        done = _conversions(self.carrying.flow.state, self.now, since)
        replaced = successors(done)
        names |= {new: names[old] for old, new in replaced.items() if old in names}
        if self.last < 0 and rows_of(unit, self.carrying.sink, needs_all=False).is_empty:
            # No value is converted: such a column is dropped, and comes with its new type.
            done, replaced = [], {}
        own = successors(_conversions(self.carrying.state, sink))
        pairs = {
            key_after(key, replaced): int(own.get(FieldId(n), n))
            for key, n in (known.pairs if known is not None else ())
        }
        seen, outputs = text.read(self.rows, self.now, names)
        now = StreamColumns(outputs, self.now.comments)
        before = self._shown_before(now, names, replaced) if goes_on else None
        found = sink_changes(sink, before, now, pairs, keeps=self.carrying.keeps)
        if self.before is not None and any(isinstance(c, ChangeType) for c in found.changes):
            found = self._with_using(found, sink, pairs, done)
        return found, outputs, seen, names

    def _shown_before(
        self, now: StreamColumns, names: Names, replaced: Mapping[FieldId, FieldId]
    ) -> StreamColumns:
        before = self.before
        assert before is not None
        if (before.columns, before.comments) == (self.now.columns, self.now.comments):
            return now
        nothing = TableStream(self.carrying.flow.state, before, StreamOptions()).nothing()
        _, outputs = self.carrying.flow.text.read(nothing, before, names)
        return StreamColumns(
            [_renumbered(one, replaced, self.now) for one in outputs], before.comments
        )

    def _with_using(
        self,
        found: SinkChanges,
        sink: TableVersion,
        pairs: Mapping[str, int],
        done: Sequence[Conversion],
    ) -> SinkChanges:
        """Let a change of a type convert as the job of the source did."""
        by_path: dict[Path, Conversion] = {}
        for one in done:
            by_path |= {
                path: one for key, path in found.paths.items() if source_of(key) == one.shadow_id
            }
        changes = list(found.changes)
        for at, change in enumerate(changes):
            if isinstance(change, ChangeType) and change.path in by_path:
                job = by_path[change.path]
                if job.using is not None:
                    self._require_same_names(job, sink, pairs, successors(done))
                changes[at] = replace(change, using=job.using, on_error_null=job.on_error_null)
        return replace(found, changes=tuple(changes))

    def _require_same_names(
        self,
        job: Conversion,
        sink: TableVersion,
        pairs: Mapping[str, int],
        replaced: Mapping[FieldId, FieldId],
    ) -> None:
        for path, number in job.named:
            column = sink.columns.find(path) if len(path) == 1 else None
            sources = {source_of(key) for key, n in pairs.items() if column and n == column.id}
            if column is not None and replaced.get(number, number) not in sources:
                raise InvalidRequest(
                    f"{self.now.full_name} was converted USING {job.using}, and"
                    f" {path_text(path)} is another column in {sink.full_name}; run ALTER TABLE"
                    f" {sink.full_name} ALTER COLUMN … TYPE {job.target} USING … by hand: the"
                    " stream goes on behind it"
                )


def _conversions(state: LakeState, table: TableVersion, since: int = 0) -> list[Conversion]:
    """Return what jobs of a table have converted after a snapshot, and before that of the table."""
    known = state.store.ask(jobs) if table.has_reserved else []
    known = [job for job in known if (job.published or 0) <= table.snapshot.id]
    return published_conversions(known, table.id, since)


def _bare(field: Field) -> Field:
    return replace(field, nullable=True, default=None, initial_default=None)


def _renumbered(output: Output, replaced: Mapping[FieldId, FieldId], now: TableVersion) -> Output:
    """Return an output of a column that was converted since under the ids that it has now."""
    number = replaced.get(output.field.id)
    after = None if number is None or output.computed else now.columns.by_id(number)
    if after is None:
        return output
    return replace(
        output, key=key_after(output.key, replaced), field=replace(output.field, id=after.id)
    )


def _stored(names: Names) -> tuple[tuple[int, str], ...]:
    return tuple((number, path_text(path)) for number, path in sorted(names.items()))
