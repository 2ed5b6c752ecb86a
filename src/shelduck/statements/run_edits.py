"""Statements that change existing rows: DELETE, TRUNCATE, UPDATE, MERGE, RESTORE."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from shelduck.model.tables.table import TableVersion
from shelduck.operations.done import Done
from shelduck.operations.write.delete import delete_rows
from shelduck.operations.write.update import update_rows
from shelduck.spark.merge.merge_clauses import Action, Merge, MergeClause, When
from shelduck.spark.rows.assignments import SetValue
from shelduck.spark.scan.matching import Where
from shelduck.sql.statements import row_statements as st
from shelduck.sql.statements.upkeep_statements import Restore
from shelduck.sql.tokens.parts import Expression, Target
from shelduck.statements.runner import Answer, Runner
from shelduck.verbs.table.edits import merge_into
from shelduck.work.lookup import few_deletes
from shelduck.work.results import Result
from shelduck.work.rows.keyed import changed_rows, settled_rows
from shelduck.work.rows.row_work import carry_out_rows
from shelduck.work.unit import UnitOfWork

# The alias of a source without one: its columns are referred to by name alone.
_NAMELESS = "__shelduck_source__"


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
        rows = settled_rows(unit, inside.name(statement.name))
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


def merge(runner: Runner, statement: st.Merge) -> Result:
    """MERGE INTO."""

    def prepare(unit: UnitOfWork) -> Done:
        inside = Runner(runner.state, unit)
        rows = settled_rows(unit, inside.name(statement.name))
        source = inside.query(statement.source)
        with inside.views(*_expressions(statement)) as named:
            wanted = Merge(
                named(statement.condition.text),
                tuple(_clauses(statement, rows.table, named)),
                statement.target.alias,
                statement.source_alias or _NAMELESS,
                statement.schema_evolution,
            )
            return merge_into(runner.state, runner.unit, rows, source, wanted)

    return carry_out_rows(runner.state, runner.unit, prepare)


def restore(runner: Runner, statement: Restore) -> Result:
    """RESTORE TABLE ... TO VERSION or TIMESTAMP AS OF."""
    table = runner.table(statement.name)
    return table.restore(version=statement.version, timestamp=statement.timestamp)


def _expressions(statement: st.Merge) -> Iterator[Expression | None]:
    """Yield all expressions of a MERGE."""
    yield statement.condition
    for clause in (*statement.matched, *statement.not_matched_by_source):
        yield clause.condition
        if isinstance(clause.action, st.UpdateSet):
            yield from (a.value for a in clause.action.assignments)
    for insert in statement.not_matched:
        yield insert.condition
        if isinstance(insert.action, st.InsertRow):
            yield from insert.action.values


def _clauses(
    statement: st.Merge, table: TableVersion, named: Callable[[str], str]
) -> Iterator[MergeClause]:
    def text(found: Expression | None) -> str | None:
        return None if found is None else named(found.text)

    for when, clauses in (
        (When.MATCHED, statement.matched),
        (When.NOT_MATCHED_BY_SOURCE, statement.not_matched_by_source),
    ):
        for clause in clauses:
            condition = text(clause.condition)
            match clause.action:
                case st.DeleteRow():
                    yield MergeClause(when, Action.DELETE, condition=condition)
                case st.UpdateAll():
                    yield MergeClause(when, Action.UPDATE, None, condition)
                case st.UpdateSet(assignments):
                    values = set_values(statement.target, assignments, table, named)
                    yield MergeClause(when, Action.UPDATE, tuple(values), condition)
    for insert in statement.not_matched:
        found = None
        if isinstance(insert.action, st.InsertRow):
            pairs = zip(insert.action.columns, insert.action.values, strict=True)
            found = tuple(SetValue(path, text(value)) for path, value in pairs)
        yield MergeClause(When.NOT_MATCHED, Action.INSERT, found, text(insert.condition))


def set_values(
    target: Target,
    assignments: Sequence[st.Assignment],
    table: TableVersion,
    named: Callable[[str], str],
) -> list[SetValue]:
    """Return assignments of a statement as values, with placeholders replaced by table names."""
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
    st.Merge: merge,
    Restore: restore,
}
