"""One unit of work: staged changes, and the one call that commits them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import cached_property
from threading import get_ident
from typing import Any, Self

from shelduck.catalog.commit.commit import Landed, commit
from shelduck.catalog.commit.own_rows import landed_in
from shelduck.catalog.databases.store import Store, tries
from shelduck.catalog.running.writers import LeaseLost
from shelduck.errors import Conflict, InvalidRequest, OutcomeUnknown
from shelduck.lake.done import Counts, Done, discard, discard_unpublished, require_files
from shelduck.lake.results import Committed, Result, Staged, Unchanged
from shelduck.lake.state import LakeState, Writer
from shelduck.lake.workspace import Workspace
from shelduck.model.changes.change import Change, CommitInfo, DeleteRows, RewriteFiles, is_look
from shelduck.model.changes.job import JobStep
from shelduck.model.changes.records import Batch, EndWriters, LearnLayouts, Record, Settling
from shelduck.model.files.data_file import Layout
from shelduck.model.tables.schema import SnapshotId, TableId
from shelduck.model.tables.table_version import TableVersion

Completing = Callable[[Store, Change, list[str], Callable[[TableVersion], TableVersion]], Change]
"""Returns a change with what it still needs, writes its files, and adds their paths to a list."""
COMPLETING: list[Completing] = []
"""Complete changes of rows right before each commit; `shelduck.doors.subjects` puts them in."""


class UnitOfWork:
    """Changes that become one snapshot, or none.

    Names are resolved at the snapshot that is newest at the first use. If the unit is not
    committed, files given to `own` are removed, unless the outcome is unknown.

    As a context manager, an exception that leaves the block rolls it back; the block commits.
    Without ``info``, the commit has that of the lake.

    ``borrows_writer``: somebody else ends the writer. ``writer_stays``: its registration outlives
    the commit.
    ``is_of_job``: the lease of a job's worker protects the files of rollups.
    """

    def __init__(self, state: LakeState, info: CommitInfo | None = None) -> None:
        self.state = state
        self.info = info or state.commit_info()
        self.workspace = Workspace(state)
        self.is_open = True
        self.is_used = False
        self.may_have_landed = False
        self._counts = Counts()
        self._owned: list[tuple[TableVersion, Sequence[str]]] = []
        self.batch: Batch | None = None
        self.job: JobStep | None = None
        self._settlings: dict[TableId, Settling] = {}
        self.borrows_writer = False
        self.writer_stays = False
        self.is_of_job = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.rollback()

    @cached_property
    def writer(self) -> Writer:
        """The writer that registers for the tables whose files the unit writes."""
        return Writer(self.state.store, self.state.leases)

    @property
    def _known_writer(self) -> Writer | None:
        """The writer if somebody has asked for it: most units only read, or change no rows."""
        return vars(self).get("writer")

    def stage(self, done: Done) -> None:
        """Add the changes that a verb over rows has prepared."""
        self._counts += done.counts
        self.stage_unseen(done)
        if not done.keeps_rows:
            # Callers that keep keys and rollups up to date settle them again.
            gone = [t for t, s in self._settlings.items() if done.table.id in s.sources]
            for table in gone:
                del self._settlings[table]

    def stage_unseen(self, done: Done) -> None:
        """Add changes that follow from others and are not counted."""
        if done.alter is not None:
            self.workspace.alter_table(done.alter)
        for change in done.changes:
            self.workspace.stage_rows(done.table, change)

    def own(self, done: Done) -> None:
        """Take over the files of ``done``, to remove them if they are not committed."""
        self._owned.append((done.table, done.paths))

    def settle(self, settling: Settling) -> None:
        """Record that the commit leaves a table consistent with its key model or its base."""
        self._settlings.setdefault(settling.table, settling)

    @contextmanager
    def statement(self) -> Iterator[None]:
        """Undo the changes staged inside if it fails, so that all of them are staged or none.

        The unit still owns the files.
        """
        undo = self.workspace.savepoint()
        counts, settlings = self._counts, dict(self._settlings)
        try:
            yield
        except BaseException:
            undo()
            self._counts, self._settlings = counts, settlings
            raise

    def settlings(self) -> dict[TableId, Settling]:
        """Return what `settle` recorded and is still valid."""
        return dict(self._settlings)

    def settles(self, table: TableId) -> bool:
        """Return whether `settle` was called for a table."""
        return table in self._settlings

    def annotate(self, info: CommitInfo) -> None:
        """Set author, message and extra info of the commit; what ``info`` leaves out stays."""
        self.info = replace(
            self.info,
            author=info.author or self.info.author,
            message=info.message or self.info.message,
            extra_info=info.extra_info or self.info.extra_info,
        )

    def has_landed(self) -> bool:
        """Return whether the batch of the unit is already committed."""
        batch = self.batch
        return batch is not None and self.state.store.ask(landed_in, batch) is not None

    def require_open(self) -> None:
        """Raise InvalidRequest if the unit has ended; who asks is about to use it."""
        self.is_used = True
        if not self.is_open:
            raise InvalidRequest("the transaction has ended; begin another one")

    def commit(self) -> Committed | Unchanged:
        """Make one snapshot of everything staged, or none if nothing is to change.

        Raises Conflict if another commit excludes this one; nothing is changed then.
        """
        self.require_open()
        changes = self.workspace.changes()
        base = self.workspace.base.id
        if all(map(is_look, changes)):
            self.rollback()
            return Unchanged(base)
        learned = self.state.layouts.unrecorded()
        published = self.workspace.published()
        try:
            changes = [self._with_past(change, published) for change in changes]
        except BaseException:
            self.rollback()
            raise
        landed = self._landed(changes, base, learned, published)
        if landed.is_repeat:
            self.may_have_landed = False
            self.rollback()
            return Unchanged(landed.snapshot.id)
        self.is_open = False
        if landed.before is not None:
            self.state.tables.follow(landed.before, landed.snapshot, landed.altered)
        if not self.writer_stays and (writer := self._known_writer):
            writer.ended()
        # Leftover files do no harm, and an error would hide that the commit has succeeded.
        with suppress(OSError):
            for table, paths in self._owned:
                discard_unpublished(table, paths, published)
        self.state.layouts.mark_recorded(learned)
        if landed.is_new:
            self.state.commits[get_ident()] += 1
            return Committed(landed.snapshot.id, **counted(self._counts))
        return Unchanged(landed.snapshot.id)

    def _with_past(self, change: Change, published: set[str]) -> Change:
        if not isinstance(change, DeleteRows | RewriteFiles):
            return change
        paths: list[str] = []
        self._owned.append((change.table, paths))
        found: Change = change
        for complete in COMPLETING:
            found = complete(self.state.store, found, paths, self.writer.register)
        published.update(change.table.path + path for path in paths)
        return found

    def _landed(
        self,
        changes: Sequence[Change],
        base: SnapshotId,
        learned: Mapping[int, Layout],
        published: Collection[str],
    ) -> Landed:
        self.may_have_landed = True
        try:
            if published:
                require_files(changes, self.workspace.directories())
            records = self._records(learned)
            return commit(
                self.state.store, self.state.info, [*changes, *records], base=base, info=self.info
            )
        except OutcomeUnknown:
            self.is_open = False
            if writer := self._known_writer:
                writer.ended()
            raise
        except Exception:
            self.may_have_landed = False
            self.rollback()
            raise
        except BaseException:
            # Ctrl-C may come after COMMIT: the files are left to remove_orphans.
            self.is_open = False
            if writer := self._known_writer:
                writer.give_up()
            raise

    def _records(self, learned: Mapping[int, Layout]) -> Sequence[Record]:
        """Return what the commit writes beside its snapshot."""
        found: list[Record] = [LearnLayouts(learned)] if learned else []
        if writer := self._known_writer:
            found.append(EndWriters(writer.registered, self.writer_stays))
        own = [each for each in (self.batch, self.job) if each is not None]
        return [*found, *self._settlings.values(), *own]

    def rollback(self) -> None:
        """Discard everything staged and remove the files that the unit owns.

        Does nothing if the unit has ended: its files may be part of the lake.
        """
        if not self.is_open or self.may_have_landed:
            return
        self.is_open = False
        try:
            for table, paths in self._owned:
                discard(table, paths)
        finally:
            # Otherwise its lease is renewed, and jobs wait for it, as long as the process lives.
            writer = self._known_writer
            if writer is not None and not self.borrows_writer:
                writer.give_up()


def view_of(state: LakeState, unit: UnitOfWork | None) -> UnitOfWork:
    """Return the open unit, or a new one that is only read from."""
    view = unit or UnitOfWork(state)
    view.require_open()
    return view


def counted(counts: Counts) -> dict[str, Any]:
    """Return counts as the arguments of a result."""
    return {"rows": counts.rows, **asdict(counts)}


def carry_out(
    state: LakeState,
    unit: UnitOfWork | None,
    stage: Callable[[UnitOfWork], object],
    *,
    message: str | None = None,
    first: UnitOfWork | None = None,
    prepare: Callable[[UnitOfWork, Exception | None], object] | None = None,
    lost: tuple[type[Conflict], ...] = (Conflict,),
) -> Result:
    """Stage into the open unit, or into a new one that is committed at once.

    ``first`` is a new unit that has only read; the first attempt goes on with what it read. If a
    new unit loses to another commit, all runs again on the newest snapshot: ``prepare``, which gets
    the error, and may take long and write rows, and then ``stage``, which may not. So it does if
    one of them finds that it has ``lost``. Without ``prepare``, a Conflict that ``stage`` finds
    would be found again and is raised; so is a LeaseLost, because the rows must be written again.
    """
    if unit is not None:
        unit.require_open()
        with unit.statement():
            stage(unit)
        return Staged()
    for each in tries():
        own, first = first or UnitOfWork(state, state.commit_info(message)), None
        with each.may_lose(*(() if prepare is None else lost)), own:
            if prepare is not None:
                prepare(own, each.before)
            with state.store.session():
                stage(own)
                with each.may_lose(Conflict, but=(LeaseLost,)):
                    return own.commit()
    raise AssertionError("unreachable")


def carry_out_anew(state: LakeState, work: Callable[[UnitOfWork], object]) -> Result:
    """Do work that takes long and means the same on any snapshot, in a new unit; commit it."""
    return carry_out(state, None, lambda _unit: None, prepare=lambda own, _: work(own))


def refuse_in_transaction(unit: UnitOfWork | None, what: str) -> None:
    """Raise InvalidRequest inside a transaction: maintenance commits by itself."""
    if unit is not None:
        raise InvalidRequest(f"{what} commits by itself; run it outside of the transaction")
