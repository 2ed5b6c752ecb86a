"""Statements over rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from shelduck.errors import InvalidRequest
from shelduck.model.tables.schema import Schema
from shelduck.operations.done import inlined
from shelduck.operations.write.inlining import inline_limit
from shelduck.operations.write.literals import literal_batch
from shelduck.sql.ddl.defaults import default_for_spark
from shelduck.sql.statements import statements as st
from shelduck.sql.tokens.literal_rows import literal_rows
from shelduck.statements.run_overwrite import insert_over
from shelduck.statements.runner import Answer, Runner
from shelduck.work.results import Result
from shelduck.work.rows.appending import Manner, append
from shelduck.work.rows.keyed import is_plain
from shelduck.work.unit import UnitOfWork, carry_out

_MOST_LITERALS = 1000


def insert(runner: Runner, statement: st.Insert) -> Result:
    """INSERT INTO … VALUES or SELECT, and the forms that replace rows or change columns."""
    if statement.mode != "append" or statement.partition or statement.schema_evolution:
        source = statement.source
        if statement.defaults:
            source = _with_defaults(statement, runner.table(statement.name).columns)
        return insert_over(runner, statement, source)
    done = _insert_literals(runner, statement)
    if done is not None:
        return done
    table = runner.table(statement.name)
    source = statement.source
    if statement.defaults:
        source = _with_defaults(statement, table.columns)
    rows = runner.query(source)
    # Spark splits even two rows of a VALUES list into tasks, and each would write a file.
    is_values = source.text.lstrip()[:6].upper() == "VALUES"
    if statement.columns is None:
        how = Manner(by_position=not statement.by_name, in_one_task=is_values)
        return append(runner.state, runner.unit, table.name, rows, how)
    if len(statement.columns) != len(rows.columns):
        raise InvalidRequest(
            f"INSERT INTO {table.name} lists {len(statement.columns)} column(s),"
            f" but its rows have {len(rows.columns)}"
        )
    how = Manner(in_one_task=is_values)
    return append(runner.state, runner.unit, table.name, rows.toDF(*statement.columns), how)


def _insert_literals(runner: Runner, statement: st.Insert) -> Result | None:
    """Insert a few rows of plain literals without Spark; None if Spark is needed."""
    if runner.unit is not None or statement.by_name or statement.defaults:
        return None
    rows = literal_rows(statement.source.text, _MOST_LITERALS)
    if rows is None:
        return None
    has_staged = False

    def stage(unit: UnitOfWork) -> None:
        nonlocal has_staged
        # When staged again after a Conflict, the name may be another table.
        has_staged = False
        table = unit.workspace.table(runner.name(statement.name))
        if not is_plain(table) or len(rows) > inline_limit(runner.state.store, table):
            return
        batch = literal_batch(table.columns, statement.columns, rows)
        if batch is not None:
            unit.stage(inlined(table, batch))
            has_staged = True

    result = carry_out(runner.state, None, stage)
    return result if has_staged else None


def _with_defaults(statement: st.Insert, columns: Schema) -> st.Query:
    """Return the source with every DEFAULT replaced by the SQL of its column's default."""
    text = statement.source.text
    for cell in statement.defaults:
        names = statement.columns or tuple(columns.names)
        if cell.position >= len(names):
            raise InvalidRequest(f"INSERT INTO {statement.name}: DEFAULT is after the last column")
        field = columns.get((names[cell.position],), str(statement.name))
        text = text.replace(cell.placeholder, default_for_spark(field))
    return replace(statement.source, text=text)


RUN: dict[type, Callable[[Runner, Any], Answer]] = {
    st.Insert: insert,
}
