"""Moving rows out of the catalog."""

from __future__ import annotations

from dataclasses import replace

from shelduck.api.handle import TableHandle
from shelduck.api.results import Result, Staged
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
        snapshot. Rows with a column of a type that Shelduck does not write stay where they are, and
        the result's ``note`` says so; DuckDB flushes them.

        Raises:
            Conflict: another commit changed the rows meanwhile; flush again.
        """
        if self._unit is not None:
            raise InvalidRequest("a flush is no part of a transaction; run it outside of one")

        note = ""

        def prepare(unit: UnitOfWork) -> Done:
            nonlocal note
            table = unit.workspace.table(self.name)
            done = flush_table(self._state.spark, self._state.store, table)
            note = done.note
            return done

        result = carry_out_rows(self._state, None, prepare, again=True)
        return result if isinstance(result, Staged) else replace(result, note=note)
