"""Verbs that change rows of a table that are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shelduck.api.handle import TableHandle
from shelduck.api.lookup import few_deletes, rows_of
from shelduck.api.merge_clauses import assignments
from shelduck.api.results import Result
from shelduck.api.unit import UnitOfWork, carry_out_rows
from shelduck.errors import InvalidRequest
from shelduck.operations.delete import delete_rows, truncate_rows
from shelduck.operations.done import Done
from shelduck.operations.merge import merge_rows
from shelduck.operations.update import update_rows
from shelduck.spark.assignments import Value
from shelduck.spark.matching import Column, Condition, Where
from shelduck.spark.merge_clauses import Merge, MergeClause
from shelduck.spark.session import DataFrame


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

    def merge(
        self,
        source: DataFrame,
        on: Condition | Sequence[str],
        *clauses: MergeClause,
        target_alias: str = "t",
        source_alias: str = "s",
        schema_evolution: bool = False,
    ) -> Result:
        """Update, delete and insert by the rows of a source, at once.

            table.merge(
                updates,
                "t.id = s.id",
                shelduck.when_matched_update_all(),
                shelduck.when_not_matched_insert_all(),
            )

        The source is computed once. Rows that are updated keep their row ids. Of the clauses for
        one kind of rows the first whose condition is true takes a row.

        Args:
            source: The rows to merge.
            on: When a row of the source matches one of the table: SQL text, a Spark column, or the
                names of columns that must be equal. NULL is equal to nothing.
            clauses: From `shelduck.when_matched_update` and its like, in order.
            target_alias: What conditions and values call the table.
            source_alias: What they call the source.
            schema_evolution: Add columns and fields that only the source has and widen types, in
                the same snapshot, where a clause takes all columns or names the new one; columns
                that only the table has stay as they are.

        Raises:
            InvalidRequest: there is no clause, types or values do not fit, or several rows of the
                source would change one row of the table; the table is unchanged.
            Conflict: another commit touched the same files or added rows meanwhile; run it again.
        """
        if not isinstance(source, DataFrame):
            raise InvalidRequest(
                f"merge into {self.name} takes a Spark DataFrame, not {type(source).__name__}"
            )
        wanted = Merge(_on(on), clauses, target_alias, source_alias, schema_evolution)

        def prepare(unit: UnitOfWork) -> Done:
            rows = rows_of(self._state, unit, self.name)
            return merge_rows(
                self._state.spark,
                rows,
                source,
                wanted,
                few=few_deletes(self._state, self._unit, rows),
                show_progress=self._state.show_progress,
            )

        return carry_out_rows(self._state, self._unit, prepare)

    def truncate(self) -> Result:
        """Delete all rows; no file is read. Older snapshots still show them."""

        def prepare(unit: UnitOfWork) -> Done:
            return truncate_rows(self._state.spark, rows_of(self._state, unit, self.name))

        return carry_out_rows(self._state, self._unit, prepare)


def _on(on: Condition | Sequence[str]) -> Condition | tuple[str, ...]:
    if isinstance(on, str | Column):
        return on
    if not isinstance(on, list | tuple) or not on or not all(isinstance(n, str) for n in on):
        raise InvalidRequest(
            f"merge on SQL text, a Spark column or a list of columns' names, not on {on!r}"
        )
    return tuple(on)
