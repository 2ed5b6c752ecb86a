"""Verbs that change rows of a table that are there."""

from __future__ import annotations

from shelduck.api.handle import TableHandle
from shelduck.api.results import Result
from shelduck.api.unit import UnitOfWork, carry_out_rows
from shelduck.operations.delete import delete_rows, truncate_rows
from shelduck.operations.done import Done
from shelduck.operations.rows import TableRows, table_rows
from shelduck.spark.matching import Condition, Where


class EditVerbs(TableHandle):
    """Deleting, updating and replacing rows."""

    def delete(self, where: Condition) -> Result:
        """Delete the rows for which ``where`` is true, as SQL text or a Spark column.

        `truncate` deletes all rows. Nothing that matches makes no snapshot.

        Raises:
            Conflict: another commit touched the same files or added rows meanwhile; run it again.
        """
        return self.delete_where(Where(where))

    def truncate(self) -> Result:
        """Delete all rows; no file is read. Older snapshots still show them."""

        def prepare(unit: UnitOfWork) -> Done:
            return truncate_rows(self._state.spark, self._rows(unit))

        return carry_out_rows(self._state, self._unit, prepare)

    def delete_where(self, where: Where) -> Result:
        """Delete as `delete` does, by a condition that has a name for the table."""

        def prepare(unit: UnitOfWork) -> Done:
            return delete_rows(self._state.spark, self._rows(unit), where)

        return carry_out_rows(self._state, self._unit, prepare)

    def _rows(self, unit: UnitOfWork) -> TableRows:
        """Return the rows as the unit sees them."""
        table = unit.workspace.table(self.name)
        staged = unit.workspace.staged_rows(table)
        return table_rows(self._state.store, table, self._state.layouts, staged)
