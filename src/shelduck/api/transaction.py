"""Transactions over several tables: `Lake.transaction`."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from shelduck.spark.session import DataFrame
from shelduck.statements.session import SqlSession
from shelduck.statements.statements import run_sql
from shelduck.verbs.catalog_verbs import CatalogVerbs
from shelduck.work.results import Committed, Unchanged
from shelduck.work.unit import UnitOfWork


class Transaction(CatalogVerbs):
    """Changes of several tables that become one snapshot, or none.

    Use it as a context manager: it commits at the end of the block, and an exception that leaves
    the block rolls everything back. Afterwards ``result`` tells what landed.

        with lake.transaction(message="daily load") as tx:
            tx.table("events").append(df)
    """

    def __init__(self, unit: UnitOfWork) -> None:
        super().__init__(unit.state, unit)
        self._open_unit = unit
        self._schema_before = unit.state.default_schema
        self.result: Committed | Unchanged | None = None
        self.has_landed = unit.has_landed()
        """True if what ``once`` names has already landed: then this one changes nothing."""

    def sql(self, text: str) -> DataFrame:
        """Run statements like `Lake.sql`, but in this transaction: nothing lands before its end."""
        self._open_unit.require_open()
        return run_sql(SqlSession(self._state, self._open_unit), text)

    def commit(self) -> Committed | Unchanged:
        """Commit now; the transaction is over afterwards."""
        try:
            self.result = self._open_unit.commit()
        except BaseException:
            self._state.default_schema = self._schema_before
            raise
        return self.result

    def rollback(self) -> None:
        """Discard all changes; the transaction is over afterwards.

        If it has already ended, this does nothing. The schema that USE chose is reset too.
        """
        if self._open_unit.is_open:
            self._state.default_schema = self._schema_before
        self._open_unit.rollback()

    def __enter__(self) -> Self:
        # The transaction reads as of its first line, not of its first statement.
        _ = self._open_unit.workspace.base
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._open_unit.is_open:
            return
        if error is None:
            self.commit()
        else:
            self.rollback()
