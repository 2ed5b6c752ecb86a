"""Statements that share a transaction: BEGIN, COMMIT and ROLLBACK."""

from __future__ import annotations

from shelduck.api.results import Committed, Staged, Unchanged
from shelduck.api.state import LakeState
from shelduck.api.unit import UnitOfWork
from shelduck.errors import InvalidRequest


class SqlSession:
    """What statements run in: the transaction that BEGIN opened, or each by itself.

    ``given`` is the unit of a `Transaction`, which statements can neither begin nor end.
    """

    def __init__(self, state: LakeState, given: UnitOfWork | None = None) -> None:
        self.state = state
        self._given = given
        self._begun: UnitOfWork | None = None
        self._schema_before = state.default_schema

    @property
    def unit(self) -> UnitOfWork | None:
        """The open unit of work, None when each statement commits by itself."""
        return self._given or self._begun

    def begin(self) -> Staged:
        """Open a transaction; it reads as of now."""
        if self._given is not None:
            raise InvalidRequest(
                "BEGIN stands inside lake.transaction(), which is a transaction already"
            )
        if self._begun is not None:
            raise InvalidRequest("a transaction is open already: COMMIT or ROLLBACK it first")
        unit = UnitOfWork(self.state, self.state.commit_info())
        _ = unit.workspace.base
        self._begun = unit
        self._schema_before = self.state.default_schema
        return Staged()

    def commit(self) -> Committed | Unchanged:
        """Commit what was done since BEGIN; with an error the transaction is over too."""
        unit = self._end("COMMIT")
        try:
            return unit.commit()
        except BaseException:
            self.state.default_schema = self._schema_before
            raise

    def rollback(self) -> Staged:
        """Give up what was done since BEGIN, and the schema that USE has chosen since."""
        unit = self._end("ROLLBACK")
        self.state.default_schema = self._schema_before
        unit.rollback()
        return Staged()

    def close(self) -> None:
        """Give up the transaction that BEGIN opened, if one is open."""
        if self._begun is not None:
            self.rollback()

    def _end(self, word: str) -> UnitOfWork:
        if self._given is not None:
            raise InvalidRequest(
                f"{word} stands inside lake.transaction(): the transaction ends with its block, or"
                f" by its {word.lower()}()"
            )
        if self._begun is None:
            raise InvalidRequest(f"{word} without a transaction: there is no BEGIN before it")
        unit, self._begun = self._begun, None
        return unit
