"""Scans of a large table that has no list: SQL looks for the files within the ranges of a query."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from shelduck.catalog.databases.store import Store
from shelduck.catalog.read import read
from shelduck.catalog.read.files.numbers import file_sums
from shelduck.catalog.read.files.outside import files_inside, files_without_statistics
from shelduck.catalog.read.holdings import Holdings, holdings_of
from shelduck.model.files.data_file import DataFile, DeletesSeen
from shelduck.model.tables.schema import FieldId
from shelduck.model.tables.table_version import TableVersion
from shelduck.read.file_lists import ASKED_UP_TO, FileLists, Outline, Range
from shelduck.read.listed_files import (
    PART,
    LargeTable,
    ListedFiles,
    changed,
    merged,
    require_seen,
    seen_of,
)
from shelduck.read.plan.scan import GroupSize, ScanGroup
from shelduck.read.pruning import part_of

Ranges = Mapping[FieldId, Range]
# So many answers are kept: Spark plans a query more than once.
_KEPT = 8


@dataclass(slots=True)
class _Shared:
    """The knowledge that scans of one table version share; threads may share it."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    found: dict[frozenset[tuple[FieldId, Range]], list[int]] = field(default_factory=dict)
    seen: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The deletes of files when they were first looked up."""
    listed: ListedFiles | None = None


class SoughtFiles(LargeTable):
    """The files of a large table that has no list yet.

    If a range leaves at most `PART` files, these are looked up. For all else, the list is made.
    What is found later is what the table had when its outline was made, or a Conflict.
    """

    def __init__(
        self,
        store: Store,
        connection: read.Connection,
        table: TableVersion,
        *,
        known: Holdings,
        lists: FileLists,
        outline: Outline,
    ) -> None:
        super().__init__(store, table)
        self._lists = lists
        self._outline = outline
        self.count, self.bytes = outline.files, outline.bytes
        self._shared = _Shared()
        ids = [number for some in outline.alike for number in some.examples]
        self._look_up_examples(connection, known, ids)

    def seen(self) -> Iterator[tuple[int, DeletesSeen]]:
        """Yield the id of each file and its deletes, without a statement for each."""
        return self._listed().seen()

    def larger_than(self, size: int) -> list[DataFile]:
        """Return the files of more than this many bytes."""
        if all(some.sums.largest <= size for some in self._outline.alike):
            return []
        return self._listed().larger_than(size)

    def as_seen(self, files: list[DataFile]) -> list[DataFile]:
        """Return these files, or raise Conflict if another commit has moved their deletes since."""
        shared = self._shared
        with shared.lock:
            if shared.listed is None:
                self._note(files)
            else:
                shared.listed.as_seen([f for f in files if f.id not in shared.seen])
            require_seen(self._table, [f for f in files if f.id in shared.seen], shared.seen)
        return files

    def all(self) -> list[DataFile]:
        """Return every file, as `DataFile`; errors are those of `as_seen`."""
        self._listed()
        return super().all()

    def size(self, group: ScanGroup) -> GroupSize:
        """Return how large a group of the plan is."""
        examples = {file.id for file in group.files}
        sums = [a.sums for a in self._outline.alike if not examples.isdisjoint(a.examples)]
        files, size = sum(one.files for one in sums), sum(one.bytes for one in sums)
        return GroupSize(files, size, [self._table.path])

    def parts(self, group: ScanGroup, filters: list[str]) -> Iterator[ScanGroup]:
        """Yield the files that may match all filters, as parts of the group."""
        asked = self.asked(group, filters)
        files = self._within(asked.ranges)
        if files is None:
            _, listed = self._listed().scan(self._make, self._table, self._unsafe)
            yield from listed.parts(group, filters)
        elif files:
            part = self._part(group, files)
            yield part_of(part, self.exactly(part, filters))

    def _within(self, ranges: Ranges) -> list[DataFile] | None:
        """Return files that may have rows within ranges, None if a list tells that better."""
        key, shared = frozenset(ranges.items()), self._shared
        with shared.lock:
            if not ranges or shared.listed is not None:
                return None
            if key in shared.found:
                return self._looked_up(shared.found[key])
            if not self._lists.may_ask(self._table):
                return None
            files = self._store.ask(self._asked, ranges)
            self._lists.note_asked(self._table)
            if files is not None:
                self._note(files)
                if len(shared.found) >= _KEPT:
                    shared.found.pop(next(iter(shared.found)))
                shared.found[key] = [f.id for f in files]
            return files

    def _asked(self, connection: read.Connection, ranges: Ranges) -> list[DataFile] | None:
        is_newest = self._outline.newest == read.snapshot(connection).mark
        if not (is_newest and self._outline.is_of_newest):
            sums = file_sums(connection, self._table)
            self._require_same((sums.files, sums.ids))
        for column, span in ranges.items():
            inside = files_inside(connection, self._table, column, span, PART)
            if inside is None:
                continue
            look = self._outline.without_statistics if is_newest else files_without_statistics
            others = look(connection, self._table, column, PART)
            if others is not None and len(inside) + len(others) <= PART:
                wanted = {*inside, *others}
                return read.data_files(connection, self._table, ids=wanted) if wanted else []
        return None

    def _note(self, files: Sequence[DataFile]) -> None:
        with self._shared.lock:
            for file in files:
                self._shared.seen.setdefault(file.id, seen_of(file))

    def _listed(self) -> ListedFiles:
        """Return the files with their list, which is made if it is not there."""
        with self._shared.lock:
            if self._shared.listed is None:
                self._shared.listed = self._store.ask(self._made)
            return self._shared.listed

    def _made(self, connection: read.Connection) -> ListedFiles:
        table = self._table
        # If this fails, who reads again begins with the list.
        self._lists.note_asked(table, ASKED_UP_TO)
        files = self._lists.of(connection, table)
        if files is None:
            # It raises what is wrong with them.
            read.data_files(connection, table)
            raise changed(table)
        known = holdings_of(connection, table.id)
        listed = ListedFiles(
            *(self._store, connection, table),
            known=known,
            lists=self._lists,
            files=files,
            examples=self.examples,
        )
        self._require_same((listed.count, listed.sum_of_ids))
        return listed

    def _require_same(self, files_and_ids: tuple[int, int]) -> None:
        if files_and_ids != self._outline.files_and_ids:
            raise merged(self._table)
