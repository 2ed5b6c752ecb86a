"""Which files the rows of a catalog name, as one number for each file.

A catalog has no index of paths, so a search for files that no row names reads all rows. It reads
them once, however many lots it looks up, and then only the rows of files that are newer.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from shelduck.catalog.commit.schedule import directory_by_table, scheduled_files, table_directories
from shelduck.catalog.databases.store import Store
from shelduck.catalog.read import read
from shelduck.catalog.read.views_and_macros import resolve
from shelduck.catalog.schema.lake_schema import LakeInfo
from shelduck.catalog.upkeep.few_rows import row_pages
from shelduck.ducklake import tables
from shelduck.model.files.place import storage_path

_ROWS = 5_000
_SOURCES = (
    (tables.data_file, tables.data_file.c.data_file_id),
    (tables.delete_file, tables.delete_file.c.delete_file_id),
)


class KnownFiles:
    """The files that rows of a catalog name, or have named since `read_all`.

    Files of any snapshot are known, under each spelling of their paths, apart from links. With
    ``waiting``, those that wait for deletion are known, too. It keeps a hash of 64 bits for each
    file. An unknown file with the hash of a known one counts as known, which does no harm: nobody
    deletes a file that is known.
    """

    def __init__(self, lake: LakeInfo, *, waiting: bool) -> None:
        self._lake = lake
        self._with_waiting = waiting
        self._hashes = array("q")
        self._newer: set[int] = set()
        # The next file gets at least this id.
        self._next = 0

    def read_all(self, store: Store) -> None:
        """Read the rows of all files. Each transaction reads 5,000 of them."""
        with store.read() as connection:
            self._next = read.snapshot(connection).next_file_id
            homes = self._homes(connection)
        for rows in _pages(store):
            self._hashes.extend(map(hash, _paths(homes, rows)))
        # Files leave these tables for those that wait for deletion, so these come last.
        last = -1
        while self._with_waiting:
            some = store.ask(scheduled_files, self._lake, None, after=last, most=_ROWS)
            self._hashes.extend(hash(storage_path(file.path)) for file in some)
            if len(some) < _ROWS:
                break
            last = some[-1].id
        if self._hashes:
            np.frombuffer(self._hashes, np.int64).sort()

    def read_newer(self, connection: sa.Connection) -> None:
        """Read the rows of files that are newer than at the last call."""
        first = self._next
        self._next = read.snapshot(connection).next_file_id
        homes = self._homes(connection)
        for source, key in _SOURCES:
            c = source.c
            query = sa.select(c.table_id, c.path, c.path_is_relative).where(key >= first)
            self._newer.update(map(hash, _paths(homes, connection.execute(query))))
        if self._with_waiting:
            waiting = scheduled_files(connection, self._lake, None, after=first - 1)
            self._newer.update(hash(storage_path(file.path)) for file in waiting)

    def among(self, wanted: Collection[str]) -> set[str]:
        """Return which of these paths, in the form of `storage_path`, are known."""
        hashes = np.fromiter(map(hash, wanted), np.int64, len(wanted))
        found = self._are_known(hashes)
        return {
            path
            for path, is_known in zip(wanted, found, strict=True)
            if is_known or hash(path) in self._newer
        }

    def _are_known(self, hashes: NDArray[np.int64]) -> NDArray[np.bool_]:
        if not self._hashes:
            return np.zeros(len(hashes), bool)
        known = np.frombuffer(self._hashes, np.int64)
        return np.searchsorted(known, hashes, "right") > np.searchsorted(known, hashes)

    def _homes(self, connection: sa.Connection) -> dict[int, str]:
        directories = directory_by_table(table_directories(connection, self._lake))
        return {number: storage_path(place) for number, place in directories.items()}


def _pages(store: Store) -> Iterator[Sequence[Any]]:
    for source, key in _SOURCES:
        c = source.c
        yield from row_pages(store, key, _ROWS, sa.select(c.table_id, c.path, c.path_is_relative))


def _paths(homes: dict[int, str], rows: Iterable[Any]) -> Iterator[str]:
    for table, path, relative in rows:
        place = resolve(homes.get(table, ""), path, relative)
        # What is below a plain directory is plain.
        yield place if relative else storage_path(place)
