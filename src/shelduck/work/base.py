"""The snapshot on which a transaction works, and what it shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from shelduck.catalog.read import read
from shelduck.catalog.read.read import Connection
from shelduck.model.tables.table import Snapshot, TableVersion
from shelduck.work.results import TableName
from shelduck.work.state import LakeState


class Base:
    """The snapshot that was the newest at the first use; each of its tables is read once."""

    def __init__(self, state: LakeState) -> None:
        self._state = state
        self._snapshot: Snapshot | None = None
        self._connection: Connection | None = None
        self._tables: dict[TableName, TableVersion] = {}

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot itself."""
        if self._snapshot is None:
            with self.reading():
                pass
        assert self._snapshot is not None
        return self._snapshot

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a connection to read the catalog, which all calls inside share."""
        with self._connected() as connection:
            if self._snapshot is None:
                self._snapshot = read.snapshot(connection)
            yield connection

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        if self._connection is not None:
            yield self._connection
            return
        with self._state.store.read() as connection:
            self._connection = connection
            try:
                yield connection
            finally:
                self._connection = None

    def table(self, name: TableName) -> TableVersion:
        """Return a table by name or raise NotFound; the first one finds the snapshot too."""
        if name not in self._tables:
            with self._connected() as connection:
                kept = self._state.tables
                found = kept.table(connection, name.home, name.name, self._snapshot)
            self._snapshot = found.snapshot
            self._tables[name] = found
        return self._tables[name]
