"""Verbs that change existing rows of a table, and the clauses of a merge as Python values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from shelduck.engine.rows.assignments import SetValue, Value
from shelduck.engine.rows.needed_columns import rescue_rows
from shelduck.engine.session import DataFrame, StructType, merges_schemas
from shelduck.errors import InvalidRequest
from shelduck.lake.done import Done
from shelduck.lake.lookup import TableHandle
from shelduck.lake.results import Result
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork
from shelduck.model.changes.evolution import FULL_EVOLUTION, NO_EVOLUTION, Evolution, evolution_of
from shelduck.model.text.names import split_name
from shelduck.read.scan.expect import expected_members
from shelduck.read.scan.matching import Column, Condition, Where, require_condition
from shelduck.read.table_rows import TableRows
from shelduck.write.changes.append import limits_of, placing
from shelduck.write.changes.edits import delete_rows, merge_rows, truncate_rows, update_rows
from shelduck.write.changes.overwrite import overwrite_partitions, overwrite_table, overwrite_where
from shelduck.write.hooks import Prepare, carry_out_rows, changed_rows, settled_rows
from shelduck.write.merge.merge_clauses import (
    Merge,
    MergeAction,
    MergeClause,
    When,
    evolving_columns,
)
from shelduck.write.schema_evolution import evolving, require_by_name


class EditVerbs(TableHandle):
    """Deleting, updating and replacing rows."""

    def delete(self, where: Condition) -> Result:
        """Delete the rows for which ``where`` is true, as SQL text or a Spark column.

        `truncate` deletes all rows. If no row matches, no snapshot is made.

        Raises:
            Conflict: another commit touched the same files or added rows; run it again.
        """
        return self._delete(Where(where))

    def update(self, values: Mapping[str, Value], *, where: Condition | None = None) -> Result:
        """Set columns and struct fields in the rows for which ``where`` is true, by default in all.

        Rows keep their row ids. A row whose values do not change counts as updated too.

        Args:
            values: SQL text or a Spark column for each column name, ``"s.f"`` for a struct's field;
                the text ``DEFAULT`` means the column's default.
            where: SQL text or a Spark column.

        Raises:
            NotFound: the table has no such column.
            InvalidRequest: a type does not fit its column, or a value does not (NULL in a NOT NULL
                column, overflow); the table is unchanged.
            Conflict: another commit touched the same files or added rows; run it again.
        """
        return self._update(values, Where("true" if where is None else where))

    def merge(
        self,
        source: DataFrame,
        on: Condition | Sequence[str],
        *clauses: MergeClause,
        target_alias: str = "t",
        source_alias: str | None = "s",
        schema_evolution: bool = False,
        expect: StructType | str | None = None,
    ) -> Result:
        """Update, delete and insert according to the rows of a source, in one commit.

            table.merge(
                updates,
                "t.id = s.id",
                shelduck.when_matched_update_all(),
                shelduck.when_not_matched_insert_all(),
            )

        The source is computed once. Updated rows keep their row ids. Of the clauses for one kind of
        rows, the first whose condition is true applies.

        Args:
            source: The rows to merge.
            on: When a row of the source matches one of the table: SQL text, a Spark column, or the
                names of columns that must be equal. NULL is equal to nothing.
            clauses: From `shelduck.when_matched_update` and its like, in order.
            target_alias: What conditions and values call the table.
            source_alias: What they call the source; None keeps the alias that its frame has.
            schema_evolution: Add columns and fields that only the source has and widen types, in
                the same snapshot, where a clause takes all columns or names the new one; columns
                and fields that only the table has stay as they are where all columns are set.
            expect: The columns that the writer was built for, as in `append`.

        Raises:
            InvalidRequest: there is no clause, types or values do not fit, or several rows of the
                source would change one row of the table; the table is unchanged.
            Conflict: another commit touched the same files or added rows; run it again.
        """
        self._require_frame(source, "merge into")
        wanted = Merge(_on(on), clauses, target_alias, source_alias, schema_evolution)
        wanted = replace(wanted, expects=tuple(expected_members(expect)))

        return self._carried(
            lambda unit: merge_into(self._state, settled_rows(unit, self.name), source, wanted)
        )

    def overwrite(
        self,
        df: DataFrame,
        *,
        where: Condition | None = None,
        by_position: bool = False,
        evolve: str | Collection[str] | None = None,
        rescue: str | None = None,
        merge_schema: bool = False,
        expect: StructType | str | None = None,
    ) -> Result:
        """Replace all rows, or those for which ``where`` is true, by the rows of ``df``.

        Older snapshots still show the old rows.

        Args:
            df: The new rows; it may read the table itself. Its columns are matched as in `append`.
            where: A condition in Spark SQL or a Column; by default all rows are replaced.
            by_position: Match columns by their place instead of their name.
            evolve: What the rows may change in the columns of the table, as in `append`.
            rescue: A column for values that do not fit, as in `append`.
            merge_schema: Spark's name for ``evolve="all"``.
            expect: The columns that the writer was built for, as in `append`.

        Raises:
            InvalidRequest: rows do not fit the columns, or some do not satisfy ``where`` (the
                message says how many); the table is unchanged.
            Conflict: another commit touched the same files or added rows; run it again.
        """
        expects = expected_members(expect)
        evolution = evolution_of(evolve, rescue, merges=merge_schema, expects=expects)
        if where is None:
            return self._overwrite(overwrite_table, df, by_position, evolution)
        chosen = partial(overwrite_where, where=Where(where))
        return self._overwrite(chosen, df, by_position, evolution)

    def overwrite_partitions(
        self,
        df: DataFrame,
        *,
        by_position: bool = False,
        evolve: str | Collection[str] | None = None,
        rescue: str | None = None,
        merge_schema: bool = False,
        expect: StructType | str | None = None,
    ) -> Result:
        """Replace the partitions that the rows of ``df`` are in, and keep the others.

        As in Spark, a table without partitions is replaced as a whole.

        Args:
            df: The new rows; it may read the table itself. Its columns are matched as in `append`.
            by_position: Match columns by their place instead of their name.
            evolve, rescue, merge_schema, expect: As in `overwrite`.

        Raises what `overwrite` raises.
        """
        expects = expected_members(expect)
        evolution = evolution_of(evolve, rescue, merges=merge_schema, expects=expects)
        return self._overwrite(overwrite_partitions, df, by_position, evolution)

    def _delete(self, chosen: Where) -> Result:
        """Delete rows of a choice that may know the table by an alias."""
        return self._carried(lambda unit: delete_from(unit, changed_rows(unit, self.name), chosen))

    def _update(self, values: Mapping[str, Value], chosen: Where) -> Result:
        """Set columns in such rows."""
        set_values = assignments(values)

        return self._carried(
            lambda unit: update_in(self._state, settled_rows(unit, self.name), set_values, chosen)
        )

    def _overwrite(
        self, replaced: Callable[..., Done], df: DataFrame, by_position: bool, evolution: Evolution
    ) -> Result:
        """Replace rows by those of ``df``; ``replaced`` is one of the ways to overwrite."""
        state = self._state

        def write(rows: TableRows) -> Done:
            how = placing(state, rows.table, by_position=by_position)
            new = df
            if evolution.rescue is not None:
                new, _ = rescue_rows(df, rows.table, evolution.rescue)
            return replaced(state.spark, rows, new, how=how)

        def prepare(unit: UnitOfWork) -> Done:
            return evolving(state, settled_rows(unit, self.name), df.schema, evolution, write)

        self._require_frame(df, "overwrite")
        require_by_name(f"overwrite {self.name}", evolution, by_position=by_position)
        return carry_out_rows(state, self._unit, prepare)

    def truncate(self) -> Result:
        """Delete all rows; no file is read. Older snapshots still show them."""
        spark = self._state.spark
        return self._carried(lambda unit: truncate_rows(spark, changed_rows(unit, self.name)))

    def _carried(self, prepare: Prepare) -> Result:
        return carry_out_rows(self._state, self._unit, prepare)


def delete_from(unit: UnitOfWork, rows: TableRows, where: Where) -> Done:
    """Delete the rows for which a condition is true."""
    few = limits_of(unit.state.store, rows.table).deleted
    return delete_rows(unit.state.spark, rows, where, few=few, register=unit.writer.register)


def update_in(state: LakeState, rows: TableRows, values: Sequence[SetValue], where: Where) -> Done:
    """Set values in the rows for which a condition is true."""
    return update_rows(state.spark, rows, values, where, placing(state, rows.table))


def merge_into(state: LakeState, rows: TableRows, source: DataFrame, merge: Merge) -> Done:
    """Merge into rows as one statement, with the columns that the merge asks for."""
    evolution, given = NO_EVOLUTION, StructType()
    if not merge.schema_evolution and _differs(merge, source, rows):
        # Delta's setting, which is asked for only where it matters.
        merge = replace(merge, schema_evolution=merges_schemas(state.spark))
    if merge.schema_evolution:
        evolution, given = FULL_EVOLUTION, evolving_columns(merge, source.schema)
    evolution = replace(evolution, expects=merge.expects)

    def write(rows: TableRows) -> Done:
        return merge_rows(state.spark, rows, source, merge, placing(state, rows.table))

    return evolving(state, rows, given, evolution, write)


def _differs(merge: Merge, source: DataFrame, rows: TableRows) -> bool:
    """Tell whether ``*`` of a merge means other columns than the table has."""
    if all(clause.values is not None for clause in merge.clauses):
        return False
    names = {name.lower() for name in rows.table.columns.names}
    return {name.lower() for name in source.columns} != names


def _on(on: Condition | Sequence[str]) -> Condition | tuple[str, ...]:
    if isinstance(on, str | Column):
        return on
    if not isinstance(on, list | tuple) or not on or not all(isinstance(n, str) for n in on):
        raise InvalidRequest(
            "the condition of a merge must be SQL text, a Spark column or a list of column names,"
            f" not {on!r}"
        )
    return tuple(on)


def when_matched_update(
    values: Mapping[str, Value], *, condition: Condition | None = None
) -> MergeClause:
    """Set columns and struct fields of a row that a row of the source matches.

    Args:
        values: As in `Table.update`; ``{"n": "t.n + s.n"}`` uses both rows.
        condition: Also true of the row, as SQL or a Column over both rows.
    """
    return _clause(When.MATCHED, MergeAction.UPDATE, assignments(values), condition)


def when_matched_update_all(*, condition: Condition | None = None) -> MergeClause:
    """Set every column of a matched row to the source's column of the same name.

    With ``condition``, only where it is true of both rows.
    """
    return _clause(When.MATCHED, MergeAction.UPDATE, None, condition)


def when_matched_delete(*, condition: Condition | None = None) -> MergeClause:
    """Delete a row that a row of the source matches and, with ``condition``, that this selects."""
    return _clause(When.MATCHED, MergeAction.DELETE, (), condition)


def when_not_matched_insert(
    values: Mapping[str, Value], *, condition: Condition | None = None
) -> MergeClause:
    """Insert a row of the source that matches none; columns without a value get their default.

    Args:
        values: As in `Table.update`, over the source alone.
        condition: Also true of the row of the source.
    """
    return _clause(When.NOT_MATCHED, MergeAction.INSERT, assignments(values), condition)


def when_not_matched_insert_all(*, condition: Condition | None = None) -> MergeClause:
    """Insert a row of the source that matches none, each column from that of the same name.

    With ``condition``, only where it is true of the row of the source.
    """
    return _clause(When.NOT_MATCHED, MergeAction.INSERT, None, condition)


def when_not_matched_by_source_update(
    values: Mapping[str, Value], *, condition: Condition | None = None
) -> MergeClause:
    """Set columns of a row that no row of the source matches.

    Args:
        values: As in `Table.update`, over the table alone.
        condition: Also true of the row of the table.
    """
    return _clause(When.NOT_MATCHED_BY_SOURCE, MergeAction.UPDATE, assignments(values), condition)


def when_not_matched_by_source_delete(*, condition: Condition | None = None) -> MergeClause:
    """Delete a row that no row of the source matches and, with ``condition``, that this selects."""
    return _clause(When.NOT_MATCHED_BY_SOURCE, MergeAction.DELETE, (), condition)


def assignments(values: Mapping[str, Value]) -> tuple[SetValue, ...]:
    """Return what a mapping of paths to values assigns; ``DEFAULT`` is a column's default."""
    if not values:
        raise InvalidRequest('no column is set; pass {"column": value, ...}')
    return tuple(SetValue(split_name(path), _value(value)) for path, value in values.items())


def _value(value: Value) -> Value | None:
    is_default = isinstance(value, str) and value.strip().upper() == "DEFAULT"
    return None if is_default else value


def _clause(
    when: When,
    action: MergeAction,
    values: tuple[SetValue, ...] | None,
    condition: Condition | None,
) -> MergeClause:
    if condition is not None:
        require_condition(condition)
    return MergeClause(when, action, values, condition)
