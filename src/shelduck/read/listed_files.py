"""Scans of a large table whose files are looked up when Spark plans a query, not before."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Self, overload

import numpy as np
from numpy.typing import NDArray

from shelduck.catalog.databases.store import Store
from shelduck.catalog.read import read
from shelduck.catalog.read.files.numbers import deletes_of_files
from shelduck.catalog.read.holdings import Holdings
from shelduck.catalog.read.overview.table_files import live_rows
from shelduck.catalog.read.queries import chunks
from shelduck.errors import Conflict
from shelduck.model.files.data_file import (
    ColumnStats,
    DataFile,
    DeletesSeen,
    NameMapping,
    deletes_seen,
)
from shelduck.model.tables.schema import FieldId
from shelduck.model.tables.table_version import TableVersion
from shelduck.read.file_lists import FileList, FileLists, Numbers, within
from shelduck.read.plan.scan import GroupSize, ScanGroup, ScanPlan
from shelduck.read.pruning import Pruner, part_of

PART = 5_000
"""So many files are looked up at a time."""
_NONE = -1
_NO_DELETES = np.array([[_NONE], [0]], np.int64)
MakePlan = Callable[[Sequence[DataFile], Mapping[int, NameMapping]], ScanPlan]


class LaterFiles(Sequence[DataFile]):
    """Files of which those that somebody needs are looked up.

    All of them are if somebody goes through them.
    """

    def __init__(self, table: LargeTable) -> None:
        self.table = table
        self._known: dict[int, DataFile] = {}

    def of(self, ids: Iterable[int]) -> dict[int, DataFile]:
        """Return files by id, each of which is looked up once.

        Raises Conflict if another commit has moved their rows or deletes elsewhere since.
        """
        wanted = list(ids)
        new = [number for number in wanted if number not in self._known]
        self._known.update({file.id: file for file in self.table.of(new)})
        return {number: self._known[number] for number in wanted}

    @cached_property
    def _found(self) -> list[DataFile]:
        return self.table.all()

    @overload
    def __getitem__(self, index: int) -> DataFile: ...

    @overload
    def __getitem__(self, index: slice) -> list[DataFile]: ...

    def __getitem__(self, index: int | slice) -> DataFile | list[DataFile]:
        return self._found[index]

    def __len__(self) -> int:
        return self.table.count


class LargeTable(Pruner, ABC):
    """The files of a table at its snapshot, of which the scan plan has one example for each kind.

    Groups of files are made by kind, so a plan of the examples has the groups of all files.
    """

    by_id_up_to = PART
    count: int
    """How many files there are."""
    bytes: int
    """How large they are together."""
    examples: tuple[DataFile, ...]
    mappings: Mapping[int, NameMapping]
    _make: MakePlan
    _groups: tuple[ScanGroup, ...]

    @abstractmethod
    def seen(self) -> Iterator[tuple[int, DeletesSeen]]:
        """Yield the id of each file and its deletes, without a statement for each."""

    @abstractmethod
    def larger_than(self, size: int) -> list[DataFile]:
        """Return the files of more than this many bytes."""

    @abstractmethod
    def as_seen(self, files: list[DataFile]) -> list[DataFile]:
        """Return these files, or raise Conflict if another commit has moved their deletes since.

        Somebody who changes rows compares what he saw with what is there when he commits.
        """

    @abstractmethod
    def size(self, group: ScanGroup) -> GroupSize:
        """Return how large a group of the plan is."""

    def live_rows(self) -> int | None:
        """Return how many rows of the files are not deleted; None if that is not known."""
        return self._store.ask(live_rows, self._table)

    def rows(self, group: ScanGroup) -> int | None:
        """Return about how many rows of a group are not deleted: its share of all, by size."""
        rows, size = self.live_rows(), self.bytes
        return None if rows is None else rows * self.size(group).bytes // max(1, size)

    def null_counts(self, *_: object) -> dict[int, int]:
        """Return nothing: to count what a million files say takes longer than many a query."""
        return {}

    def all(self) -> list[DataFile]:
        """Return every file, as `DataFile`; errors are those of `as_seen`."""
        return self.as_seen(self._store.ask(read.data_files, self._table))

    def of(self, ids: Iterable[int]) -> list[DataFile]:
        """Return the files with these ids; errors are those of `as_seen`."""
        found: list[DataFile] = []
        for some in chunks(sorted(ids), PART):
            found += self.as_seen(self._looked_up(some))
        return found

    def scan(
        self, make: MakePlan, table: TableVersion, unsafe_bounds: frozenset[FieldId]
    ) -> tuple[ScanPlan, Self]:
        """Return the plan of a scan, and the files for its groups.

        ``table`` may have other columns than this one.
        """
        plan = make(self.examples, self.mappings)
        found = copy(self)
        found.look_at(make, plan, table, unsafe_bounds)
        return plan, found

    def look_at(
        self, make: MakePlan, plan: ScanPlan, table: TableVersion, unsafe_bounds: frozenset[FieldId]
    ) -> None:
        """Look up files for the plans of one scan."""
        self._make, self._groups = make, plan.groups
        self._table, self._unsafe = table, unsafe_bounds

    def _stats_of(
        self, connection: read.Connection, columns: set[FieldId], files: list[DataFile]
    ) -> Mapping[int, Mapping[int, ColumnStats]]:
        # Nothing is kept: there may be a million files.
        return read.file_bounds(connection, self._table, columns, [f.id for f in files])

    def _part(self, group: ScanGroup, files: Sequence[DataFile]) -> ScanGroup:
        """Return those of some files that belong to a group, which are grouped as examples are.

        Raises Conflict if one would belong to none: the plan of the scan has no place for it.
        """
        plan = self._make([*self.examples, *files], self.mappings)
        if [*map(_without_files, plan.groups)] != [*map(_without_files, self._groups)]:
            raise changed(self._table)
        found = next(g for g in plan.groups if g.files[0].id == group.files[0].id)
        count = len(group.files)
        return replace(found, files=found.files[count:], values=found.values[count:])

    def _look_up_examples(
        self, connection: read.Connection, known: Holdings, ids: Sequence[int]
    ) -> None:
        examples = read.data_files(connection, self._table, known, ids) if ids else ()
        self._take_examples(connection, examples)

    def _take_examples(self, connection: read.Connection, examples: Sequence[DataFile]) -> None:
        self.examples = tuple(examples)
        self.mappings = read.name_mappings(connection, (f.mapping_id for f in examples))

    def _looked_up(self, ids: Sequence[int]) -> list[DataFile]:
        files = self._store.ask(read.data_files, self._table, ids=ids)
        if len(files) < len(ids):
            raise merged(self._table)
        return files


def merged(table: TableVersion) -> Conflict:
    """Return the error for files that are no more in the catalog."""
    return Conflict(
        f"another commit merged files of {table.full_name} after it was read; read it again"
    )


def changed(table: TableVersion) -> Conflict:
    """Return the error for files for which the plan of a scan has no place."""
    return Conflict(
        f"another commit changed how files of {table.full_name} are read; read it again"
    )


class ListedFiles(LargeTable):
    """The files of a large table that has a list.

    With ``examples``, a plan was made for these; Conflict if they are not of all kinds.
    """

    def __init__(
        self,
        store: Store,
        connection: read.Connection,
        table: TableVersion,
        *,
        known: Holdings,
        lists: FileLists,
        files: FileList,
        examples: Sequence[DataFile] | None = None,
    ) -> None:
        super().__init__(store, table)
        self._lists = lists
        self._list = files
        self._there = files.at(table.snapshot.id)
        self.count, self.bytes = int(self._there.sum()), int(files.sizes[self._there].sum())
        self._deletes = _deletes(files, deletes_of_files(connection, table, known))
        deleted = (self._deletes != _NO_DELETES).any(axis=0)
        self._classes = files.kinds * 2 + deleted
        classes, first = np.unique(self._classes[self._there], return_index=True)
        if examples is None:
            places = np.flatnonzero(self._there)[first]
            self._look_up_examples(connection, known, files.ids[places].tolist())
        else:
            places = files.positions(f.id for f in examples)
            self._take_examples(connection, examples)
        self._class_of = dict(
            zip(files.ids[places].tolist(), self._classes[places].tolist(), strict=True)
        )
        if set(self._class_of.values()) != set(classes.tolist()):
            raise merged(table)

    @property
    def sum_of_ids(self) -> int:
        """Return the sum of the ids of the files."""
        return int(self._list.ids[self._there].sum())

    def seen(self) -> Iterator[tuple[int, DeletesSeen]]:
        """Yield the id of each file and its deletes, without a statement for each."""
        nothing = DeletesSeen()
        ids = self._list.ids[self._there].tolist()
        for number, stored, inlined in zip(
            ids, *self._deletes[:, self._there].tolist(), strict=True
        ):
            one = nothing
            if stored != _NONE or inlined:
                one = DeletesSeen(None if stored == _NONE else stored, inlined)
            yield number, one

    def larger_than(self, size: int) -> list[DataFile]:
        """Return the files of more than this many bytes."""
        ids = self._list.ids[self._there & (self._list.sizes > size)].tolist()
        return self._store.ask(read.data_files, self._table, ids=ids) if ids else []

    def as_seen(self, files: list[DataFile]) -> list[DataFile]:
        """Return these files, or raise Conflict if another commit has moved their deletes since."""
        places = self._list.positions(f.id for f in files)
        seen = dict(zip(self._list.ids[places].tolist(), self._deletes.T[places], strict=True))
        require_seen(self._table, files, {n: (int(s[0]), int(s[1])) for n, s in seen.items()})
        return files

    def size(self, group: ScanGroup) -> GroupSize:
        """Return how large a group of the plan is."""
        chosen = self._of(group)
        total = int(self._list.sizes[chosen].sum())
        roots = [root for root in self._list.roots if root]
        return GroupSize(int(chosen.sum()), total, [self._table.path, *roots])

    def parts(self, group: ScanGroup, filters: list[str]) -> Iterator[ScanGroup]:
        """Yield the files that may match all filters, as parts of the group."""
        chosen = self._of(group)
        asked = self.asked(group, filters)
        with self._store.read() as connection:
            for column, span in asked.ranges.items():
                bounds = self._lists.bounds(connection, self._table, self._list, column)
                chosen &= within(bounds, span)
        for ids in chunks(self._list.ids[chosen].tolist(), PART):
            part = self._part(group, self._looked_up(ids))
            yield part_of(part, self.exactly(part, filters)) if asked.columns else part

    def _of(self, group: ScanGroup) -> NDArray[np.bool_]:
        classes = [self._class_of[file.id] for file in group.files]
        return self._there & np.isin(self._classes, classes)


def seen_of(file: DataFile) -> tuple[int, int]:
    """Return the delete file and the number of inlined deletes of a file, -1 and 0 for none."""
    seen = deletes_seen(file)
    return _NONE if seen.delete_file_id is None else seen.delete_file_id, seen.inlined


def require_seen(
    table: TableVersion, files: Iterable[DataFile], seen: Mapping[int, tuple[int, int]]
) -> None:
    """Raise Conflict if a file has other deletes than those that were seen, `seen_of` by id."""
    if any(seen_of(file) != seen[file.id] for file in files):
        raise Conflict(
            f"another commit moved deletes of {table.full_name} into files after it was"
            " read; read the table again and repeat the change"
        )


def _without_files(group: ScanGroup) -> ScanGroup:
    return replace(group, files=(), values=())


def _deletes(files: FileList, known: Mapping[int, DeletesSeen]) -> Numbers:
    """Return the delete file and the number of inlined deletes of each file, -1 and 0 for none."""
    made = np.repeat(_NO_DELETES, len(files.ids), axis=1)
    places = files.positions(known)
    seen = [known[number] for number in files.ids[places].tolist()]
    made[0, places] = [_NONE if s.delete_file_id is None else s.delete_file_id for s in seen]
    made[1, places] = [s.inlined for s in seen]
    return made
