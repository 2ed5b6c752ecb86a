"""Verbs that change rows of a table that are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from shelduck.api.evolving import evolved_rows
from shelduck.api.handle import TableHandle
from shelduck.api.keyed import changed_rows, settled_rows
from shelduck.api.lookup import few_deletes
from shelduck.api.merge_clauses import assignments
from shelduck.api.results import Result
from shelduck.api.row_work import carry_out_rows
from shelduck.api.state import LakeState
from shelduck.api.unit import UnitOfWork
from shelduck.errors import InvalidRequest
from shelduck.operations.delete import delete_rows, truncate_rows
from shelduck.operations.done import Done
from shelduck.operations.merge import merge_rows
from shelduck.operations.overwrite import overwrite_partitions, overwrite_table, overwrite_where
from shelduck.operations.rows import TableRows
from shelduck.operations.update import update_rows
from shelduck.spark.assignments import Value
from shelduck.spark.matching import Column, Condition, Where
from shelduck.spark.merge_clauses import Merge, MergeClause, evolving_columns
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
            rows = changed_rows(self._state, unit, self.name)
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
            rows = settled_rows(self._state, unit, self.name)
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
        self._require_frame(source, "merge into")
        wanted = Merge(_on(on), clauses, target_alias, source_alias, schema_evolution)

        def prepare(unit: UnitOfWork) -> Done:
            rows = settled_rows(self._state, unit, self.name)
            return merge_into(self._state, self._unit, rows, source, wanted)

        return carry_out_rows(self._state, self._unit, prepare)

    def overwrite(
        self, df: DataFrame, *, where: Condition | None = None, by_position: bool = False
    ) -> Result:
        """Replace all rows by those of ``df``, or those for which ``where`` is true, at once.

        Older snapshots still show what was there. ``df`` may read the table itself; its columns go
        as in `append`.

        Raises:
            InvalidRequest: rows do not fit the columns, or some do not fulfil ``where`` (the
                message says how many); the table is unchanged.
            Conflict: another commit touched the same files or added rows meanwhile; run it again.
        """
        chosen = None if where is None else Where(where)

        def prepare(unit: UnitOfWork) -> Done:
            rows = settled_rows(self._state, unit, self.name)
            if chosen is None:
                return overwrite_table(
                    self._state.spark,
                    rows,
                    df,
                    by_position=by_position,
                    show_progress=self._state.show_progress,
                )
            return overwrite_where(
                self._state.spark,
                rows,
                df,
                chosen,
                by_position=by_position,
                few=few_deletes(self._state, self._unit, rows),
                show_progress=self._state.show_progress,
            )

        self._require_frame(df, "overwrite")
        return carry_out_rows(self._state, self._unit, prepare)

    def overwrite_partitions(self, df: DataFrame, *, by_position: bool = False) -> Result:
        """Replace the partitions that rows of ``df`` are in, and leave the others alone.

        Raises InvalidRequest for a table without partitions, and what `overwrite` raises.
        """

        def prepare(unit: UnitOfWork) -> Done:
            rows = settled_rows(self._state, unit, self.name)
            return overwrite_partitions(
                self._state.spark,
                rows,
                df,
                by_position=by_position,
                few=few_deletes(self._state, self._unit, rows),
                show_progress=self._state.show_progress,
            )

        self._require_frame(df, "overwrite")
        return carry_out_rows(self._state, self._unit, prepare)

    def truncate(self) -> Result:
        """Delete all rows; no file is read. Older snapshots still show them."""

        def prepare(unit: UnitOfWork) -> Done:
            return truncate_rows(self._state.spark, changed_rows(self._state, unit, self.name))

        return carry_out_rows(self._state, self._unit, prepare)


def merge_into(
    state: LakeState, unit: UnitOfWork | None, rows: TableRows, source: DataFrame, merge: Merge
) -> Done:
    """Merge into rows as one statement of ``unit``, with the columns that the merge asks for."""
    alter = None
    if merge.schema_evolution:
        rows, alter = evolved_rows(rows, evolving_columns(merge, source.schema))
    few = 0 if alter else few_deletes(state, unit, rows)
    done = merge_rows(state.spark, rows, source, merge, few=few, show_progress=state.show_progress)
    return done if done.is_nothing else replace(done, alter=alter)


def _on(on: Condition | Sequence[str]) -> Condition | tuple[str, ...]:
    if isinstance(on, str | Column):
        return on
    if not isinstance(on, list | tuple) or not on or not all(isinstance(n, str) for n in on):
        raise InvalidRequest(
            f"merge on SQL text, a Spark column or a list of columns' names, not on {on!r}"
        )
    return tuple(on)
