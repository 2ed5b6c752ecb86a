"""INSERT of values or of a query; `insert_forms` has its other forms, `edits` other statements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from shelduck.errors import InvalidRequest
from shelduck.model.tables.schema import Schema
from shelduck.operations.done import inlined
from shelduck.operations.write.inlining import limits_of, literal_batch
from shelduck.rows.appending import Manner, append, is_plain
from shelduck.spark.named_errors import AnalysisException, first_line
from shelduck.spark.session import DataFrame
from shelduck.spark.values import default_sql
from shelduck.sql.rows.insert import is_values, literal_rows, time_word, with_times
from shelduck.sql.statements import statement_values as st
from shelduck.statements.run.insert_forms import insert_over
from shelduck.statements.runner import Answer, Runner
from shelduck.work.results import Result, Staged
from shelduck.work.unit import UnitOfWork, carry_out

_MOST_LITERALS = 1000
_UNREAD = "INVALID_INLINE_TABLE.FAILED_SQL_EXPRESSION_EVALUATION"


def insert(runner: Runner, statement: st.Insert) -> Result:
    """INSERT INTO … VALUES or SELECT, and the forms that replace rows or change columns."""
    if statement.default_values:
        columns = runner.table(statement.name).columns
        row = ", ".join(default_sql(field) or "NULL" for field in columns)
        statement = replace(statement, source=st.Query(f"VALUES ({row})"))
    replaces = statement.mode != "append" or statement.partition or statement.schema_evolution
    done = None if replaces else _insert_literals(runner, statement)
    if done is not None:
        return done
    table = runner.table(statement.name)
    source = statement.source
    if is_values(source):
        # Only VALUES can contain DEFAULT, so only VALUES needs the columns of the table here.
        columns = table.columns
        source = replace(source, text=with_times(source.text, _times(statement, columns)))
        source = _with_defaults(replace(statement, source=source), columns)
    if replaces:
        return insert_over(runner, statement, source)
    rows = _planned(runner, statement, source)
    # Spark splits even two rows of a VALUES list into tasks, and each would write a file.
    if statement.columns is None:
        how = Manner(by_position=not statement.by_name, in_one_task=is_values(source))
        return append(runner.state, runner.unit, table.name, rows, how)
    if len(statement.columns) != len(rows.columns):
        raise InvalidRequest(
            f"INSERT INTO {table.name} lists {len(statement.columns)} column(s),"
            f" but its rows have {len(rows.columns)}"
        )
    how = Manner(in_one_task=is_values(source))
    return append(runner.state, runner.unit, table.name, rows.toDF(*statement.columns), how)


def _planned(runner: Runner, statement: st.Insert, source: st.Query) -> DataFrame:
    """Return the rows of an INSERT; Spark reads the texts of dates and times when it plans them."""
    try:
        return runner.query(source)
    except AnalysisException as error:
        if source.text == statement.source.text or error.getCondition() != _UNREAD:
            raise
        raise InvalidRequest(
            f"INSERT INTO {statement.name}: a text is not the date or time that its column needs:"
            f" {first_line(error)}"
        ) from error


def _insert_literals(runner: Runner, statement: st.Insert) -> Result | None:
    """Insert a few rows of plain literals without Spark; None if Spark is needed."""
    if statement.by_name or statement.defaults:
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
        if runner.unit is not None:
            # A schema change must not end between this statement and the commit.
            table = unit.writer.register(table)
        if not is_plain(table) or len(rows) > limits_of(runner.state.store, table).new:
            return
        batch = literal_batch(table.columns, statement.columns, rows)
        if batch is not None:
            unit.stage(inlined(table, batch))
            has_staged = True

    result = carry_out(runner.state, runner.unit, stage)
    if not has_staged:
        return None
    return result if runner.unit is None else Staged(rows=len(rows), inserted=len(rows))


def _with_defaults(statement: st.Insert, columns: Schema) -> st.Query:
    """Return the source with every DEFAULT replaced by the SQL of its column's default."""
    text = statement.source.text
    for cell in statement.defaults:
        names = statement.targets(columns.names)
        if cell.position >= len(names):
            raise InvalidRequest(f"INSERT INTO {statement.name}: DEFAULT is after the last column")
        field = columns.get((names[cell.position],), str(statement.name))
        text = text.replace(cell.placeholder, default_sql(field) or "NULL")
    return replace(statement.source, text=text)


def _times(statement: st.Insert, columns: Schema) -> list[str | None]:
    """Return for each place of the rows the type of its column, where that is a date or a time."""
    names = statement.targets(columns.names)
    fields = [next((f for f in columns if f.name.lower() == n.lower()), None) for n in names]
    return [time_word(f) for f in fields]


RUN: dict[type, Callable[[Runner, Any], Answer]] = {
    st.Insert: insert,
}
