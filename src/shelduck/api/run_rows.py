"""Statements over rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from shelduck.api.keyed import is_plain
from shelduck.api.results import Result
from shelduck.api.run_overwrite import insert_over
from shelduck.api.runner import Answer, Runner
from shelduck.api.unit import UnitOfWork, carry_out
from shelduck.errors import InvalidRequest
from shelduck.model.schema import Schema
from shelduck.operations.done import inlined
from shelduck.operations.inlining import inline_limit
from shelduck.operations.literals import literal_batch
from shelduck.sql import statements as st
from shelduck.sql.defaults import default_for_spark
from shelduck.sql.literal_rows import literal_rows

_MOST_LITERALS = 1000


def insert(runner: Runner, statement: st.Insert) -> Result:
    """INSERT INTO … VALUES or SELECT, and its forms that replace rows or change columns."""
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
    is_values = source.text.lstrip()[:6].upper() == "VALUES"
    append = table.append_values if is_values else table.append
    if statement.columns is None:
        return append(rows, by_position=not statement.by_name)
    if len(statement.columns) != len(rows.columns):
        raise InvalidRequest(
            f"INSERT INTO {table.name} lists {len(statement.columns)} column(s),"
            f" but its rows have {len(rows.columns)}"
        )
    return append(rows.toDF(*statement.columns))


def _insert_literals(runner: Runner, statement: st.Insert) -> Result | None:
    """Insert a few rows of plain literals without Spark; None when it has to look at them."""
    if runner.unit is not None or statement.by_name or statement.defaults:
        return None
    rows = literal_rows(statement.source.text, _MOST_LITERALS)
    if rows is None:
        return None
    has_staged = False

    def stage(unit: UnitOfWork) -> None:
        nonlocal has_staged
        # Staged anew after a Conflict, the table may be another one.
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
            raise InvalidRequest(
                f"INSERT INTO {statement.name}: DEFAULT stands past the last column"
            )
        field = columns.get((names[cell.position],), str(statement.name))
        text = text.replace(cell.placeholder, default_for_spark(field))
    return replace(statement.source, text=text)


RUN: dict[type, Callable[[Runner, Any], Answer]] = {
    st.Insert: insert,
}
