"""Moving rows out of the catalog."""

from __future__ import annotations

from dataclasses import replace

from shelduck.errors import InvalidRequest
from shelduck.operations.done import Done
from shelduck.operations.upkeep.flush import flush_table
from shelduck.work.handle import TableHandle
from shelduck.work.results import Result, Staged
from shelduck.work.rows.row_work import carry_out_rows
from shelduck.work.unit import UnitOfWork


class FlushVerbs(TableHandle):
    """Flushing."""

    def flush_inlined_data(self) -> Result:
        """Move rows and deletes from the catalog itself into files.

        Small inserts and deletes stay in the catalog (option ``data_inlining_row_limit``), which is
        fast while there are few of them. All snapshots read the same as before. If there is nothing
        to move, no snapshot is made. Rows with a column of a type that Shelduck cannot write stay
        where they are, and the result's ``note`` says so; DuckDB can flush them.

        Raises:
            Conflict: another commit changed the rows; flush again.
        """
        if self._unit is not None:
            raise InvalidRequest("a flush commits by itself; run it outside of the transaction")

        note = ""

        def prepare(unit: UnitOfWork) -> Done:
            nonlocal note
            table = unit.workspace.table(self.name)
            register = unit.writer.register
            done = flush_table(self._state.spark, self._state.store, table, register=register)
            note = done.note
            return done

        result = carry_out_rows(self._state, None, prepare, again=True)
        return result if isinstance(result, Staged) else replace(result, note=note)
