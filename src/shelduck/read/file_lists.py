"""Lists of the files of large tables, kept in this process as columns of numbers.

A table with a million files takes a gigabyte as objects, and seconds to read. A list takes some 60
bytes for each file, and the next snapshot only adds to it what it changed.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shelduck.catalog.read import read
from shelduck.catalog.read.files.numbers import (
    AlikeFiles,
    FileKind,
    FileNumbers,
    alike_files,
    file_numbers,
    moved_files,
    whole_number_bounds,
)
from shelduck.catalog.read.files.outside import files_without_statistics
from shelduck.catalog.read.holdings import Holdings
from shelduck.catalog.read.read import Connection
from shelduck.model.changes.change import DELETES, INSERTS, Verb
from shelduck.model.tables.schema import FieldId, SnapshotId, TableId
from shelduck.model.tables.table_version import Mark, Snapshot, TableVersion

Numbers = NDArray[np.int64]
Range = tuple[int | None, int | None]
_LEAST, _MOST = -(2**63), 2**63 - 1
_LAST = 2**62
# Tables with more files get a list.
LISTED_FROM = 10_000
# What a process pays until a list is made, which takes about as long: one for a query that asks the
# catalog for the files of its ranges, and more for the outline, which a later commit outdates.
ASKED_UP_TO = 16
_PER_OUTLINE = 5
# Commits that add files, end some, or let them begin later. Others may remove rows of the catalog.
_ADDING = INSERTS | DELETES | {Verb.ALTERED_TABLE, Verb.INLINE_FLUSH}


class Bounds(NamedTuple):
    """The lowest and highest integer of a column in each file of a list."""

    low: Numbers
    high: Numbers


class _Row:
    """A fact of each file of a list."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __get__(self, files: FileList, _: object) -> Numbers:
        row: Numbers = files.numbers[self._number]
        return row


@dataclass(frozen=True, slots=True)
class FileList:
    """All data files that a table ever had, by id: a column for each file, and a row for each fact.

    ``kinds`` are positions in ``known``. ``ends`` are very large for files that still belong to the
    table. The list is complete as of ``snapshot``, the newest one when it was made.
    """

    snapshot: Snapshot
    numbers: Numbers
    known: tuple[FileKind, ...]
    roots: frozenset[str]
    is_readable: bool = True
    """Whether the catalog has the layout of each file, and no path twice."""
    altered: int = 0
    """How often the list went on after an ALTER."""
    load: int = 0
    """Which load of all files the list goes on from: only lists of one load begin alike."""

    ids = _Row(0)
    """The ids of the files, ascending."""
    begins = _Row(1)
    """The first snapshot of each."""
    ends = _Row(2)
    """The snapshot that ended each."""
    sizes = _Row(3)
    """Their bytes."""
    kinds = _Row(4)
    """Their kinds."""
    names = _Row(5)
    """Hashes of their paths."""

    @property
    def last(self) -> int:
        """Return the highest id, or -1 if the list is empty."""
        return int(self.ids[-1]) if len(self.ids) else -1

    def at(self, snapshot: int) -> NDArray[np.bool_]:
        """Return which files belong to the table at a snapshot."""
        return (self.begins <= snapshot) & (self.ends > snapshot)

    def positions(self, ids: Iterable[int]) -> NDArray[np.intp]:
        """Return where files are in the list; ids that it lacks are left out."""
        wanted = np.fromiter(ids, np.int64)
        wanted.sort()
        found = np.searchsorted(self.ids, wanted)
        inside = found < len(self.ids)
        found, wanted = found[inside], wanted[inside]
        same: NDArray[np.intp] = found[self.ids[found] == wanted]
        return same


@dataclass(slots=True)
class _Known:
    """What a process knows of the files of one table; ``lock`` is held while it reads them."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    files: FileList | None = None
    bounds: dict[FieldId, Bounds] = field(default_factory=dict)
    outline: Outline | None = None
    asked: int = 0


class FileLists:
    """The lists of one lake by table; threads may share them, and wait for the same table only."""

    def __init__(self) -> None:
        self.listed_from = LISTED_FROM
        self._tables: dict[TableId, _Known] = {}
        self._loads = count(1)

    def outline(
        self, connection: read.Connection, table: TableVersion, known: Holdings
    ) -> Outline | None:
        """Return what kinds of files a large table has; None if a list is there, or worth its time.

        Its statements are those of `alike_files`.
        """
        if not self.may_ask(table, _PER_OUTLINE):
            return None
        alike = alike_files(connection, table, known)
        if alike is None or known.newest is None:
            self.note_asked(table, ASKED_UP_TO)
            return None
        self.note_asked(table, _PER_OUTLINE)
        found = Outline(known.newest, table.snapshot.id, tuple(alike))
        if found.is_of_newest:
            self._of(table).outline = found
        return found

    def known_outline(self, table: TableVersion, known: Holdings) -> Outline | None:
        """Return the outline of a table if this process knows it; no statement."""
        found = self._of(table).outline
        if found is None or not self.may_ask(table) or table.snapshot.id != found.snapshot:
            return None
        return found if found.newest == known.newest else None

    def may_ask(self, table: TableVersion, more: int = 0) -> bool:
        """Return whether a query may ask the catalog for files, because a list is not worth it."""
        return not self.has(table) and self._of(table).asked + more < ASKED_UP_TO

    def note_asked(self, table: TableVersion, times: int = 1) -> None:
        """Note that somebody asked the catalog for files: after some times, a list is made."""
        self._of(table).asked += times

    def has(self, table: TableVersion) -> bool:
        """Return whether a table is known to be so large that it has a list."""
        return self._of(table).files is not None

    def of(self, connection: read.Connection, table: TableVersion) -> FileList | None:
        """Return the files of a table, complete for its snapshot.

        None if files must be looked at one by one: the catalog lacks the layout of some file, or
        contradicts itself. Two statements if only this process knew the list, and one for what
        others added and ended since; all files if somebody rewrote files.
        """
        known = self._of(table)
        with known.lock:
            before = known.files
            found = None if before is None else _continued(connection, table, before)
            if found is None:
                found = replace(_loaded(connection, table), load=next(self._loads))
            if before is None or (found.load, found.altered) != (before.load, before.altered):
                known.bounds.clear()
            known.files, known.outline = found, None
            return found if found.is_readable else None

    def bounds(
        self, connection: read.Connection, table: TableVersion, files: FileList, column: FieldId
    ) -> Bounds:
        """Return the bounds of a column in each file of a list.

        One statement if some are new, or if the files were all loaded again since.
        """
        known = self._of(table)
        with known.lock:
            if known.files is None or known.files.load != files.load:
                # A frame may outlive its list: the newer one can lack files that it has.
                return _bounds(connection, table, files, column, None)
            found = known.bounds.get(column)
            if found is not None and len(found.low) > len(files.ids):
                # Another thread has a longer list: the files of this one are its first ones.
                return Bounds(found.low[: len(files.ids)], found.high[: len(files.ids)])
            if found is None or len(found.low) < len(files.ids):
                found = known.bounds[column] = _bounds(connection, table, files, column, found)
            return found

    def _of(self, table: TableVersion) -> _Known:
        return self._tables.get(table.id) or self._tables.setdefault(table.id, _Known())


def within(bounds: Bounds, span: Range) -> NDArray[np.bool_]:
    """Return which files may hold an integer of a range; both ends are inclusive."""
    low, high = span
    found = np.ones(len(bounds.low), np.bool_)
    if low is not None and low > _LEAST:
        found &= bounds.high >= min(low, _MOST)
    if high is not None and high < _MOST:
        found &= bounds.low <= max(high, _LEAST)
    return found


def _loaded(connection: read.Connection, table: TableVersion) -> FileList:
    newest = read.snapshot(connection)
    found = _listed(newest, file_numbers(connection, table), {}, frozenset())
    names = found.names[found.at(newest.id)]
    return replace(found, is_readable=found.is_readable and len(np.unique(names)) == len(names))


def _continued(
    connection: read.Connection, table: TableVersion, known: FileList
) -> FileList | None:
    """Return a list with what later snapshots did, None if they did more than add and end files."""
    logged = read.logged(connection, known.snapshot.id, _LAST)
    if not logged or logged[0][0] != known.snapshot:
        # The snapshot has expired, or the catalog comes from a backup.
        return None
    newest = logged[-1][0]
    verbs = {e.verb for _, entries in logged[1:] for e in entries if e.id == table.id}
    if len(logged) > 1 and not known.is_readable:
        # A commit may have recorded layouts.
        return None
    if not verbs:
        return replace(known, snapshot=newest)
    if not verbs <= _ADDING:
        return None
    kinds = {kind: number for number, kind in enumerate(known.known)}
    more = _listed(newest, file_numbers(connection, table, known.last), kinds, known.roots)
    found = replace(
        more,
        numbers=np.concatenate([known.numbers, more.numbers], axis=1),
        is_readable=more.is_readable and not np.isin(known.names, more.names).any(),
        altered=known.altered,
        load=known.load,
    )
    if verbs <= INSERTS:
        return found
    since = known.snapshot.id
    moved = {n: (b, _end(e)) for n, b, e in moved_files(connection, table, since)}
    where = found.positions(moved)
    for place in where:
        found.begins[place], found.ends[place] = moved[int(found.ids[place])]
    # An ALTER may clear bounds.
    return replace(found, altered=known.altered + (Verb.ALTERED_TABLE in verbs))


def _end(snapshot: int | None) -> int:
    return _MOST if snapshot is None else snapshot


def _listed(
    newest: Snapshot, rows: Iterable[FileNumbers], kinds: dict[FileKind, int], roots: frozenset[str]
) -> FileList:
    columns = [array("q") for _ in range(6)]
    found = set(roots)
    ids, begins, ends, sizes, of_kinds, names = columns
    for number, begin, end, size, kind, name, root in rows:
        ids.append(number)
        begins.append(begin)
        ends.append(_end(end))
        sizes.append(size)
        of_kinds.append(kinds.setdefault(kind, len(kinds)))
        names.append(name)
        found.add(root)
    readable = all(kind.layout_id is not None for kind in kinds)
    return FileList(newest, np.array(columns, np.int64), tuple(kinds), frozenset(found), readable)


def _bounds(
    connection: read.Connection,
    table: TableVersion,
    files: FileList,
    column: FieldId,
    known: Bounds | None,
) -> Bounds:
    low, high = np.full(len(files.ids), _LEAST), np.full(len(files.ids), _MOST)
    count = 0 if known is None else len(known.low)
    if known is not None:
        low[:count], high[:count] = known
    after = int(files.ids[count - 1]) if count else -1
    columns = [array("q") for _ in range(3)]
    for row in whole_number_bounds(connection, table, column, after):
        for one, value in zip(columns, row, strict=True):
            one.append(value)
    ids, lows, highs = (np.array(one, np.int64) for one in columns)
    where = np.searchsorted(files.ids, ids)
    inside = where < len(files.ids)
    inside[inside] = files.ids[where[inside]] == ids[inside]
    low[where[inside]], high[where[inside]] = lows[inside], highs[inside]
    return Bounds(low, high)


@dataclass(frozen=True, slots=True)
class Outline:
    """The files of a table at a snapshot by their kinds, found when ``newest`` was the newest."""

    newest: Mark
    snapshot: SnapshotId
    alike: tuple[AlikeFiles, ...]
    _without: dict[FieldId, list[int] | None] = field(default_factory=dict)

    @property
    def is_of_newest(self) -> bool:
        """Return whether the snapshot is the newest one, which cannot expire."""
        return self.snapshot == self.newest[0]

    @property
    def files(self) -> int:
        """Return how many files there are."""
        return sum(some.sums.files for some in self.alike)

    @property
    def files_and_ids(self) -> tuple[int, int]:
        """Return how many files there are, and the sum of their ids."""
        return self.files, sum(some.sums.ids for some in self.alike)

    @property
    def bytes(self) -> int:
        """Return how large they are together."""
        return sum(some.sums.bytes for some in self.alike)

    def without_statistics(
        self, connection: Connection, table: TableVersion, column: FieldId, at_most: int
    ) -> list[int] | None:
        """Return what `files_without_statistics` does; no statement for a column that is known.

        ``newest`` must still be the newest snapshot: a commit may clear statistics.
        """
        if column not in self._without:
            found = files_without_statistics(connection, table, column, at_most)
            self._without[column] = found
        return self._without[column]
