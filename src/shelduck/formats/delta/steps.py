"""The changes of each version of a Delta table in a table of the lake."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.formats.delta.delta_columns import NO_COLUMNS, Columns, known_columns, next_columns
from shelduck.formats.delta.delta_files import DeltaFiles, Fit, same_where_known
from shelduck.formats.delta.log import Added, DeltaCommit, DeltaLog, Protocol, State
from shelduck.formats.delta.vectors import bitmap, read_vector
from shelduck.model.files.data_file import DataFile, NewDataFile
from shelduck.model.tables.table_version import TableVersion

if TYPE_CHECKING:
    from pyroaring import BitMap64

READER_FEATURES = frozenset(
    "columnMapping deletionVectors timestampNtz typeWidening typeWidening-preview v2Checkpoint"
    " vacuumProtocolCheck variantShredding variantShredding-preview variantType"
    " variantType-preview".split()
)


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file that a version is the first to show; ``dead`` are positions that it does not show."""

    file: NewDataFile
    dead: BitMap64 | None


@dataclass(frozen=True, slots=True)
class ImportStep:
    """The changes of one version in the table: its columns, and files by their paths.

    ``last_number`` is the last one that its identity gave, if the version says so. ``deletes`` are
    all deleted positions of files that the table has. Files in ``ended`` are no longer shown, or
    are among ``added`` again.
    """

    version: int
    columns: Columns
    is_first: bool
    alters: bool
    added: tuple[AddedFile, ...]
    ended: tuple[str, ...]
    deletes: tuple[tuple[str, BitMap64], ...]
    message: str
    extra_info: str
    last_number: int | None = None

    @property
    def is_nothing(self) -> bool:
        """True if neither columns nor rows change."""
        return not (self.is_first or self.alters or self.added or self.ended or self.deletes)


@dataclass(frozen=True, slots=True)
class Imported:
    """A table with the versions of a Delta table up to ``version``, and its rows."""

    table: TableVersion
    files: Sequence[DataFile]
    has_inlined_rows: bool
    version: int


@dataclass
class _Live:
    """A file that the table shows, and its name mapping, None if that is unknown."""

    added: Added
    fit: Fit | None
    dead: BitMap64 | None


@dataclass
class _StepChanges:
    added: dict[str, AddedFile] = field(default_factory=dict)
    ended: dict[str, None] = field(default_factory=dict)
    deletes: dict[str, BitMap64] = field(default_factory=dict)


@dataclass
class Planner:
    """Plans the versions of a log from ``start`` on; ``seen`` are their columns.

    Expressions get the time ``zone``. With ``has_nulls`` no column is an identity.
    """

    log: DeltaLog
    start: int
    files: DeltaFiles
    zone: str = ""
    has_nulls: bool = False
    seen: list[Columns] = field(default_factory=list)
    _live: dict[str, _Live] = field(default_factory=dict)
    _columns: Columns | None = None

    def steps(self, known: Imported | None) -> Iterator[ImportStep]:
        """Yield the steps, based on the current table.

        Everything that does not fit is added to ``files.problems``. Raises Unsupported for
        features, CorruptLake for deletion vectors, InvalidRequest for a table that others changed.
        """
        for commit, state in self.log.replay():
            if commit.version >= self.start:
                self._require_known(commit.version, state.protocol)
                yield self._step(commit, state)
            elif known is not None and commit.version == known.version:
                self._resume(known, state)

    def _require_known(self, version: int, protocol: Protocol) -> None:
        unknown = sorted(protocol.features - READER_FEATURES)
        where = f"version {version} of the Delta table at {self.log.root}"
        if unknown:
            raise Unsupported(
                f"{where} needs the reader feature(s) {', '.join(unknown)}, which Shelduck does"
                " not support; drop them there (ALTER TABLE … DROP FEATURE), or read the table"
                " with Spark and append its rows"
            )
        if protocol.reader_version > 3:
            raise Unsupported(
                f"{where} needs reader version {protocol.reader_version}, but Shelduck supports at"
                " most 3; read the table with Spark and append its rows"
            )

    def _resume(self, known: Imported, state: State) -> None:
        """Continue where the import stopped; InvalidRequest if the table was changed since."""
        self._columns = known_columns(known.table, state.metadata, self.zone)
        here = {f.path: f.dead_rows for f in known.files}
        there = {p: a.vector.cardinality if a.vector else 0 for p, a in state.files.items()}
        left_out = there.keys() - here.keys()
        same = all(there.get(path) == dead for path, dead in here.items()) and all(
            self._is_empty(state.files[path]) for path in left_out
        )
        if self._columns is None or not same or known.has_inlined_rows:
            raise InvalidRequest(
                f"{known.table.full_name} differs from version {known.version} of the Delta table"
                f" at {self.log.root}: one of them was changed after the import; import into a new"
                " table"
            )
        for path in here:
            file = state.files[path]
            fit = self.files.fit(file, self._columns) if path in self.files.foreign else None
            self._live[path] = _Live(file, fit, None)

    def _is_empty(self, file: Added) -> bool:
        """Return whether all rows of a file are deleted; the table does not have such files."""
        dead = file.vector.cardinality if file.vector is not None else 0
        return dead >= self.files.rows(file.path)

    def _step(self, commit: DeltaCommit, state: State) -> ImportStep:
        before, is_start = self._columns, commit.version == self.start
        columns, known = before, before or NO_COLUMNS
        if columns is None or is_start or commit.metadata is not None:
            columns = next_columns(known, state.metadata, self.zone, has_nulls=self.has_nulls)
        self._columns = columns
        if columns is not before:
            self.seen.append(columns)
        work = _StepChanges()
        touched = {a.path for a in commit.added} | {path for path, _ in commit.removed}
        if is_start:
            # Versions between those that the table has and this one may have been left out.
            touched = state.files.keys() | self._live.keys()
        for path in sorted(touched):
            self._change(path, state.files.get(path), columns, work)
        if before is not None and columns.delta != before.delta:
            self._map_anew(columns, work)
        alters = before is not None and not columns.is_same(before)
        return ImportStep(
            *(commit.version, columns, before is None, alters),
            *(tuple(work.added.values()), tuple(work.ended), tuple(work.deletes.items())),
            *_told_of(self.log.root, state, commit),
            None if columns is before else columns.rules.last_number,
        )

    def _change(self, path: str, after: Added | None, columns: Columns, work: _StepChanges) -> None:
        """Note what happens to one file that the version touched."""
        before = self._live.get(path)
        if after is not None and path in self.files.foreign and self._is_empty(after):
            after = None
        if after is None:
            if before is not None:
                del self._live[path]
                work.ended[path] = None
            return
        if before is not None and before.added.vector == after.vector:
            before.added = after
            return
        dead = read_vector(self.log.root, after) if after.vector is not None else None
        if before is not None and dead is not None and self._dead(before) <= dead:
            work.deletes[path] = dead
            self._live[path] = _Live(after, before.fit, dead)
            return
        # If deleted rows come back, the file must be adopted again: deletes only ever grow.
        self._add(after, dead, columns, work)

    def _dead(self, live: _Live) -> BitMap64:
        if live.dead is None and live.added.vector is not None:
            live.dead = read_vector(self.log.root, live.added)
        return live.dead if live.dead is not None else bitmap()()

    def _add(
        self, file: Added, dead: BitMap64 | None, columns: Columns, work: _StepChanges
    ) -> None:
        if file.path in self._live:
            work.ended[file.path] = None
        made = self.files.new_file(file, columns)
        if made is not None:
            work.added[file.path] = AddedFile(made, dead)
        self._live[file.path] = _Live(file, self.files.fit(file, columns), dead)

    def _map_anew(self, columns: Columns, work: _StepChanges) -> None:
        """Adopt files again whose mapping lacks new columns that they hold."""
        for path, live in list(self._live.items()):
            if path in work.added:
                continue
            fit = self.files.fit(live.added, columns)
            if live.fit is None or not same_where_known(live.fit, fit, columns):
                work.deletes.pop(path, None)
                dead = self._dead(live) if live.added.vector is not None else None
                self._add(live.added, dead, columns, work)


def _told_of(root: str, state: State, commit: DeltaCommit) -> tuple[str, str]:
    """Return what the snapshot of a version says about itself, for people and programs."""
    when = None
    if commit.timestamp is not None:
        moment = datetime.fromtimestamp(commit.timestamp / 1000, UTC)
        when = moment.isoformat(timespec="milliseconds")
    told = {
        "delta": {
            "path": root,
            "table_id": state.metadata.table_id,
            "version": commit.version,
            "timestamp": when,
            "operation": commit.operation,
        }
    }
    operation = f": {commit.operation}" if commit.operation else ""
    return f"Delta version {commit.version}{operation}", json.dumps(told)
