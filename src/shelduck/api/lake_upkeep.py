"""Maintenance of a whole lake."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from shelduck.api.catalog_verbs import CatalogVerbs
from shelduck.api.compaction import refuse_in_transaction
from shelduck.api.instants import earlier
from shelduck.api.results import Committed, Result, Staged, TableName
from shelduck.api.table import Table
from shelduck.api.turns import Turns
from shelduck.api.upkeep_results import Checkpointed, Compacted, Expired, FilesDeleted
from shelduck.catalog.expire import ExpiryRequest, expire_snapshots
from shelduck.catalog.options import read_settings
from shelduck.errors import InvalidRequest
from shelduck.model.options import TableOptions, table_options
from shelduck.operations import cleanup

When = str | datetime | timedelta
ORPHAN_AGE = timedelta(days=3)


class LakeUpkeep(CatalogVerbs):
    """Fewer files, fewer snapshots, and nothing on storage that nobody needs.

    Nothing here changes what the newest snapshot shows. A time is a datetime, a text such as
    ``"2026-01-31 12:00"``, or a span before now: a timedelta or ``"7 days"``.
    """

    def compact(
        self, *, target_file_size: int | str | None = None, dry_run: bool = False
    ) -> list[Compacted]:
        """Write small files of all tables together, as `Table.compact` does for one.

        Returns what became of each table that had small files.
        """
        refuse_in_transaction(self._unit, "compact()")
        with Turns() as turns:
            return self._compacted(turns, self.tables(), target_file_size, dry_run)

    def rewrite_deletes(
        self, delete_threshold: float | None = None, *, dry_run: bool = False
    ) -> list[Compacted]:
        """Write files with many deleted rows anew, in all tables: `Table.rewrite_deletes`."""
        refuse_in_transaction(self._unit, "rewrite_deletes()")
        with Turns() as turns:
            return self._rewritten(turns, self.tables(), delete_threshold, dry_run)

    def expire_snapshots(
        self,
        *,
        older_than: When | None = None,
        versions: Iterable[int] | None = None,
        retain_last: int | None = None,
        dry_run: bool = False,
    ) -> Expired:
        """Give up snapshots: nobody can travel to them any more.

        Files that only they had are deleted later, by `cleanup_old_files`. The newest snapshot
        always stays. Where several conditions are given, snapshots go that meet all of them.

        Args:
            older_than: Snapshots made before this time; the option expire_older_than when nothing
                is said.
            versions: Their ids.
            retain_last: Never the last so many.
            dry_run: Only tell what would be done.

        Raises:
            NotFound: a version does not exist.
            InvalidRequest: a version is the newest, or nothing tells which snapshots to give up.
        """
        refuse_in_transaction(self._unit, "expire_snapshots()")
        if versions is None and older_than is None and retain_last is None:
            age = self._options().expire_older_than
            if age is None:
                raise InvalidRequest(
                    "say which snapshots expire: older_than, versions or retain_last, or set the"
                    " option expire_older_than"
                )
            older_than = earlier(age)
        if retain_last is not None and retain_last < 1:
            raise InvalidRequest("retain_last is at least 1: the newest snapshot always stays")
        request = ExpiryRequest(
            None if versions is None else tuple(versions),
            None if older_than is None else earlier(older_than),
            retain_last,
        )
        state = self._state
        done = expire_snapshots(state.store, state.info, request, dry_run=dry_run)
        return Expired(done.snapshots, done.files, dry_run)

    def cleanup_old_files(
        self,
        *,
        older_than: When | None = None,
        cleanup_all: bool = False,
        table: str | None = None,
        include_adopted: bool = False,
        dry_run: bool = False,
    ) -> FilesDeleted:
        """Delete files that compaction and expired snapshots have left.

        Args:
            older_than: Those that are not needed since before this time; the option
                delete_older_than (2 days) when nothing is said. Queries that run may still read
                younger ones.
            cleanup_all: All of them.
            table: Only those of one table.
            include_adopted: Files too that the lake did not write: `Table.add_files` took them over
                where they lay, and they may be needed elsewhere.
            dry_run: Only tell what would be done.
        """
        refuse_in_transaction(self._unit, "cleanup_old_files()")
        before: datetime | None = None
        if cleanup_all and older_than is not None:
            raise InvalidRequest("give older_than or cleanup_all, not both")
        if older_than is not None:
            before = earlier(older_than)
        elif not cleanup_all:
            age = self._options().delete_older_than
            if age is None:
                return FilesDeleted(dry_run=dry_run)
            before = earlier(age)
        state = self._state
        done = cleanup.clean_up(
            state.store,
            state.info,
            before,
            table=self._directory(table),
            adopted=include_adopted,
            dry_run=dry_run,
        )
        return FilesDeleted(done.files, done.bytes, done.kept, dry_run)

    def remove_orphans(
        self,
        *,
        older_than: When = ORPHAN_AGE,
        table: str | None = None,
        duckdb_files: bool = False,
        dry_run: bool = False,
    ) -> FilesDeleted:
        """Delete files of writes that never landed: a driver was killed, a disk was full.

        Only files of writes to this lake's tables are looked at, even where other lakes keep
        theirs in the same place. A write that is still running is safe as long as it changes
        something in its directory within ``older_than``.

        Args:
            older_than: Files that have not changed since; three days when nothing is said.
            table: Only those of one table.
            duckdb_files: Files too that DuckDB wrote. They do not tell of which lake they are: only
                where no other catalog keeps its files in this data path.
            dry_run: Only tell what would be done.
        """
        refuse_in_transaction(self._unit, "remove_orphans()")
        state = self._state
        done = cleanup.remove_orphans(
            state.store,
            state.info,
            earlier(older_than),
            table=self._directory(table),
            duckdb_files=duckdb_files,
            dry_run=dry_run,
        )
        return FilesDeleted(done.files, done.bytes, dry_run=dry_run)

    def checkpoint(self, *, dry_run: bool = False) -> Checkpointed:
        """Do all maintenance, as the options say.

        Flushes what the catalog itself keeps, expires snapshots (only where expire_older_than is
        set), compacts and rewrites the tables that do not have auto_compact set to false, deletes
        files that are not needed since delete_older_than, and removes orphans. A table that cannot
        be maintained keeps nothing else from it; its error comes at the end.
        """
        refuse_in_transaction(self._unit, "checkpoint()")
        names = self.tables()
        with Turns() as turns:
            flushed = {} if dry_run else self._flushed(turns, names)
            expired = None
            if self._options().expire_older_than is not None:
                expired = self.expire_snapshots(dry_run=dry_run)
            workspace = self._workspace()
            compacts = turns.each(names, lambda n: (n, workspace.table(n).options.auto_compact))
            chosen = [name for name, is_wanted in compacts if is_wanted]
            return Checkpointed(
                tuple(name for name, done in flushed.items() if isinstance(done, Committed)),
                expired,
                tuple(self._compacted(turns, chosen, None, dry_run)),
                tuple(self._rewritten(turns, chosen, None, dry_run)),
                self.cleanup_old_files(dry_run=dry_run),
                self.remove_orphans(dry_run=dry_run),
                tuple(_left(name, done) for name, done in flushed.items() if _note(done)),
            )

    def _directory(self, table: str | None) -> str | None:
        return None if table is None else self._workspace().table(self._name(table)).path

    def _upkept(self, name: TableName) -> Table:
        return Table(self._state, name)

    def _flushed(self, turns: Turns, names: Collection[TableName]) -> dict[TableName, Result]:
        done = turns.each(names, lambda name: (name, self._upkept(name).flush_inlined_data()))
        return {name: one for name, one in done if isinstance(one, Committed) or _note(one)}

    def _compacted(
        self,
        turns: Turns,
        names: Collection[TableName],
        target_file_size: int | str | None,
        dry_run: bool,
    ) -> list[Compacted]:
        def compact(name: TableName) -> Compacted:
            table = self._upkept(name)
            return table.compact(target_file_size=target_file_size, dry_run=dry_run)

        return [one for one in turns.each(names, compact) if not one.is_nothing]

    def _rewritten(
        self, turns: Turns, names: Collection[TableName], threshold: float | None, dry_run: bool
    ) -> list[Compacted]:
        def rewrite(name: TableName) -> Compacted:
            return self._upkept(name).rewrite_deletes(threshold, dry_run=dry_run)

        return [one for one in turns.each(names, rewrite) if not one.is_nothing]

    def _options(self) -> TableOptions:
        with self._state.store.read() as connection:
            return table_options(read_settings(connection))


def _note(done: Result) -> str:
    return "" if isinstance(done, Staged) else done.note


def _left(name: TableName, done: Result) -> str:
    return f"{name}: rows stay in the catalog: {_note(done)}"
