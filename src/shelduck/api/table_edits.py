"""Verbs that change rows of a table that are there."""

from __future__ import annotations

from collections.abc import Mapping

from shelduck.api.handle import TableHandle
from shelduck.api.lookup import few_deletes, rows_of
from shelduck.api.results import Result
from shelduck.api.unit import UnitOfWork, carry_out_rows
from shelduck.errors import InvalidRequest
from shelduck.model.names import split_name
from shelduck.operations.delete import delete_rows, truncate_rows
from shelduck.operations.done import Done
from shelduck.operations.update import update_rows
from shelduck.spark.assignments import SetValue, Value
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
            few = few_deletes(self._state, self._unit, rows)
            return delete_rows(self._state.spark, rows, chosen, few=few)

        return carry_out_rows(self._state, self._unit, prepare)

    def update(self, values: Mapping[str, Value], *, where: Condition | None = None) -> Result:
        """Set columns and struct fields in the rows for which ``where`` is true, in all without it.

        Rows keep their row ids. A row that is set to what it holds counts as updated.

        Args:
            values: SQL text or a Spark column by the column's name, ``"s.f"`` for a struct's field;
                the text ``DEFAULT`` is the column's default.
            where: SQL text or a Spark column.

        Raises:
            NotFound: the table has no such column.
            InvalidRequest: a type does not fit its column, or a value does not (NULL in a NOT NULL
                column, overflow); the table is unchanged.
            Conflict: another commit touched the same files or added rows meanwhile; run it again.
        """
        set_values = assignments(values)
        chosen = None if where is None else Where(where)

        def prepare(unit: UnitOfWork) -> Done:
            rows = rows_of(self._state, unit, self.name)
            return update_rows(
                self._state.spark,
                rows,
                set_values,
                chosen,
                few=few_deletes(self._state, self._unit, rows),
                show_progress=self._state.show_progress,
            )

        return carry_out_rows(self._state, self._unit, prepare)

    def truncate(self) -> Result:
        """Delete all rows; no file is read. Older snapshots still show them."""

        def prepare(unit: UnitOfWork) -> Done:
            return truncate_rows(self._state.spark, rows_of(self._state, unit, self.name))

        return carry_out_rows(self._state, self._unit, prepare)


def assignments(values: Mapping[str, Value]) -> list[SetValue]:
    """Return what a mapping of paths to values assigns."""
    if not values:
        raise InvalidRequest('no column is set: give {"column": "value", ...}')
    return [SetValue(split_name(path), _value(value)) for path, value in values.items()]


def _value(value: Value) -> Value | None:
    is_default = isinstance(value, str) and value.strip().upper() == "DEFAULT"
    return None if is_default else value
