"""A writer of files: it registers before it writes, so that jobs of the table can see it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cached_property

from shelduck.catalog.databases.retry import write_with_retries
from shelduck.catalog.databases.store import Store
from shelduck.catalog.running.writers import forget_writers, register_writer
from shelduck.errors import ShelduckError
from shelduck.leases.identity import new_identity
from shelduck.leases.leases import Leases
from shelduck.model.tables.schema import TableId
from shelduck.model.tables.shadow import Conversion
from shelduck.model.tables.table import TableVersion


class Writer:
    """The writer of one commit, to any number of tables.

    If a job began before `register`, the writer serves it: the returned table version says what the
    job converts. A job that begins later waits until `ended`, or until this process is dead.
    """

    def __init__(self, store: Store, leases: Leases) -> None:
        self._store = store
        self._leases = leases
        self._tables: dict[TableId, tuple[Conversion, ...]] = {}

    @cached_property
    def _id(self) -> str:
        # Every query makes a unit of work with a writer, but few of them write.
        return new_identity()

    @property
    def registered(self) -> dict[str, int]:
        """The commit removes it from the catalog: the name, and how many tables it wrote to."""
        return {self._id: len(self._tables)} if self._tables else {}

    def register(self, table: TableVersion) -> TableVersion:
        """Register once for a table, and return it with the conversions of its open job."""
        if table.id < 0:
            return table
        if table.id not in self._tables:
            job = register_writer(self._store, self._id, table.id)
            if not self._tables:
                self._leases.hold_writer(self._id)
            if job is None or not job.is_understood:
                # A job that only a newer Shelduck understands converts rows that lack its columns.
                self._tables[table.id] = ()
            else:
                self._tables[table.id] = job.work.conversions
        return replace(table, conversions=self._tables[table.id])

    def ended(self) -> None:
        """Note that the commit has removed it from the catalog."""
        if self._tables:
            self._leases.release_writer(self._id)
            self._tables.clear()

    def give_up(self) -> None:
        """Remove it from the catalog without a commit."""
        if not self._tables:
            return
        self.ended()
        # If the catalog is unavailable, the earlier error says more; the lease ends by itself.
        with suppress(ShelduckError):
            write_with_retries(self._store, lambda c: forget_writers(c, [self._id]))
