"""Statements that change existing rows: DELETE, TRUNCATE, UPDATE, MERGE, RESTORE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shelduck.operations.done import Done
from shelduck.operations.write.delete import delete_rows
from shelduck.operations.write.inlining import limits_of
from shelduck.operations.write.update import update_rows
from shelduck.rows.edit_verbs import merge_into
from shelduck.rows.keyed import changed_rows, settled_rows
from shelduck.spark.merge.merge_clauses import Merge
from shelduck.spark.scan.matching import Where
from shelduck.sql.statements import row_statements as st
from shelduck.sql.statements.upkeep_statements import Restore
from shelduck.statements.merge_clauses import (
    NAMELESS,
    clauses_of,
    expressions_of,
    set_values,
)
from shelduck.statements.runner import Answer, Runner
from shelduck.work.hooks import carry_out_rows
from shelduck.work.results import Result
from shelduck.work.unit import UnitOfWork


def delete(runner: Runner, statement: st.Delete) -> Result:
    """DELETE FROM."""
    condition = statement.rows.condition
    if condition is None:
        return runner.table(statement.name).truncate()

    def prepare(unit: UnitOfWork) -> Done:
        inside = Runner(runner.state, unit)
        rows = changed_rows(unit, inside.name(statement.name))
        with inside.views(condition) as named:
            where = Where(named(condition.text), statement.rows.target.alias)
            few = limits_of(runner.state.store, rows.table).deleted
            register = unit.writer.register
            return delete_rows(runner.state.spark, rows, where, few=few, register=register)

    return carry_out_rows(runner.state, runner.unit, prepare)


def truncate(runner: Runner, statement: st.Truncate) -> Result:
    """TRUNCATE TABLE."""
    return runner.table(statement.name).truncate()


def update(runner: Runner, statement: st.Update) -> Result:
    """UPDATE … SET."""
    target, condition = statement.rows.target, statement.rows.condition

    def prepare(unit: UnitOfWork) -> Done:
        inside = Runner(runner.state, unit)
        rows = settled_rows(unit, inside.name(statement.name))
        with inside.views(condition, *(a.value for a in statement.assignments)) as named:
            where = Where(named(condition.text), target.alias) if condition else None
            return update_rows(
                runner.state.spark,
                rows,
                set_values(target, statement.assignments, rows.table, named),
                where,
                alias=target.alias,
                limits=limits_of(runner.state.store, rows.table),
                show_progress=runner.state.show_progress,
            )

    return carry_out_rows(runner.state, runner.unit, prepare)


def merge(runner: Runner, statement: st.Merge) -> Result:
    """MERGE INTO."""

    def prepare(unit: UnitOfWork) -> Done:
        inside = Runner(runner.state, unit)
        rows = settled_rows(unit, inside.name(statement.name))
        source, on = inside.query(statement.source), statement.condition
        with inside.views(*expressions_of(statement)) as named:
            wanted = Merge(
                on if isinstance(on, tuple) else named(on.text),
                tuple(clauses_of(statement, rows.table, source.columns, named)),
                statement.target.alias,
                statement.source_alias or NAMELESS,
                statement.schema_evolution,
            )
            return merge_into(runner.state, rows, source, wanted)

    return carry_out_rows(runner.state, runner.unit, prepare)


def restore(runner: Runner, statement: Restore) -> Result:
    """RESTORE TABLE ... TO VERSION or TIMESTAMP AS OF."""
    table = runner.table(statement.name)
    return table.restore(version=statement.version, timestamp=statement.timestamp)


RUN: dict[type, Callable[[Runner, Any], Answer]] = {
    st.Delete: delete,
    st.Truncate: truncate,
    st.Update: update,
    st.Merge: merge,
    st.UpdateFrom: merge,
    st.DeleteUsing: merge,
    Restore: restore,
}
