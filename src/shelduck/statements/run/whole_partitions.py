"""Statements that Hive and Databricks have about partitions, all columns and dropped tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from shelduck.catalog.read.read import dropped_at
from shelduck.errors import AlreadyExists, InvalidRequest, NotFound
from shelduck.model.changes.modify import OrderColumns, TableChange
from shelduck.model.changes.schema_change import AddColumn, ChangeType, DropColumn, SetComment
from shelduck.model.tables.partition import IDENTITY
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.quoting import quote_name
from shelduck.sql.statements import statement_values as st
from shelduck.statements.run.ddl import alter_table, copy_table
from shelduck.statements.runner import Answer, Runner
from shelduck.work.results import Result, Unchanged


def drop_partitions(runner: Runner, statement: st.DropPartitions) -> Result:
    """Delete the rows of partitions; NotFound if there are none, unless IF EXISTS."""
    table = runner.version(statement.name)
    for spec in statement.specs:
        require_keys(table, [column for column, _ in spec.values])
    condition = " OR ".join(f"({spec.condition})" for spec in statement.specs)
    done = runner.table(statement.name).delete(condition)
    if not done.deleted and not statement.if_exists:
        raise NotFound(f"{table.full_name} has no rows in a partition with {condition}")
    return done


def require_keys(table: TableVersion, columns: Iterable[str]) -> None:
    """Raise InvalidRequest for a column that is no partition key itself."""
    keys = {k.column_id for k in table.partition if k.transform == IDENTITY}
    for column in columns:
        field = table.columns.get((column,), table.full_name)
        if field.id not in keys:
            raise InvalidRequest(
                f"{table.full_name} is not partitioned by {quote_name(field.name)} itself; use"
                " DELETE FROM t WHERE"
            )


def replace_columns(runner: Runner, statement: st.ReplaceColumns) -> Result:
    """ALTER TABLE … REPLACE COLUMNS, as the changes of single columns that it stands for."""
    name = runner.name(statement.name)
    if statement.if_exists and not runner.view().workspace.has_table(name):
        return Unchanged(runner.view().workspace.base.id)
    table = runner.version(statement.name)
    known = {field.name.lower(): field for field in table.columns}
    wanted = {column.name.lower(): column for column in statement.columns}
    if len(wanted) < len(statement.columns):
        raise InvalidRequest(f"REPLACE COLUMNS of {table.full_name} names a column twice")
    changes: list[TableChange] = []
    for key, column in wanted.items():
        field = known.get(key)
        if field is None:
            path = (column.name,)
            added = AddColumn(path, column.type, column.default, column.nullable, column.comment)
            changes.append(added)
            continue
        if field.type != column.type:
            changes.append(ChangeType((field.name,), column.type))
        if column.comment is not None:
            changes.append(SetComment((field.name,), column.comment))
    gone = [field for key, field in known.items() if key not in wanted]
    changes += [DropColumn((field.name,)) for field in gone]
    kept = [key for key in known if key in wanted]
    if [*kept, *(key for key in wanted if key not in known)] != list(wanted):
        changes.append(OrderColumns(tuple(c.name for c in statement.columns)))
    if not changes:
        return Unchanged(table.snapshot.id)
    return alter_table(runner, st.AlterTableStatement(statement.name, tuple(changes)))


def undrop_table(runner: Runner, statement: st.UndropTable) -> Result:
    """UNDROP TABLE: a copy of the table as it was before it was dropped."""
    name = runner.name(statement.name)
    if runner.view().workspace.has_table(name):
        raise AlreadyExists(f"table {name} exists; UNDROP TABLE brings back one that was dropped")
    with runner.state.store.read() as connection:
        end = dropped_at(connection, name.home, name.name)
    if end is None:
        raise NotFound(
            f"no table {name} was dropped, or its snapshots expired; see SHOW TABLES",
            about="table",
        )
    copied = st.CopyTableStatement(statement.name, statement.name, True, version=end - 1)
    return copy_table(runner, copied)


def analyze(runner: Runner, statement: st.Analyze) -> Result:
    """ANALYZE TABLE: nothing is left to compute."""
    table = runner.version(statement.name)
    for column in statement.columns:
        table.columns.get((column,), table.full_name)
    return Unchanged(table.snapshot.id)


RUN: dict[type, Callable[[Runner, Any], Answer]] = {
    st.DropPartitions: drop_partitions,
    st.ReplaceColumns: replace_columns,
    st.UndropTable: undrop_table,
    st.Analyze: analyze,
}
