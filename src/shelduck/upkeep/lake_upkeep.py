"""Maintenance of a whole lake."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from functools import partial

from shelduck.branches.verb import drop_overdue
from shelduck.catalog.databases.store import Store
from shelduck.catalog.read.read import read_settings
from shelduck.catalog.schema.lake_schema import LakeInfo
from shelduck.catalog.upkeep.expire import (
    ExpiryRequest,
    choose,
    remove_empty_tables,
    remove_snapshots,
)
from shelduck.catalog.upkeep.few_rows import LotPace
from shelduck.catalog.upkeep.migrate import migrate
from shelduck.catalog.upkeep.sweep import Sweep
from shelduck.errors import InvalidRequest
from shelduck.lake.lookup import earlier
from shelduck.lake.results import (
    Checkpointed,
    Committed,
    Compacted,
    Expired,
    FilesDeleted,
    Migrated,
    Result,
    Staged,
    TableName,
)
from shelduck.lake.state import Turns, is_gone
from shelduck.lake.unit import refuse_in_transaction
from shelduck.model.tables.options import TableOptions, table_options
from shelduck.objects.catalog_verbs import CatalogVerbs, Table
from shelduck.upkeep import orphans
from shelduck.write.progress import counted

When = str | datetime | timedelta
ORPHAN_AGE = timedelta(days=3)


class LakeUpkeep(CatalogVerbs, in_parts=True):
    """Fewer files, fewer snapshots, and nothing on storage that nobody needs.

    Nothing here changes what the newest snapshot shows. A time is a datetime, a text such as
    ``"2026-01-31 12:00"``, or a span before now: a timedelta or ``"7 days"``.
    """

    def compact(
        self, *, target_file_size: int | str | None = None, dry_run: bool = False
    ) -> list[Compacted]:
        """Combine small files in all tables, as `Table.compact` does in one.

        Args:
            target_file_size: Bytes, or a text such as ``"512MB"``; by default the option of each
                table.
            dry_run: Tell what would be done, and change nothing.

        Returns the result for each table that had small files.
        """
        rewrite = partial(Table.compact, target_file_size=target_file_size, dry_run=dry_run)
        return self._all_rewritten("compact()", rewrite)

    def rewrite_deletes(
        self, delete_threshold: float | None = None, *, dry_run: bool = False
    ) -> list[Compacted]:
        """Rewrite files with many deleted rows in all tables, as `Table.rewrite_deletes` does.

        Args:
            delete_threshold: The share of deleted rows, 0 to 1, from which on a file is rewritten;
                by default the option of each table.
            dry_run: Tell what would be done, and change nothing.

        Returns the result for each table that had such files.
        """
        rewrite = partial(Table.rewrite_deletes, delete_threshold=delete_threshold, dry_run=dry_run)
        return self._all_rewritten("rewrite_deletes()", rewrite)

    def expire_snapshots(
        self,
        *,
        older_than: When | None = None,
        versions: Iterable[int] | None = None,
        retain_last: int | None = None,
        dry_run: bool = False,
    ) -> Expired:
        """Expire snapshots: they can no longer be read.

        Files that only they used are deleted later, by `cleanup_old_files`. The newest snapshot
        always stays. With several conditions, only snapshots that meet all of them expire. Branches
        and tags whose time is over are dropped first, with changes that nobody has merged.

        Args:
            older_than: Snapshots made before this time; the option expire_older_than if no argument
                is given.
            versions: Their ids.
            retain_last: Keep at least this many of the newest snapshots.
            dry_run: Only report what would be done.

        Raises:
            NotFound: a version does not exist.
            InvalidRequest: a version is the newest, or neither arguments nor option tell which
                snapshots expire.
        """
        refuse_in_transaction(self._unit, "expire_snapshots()")
        if versions is None and older_than is None and retain_last is None:
            age = self._options().expire_older_than
            if age is None:
                raise InvalidRequest(
                    "cannot tell which snapshots to expire; pass older_than, versions or"
                    " retain_last, or set the option expire_older_than"
                )
            older_than = earlier(age, self._state.time_zone)
        if retain_last is not None and retain_last < 1:
            raise InvalidRequest("retain_last must be at least 1: the newest snapshot always stays")
        request = ExpiryRequest(
            None if versions is None else tuple(versions),
            None if older_than is None else earlier(older_than, self._state.time_zone),
            retain_last,
        )
        state = self._state
        show = state.show_progress
        drop = partial(drop_overdue, state)
        where = state.store, state.info
        return expire_snapshots(*where, request, dry_run=dry_run, show=show, drop_overdue=drop)

    def cleanup_old_files(
        self,
        *,
        older_than: When | None = None,
        cleanup_all: bool = False,
        table: str | None = None,
        include_adopted: bool = False,
        dry_run: bool = False,
    ) -> FilesDeleted:
        """Delete files that compaction and expired snapshots have left behind.

        Args:
            older_than: Files unneeded since before this time; by default the option
                delete_older_than (2 days). Running queries may still read younger ones.
            cleanup_all: All of them.
            table: Only those of one table.
            include_adopted: Also files that the lake did not write: `Table.add_files` adopted them
                in place, and they may be needed elsewhere.
            dry_run: Only report what would be done.
        """
        refuse_in_transaction(self._unit, "cleanup_old_files()")
        before: datetime | None = None
        if cleanup_all and older_than is not None:
            raise InvalidRequest("pass older_than or cleanup_all, not both")
        if older_than is not None:
            before = earlier(older_than, self._state.time_zone)
        elif not cleanup_all:
            age = self._options().delete_older_than
            if age is None:
                return FilesDeleted(dry_run=dry_run)
            before = earlier(age, self._state.time_zone)
        state = self._state
        chosen = orphans.Chosen(before, self._directory(table), include_adopted)
        show = state.show_progress
        return orphans.clean_up(state.store, state.info, chosen, dry_run=dry_run, show=show)

    def remove_orphans(
        self,
        *,
        older_than: When = ORPHAN_AGE,
        table: str | None = None,
        duckdb_files: bool = False,
        dry_run: bool = False,
    ) -> FilesDeleted:
        """Delete files of writes that never landed: a driver was killed, a disk was full.

        Only files written to this lake's tables are considered, even if other lakes keep theirs in
        the same place. A write that is still running is safe as long as it changes
        something in its directory within ``older_than``.

        Args:
            older_than: Files that have not changed since this time; by default for three days.
            table: Only those of one table.
            duckdb_files: Also files that DuckDB wrote. They do not tell which lake they belong to,
                so use this only if no other catalog keeps its files in this data path.
            dry_run: Only report what would be done.
        """
        refuse_in_transaction(self._unit, "remove_orphans()")
        state = self._state
        return orphans.remove_orphans(
            state.store,
            state.info,
            earlier(older_than, self._state.time_zone),
            table=self._directory(table),
            duckdb_files=duckdb_files,
            dry_run=dry_run,
        )

    def checkpoint(self, *, dry_run: bool = False) -> Checkpointed:
        """Do all maintenance, as the options say.

        Flushes rows that the catalog keeps, expires snapshots (only if expire_older_than is set),
        compacts and rewrites the tables unless auto_compact is false, deletes files that have been
        unneeded for delete_older_than, and removes orphans. A table that cannot be maintained does
        not stop the rest; its error is raised at the end.

        Args:
            dry_run: Change nothing, and return what would be done; rows are not flushed.
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
                tuple(self._rewritten(turns, chosen, lambda t: t.compact(dry_run=dry_run))),
                tuple(self._rewritten(turns, chosen, lambda t: t.rewrite_deletes(dry_run=dry_run))),
                self.cleanup_old_files(dry_run=dry_run),
                self.remove_orphans(dry_run=dry_run),
                tuple(_left(name, done) for name, done in flushed.items() if _note(done)),
            )

    def migrate(self, to: str, *, plan: bool = False) -> Migrated:
        """Give the lake a newer version of DuckLake, such as 1.1, in one transaction.

        Back up the catalog before, and see that every client knows the new version: there is no
        way back. No snapshot is made, and every snapshot reads as before. Sessions of Shelduck
        that are open go on in the new version.

        Args:
            to: The version that the lake gets.
            plan: Only tell what would be renamed, repaired, added and refused.

        Raises:
            InvalidRequest: Shelduck does not know the version, or it is older than that of the
                lake, or a column has a name that the new version uses.
            Conflict: somebody writes to the lake, or a job is open.
            CorruptLake: a table of the catalog is missing.
        """
        refuse_in_transaction(self._unit, "migrate()")
        was, steps = migrate(self._state.store, to, is_gone, plan=plan)
        return Migrated(was, to, tuple(steps), is_plan=plan)

    def _directory(self, table: str | None) -> str | None:
        return None if table is None else self._workspace().table(self._name(table)).path

    def _flushed(self, turns: Turns, names: Collection[TableName]) -> dict[TableName, Result]:
        done = turns.each(names, lambda name: (name, Table(self._state, name).flush_inlined_data()))
        return {name: one for name, one in done if isinstance(one, Committed) or _note(one)}

    def _all_rewritten(self, what: str, rewrite: Callable[[Table], Compacted]) -> list[Compacted]:
        refuse_in_transaction(self._unit, what)
        with Turns() as turns:
            return self._rewritten(turns, self.tables(), rewrite)

    def _rewritten(
        self, turns: Turns, names: Collection[TableName], rewrite: Callable[[Table], Compacted]
    ) -> list[Compacted]:
        done = turns.each(names, lambda name: rewrite(Table(self._state, name)))
        return [one for one in done if not one.is_nothing]

    def _options(self) -> TableOptions:
        return table_options(self._state.store.ask(read_settings))


def _note(done: Result) -> str:
    return "" if isinstance(done, Staged) else done.note


def _left(name: TableName, done: Result) -> str:
    return f"{name}: rows stay in the catalog: {_note(done)}"


def expire_snapshots(
    store: Store,
    lake: LakeInfo,
    request: ExpiryRequest,
    *,
    dry_run: bool = False,
    show: bool | None = False,
    drop_overdue: Callable[[], bool] = bool,
) -> Expired:
    """Expire snapshots; the work is done in many short transactions.

    After each of them the lake is sound: first snapshots go, then what no snapshot sees. What is
    left after an interruption is removed by the next call. In a lake with branches,
    ``drop_overdue`` drops those whose time is over, and returns whether there were any.

    Raises NotFound for a version that does not exist, InvalidRequest for the newest.
    """
    choice, pace = choose(store, request), LotPace()
    if choice.has_branches and not dry_run and drop_overdue():
        choice = choose(store, request)
    if not dry_run:
        told = counted(
            choice.expired, "expiring snapshots", len(choice.expired), unit="snapshot(s)", show=show
        )
        remove_snapshots(store, told, pace)
    sweep = Sweep(store, lake, choice.remaining, pace, removes=not dry_run)
    pages = counted(
        sweep.files(),
        "removing files of expired snapshots",
        sweep.count_files(),
        size=lambda page: page.rows,
        show=show,
    )
    files = sum(page.gone for page in pages)
    if not dry_run:
        sweep.tables()
        sweep.objects()
        remove_empty_tables(store, pace)
    return Expired(tuple(choice.expired), files, dry_run)
