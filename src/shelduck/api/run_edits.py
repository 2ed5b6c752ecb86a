"""Statements that change rows that are there: DELETE, TRUNCATE, UPDATE, MERGE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shelduck.api.lookup import few_deletes, rows_of
from shelduck.api.results import Result
from shelduck.api.runner import Answer, Runner
from shelduck.api.unit import UnitOfWork, carry_out_rows
from shelduck.model.table import TableVersion
from shelduck.operations.delete import delete_rows
from shelduck.operations.done import Done
from shelduck.operations.update import update_rows
from shelduck.spark.assignments import SetValue
from shelduck.spark.matching import Where
from shelduck.sql import row_statements as st
from shelduck.sql.parts import Target


def delete(runner: Runner, statement: st.Delete) -> Result:
    """DELETE FROM."""
    condition = statement.rows.condition
    if condition is None:
        return runner.table(statement.name).truncate()

    def prepare(unit: UnitOfWork) -> Done:
        inside = Runner(runner.state, unit)
        rows = rows_of(runner.state, unit, inside.name(statement.name))
        with inside.views(condition) as named:
            where = Where(named(condition.text), statement.rows.target.alias)
            few = few_deletes(runner.state, runner.unit, rows)
            return delete_rows(runner.state.spark, rows, where, few=few)

    return carry_out_rows(runner.state, runner.unit, prepare)


def truncate(runner: Runner, statement: st.Truncate) -> Result:
    """TRUNCATE TABLE."""
    return runner.table(statement.name).truncate()


def update(runner: Runner, statement: st.Update) -> Result:
    """UPDATE … SET."""
    target, condition = statement.rows.target, statement.rows.condition

    def prepare(unit: UnitOfWork) -> Done:
        inside = Runner(runner.state, unit)
        rows = rows_of(runner.state, unit, inside.name(statement.name))
        with inside.views(condition, *(a.value for a in statement.assignments)) as named:
            where = Where(named(condition.text), target.alias) if condition else None
            return update_rows(
                runner.state.spark,
                rows,
                set_values(target, statement.assignments, rows.table, named),
                where,
                alias=target.alias,
                few=few_deletes(runner.state, runner.unit, rows),
                show_progress=runner.state.show_progress,
            )

    return carry_out_rows(runner.state, runner.unit, prepare)


def set_values(
    target: Target,
    assignments: Sequence[st.Assignment],
    table: TableVersion,
    named: Callable[[str], str],
) -> list[SetValue]:
    """Return assignments of a statement as values, with the names of their tables put in."""
    return [
        SetValue(
            target.column(a.path, table.columns.names),
            None if a.value is None else named(a.value.text),
        )
        for a in assignments
    ]


RUN: dict[type, Callable[[Runner, Any], Answer]] = {
    st.Delete: delete,
    st.Truncate: truncate,
    st.Update: update,
}
