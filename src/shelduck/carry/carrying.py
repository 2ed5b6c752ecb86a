"""One stream from a table into another one: batch by batch, with what its columns become.

How far it is stands in the sink: the number of the newest batch is the last snapshot of the source
whose rows it holds, and the tag of the sink says which of its columns hold which. Rows, changed
columns, number and tag are one commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from shelduck.alter.verb import ShapeVerbs
from shelduck.carry.flow import FlowText, Names, Output, filling, key_after, paths_in, source_of
from shelduck.carry.sink_changes import SinkChanges, StreamColumns, sink_changes
from shelduck.catalog.commit.own_rows import newest_landed
from shelduck.catalog.running.job_rows import jobs, published_conversions
from shelduck.engine.session import DataFrame
from shelduck.engine.types import struct_type
from shelduck.errors import AlreadyExists, InvalidRequest, ShelduckError
from shelduck.jobs.jobs import SchemaChangeJob
from shelduck.lake.evolution.plan import plan_alter
from shelduck.lake.lookup import rows_of, table_of_id, version_at
from shelduck.lake.results import TableName
from shelduck.lake.spark_options import StreamOptions
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork, carry_out, carry_out_anew
from shelduck.model.changes.change import alteration, is_look
from shelduck.model.changes.job import successors
from shelduck.model.changes.modify import TableChange
from shelduck.model.changes.records import Batch
from shelduck.model.changes.schema_change import ChangeType
from shelduck.model.changes.stream import StreamPosition
from shelduck.model.tables.carried import Following, followings, with_following
from shelduck.model.tables.schema import Field, FieldId, Path, path_text
from shelduck.model.tables.table_version import Conversion, TableVersion
from shelduck.model.text.names import split_name
from shelduck.objects.catalog_verbs import CatalogVerbs
from shelduck.streams.streamed import TableStream
from shelduck.write.appending import Manner, append

FIRST = -1
"""The number of the batch before the first one."""


@dataclass(frozen=True, slots=True)
class Carrying:
    """A stream of a source's rows into a sink, which may be in another lake.

    ``is_whole``: all rows of the source are wanted, even if the sink has rows already. ``keeps``:
    columns that the source drops stay in the sink. Without ``follows``, a change of the
    columns is an error.
    """

    source_state: LakeState
    source: TableName
    options: StreamOptions
    text: FlowText
    state: LakeState
    sink: TableName
    query: str | None
    is_whole: bool = False
    keeps: bool = False
    follows: bool = True

    def make_sink(self, source: TableVersion) -> None:
        """Create the sink, with the columns that the stream has now and all that is true of them.

        InvalidRequest for a text that does not fit the columns of the source.
        """
        nothing = TableStream(self.source_state, source, self.options).nothing()
        _, outputs = self.text.read(nothing, source, paths_in(source.columns))
        plain = [replace(one, field=_bare(one.field)) for one in outputs]

        def stage(unit: UnitOfWork) -> None:
            columns = struct_type(one.field for one in outputs)
            CatalogVerbs(self.state, unit).create_table(str(self.sink), columns)
            sink = unit.workspace.table(self.sink)
            found = sink_changes(
                sink, StreamColumns(plain, {}), StreamColumns(outputs, source.comments), {}
            )
            if found.changes:
                ShapeVerbs(self.state, self.sink, unit).alter(*found.changes)

        carry_out(self.state, None, stage)

    def next(self) -> Step | None:
        """Return the next batch, None if there is nothing new."""
        source = version_at(self.source_state, self.source, None, None)
        sink = version_at(self.state, self.sink, None, None)
        query = self.query or f"carry {source.uuid}"
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
            return self._first(query, source)
        return self._following(known, source, last)

    def _require_start(self, sink: TableVersion, source: TableVersion) -> None:
        """Refuse all rows of a source for a sink that has some, of which nobody knows whose."""
        options = self.options
        if (
            self.is_whole
            or options.from_newest
            or (options.version, options.timestamp) != (None,) * 2
        ):
            return
        rows = rows_of(UnitOfWork(self.state), TableName.of(sink), needs_all=False)
        if rows.files or any(part.rows for part in rows.inlined):
            raise InvalidRequest(
                f"{sink.full_name} has rows, and this stream has carried none of"
                f" {source.full_name} into it; say starting_version='all' to add all rows that the"
                " source has, 'latest' for those that are added from now on, or the snapshot to"
                " begin with"
            )

    def _first(self, query: str, source: TableVersion) -> Step | None:
        stream = TableStream(self.source_state, source, self.options)
        end = stream.latest(None, None)
        if end is None:
            return None
        rows = stream.batch(None, end)
        return Step(self, query, None, None, source, rows, FIRST, end.snapshot - 1)

    def _following(self, known: Following, source: TableVersion, last: int) -> Step | None:
        newest = int(source.snapshot.id)
        at = max(last, known.passed)
        if newest <= at:
            return None
        before, first, end = self._version(source, at), at + 1, None
        while end is None:
            if first > newest:
                return None
            stream = TableStream(self.source_state, self._version(source, first), self.options)
            until = stream.stop_before_other_columns(first)
            start = StreamPosition(source.uuid, first)
            end = stream.latest(start, None)
            first = until + 1
        rows = stream.batch(start, end)
        passed = end.snapshot - 1
        now = self._version(source, passed)
        return Step(self, known.query, known, before, now, rows, last, passed)

    def _version(self, source: TableVersion, snapshot: int) -> TableVersion:
        return TableStream(self.source_state, source, self.options).version(snapshot)


class NeedsJob(ShelduckError):
    """The changes of the sink convert values: a job does so first."""

    def __init__(self, changes: tuple[TableChange, ...]) -> None:
        super().__init__("; ".join(map(str, changes)))
        self.changes = changes


@dataclass(frozen=True, slots=True)
class Step:
    """One batch: ``rows`` of the source up to a snapshot, and how its columns changed before them.

    ``known`` is what the sink says of the stream, and ``before`` the source as it was when the
    batch ``last`` ended; None for the first batch.
    """

    carrying: Carrying
    query: str
    known: Following | None
    before: TableVersion | None
    now: TableVersion
    rows: DataFrame
    last: int
    passed: int

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
        if found.changes:
            self._alter(unit, sink, found)
        columns = unit.workspace.table(carrying.sink).columns
        ids = {key: columns.get(path, sink.full_name).id for key, path in found.paths.items()}
        filled = [one for one in outputs if one.key in ids]
        append(carrying.state, unit, carrying.sink, filling(seen, filled, found.paths), Manner())
        known = self._following(sink, names, ids)
        if all(map(is_look, unit.workspace.changes())):
            # A commit without changes records no batch.
            known = replace(known, passed=self.passed)
        if known != self.known:
            table = table_of_id(unit, sink)
            properties = with_following(table.properties, known, table.full_name)
            unit.workspace.alter_table(alteration(table, replace(table, properties=properties)))

    def _alter(self, unit: UnitOfWork, sink: TableVersion, found: SinkChanges) -> None:
        if not self.carrying.follows:
            told = "; ".join(map(str, found.changes))
            raise InvalidRequest(
                f"the columns of {self.now.full_name} changed, which {sink.full_name} follows; say"
                f" on_schema_change='carry', or run ALTER TABLE {sink.full_name} {told}"
            )
        if plan_alter(sink, found.changes).is_heavy:
            raise NeedsJob(found.changes)
        ShapeVerbs(self.carrying.state, self.carrying.sink, unit).alter(*found.changes)

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

    def _following(self, sink: TableVersion, names: Names, ids: Mapping[str, FieldId]) -> Following:
        passed = self.passed if self.known is None else self.known.passed
        return Following(
            self.query,
            sink.uuid,
            self.now.uuid,
            self.carrying.source_state.info.data_path,
            self.now.full_name,
            passed,
            str(self.carrying.text),
            _stored(paths_in(self.now.columns) if self.carrying.text.is_plain else names),
            tuple(sorted((key, int(number)) for key, number in ids.items())),
        )

    def _changes(
        self, unit: UnitOfWork
    ) -> tuple[SinkChanges, tuple[Output, ...], DataFrame, Names]:
        text, known = self.carrying.text, self.known
        sink = unit.workspace.table(self.carrying.sink)
        goes_on = known is not None and known.text == str(text)
        names = _read(known.names) if known is not None and goes_on else paths_in(self.now.columns)
        pairs = {} if known is None else dict(known.pairs)
        replaced = self._replaced(self.carrying.source_state, self.now, self.before)
        names |= {new: names[old] for old, new in replaced.items() if old in names}
        own = self._replaced(self.carrying.state, sink, None)
        pairs = {key_after(key, replaced): int(own.get(FieldId(n), n)) for key, n in pairs.items()}
        seen, outputs = text.read(self.rows, self.now, names)
        now = StreamColumns(outputs, self.now.comments)
        before = self._shown_before(now, names, replaced) if goes_on else None
        found = sink_changes(sink, before, now, pairs, keeps=self.carrying.keeps)
        return self._with_using(found, sink, pairs), outputs, seen, names

    def _shown_before(
        self, now: StreamColumns, names: Names, replaced: Mapping[FieldId, FieldId]
    ) -> StreamColumns:
        before = self.before
        assert before is not None
        if (before.columns, before.comments) == (self.now.columns, self.now.comments):
            return now
        nothing = TableStream(self.carrying.source_state, before, StreamOptions()).nothing()
        _, outputs = self.carrying.text.read(nothing, before, names)
        return StreamColumns(
            [_renumbered(one, replaced, self.now) for one in outputs], before.comments
        )

    def _replaced(
        self, state: LakeState, table: TableVersion, since: TableVersion | None
    ) -> dict[FieldId, FieldId]:
        """Return columns that jobs of a table have converted, with those in their places."""
        if not table.has_reserved:
            return {}
        return successors(self._conversions(state, table, since))

    def _conversions(
        self, state: LakeState, table: TableVersion, since: TableVersion | None
    ) -> list[Conversion]:
        known = state.store.ask(jobs)
        begin = 0 if since is None else int(since.snapshot.id)
        known = [job for job in known if (job.published or 0) <= table.snapshot.id]
        return published_conversions(known, table.id, begin)

    def _with_using(
        self, found: SinkChanges, sink: TableVersion, pairs: Mapping[str, int]
    ) -> SinkChanges:
        """Let a change of a type convert as the job of the source did."""
        if self.before is None or not any(isinstance(c, ChangeType) for c in found.changes):
            return found
        done = self._conversions(self.carrying.source_state, self.now, self.before)
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


def _read(names: tuple[tuple[int, str], ...]) -> dict[int, Path]:
    return {number: split_name(text) for number, text in names}
