"""Statements that change rows that are there: DELETE, TRUNCATE, UPDATE, MERGE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shelduck.api.lookup import rows_of
from shelduck.api.results import Result
from shelduck.api.runner import Answer, Runner
from shelduck.api.unit import UnitOfWork, carry_out_rows
from shelduck.operations.delete import delete_rows
from shelduck.operations.done import Done
from shelduck.spark.matching import Where
from shelduck.sql import row_statements as st


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
            return delete_rows(runner.state.spark, rows, where)

    return carry_out_rows(runner.state, runner.unit, prepare)


def truncate(runner: Runner, statement: st.Truncate) -> Result:
    """TRUNCATE TABLE."""
    return runner.table(statement.name).truncate()


RUN: dict[type, Callable[[Runner, Any], Answer]] = {
    st.Delete: delete,
    st.Truncate: truncate,
}
