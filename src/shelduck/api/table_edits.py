"""Verbs that change rows of a table that are there."""

from __future__ import annotations

from shelduck.api.handle import TableHandle
from shelduck.api.lookup import rows_of
from shelduck.api.results import Result
from shelduck.api.unit import UnitOfWork, carry_out_rows
from shelduck.operations.delete import delete_rows, truncate_rows
from shelduck.operations.done import Done
from shelduck.spark.matching import Condition, Where


class EditVerbs(TableHandle):
    """Deleting, updating and replacing rows."""

    def delete(self, where: Condition) -> Result:
        """Delete the rows for which ``where`` is true, as SQL text or a Spark column.

        `truncate` deletes all rows. Nothing that matches makes no snapshot.

        Raises:
            Conflict: another commit touched the same files or added rows meanwhile; run it again.
        """
        chosen = Where(where)

        def prepare(unit: UnitOfWork) -> Done:
            rows = rows_of(self._state, unit, self.name)
            return delete_rows(self._state.spark, rows, chosen)

        return carry_out_rows(self._state, self._unit, prepare)

    def truncate(self) -> Result:
        """Delete all rows; no file is read. Older snapshots still show them."""

        def prepare(unit: UnitOfWork) -> Done:
            return truncate_rows(self._state.spark, rows_of(self._state, unit, self.name))

        return carry_out_rows(self._state, self._unit, prepare)
