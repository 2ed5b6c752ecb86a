"""One unit of work: staged changes, and the one call that commits them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shelduck.api.results import Committed, Result, Staged, Unchanged
from shelduck.api.state import LakeState
from shelduck.api.workspace import Workspace
from shelduck.catalog.commit import commit
from shelduck.errors import Conflict, InvalidRequest, OutcomeUnknown
from shelduck.model.change import AppendFiles, Change, CommitInfo
from shelduck.model.table import TableVersion
from shelduck.operations.append import discard
from shelduck.spark.write import WrittenFiles

_ATTEMPTS = 10


class UnitOfWork:
    """Changes that become one snapshot, or none.

    Names are resolved as of the newest snapshot at its first use. Files given to `own` are removed
    when the unit does not land, unless its outcome is unknown.
    """

    def __init__(self, state: LakeState, info: CommitInfo) -> None:
        self.state = state
        self.info = info
        self.workspace = Workspace(state)
        self.is_open = True
        self._staged: list[WrittenFiles] = []
        self._owned: list[tuple[TableVersion, WrittenFiles]] = []

    def stage_rows(self, table: TableVersion, written: WrittenFiles) -> None:
        """Add written files of a table."""
        self._staged.append(written)
        self.workspace.append_files(table, written.files)

    def own(self, table: TableVersion, written: WrittenFiles) -> None:
        """Take over files, to remove them when the unit does not land."""
        self._owned.append((table, written))

    def require_open(self) -> None:
        """Raise InvalidRequest when the unit has ended."""
        if not self.is_open:
            raise InvalidRequest("the transaction has ended; begin another one")

    def commit(self) -> Committed | Unchanged:
        """Make one snapshot of everything staged, or none when nothing was.

        Raises Conflict when another commit excludes this one; nothing is changed then.
        """
        self.require_open()
        changes = self.workspace.changes()
        if not changes:
            self.rollback()
            return Unchanged(self.workspace.base.id)
        learned = self.state.layouts.unrecorded()
        try:
            landed = commit(
                self.state.store,
                self.state.info,
                changes,
                base=self.workspace.base.id,
                info=self.info,
                layouts_learned=learned,
            )
        except OutcomeUnknown:
            self.is_open = False
            raise
        except BaseException:
            self.rollback()
            raise
        self.is_open = False
        self._discard_unpublished(changes)
        self.state.layouts.mark_recorded(learned)
        return Committed(
            landed.snapshot.id,
            rows=sum(w.rows for w in self._staged),
            files=sum(len(w.files) for w in self._staged),
            bytes=sum(w.bytes for w in self._staged),
        )

    def rollback(self) -> None:
        """Forget everything staged and remove the files that the unit owns.

        A unit that has ended stays as it ended: its files may be part of the lake.
        """
        if not self.is_open:
            return
        self.is_open = False
        for table, written in self._owned:
            discard(table, written)

    def _discard_unpublished(self, changes: Sequence[Change]) -> None:
        """Remove files that no change carries, as those of a table that was dropped later."""
        published = {f.path for c in changes if isinstance(c, AppendFiles) for f in c.files}
        for table, written in self._owned:
            if not any(f.path in published for f in written.files):
                discard(table, written)


def carry_out(
    state: LakeState, unit: UnitOfWork | None, stage: Callable[[UnitOfWork], None]
) -> Result:
    """Stage into the open unit, or into one of its own that is committed at once.

    A unit of its own that loses to another commit is staged anew on the newest snapshot: ``stage``
    must not write rows. A Conflict that ``stage`` itself finds would be found again and is raised.
    """
    if unit is not None:
        unit.require_open()
        stage(unit)
        return Staged()
    for attempt in range(_ATTEMPTS):
        own = UnitOfWork(state, state.commit_info())
        with state.store.session():
            stage(own)
            try:
                return own.commit()
            except Conflict:
                if attempt == _ATTEMPTS - 1:
                    raise
    raise AssertionError("unreachable")
