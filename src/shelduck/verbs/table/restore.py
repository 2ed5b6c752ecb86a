"""Going back to an older snapshot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from shelduck.catalog.read import read as catalog_read
from shelduck.errors import InvalidRequest, NotFound
from shelduck.model.changes.change import AlterTable, CommitInfo
from shelduck.model.tables.rollup import ROLLUPS
from shelduck.model.tables.table import TableVersion
from shelduck.operations.done import Done
from shelduck.operations.write.inlining import limits_of
from shelduck.operations.write.restore import Restoration, plan_restore, restore_rows
from shelduck.work.handle import TableHandle
from shelduck.work.instants import instant
from shelduck.work.results import Result, TableName
from shelduck.work.rows.keyed import refuse_rollup
from shelduck.work.rows.row_work import carry_out_rows
from shelduck.work.unit import UnitOfWork


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The effect that a restore would have.

    Of the ``files`` of the table, ``ended`` hold only rows added since and would end, and from
    ``thinned`` such rows would be deleted. Rows deleted since would be restored from ``sources``,
    files of older snapshots. ``inlined`` rows of the catalog itself would end.
    """

    table: TableName
    version: int
    files: int
    ended: int
    thinned: int
    sources: int
    source_bytes: int
    inlined: int
    columns_change: bool

    def __str__(self) -> str:
        columns = "its columns change back" if self.columns_change else "its columns stay"
        kept = f"; {self.inlined} row(s) of the catalog end" if self.inlined else ""
        return (
            f"{self.table} to snapshot {self.version}: {columns}; of {self.files} file(s),"
            f" {self.ended} end and {self.thinned} lose rows; rows deleted since are restored from"
            f" {self.sources} file(s) of {self.source_bytes} bytes{kept}"
        )


class RestoreVerbs(TableHandle):
    """Making an older snapshot the newest one."""

    def restore(
        self, *, version: int | None = None, timestamp: str | datetime | None = None
    ) -> Result:
        """Give the table the rows and columns that it had at a snapshot, as a new snapshot.

        Rows that are still in the table stay where they are; rows deleted since are written again
        under their old row ids; rows added since are deleted. Columns come back under their old
        ids, with comments, defaults, partition keys, sort order and properties; the table keeps its
        name. If nothing has changed since, no snapshot is made.

        Args:
            version: A snapshot id.
            timestamp: The last snapshot at or before it; without an offset, in the session's time
                zone. The commit's message says which instant that was.

        Raises:
            NotFound: the snapshot does not exist or has expired.
            InvalidRequest: the table did not exist then, or the open transaction changed it.
            Conflict: another commit changed the table; restore again.
        """

        def prepare(unit: UnitOfWork) -> Done:
            found = self._restoration(unit, version, timestamp)
            if unit.info.message is None:
                told = f"restore {self.name} to snapshot {found.then.snapshot.id}"
                if timestamp is not None:
                    told += f", the newest at {instant(timestamp, self._state.time_zone)}"
                unit.annotate(CommitInfo(message=told))
            return self._restored(unit, found)

        return carry_out_rows(self._state, self._unit, prepare)

    def plan_restore(
        self, *, version: int | None = None, timestamp: str | datetime | None = None
    ) -> RestorePlan:
        """Return what `restore` would do, without doing it; no row is read. Print it.

        Args:
            version: The snapshot to go back to.
            timestamp: Instead of ``version``, a time at which that snapshot was the newest.
        """
        found = self._restoration(self._view(), version, timestamp)
        return RestorePlan(
            self.name,
            found.then.snapshot.id,
            len(found.now.files),
            len(found.younger),
            len(found.mixed),
            len(found.sources),
            sum(f.file_size_bytes for f in found.sources),
            len(found.inlined),
            found.alteration is not None,
        )

    def _restored(self, unit: UnitOfWork, found: Restoration) -> Done:
        workspace = unit.workspace
        unit.writer.register(found.now.table)
        if found.alteration is not None:
            workspace.alter_table(_with_todays_rollups(found.alteration))
        target = workspace.table(self.name)
        return restore_rows(
            self._state.spark,
            found,
            target,
            limits=limits_of(self._state.store, target),
            show_progress=self._state.show_progress,
        )

    def _restoration(
        self, unit: UnitOfWork, version: int | None, timestamp: str | datetime | None
    ) -> Restoration:
        if (version is None) == (timestamp is None):
            raise InvalidRequest("pass either a version or a timestamp to restore")
        now = unit.workspace.table(self.name)
        refuse_rollup(now)
        staged = unit.workspace.staged_rows(now)
        if now.id < 0 or staged is not None:
            raise InvalidRequest(
                f"cannot restore {now.full_name}: the open transaction has changed it; restore it"
                " first, or in another transaction"
            )
        then = self._then(now, version, timestamp)
        return plan_restore(self._state.store, now, then, self._state.layouts)

    def _then(
        self, now: TableVersion, version: int | None, timestamp: str | datetime | None
    ) -> TableVersion:
        when = None if timestamp is None else instant(timestamp, self._state.time_zone)
        with self._state.store.read() as connection:
            at = catalog_read.snapshot(connection, version=version, timestamp=when)
            if at.id > now.snapshot.id:
                raise NotFound(
                    f"snapshot {at.id} is newer than snapshot {now.snapshot.id}, which the"
                    " transaction reads",
                    about="snapshot",
                )
            name = catalog_read.name_at(connection, now.id, at)
            if name is None:
                raise InvalidRequest(f"{now.full_name} did not exist at snapshot {at.id}")
            return catalog_read.table(connection, at, *name, self._state.info)


def _with_todays_rollups(change: AlterTable) -> AlterTable:
    """Return the change with the table's current rollups, which are tables of their own."""
    if change.properties is None:
        return change
    listed = {k: v for k, v in change.table.properties.items() if k == ROLLUPS}
    then = {k: v for k, v in change.properties.items() if k != ROLLUPS}
    return replace(change, properties=then | listed)
