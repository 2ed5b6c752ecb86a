"""Moving rows out of the catalog."""

from __future__ import annotations

from shelduck.api.handle import TableHandle
from shelduck.api.results import Result
from shelduck.api.row_work import carry_out_rows
from shelduck.api.unit import UnitOfWork
from shelduck.errors import InvalidRequest
from shelduck.operations.done import Done
from shelduck.operations.flush import flush_table


class FlushVerbs(TableHandle):
    """Flushing."""

    def flush_inlined_data(self) -> Result:
        """Move the rows and deletes that the catalog itself keeps into files.

        Small inserts and deletes stay in the catalog (option ``data_inlining_row_limit``), which is
        fast while they are few. No snapshot reads otherwise than before. Nothing to move makes no
        snapshot.

        Raises:
            Conflict: another commit changed the rows meanwhile; flush again.
            Unsupported: a column has a type that Spark cannot write; flush with DuckDB.
        """
        if self._unit is not None:
            raise InvalidRequest("a flush is no part of a transaction; run it outside of one")

        def prepare(unit: UnitOfWork) -> Done:
            table = unit.workspace.table(self.name)
            return flush_table(self._state.spark, self._state.store, table)

        return carry_out_rows(self._state, None, prepare, again=True)
