"""Scans of a large table whose files are looked up when Spark plans a query, not before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from shelduck.catalog.databases.store import Store
from shelduck.catalog.read import read
from shelduck.catalog.read.chunks import chunks
from shelduck.catalog.read.files.numbers import deletes_of_files
from shelduck.catalog.read.holdings import Holdings
from shelduck.catalog.read.overview.table_files import live_rows
from shelduck.errors import Conflict
from shelduck.model.files.data_files import (
    ColumnStats,
    DataFile,
    DeletesSeen,
    NameMapping,
    deletes_seen,
)
from shelduck.model.tables.schema import FieldId
from shelduck.model.tables.table import TableVersion
from shelduck.operations.read.file_lists import FileList, FileLists, Numbers, within
from shelduck.operations.read.pruning import Pruner, part_of
from shelduck.planning.scan import ScanGroup, ScanPlan
from shelduck.spark.scan.read import GroupSize

PART = 5_000
"""So many files are looked up at a time."""
_NONE = -1
_NO_DELETES = np.array([[_NONE], [0]], np.int64)
MakePlan = Callable[[Sequence[DataFile], Mapping[int, NameMapping]], ScanPlan]


class LaterFiles(Sequence[DataFile]):
    """Files of which those that somebody needs are looked up.

    All of them are if somebody goes through them.
    """

    def __init__(self, listed: ListedFiles) -> None:
        self.listed = listed
        self._known: dict[int, DataFile] = {}

    def of(self, ids: Iterable[int]) -> dict[int, DataFile]:
        """Return files by id, each of which is looked up once.

        Raises Conflict if another commit has moved their rows or deletes elsewhere since.
        """
        wanted = list(ids)
        new = [number for number in wanted if number not in self._known]
        self._known.update({file.id: file for file in self.listed.of(new)})
        return {number: self._known[number] for number in wanted}

    @cached_property
    def _found(self) -> list[DataFile]:
        return self.listed.all()

    @overload
    def __getitem__(self, index: int) -> DataFile: ...

    @overload
    def __getitem__(self, index: slice) -> list[DataFile]: ...

    def __getitem__(self, index: int | slice) -> DataFile | list[DataFile]:
        return self._found[index]

    def __len__(self) -> int:
        return self.listed.count


class ListedFiles(Pruner):
    """The files of a table at its snapshot, of which the scan plan has one example for each kind.

    Groups of files are made by kind, so a plan of the examples has the groups of all files.
    """

    by_id_up_to = PART

    def __init__(
        self,
        store: Store,
        connection: read.Connection,
        table: TableVersion,
        *,
        known: Holdings,
        lists: FileLists,
        files: FileList,
    ) -> None:
        super().__init__(store, table)
        self._make: MakePlan
        self._lists = lists
        self._list = files
        self._there = files.at(table.snapshot.id)
        self._deletes = _deletes(files, deletes_of_files(connection, table, known))
        deleted = (self._deletes != _NO_DELETES).any(axis=0)
        self._classes = files.kinds * 2 + deleted
        _, first = np.unique(self._classes[self._there], return_index=True)
        places = np.flatnonzero(self._there)[first]
        ids = files.ids[places].tolist()
        self.examples = tuple(read.data_files(connection, table, known, ids)) if ids else ()
        wanted = {f.mapping_id for f in self.examples if f.mapping_id is not None}
        self.mappings = read.name_mappings(connection, wanted)
        self._class_of = dict(zip(ids, self._classes[places].tolist(), strict=True))

    @property
    def count(self) -> int:
        """Return how many files there are."""
        return int(self._there.sum())

    @property
    def bytes(self) -> int:
        """Return how large they are together."""
        return int(self._list.sizes[self._there].sum())

    def seen(self) -> Iterator[tuple[int, DeletesSeen]]:
        """Yield the id of each file and its deletes, without a statement."""
        nothing = DeletesSeen()
        ids = self._list.ids[self._there].tolist()
        for number, stored, inlined in zip(
            ids, *self._deletes[:, self._there].tolist(), strict=True
        ):
            one = nothing
            if stored != _NONE or inlined:
                one = DeletesSeen(None if stored == _NONE else stored, inlined)
            yield number, one

    def live_rows(self) -> int | None:
        """Return how many rows of the files are not deleted; None if that is not known."""
        with self._store.read() as connection:
            return live_rows(connection, self._table)

    def larger_than(self, size: int) -> list[DataFile]:
        """Return the files of more than this many bytes."""
        ids = self._list.ids[self._there & (self._list.sizes > size)].tolist()
        with self._store.read() as connection:
            return read.data_files(connection, self._table, ids=ids) if ids else []

    def all(self) -> list[DataFile]:
        """Return every file, as `DataFile`; errors are those of `as_listed`."""
        with self._store.read() as connection:
            return self.as_listed(read.data_files(connection, self._table))

    def of(self, ids: Iterable[int]) -> list[DataFile]:
        """Return the files with these ids; errors are those of `as_listed`."""
        found: list[DataFile] = []
        for some in chunks(sorted(ids), PART):
            found += self.as_listed(self._looked_up(some))
        return found

    def as_listed(self, files: list[DataFile]) -> list[DataFile]:
        """Return these files, or raise Conflict if another commit has moved their deletes since.

        Somebody who changes rows compares what he saw with what is there when he commits.
        """
        places = self._list.positions(f.id for f in files)
        seen = dict(zip(self._list.ids[places].tolist(), self._deletes.T[places], strict=True))
        if any(_seen(file) != tuple(seen[file.id]) for file in files):
            raise Conflict(
                f"another commit moved deletes of {self._table.full_name} into files after it was"
                " read; read the table again and repeat the change"
            )
        return files

    def scan(
        self, make: MakePlan, table: TableVersion, unsafe_bounds: frozenset[FieldId]
    ) -> tuple[ScanPlan, ListedFiles]:
        """Return the plan of a scan, and the files for its groups.

        ``table`` may have other columns than the list's.
        """
        found = copy(self)
        found.look_at(make, table, unsafe_bounds)
        return make(self.examples, self.mappings), found

    def look_at(
        self, make: MakePlan, table: TableVersion, unsafe_bounds: frozenset[FieldId]
    ) -> None:
        """Look up files for the plans of one scan."""
        self._make, self._table, self._unsafe = make, table, unsafe_bounds

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
            part = self._part(group, ids)
            yield part_of(part, self.exactly(part, filters)) if asked.columns else part

    def _stats_of(
        self, connection: read.Connection, columns: set[FieldId], files: list[DataFile]
    ) -> Mapping[int, Mapping[int, ColumnStats]]:
        # Nothing is kept: there may be a million files.
        return read.file_bounds(connection, self._table, columns, [f.id for f in files])

    def _of(self, group: ScanGroup) -> NDArray[np.bool_]:
        classes = [self._class_of[file.id] for file in group.files]
        return self._there & np.isin(self._classes, classes)

    def _part(self, group: ScanGroup, ids: Sequence[int]) -> ScanGroup:
        """Return files of a group, which are grouped as the examples are."""
        files = self._looked_up(ids)
        plan = self._make([*self.examples, *files], self.mappings)
        found = next(g for g in plan.groups if g.files[0].id == group.files[0].id)
        count = len(group.files)
        return replace(found, files=found.files[count:], values=found.values[count:])

    def _looked_up(self, ids: Sequence[int]) -> list[DataFile]:
        with self._store.read() as connection:
            files = read.data_files(connection, self._table, ids=ids)
        if len(files) < len(ids):
            raise Conflict(
                f"another commit merged files of {self._table.full_name} after it was read; read it"
                " again"
            )
        return files


def _deletes(files: FileList, known: Mapping[int, DeletesSeen]) -> Numbers:
    """Return the delete file and the number of inlined deletes of each file, -1 and 0 for none."""
    made = np.repeat(_NO_DELETES, len(files.ids), axis=1)
    places = files.positions(known)
    seen = [known[number] for number in files.ids[places].tolist()]
    made[0, places] = [_NONE if s.delete_file_id is None else s.delete_file_id for s in seen]
    made[1, places] = [s.inlined for s in seen]
    return made


def _seen(file: DataFile) -> tuple[int, int]:
    seen = deletes_seen(file)
    return _NONE if seen.delete_file_id is None else seen.delete_file_id, seen.inlined
