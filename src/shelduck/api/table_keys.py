"""Verbs of tables with a key model."""

from __future__ import annotations

from shelduck.api.handle import TableHandle
from shelduck.api.keyed import folded_done, folds
from shelduck.api.lookup import rows_of
from shelduck.api.results import Result
from shelduck.api.row_work import carry_out_rows
from shelduck.api.unit import UnitOfWork
from shelduck.errors import InvalidRequest
from shelduck.operations.done import Done


class KeyVerbs(TableHandle):
    """Folding."""

    def fold(self) -> Result:
        """Make one row of those with the same key that other writers put into the table.

        Every write of Shelduck does so first. Nothing to fold makes no snapshot.

        Raises:
            InvalidRequest: the table has no UNIQUE or AGGREGATE KEY.
            Conflict: another commit changed the rows meanwhile, again and again.
        """

        def prepare(unit: UnitOfWork) -> Done:
            rows = rows_of(self._state, unit, self.name, writes=True)
            if not folds(rows.table):
                raise InvalidRequest(
                    f"{rows.table.full_name} has no UNIQUE or AGGREGATE KEY: there is nothing to"
                    " fold"
                )
            return folded_done(self._state, unit, rows)

        return carry_out_rows(self._state, self._unit, prepare, again=True)
