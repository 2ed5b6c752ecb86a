"""Statements that share a transaction: BEGIN, COMMIT and ROLLBACK."""

from __future__ import annotations

from shelduck.errors import InvalidRequest
from shelduck.lake.results import Committed, Staged, Unchanged
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork


class SqlSession:
    """The context of statements: the transaction that BEGIN opened, or each by itself.

    ``given`` is the unit of a `Transaction`, which statements can neither begin nor end.
    """

    def __init__(self, state: LakeState, given: UnitOfWork | None = None) -> None:
        self.state = state
        self._given = given
        self._begun: UnitOfWork | None = None

    @property
    def unit(self) -> UnitOfWork | None:
        """The open unit of work, None when each statement commits by itself."""
        return self._given or self._begun

    def begin(self) -> Staged:
        """Open a transaction; it reads as of now."""
        if self._given is not None:
            raise InvalidRequest(
                "cannot BEGIN inside lake.transaction(): a transaction is already open"
            )
        if self._begun is not None:
            raise InvalidRequest("a transaction is already open; COMMIT or ROLLBACK it first")
        unit = UnitOfWork(self.state)
        _ = unit.workspace.base
        self._begun = unit
        self._undo_use = self.state.current.undo()
        return Staged()

    def commit(self) -> Committed | Unchanged:
        """Commit everything since BEGIN; after an error the transaction is over too."""
        unit = self._end("COMMIT")
        try:
            return unit.commit()
        except BaseException:
            self._undo_use()
            raise

    def rollback(self) -> Staged:
        """Discard everything since BEGIN, including the schema that USE chose."""
        unit = self._end("ROLLBACK")
        self._undo_use()
        unit.rollback()
        return Staged()

    def close(self) -> None:
        """Roll back the transaction that BEGIN opened, if one is open."""
        if self._begun is not None:
            self.rollback()

    def _end(self, word: str) -> UnitOfWork:
        if self._given is not None:
            raise InvalidRequest(
                f"cannot {word} inside lake.transaction(), which ends with its block; to end it"
                f" earlier, call its {word.lower()}()"
            )
        if self._begun is None:
            raise InvalidRequest(f"cannot {word}: no transaction is open; use BEGIN first")
        unit, self._begun = self._begun, None
        return unit
